"""The tools with which AGL's own agents work in a tree."""

from agl.adapters.worktools.toolbox import WorkTools

__all__ = ["WorkTools"]
