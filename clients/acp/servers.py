"""MCP servers that the client brings along."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import mcp_server
from acp import schema
from life import cli
from official import allow, talk
from rig import equal, holds, tool, until

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


async def servers_change(rig):
    """Servers come and go while the session runs, fare as is told, and are there again when the CLI died."""
    async with talk(rig, session=False) as on:

        async def ask(method, **params):
            return await on.connection.ext_method(f"session/{method}", {"sessionId": on.session} | params)

        async def names():
            told = await ask("mcp_status")
            holds("SECRET" not in json.dumps(told), f"nothing secret is in {told}")
            return {server["name"]: server["status"] for server in told["servers"]}

        def as_json(*servers):
            return [server.model_dump(mode="json", by_alias=True, exclude_none=True) for server in servers]

        on.client.permit = allow()
        offered = on.initialized.agent_capabilities.field_meta["claudeCode"]["mcpServers"]
        equal(offered, {"set": True, "status": True, "reconnect": True, "toggle": True}, "what is offered")
        await on.new(servers=[program("one"), program("kept")])
        await on.says("%say that begins it")
        equal(await names(), {"one": "connected", "kept": "connected"}, "the servers at first")

        servers = as_json(program("kept"), program("two", TOKEN="SECRET"), program("broken"))
        servers[2]["command"] = "/no/such/program"
        told = await ask("set_mcp_servers", mcpServers=servers)
        equal(told["removed"], ["one"], "what was removed")
        holds({"two", "broken"} <= set(told["added"]), f"two is among {told['added']}")
        equal(list(told["errors"]), ["broken"], "what failed")
        now = {"kept": "connected", "two": "connected", "broken": "failed"}
        equal(await names(), now, "the servers then")
        await on.says(tool("mcp__two__echo", text="from the second"), "%say done")
        holds("from the second" in str(rig.call("mcp__two__echo")["content"]), "its tool runs")

        for pid in cli(rig):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not cli(rig), "the CLI is gone")
        equal(await names(), now, "the servers of the new process")
        await on.says(tool("mcp__two__told", text="TOKEN"), "%say done")
        holds("SECRET" in str(rig.call("mcp__two__told")["content"]), "it was told again what it is to be told")

        await ask("mcp_toggle", serverName="two", enabled=False)
        equal((await names())["two"], "disabled", "what was switched off")
        await ask("mcp_toggle", serverName="two", enabled=True)
        await ask("mcp_reconnect", serverName="two")
        equal((await names())["two"], "connected", "what was switched on again")
        refused = await on.refuses(ask("mcp_reconnect", serverName="nothing"), -32602)
        holds("nothing" in str(refused), f"{refused} names the server")
        await on.refuses(ask("set_mcp_servers", mcpServers=as_json(program("a"), program("a"))), -32602)
        told = await ask("set_mcp_servers", mcpServers=[])
        equal(sorted(told["removed"]), ["broken", "kept", "two"], "what was removed at last")
        equal(await names(), {}, "the servers at last")


async def servers_ask(rig):
    """A server asks the user: by a form, by an address; who can show neither declines for the user, and a cancel takes it back."""
    able = schema.ElicitationCapabilities(
        form=schema.ElicitationFormCapabilities(), url=schema.ElicitationUrlCapabilities()
    )

    async def said(on, name):
        """What the server was answered."""
        await on.says(tool(f"mcp__lab__{name}"), "%say done")
        calls = [update for update in rig.updates("tool_call_update") if update.get("status") == "completed"]
        return str(calls[-1]["content"])

    async with talk(rig, session=False, elicitation=able) as on:
        on.client.permit = allow()
        await on.new(servers=[program("lab")])

        async def form(message, mode):
            equal(message, "Where to?", "the question")
            holds(list(mode.requested_schema.properties) == ["city", "nights"], f"{mode} has the fields in order")
            return schema.AcceptElicitationResponse(action="accept", content={"city": "Oslo", "nights": 2})

        on.client.form = form
        answered = await said(on, "ask")
        holds("accept" in answered and "Oslo" in answered, f"the server was answered {answered}")

        async def refuse(_message, _mode):
            return schema.DeclineElicitationResponse(action="decline")

        on.client.form = refuse
        answered = await said(on, "ask")
        holds("decline" in answered, f"the server was answered {answered}")

        async def visit(message, mode):
            equal(message, "Please log in", "the question")
            equal(str(mode.url), mcp_server.URL["url"], "the address")
            return schema.AcceptElicitationResponse(action="accept")

        on.client.form = visit
        answered = await said(on, "visit")
        holds("accept" in answered, f"the server was answered {answered}")

        asked, gone = asyncio.Event(), asyncio.Event()

        async def nothing(_message, _mode):
            asked.set()
            await gone.wait()
            return schema.CancelElicitationResponse(action="cancel")

        on.client.form = nothing
        turn = asyncio.create_task(on.prompt(tool("mcp__lab__ask")))
        await asked.wait()
        await on.connection.cancel(session_id=on.session)
        equal((await turn).stop_reason, "cancelled", "the stop reason")
        gone.set()

    async with talk(rig, session=False) as on:
        on.client.permit = allow()
        await on.new(servers=[program("lab")])
        for name in ("ask", "visit"):
            answered = await said(on, name)
            holds("decline" in answered, f"the server was answered {answered}")
        equal(on.client.forms, [], "forms")
