"""The example clients that come with the official Rust crate, of both versions of the protocol."""

import asyncio
import os
import shlex

import rig as place
from rig import equal, holds, tool


async def rust_turn(rig):
    """Text, a tool that needs permission, and text."""
    made = rig.project / "made.txt"
    prompt = "\n".join(["%say before", tool("Write", "+", file_path=made, content="made"), "%say after"])
    out, err = await _run(rig, os.environ["ACP_RUST_CLIENT"], prompt)
    equal(made.read_text(), "made", "the file")
    for kind in ("AgentMessageChunk", "ToolCall(", "ToolCallUpdate"):
        holds(kind in out, f"there is a {kind} in {out[:2000]!r}")
    holds("Stop reason: EndTurn" in err, f"the turn ends: {err[-500:]!r}")


async def rust_draft(rig):
    """The draft of version 2: text, a tool that the client refuses, a tool that needs no leave, and text."""
    (rig.project / "there.txt").write_text("what is there\n")
    made = rig.project / "made.txt"
    prompt = "\n".join(
        [
            "%say before",
            tool("Write", "+", file_path=made, content="made"),
            tool("Read", file_path=rig.project / "there.txt"),
            "%say after",
        ]
    )
    out, err = await _run(rig, os.environ["ACP_RUST_DRAFT_CLIENT"], prompt)
    holds(not made.exists(), "what was refused is not done")
    holds("rejecting it once" in err, f"the client was asked: {err[-500:]!r}")
    holds("before" in out and out.rstrip().endswith("after"), f"the text is there: {out!r}")
    holds("Session is idle: Some(EndTurn)" in err, f"the turn ends: {err[-500:]!r}")


async def _run(rig, client, prompt):
    process = await asyncio.create_subprocess_exec(
        client,
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
    equal(process.returncode, 0, f"the exit status: {err[-500:]!r}")
    return out, err
