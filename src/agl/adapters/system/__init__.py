"""This machine: its processes and its clock."""

from agl.adapters.system.clock import SystemClock
from agl.adapters.system.processes import SystemProcesses

__all__ = ["SystemClock", "SystemProcesses"]
