"""`agl run split`: divide a request into chunks, work on them side by side, land each."""

from agl.workflows.split.workflow import Params, split

__all__ = ["Params", "split"]
