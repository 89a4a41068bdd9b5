"""What the host asks of a running CLI."""

import asyncio
import json

from claude_agent_sdk import AgentDefinition, AssistantMessage, PermissionResultAllow, ResultMessage, StreamEvent, SystemMessage

import tools
from rig import content, equal, holds, init, of, result, succeeded, text, tool_results, turn


async def interrupt(rig):
    """An interrupt ends the turn while the model speaks; the session goes on."""
    async with rig.client(include_partial_messages=True) as client:
        await client.query("%slow 50 chunk=1\n%say " + "a long story " * 50)
        messages = []
        async for message in client.receive_response():
            messages.append(message)
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                if not any(isinstance(seen, StreamEvent) and seen.event["type"] == "content_block_delta" for seen in messages[:-1]):
                    await client.interrupt()
        end = result(messages)
        equal((end.subtype, end.terminal_reason), ("error_during_execution", "aborted_streaming"), "result")
        succeeded(await turn(client, "%say again"), "again")
    equal(len(rig.process().read("control_request/interrupt")), 1, "interrupt")


async def interrupt_tool(rig):
    """An interrupt ends a command that runs."""
    async with rig.client(allowed_tools=["Bash"]) as client:
        await client.query('%tool Bash {"command": "sleep 20"}\n%say never')
        messages = []
        async for message in client.receive_response():
            messages.append(message)
            if isinstance(message, AssistantMessage):
                await client.interrupt()
        equal(result(messages).terminal_reason, "aborted_tools", "terminal_reason")
        succeeded(await turn(client, "%say again"), "again")


async def set_model(rig):
    """The model changes between turns, and back to the default."""
    async with rig.client(model="claude-sonnet-4-5") as client:
        before = await turn(client, "%say one")
        await client.set_model("claude-opus-4-5")
        after = await turn(client, "%say two")
        await client.set_model(None)
        back = await turn(client, "%say three")
    models = [init(messages)["model"] for messages in (before, after, back)]
    holds(models[0].startswith("claude-sonnet-4-5") and models[1].startswith("claude-opus-4-5"), f"models: {models}")
    holds(models[2] != models[1], f"the default is another model: {models}")
    equal(of(after, AssistantMessage)[0].model, models[1], "model of the message")
    equal([frame["request"].get("model") for frame in rig.process().read("control_request/set_model")], ["claude-opus-4-5", None], "set_model")


async def set_permission_mode(rig):
    """A mode that is set at run time decides about the calls that follow."""
    asked = []

    async def decide(name, given, context):
        asked.append(given["file_path"])
        return PermissionResultAllow()

    def write(name):
        return f'%tool Write {{"file_path": "{rig.project / name}", "content": "x"}}\n%say done'

    async with rig.client(can_use_tool=decide) as client:
        succeeded(await turn(client, write("a.txt")), "done")
        await client.set_permission_mode("acceptEdits")
        messages = await turn(client, write("b.txt"))
    succeeded(messages, "done")
    equal(init(messages)["permissionMode"], "acceptEdits", "mode")
    equal(asked, [str(rig.project / "a.txt")], "asked")
    holds((rig.project / "b.txt").exists(), "the second file was written")


async def server_info(rig):
    """What initialize answered, and how full the context is."""
    async with rig.client() as client:
        info = await client.get_server_info()
        succeeded(await turn(client, "%say one"), "one")
        usage = await client.get_context_usage()
    holds(info["commands"] and info["output_style"], f"server info: {sorted(info)}")
    holds(usage["totalTokens"] > 0 and usage["maxTokens"] > usage["totalTokens"], "context usage")


async def background_task(rig):
    """A command in the background: its start, its end, and the turn that it wakes."""
    command = '%tool Bash {"command": "sleep 0.2; echo over", "run_in_background": true}\n%say started\n%say woken'
    async with rig.client(allowed_tools=["Bash"]) as client:
        succeeded(await turn(client, command), "started")
        messages = []
        async for message in client.receive_messages():
            messages.append(message)
            if isinstance(message, ResultMessage):
                break
    end = succeeded(messages, "woken")
    equal(end.origin["kind"], "task-notification", "origin")
    holds("task_notification" in [message.subtype for message in of(messages, SystemMessage)], "the notification")


async def subagent(rig):
    """A subagent's messages name the call that started it, and its report is the call's result."""
    call = {"description": "look", "prompt": "%say from below", "subagent_type": "helper", "run_in_background": False}
    agents = {"helper": AgentDefinition(description="Helps", prompt="Help.")}
    async with rig.client(agents=agents, forward_subagent_text=True) as client:
        messages = await turn(client, f"%tool Agent {json.dumps(call)}\n%say done")
    succeeded(messages, "done")
    below = [message for message in of(messages, AssistantMessage) if message.parent_tool_use_id]
    equal(text(below), "from below", "the subagent's text")
    report = [block for block in tool_results(messages) if block.tool_use_id == below[0].parent_tool_use_id]
    holds(len(report) == 1 and "from below" in content(report[0]), f"report: {report}")


async def control_requests(rig):
    """What else there is to ask and to change."""
    (rig.project / "a.txt").write_text("one")
    command = {"command": "sleep 30", "run_in_background": True}
    options = {**tools.options(), "enable_file_checkpointing": True}
    options["allowed_tools"] += ["Bash"]
    async with rig.client(**options) as client:
        await client.toggle_mcp_server("desk", False)
        await client.toggle_mcp_server("desk", True)
        # Servers of the host are not the CLI's to reconnect.
        refused = ""
        try:
            await client.reconnect_mcp_server("desk")
        except Exception as error:
            refused = str(error)
        holds(refused, "a server of the host cannot be reconnected")
        messages = await turn(client, f"%tool Bash {json.dumps(command)}\n%say started")
        succeeded(messages, "started")
        [task] = [message for message in of(messages, SystemMessage) if message.subtype == "task_started"]
        await client.stop_task(task.data["task_id"])
        status = await client.get_mcp_status()
        equal([server["status"] for server in status["mcpServers"]], ["connected"], "mcp_status")
    process = rig.process()
    errors = [frame["response"]["error"] for frame in process.wrote("control_response/error")]
    equal(len(errors), 1, f"errors: {errors}")
    for subtype in ("mcp_toggle", "mcp_reconnect", "stop_task", "mcp_status"):
        holds(process.read(f"control_request/{subtype}"), f"{subtype} was asked")


async def concurrent_clients(rig):
    """Several sessions at once in one program."""

    async def talk(number):
        async with rig.client() as client:
            return succeeded(await turn(client, f"%say {number}"), str(number)).session_id

    sessions = await asyncio.gather(*(talk(number) for number in range(4)))
    equal(len(set(sessions)), 4, "sessions")
    rig.processes(4)
