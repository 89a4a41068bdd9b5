"""What the registry of agents asks of an agent before it lists it, and what an editor that lists it does next."""

import asyncio
import json

import rig as place
from rig import equal, holds


async def registry(rig):
    """The first line is the reply to `initialize`, with a way to sign in, and the command for it finds a CLI without the agent's environment."""
    env = {name: rig.env[name] for name in ("PATH", "HOME", "TMPDIR")} | {"TERM": "dumb"}
    if cli := rig.env.get("CLAUDE_CODE_EXECUTABLE"):
        env["CLAUDE_CODE_EXECUTABLE"] = cli
    agent = await asyncio.create_subprocess_exec(
        *place.AGENT,
        env=env,
        cwd=rig.project,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    capabilities = {
        "terminal": True,
        "fs": {"readTextFile": True, "writeTextFile": True},
        "_meta": {"terminal_output": True, "terminal-auth": True},
    }
    asked = {"protocolVersion": 1, "clientInfo": {"name": "registry", "version": "1.0.0"}, "clientCapabilities": capabilities}
    agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}).encode() + b"\n")
    reply = json.loads(await agent.stdout.readline())
    methods = reply["result"]["authMethods"]
    holds(any(method["type"] in ("agent", "terminal") for method in methods), f"there is a way to sign in: {methods}")
    agent.stdin.close()
    equal(await asyncio.wait_for(agent.wait(), 10), 0, "the exit status")

    # What an editor starts in a terminal.
    for method in methods:
        whole = method["_meta"]["terminal-auth"]
        before = whole["args"].index("--cli")
        signs_in = await asyncio.create_subprocess_exec(
            whole["command"],
            *whole["args"][:before],
            "--cli",
            "--version",
            env={name: rig.env[name] for name in ("HOME", "TMPDIR", "CLAUDE_CONFIG_DIR")} | whole.get("env", {}),
            cwd=rig.project,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await signs_in.communicate()
        holds(b"Claude Code" in said, f"the CLI is found for {method['id']}: {said!r}")
        equal(signs_in.returncode, 0, f"the exit status of {method['id']}")
