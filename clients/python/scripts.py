"""Scripts from files, which judge the client."""

from claude_agent_sdk import PermissionResultAllow, ResultMessage

import tools
from rig import content, equal, holds, result, succeeded, tool_results, turn


async def script_file(rig):
    """A script that asks for a permission, and is content with the client."""

    async def decide(name, given, context):
        return PermissionResultAllow()

    async with rig.client(env=rig.script("tidy.yaml"), can_use_tool=decide) as client:
        succeeded(await turn(client, "please tidy up"), "Done.")
        succeeded(await turn(client, "thank you"), "You are welcome.")
    equal(rig.flaws(), [], "flaws")
    holds(not (rig.project / "old.log").exists(), "the log is gone")


async def script_discontent(rig):
    """A script that says what it did not like: a prompt that it does not know, and what did not happen."""
    async with rig.client(env=rig.script("tidy.yaml"), stderr=lambda line: None) as client:
        end = result(await turn(client, "please clean up"))
        holds(end.is_error and "no rule" in end.result, f"result: {end.result}")
    flaws = rig.flaws()
    holds(any("please clean up" in flaw for flaw in flaws), f"flaws: {flaws}")
    holds(any("Bash" in flaw for flaw in flaws), f"flaws: {flaws}")


async def script_night(rig):
    """A script that calls a tool of the host, asks its user and works in the background."""
    asked = []

    async def decide(name, given, context):
        asked.append(name)
        answers = {question["question"]: "Yes" for question in given["questions"]}
        return PermissionResultAllow(updated_input={**given, "answers": answers})

    options = {**tools.options(), "can_use_tool": decide}
    options["allowed_tools"] += ["Bash"]
    async with rig.client(env=rig.script("night.yaml"), **options) as client:
        messages = await turn(client, "good night")
        succeeded(messages, "Good night.")
        later = []
        async for message in client.receive_messages():
            later.append(message)
            if isinstance(message, ResultMessage):
                break
    succeeded(later, "It is built.")
    equal(asked, ["AskUserQuestion"], "asked")
    said = [content(block) for block in tool_results(messages)]
    holds(said[0] == "5" and "Yes" in said[1], f"tool results: {said}")
    equal(rig.flaws(), [], "flaws")
