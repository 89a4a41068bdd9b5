"""The example client that comes with the official Rust crate."""

import asyncio
import os
import shlex

import rig as place
from rig import equal, holds, tool


async def rust_turn(rig):
    """Text, a tool that needs permission, and text."""
    made = rig.project / "made.txt"
    prompt = "\n".join(["%say before", tool("Write", "+", file_path=made, content="made"), "%say after"])
    process = await asyncio.create_subprocess_exec(
        os.environ["ACP_RUST_CLIENT"],
        "--command",
        shlex.join(place.AGENT),
        prompt,
        env=rig.env,
        cwd=rig.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 << 20,
    )
    out, err = (said.decode() for said in await process.communicate())
    rig.lines.append(("rust", {"out": out, "err": err}))
    equal(process.returncode, 0, "the exit status")
    equal(made.read_text(), "made", "the file")
    for kind in ("AgentMessageChunk", "ToolCall(", "ToolCallUpdate"):
        holds(kind in out, f"there is a {kind} in {out[:2000]!r}")
    holds("Stop reason: EndTurn" in err, f"the turn ends: {err[-500:]!r}")
