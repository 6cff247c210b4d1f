"""For workflow authors and adapter authors: the harness, and one contract suite per port."""

from agl.ports.scripts import Play
from agl.testing.harness import Harness, Interrupted, harness

__all__ = ["Harness", "Interrupted", "Play", "harness"]
