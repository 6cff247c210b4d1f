"""Reading the index for entries that hide their file from `git status`."""

from __future__ import annotations

import struct

# gitformat-index(5): 62 bytes of an entry come before its path with SHA-1, 74 with SHA-256.
_BEFORE_PATH = {40: 62, 64: 74}
_ASSUME_VALID = 0x8000
_EXTENDED = 0x4000
_SKIP_WORKTREE = 0x4000
_NAME_MASK = 0xFFF


def hides_entries(index: bytes, id_digits: int, *, sparse: bool = False) -> bool:
    """Whether an entry is flagged assume-unchanged or, in a tree that is not sparse, skip-worktree.
    A broken index hides none."""
    try:
        signature, version, count = struct.unpack_from(">4sII", index)
        if signature != b"DIRC":
            return False
        return _any_flag(index, version, count, _BEFORE_PATH[id_digits], skipped=not sparse)
    except (struct.error, ValueError, KeyError):
        return False


def _any_flag(index: bytes, version: int, count: int, before_path: int, *, skipped: bool) -> bool:
    flags_at = struct.Struct(">H").unpack_from
    at = 12
    for _ in range(count):
        (flags,) = flags_at(index, at + before_path - 2)
        path = at + before_path
        if flags & _ASSUME_VALID:
            return True
        if flags & _EXTENDED:
            (more,) = flags_at(index, path)
            if skipped and more & _SKIP_WORKTREE:
                return True
            path += 2
        if version == 4:
            while index[path] & 0x80:
                path += 1
            at = index.index(0, path + 1) + 1
            continue
        length = flags & _NAME_MASK
        end = path + length if length < _NAME_MASK else index.index(0, path)
        at += (end - at + 8) & ~7
    return False
