"""The ledger, its log and its locks in a folder."""

from agl.adapters.filesystem.event_log import FilesystemEventLog
from agl.adapters.filesystem.locks import FilesystemLocks
from agl.adapters.filesystem.store import FilesystemStore

__all__ = ["FilesystemEventLog", "FilesystemLocks", "FilesystemStore"]
