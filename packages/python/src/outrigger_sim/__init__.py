"""Tests programs that drive the Claude Code CLI, without a key and without a network.

:func:`binary` is the simulated ``claude``. :class:`Simulation` has it play a script for one test, in a home of its own, and says
afterwards what went through. With pytest the fixture ``claude_sim`` makes simulations and judges them at the end of the test.
"""

from .binary import BinaryMissing, binary
from .simulation import Discontent, Script, Simulation
from .trace import Flaw, Frame, HookCall, PermissionRequest, Process, ToolCall, Trace

__all__ = [
    "BinaryMissing",
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
