"""`acpx`, the command-line client."""

import asyncio
import json
import os
import shlex

import rig as place
from rig import equal, holds, tool, until


async def acpx_turn(rig):
    """Text, a tool that needs permission, and text."""
    made = rig.project / "made.txt"
    said = await _acpx(rig, "--approve-all", "exec", "\n".join(["%say before", tool("Write", "+", file_path=made, content="made"), "%say after"]))
    equal(made.read_text(), "made", "the file")
    holds("before" in text(said) and "after" in text(said), f"it says {text(said)!r}")


async def acpx_deny(rig):
    """A call that is refused does not run."""
    made = rig.project / "made.txt"
    await _acpx(rig, "--deny-all", "exec", tool("Write", file_path=made, content="made") + "\n%say so be it", fails=None)
    holds(not made.exists(), "the call did not run")


async def acpx_cancel(rig):
    """A turn that is cancelled from another process."""
    await _acpx(rig, "sessions", "new")
    mark = rig.project / "mark"
    call = tool("Bash", command="touch mark; sleep 60", description="Wait")
    turn = asyncio.create_task(_acpx(rig, "--approve-all", "prompt", call, fails=None))
    await until(mark.exists, "the tool runs", 60)
    said = await _acpx(rig, "cancel")
    holds(any(isinstance(line, dict) and line.get("cancelled") for line in said), f"it is cancelled: {said}")
    holds('"stopReason": "cancelled"' in json.dumps(await turn), "it ends as cancelled")
    await _acpx(rig, "sessions", "close")


async def _acpx(rig, *arguments, fails=False):
    """Runs it; what it says, line by line."""
    process = await asyncio.create_subprocess_exec(
        os.environ["ACPX_NODE"],
        os.environ["ACPX"],
        "--agent",
        shlex.join(place.AGENT),
        "--cwd",
        str(rig.project),
        "--format",
        "json",
        *arguments,
        env=rig.env,
        cwd=rig.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 << 20,
    )
    out, err = await process.communicate()
    if fails is not None:
        equal(process.returncode != 0, fails, f"whether it fails ({err.decode()[-500:]})")
    lines = []
    for line in out.decode().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            lines.append(line)
    rig.lines += [("acpx", line) for line in lines]
    return lines


def text(said):
    """The text in what it says."""
    found = ""
    for line in said:
        update = line.get("params", {}).get("update", {}) if isinstance(line, dict) else {}
        if update.get("sessionUpdate") == "agent_message_chunk":
            found += update["content"].get("text", "")
    return found
