"""`agl run fix`: implement a request, build it, have it reviewed, repair it."""

from agl.workflows.fix.workflow import Params, fix

__all__ = ["Params", "fix"]
