"""Who may do what."""

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ResultMessage

from rig import content, equal, holds, result, succeeded, tool_results, turn

TOUCH = '%tool Bash {"command": "touch made.txt", "description": "make a file"}\n%say done'


async def permission_allow(rig):
    """A call that is allowed runs, with the input that was asked about."""
    asked = []

    async def decide(name, given, context):
        asked.append((name, given["command"], context.tool_use_id))
        return PermissionResultAllow()

    async with rig.client(can_use_tool=decide) as client:
        messages = await turn(client, TOUCH)
    equal(succeeded(messages, "done").permission_denials, [], "denials")
    equal([entry[:2] for entry in asked], [("Bash", "touch made.txt")], "asked")
    equal(tool_results(messages)[0].tool_use_id, asked[0][2], "the call that was asked about")
    holds((rig.project / "made.txt").exists(), "the command ran")
    process = rig.process()
    holds("stdio" in process.argv, "--permission-prompt-tool stdio is passed")
    answer = process.read("control_response/success")[0]["response"]["response"]
    equal(answer["behavior"], "allow", "answer")


async def permission_deny(rig):
    """A call that is denied does not run; the model hears why."""

    async def decide(name, given, context):
        return PermissionResultDeny(message="not on a Sunday")

    async with rig.client(can_use_tool=decide) as client:
        messages = await turn(client, TOUCH)
    end = succeeded(messages, "done")
    equal([denial["tool_name"] for denial in end.permission_denials], ["Bash"], "denials")
    [refusal] = tool_results(messages)
    holds(refusal.is_error and "not on a Sunday" in content(refusal), f"tool result: {refusal}")
    holds(not (rig.project / "made.txt").exists(), "the command did not run")


async def permission_deny_interrupt(rig):
    """A denial with `interrupt` ends the turn."""

    async def decide(name, given, context):
        return PermissionResultDeny(message="stop", interrupt=True)

    async with rig.client(can_use_tool=decide) as client:
        await client.query(TOUCH)
        messages = [message async for message in client.receive_response()]
        end = result(messages)
        holds(end.subtype == "error_during_execution" and end.is_error, f"result: {end.subtype}")
        succeeded(await turn(client, "%say again"), "again")
    holds(not (rig.project / "made.txt").exists(), "the command did not run")


async def permission_updated_input(rig):
    """What runs is the input that came with the permission."""

    async def decide(name, given, context):
        return PermissionResultAllow(updated_input={**given, "command": "touch other.txt"})

    async with rig.client(can_use_tool=decide) as client:
        succeeded(await turn(client, TOUCH), "done")
    equal(sorted(path.name for path in rig.project.iterdir()), ["other.txt"], "files")


async def permission_suggestions(rig):
    """A suggestion that is taken up keeps the CLI from asking again."""
    suggested = []

    async def decide(name, given, context):
        suggested.append(context.suggestions)
        return PermissionResultAllow(updated_permissions=context.suggestions)

    write = '%tool Write {"file_path": "%s", "content": "%s"}'
    prompt = "\n".join(
        [write.replace("%s", str(rig.project / name), 1).replace("%s", name) for name in ("a.txt", "b.txt")]
        + ["%say done"]
    )
    async with rig.client(can_use_tool=decide) as client:
        succeeded(await turn(client, prompt), "done")
    equal(len(suggested), 1, "questions")
    holds(any(update.type == "setMode" for update in suggested[0]), f"suggestions: {suggested[0]}")
    equal((rig.project / "b.txt").read_text(), "b.txt", "the second file")
    process = rig.process()
    equal(len(process.wrote("control_request/can_use_tool")), 1, "can_use_tool")
    answer = process.read("control_response/success")[0]["response"]["response"]
    equal(answer["updatedPermissions"][0]["type"], "setMode", "updatedPermissions")


async def allowed_tools(rig):
    """A tool that was allowed beforehand is not asked about, one that was disallowed is not there."""
    asked = []

    async def decide(name, given, context):
        asked.append(name)
        return PermissionResultAllow()

    options = {"allowed_tools": ["Bash(touch:*)"], "disallowed_tools": ["WebFetch"], "can_use_tool": decide}
    async with rig.client(**options) as client:
        messages = await turn(client, TOUCH)
    succeeded(messages, "done")
    equal(asked, [], "asked")
    [init] = rig.process().wrote("system/init")
    holds("WebFetch" not in init["tools"] and "Bash" in init["tools"], "the list of tools")
    holds((rig.project / "made.txt").exists(), "the command ran")
