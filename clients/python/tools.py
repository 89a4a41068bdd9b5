"""Tools that run in the host: in-process MCP servers."""

from claude_agent_sdk import create_sdk_mcp_server, tool

from rig import content, equal, holds, init, succeeded, tool_results, turn


@tool("add", "Adds two numbers", {"a": int, "b": int})
async def _add(arguments):
    return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}


@tool("fail", "Fails", {"why": str})
async def _fail(arguments):
    return {"content": [{"type": "text", "text": arguments["why"]}], "is_error": True}


@tool("explode", "Raises an exception", {})
async def _explode(arguments):
    raise RuntimeError("out of paper")


def options():
    server = create_sdk_mcp_server("desk", tools=[_add, _fail, _explode])
    names = [f"mcp__desk__{name}" for name in ("add", "fail", "explode")]
    return {"mcp_servers": {"desk": server}, "allowed_tools": names}


async def mcp_call(rig):
    """A tool of the host is listed, called through the bridge, and its answer reaches the model."""
    async with rig.client(**options()) as client:
        messages = await turn(client, '%tool mcp__desk__add {"a": 2, "b": 3}\n%say done')
        status = await client.get_mcp_status()
    succeeded(messages, "done")
    equal([content(block) for block in tool_results(messages)], ["5"], "tool results")
    start = init(messages)
    holds("mcp__desk__add" in start["tools"], "the tool is listed")
    equal([(server["name"], server["status"]) for server in start["mcp_servers"]], [("desk", "connected")], "servers")
    equal([server["status"] for server in status["mcpServers"]], ["connected"], "mcp_status")
    methods = [frame["request"]["message"].get("method") for frame in rig.process().wrote("control_request/mcp_message")]
    holds({"initialize", "tools/list", "tools/call"} <= set(methods), f"methods: {methods}")


async def mcp_error(rig):
    """A tool's error and its exception are errors for the model, and the turn goes on."""
    prompt = '%tool mcp__desk__fail {"why": "too late"}\n%tool mcp__desk__explode {}\n%say done'
    async with rig.client(**options()) as client:
        messages = await turn(client, prompt)
    succeeded(messages, "done")
    failed, exploded = tool_results(messages)
    holds(failed.is_error and "too late" in content(failed), f"fail: {failed}")
    holds(exploded.is_error and "out of paper" in content(exploded), f"explode: {exploded}")
