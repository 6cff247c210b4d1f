"""A run's records in a file: one JSON line each, appended as they come."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agl.loop.records import Begun, Record, record_from_json, record_to_json
from agl.loop.trajectory import Trajectory
from agl.ports.errors import CorruptDocument, NewerFormat, StateError, UpstreamError

FORMAT = 1

# `dict`: the arguments of calls are read-only mappings.
_encoded = json.JSONEncoder(default=dict, separators=(",", ":"), check_circular=False).encode


class Checkpoint:
    """Where a run is kept, so that `Agent.run` with the same prompt goes on where it ended.

    A process that is killed at any instruction loses nothing that was written. With
    `survives_power_cut` the disk is waited for before tools run, some milliseconds a turn.

    A call is run at most once: it is written as begun before it is. One that was begun and has no
    answer is not run again; the model is told that it may or may not have happened.
    """

    def __init__(self, path: Path | str, *, survives_power_cut: bool = False) -> None:
        self.path = Path(path)
        self.survives_power_cut = survives_power_cut

    @contextmanager
    def opened(self) -> Iterator[Trajectory]:
        """Holds the file, and gives what is recorded as a trajectory that records on. Its `keep`
        raises UpstreamError when the disk refuses.

        Raises:
            StateError: another run holds it.
            CorruptDocument, NewerFormat, UpstreamError: it cannot be used.
        """
        lines = _Lines(self.path)
        try:
            written = lines.read()
            if not written:
                lines.append({"format": FORMAT})
                if self.survives_power_cut:
                    lines.wait_for_folder()

            def keep(record: Record) -> None:
                lines.append(record_to_json(record))
                if self.survives_power_cut and isinstance(record, Begun):
                    lines.wait_for_disk()

            yield _replayed(self.path, written, Trajectory(keep))
            if self.survives_power_cut:
                lines.wait_for_disk()
        finally:
            lines.close()


def _replayed(path: Path, written: list[bytes], state: Trajectory) -> Trajectory:
    for number, line in enumerate(written, start=1):
        if number == 1:
            _check_format(path, line)
            continue
        try:
            state.take(record_from_json(_json(line)))
        except ValueError as error:
            raise CorruptDocument(
                f"checkpoint {str(path)!r}, line {number}: {error}; move the file away to begin"
                " again"
            ) from error
    written.clear()
    return state


def _check_format(path: Path, line: bytes) -> None:
    match _json(line):
        case {"format": int(written)} if written > FORMAT:
            raise NewerFormat(
                f"checkpoint {str(path)!r} was written by a newer AGL (format {written}, this one"
                f" reads {FORMAT}); upgrade AGL"
            )
        case {"format": 1}:
            return
    raise CorruptDocument(f"{str(path)!r} is no checkpoint of a run; name another file")


def _json(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class _Lines:
    """A file of JSON lines, held by this process alone. A torn last line is cut off."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._refused(error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise StateError(
                f"checkpoint {str(path)!r} is in use by another run; wait for its end"
            ) from error

    def read(self) -> list[bytes]:
        with open(self._file, "rb", closefd=False) as file:
            *whole, torn = file.read().split(b"\n")
        self._size = sum(map(len, whole)) + len(whole)
        if torn:
            os.ftruncate(self._file, self._size)
        return whole

    def append(self, document: object) -> None:
        line = _encoded(document).encode() + b"\n"
        try:
            if os.write(self._file, line) == len(line):
                self._size += len(line)
                return
            os.ftruncate(self._file, self._size)
        except OSError as error:
            raise self._refused(error) from error
        raise UpstreamError(
            f"checkpoint {str(self._path)!r} cannot be written: no space; free some"
        )

    def wait_for_disk(self) -> None:
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._refused(error) from error

    def wait_for_folder(self) -> None:
        """A new file's name is its folder's."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        os.close(self._file)

    def _refused(self, error: OSError) -> UpstreamError:
        return UpstreamError(
            f"checkpoint {str(self._path)!r} cannot be written: {error.strerror}; name another file"
        )
