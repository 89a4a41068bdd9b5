"""MCP servers that the client brings along."""

import json
import sys
from pathlib import Path

import mcp_server
from acp import schema
from official import allow, talk
from rig import equal, holds, tool

SCRIPT = Path(__file__).with_name("mcp_server.py")


def program(name, **env):
    """A server that is a program."""
    env = [schema.EnvVariable(name=key, value=value) for key, value in env.items()]
    return schema.McpServerStdio(name=name, command=sys.executable, args=["-B", str(SCRIPT)], env=env)


async def _works(rig, server, secret):
    """A tool of the server is asked about and runs, and its result is shown; what the server was told reached it."""
    async with talk(rig, session=False) as on:
        await on.new(servers=[server])
        on.client.permit = allow()
        await on.says(tool("mcp__lab__echo", text="from far away"), "%say done")
        call = rig.call("mcp__lab__echo")
        equal((call["title"], call["kind"]), ("echo (lab)", "other"), "the title and the kind")
        equal(call["statuses"], ["pending", "in_progress", "completed"], "the statuses")
        equal(call["rawInput"], {"text": "from far away"}, "the input")
        holds("from far away" in str(call["content"]), f"the result is in {call['content']}")
        (asked, _) = on.client.permissions[0]
        equal(asked.tool_call_id, call["toolCallId"], "the call that is asked about")
        await on.says(tool("mcp__lab__told", text="X-SECRET"), "%say done")
        holds(secret in str(rig.call("mcp__lab__told")["content"]), "the server was told what it was to be told")
        for _, command in rig.processes():
            holds(secret not in command, f"a secret is in the command line {command}")
        await on.says(tool("mcp__lab__fail"), "%say done")
        equal(rig.call("mcp__lab__fail")["statuses"][-1], "failed", "the last status of the call that fails")


async def servers_stdio(rig):
    """A server that is a program, with its environment."""
    await _works(rig, program("lab", **{"X-SECRET": "sesame-1"}), "sesame-1")


async def servers_http(rig):
    """A server over HTTP, with its headers."""
    with mcp_server.serve() as url:
        headers = [schema.HttpHeader(name="X-SECRET", value="sesame-2")]
        await _works(rig, schema.HttpMcpServer(type="http", name="lab", url=f"{url}/mcp", headers=headers), "sesame-2")


async def servers_sse(rig):
    """A server over HTTP with server-sent events, with its headers."""
    with mcp_server.serve() as url:
        headers = [schema.HttpHeader(name="X-SECRET", value="sesame-3")]
        await _works(rig, schema.SseMcpServer(type="sse", name="lab", url=f"{url}/sse", headers=headers), "sesame-3")


async def servers_named_badly(rig):
    """Names that Claude Code would not take, or would mix up, are refused, and say so."""
    async with talk(rig, session=False) as on:
        for names in (["ide"], ["Claude Preview"], [" "], ["a", "a"], ["a b", "a.b"], ["a", "a__b"]):
            refused = await on.refuses(on.new(servers=[program(name) for name in names]), -32602)
            holds(refused.data["parameter"].startswith("mcpServers["), f"{refused.data} names the server")
        # One that it takes has the name that it is given there.
        await on.new(servers=[program("my server")])
        on.client.permit = allow()
        await on.says(tool("mcp__my_server__echo", text="named well"), "%say done")
        holds("named well" in json.dumps(rig.call()["content"]), "the tool ran")
