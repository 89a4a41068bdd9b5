"""Tests programs that drive the Claude Code CLI, without a key and without a network.

:func:`binary` is the simulated ``claude``. :class:`Simulation` has it, or the real one, play a script for one test, in a home of its own,
and says afterwards what went through. With pytest the fixture ``claude_sim`` makes simulations and judges them at the end of the test.
"""

from .binary import BinaryMissing, binary
from .player import CannotPlay
from .simulation import Discontent, Script, Simulation
from .trace import Flaw, Frame, HookCall, PermissionRequest, Process, ToolCall, Trace

__all__ = [
    "BinaryMissing",
    "CannotPlay",
    "Discontent",
    "Flaw",
    "Frame",
    "HookCall",
    "PermissionRequest",
    "Process",
    "Script",
    "Simulation",
    "ToolCall",
    "Trace",
    "binary",
]
