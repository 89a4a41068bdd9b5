"""Work beside and below the conversation: commands in the background, and agents."""

import asyncio

from official import allow, talk
from rig import equal, holds, tool, until


async def background_command(rig):
    """A command in the background: its call stays open, shows what it prints while it runs, and says how it ended."""
    async with talk(rig) as on:
        on.client.permit = allow()
        gate = rig.project / "gate"
        command = "echo line-one; while [ ! -e gate ]; do sleep 0.05; done; echo line-two; exit 3"
        await on.says(tool("Bash", command=command, description="Wait", run_in_background=True), "%say it runs")
        equal(rig.call("Bash")["statuses"][-1], "in_progress", "the status while it runs")
        await until(lambda: "line-one" in shown(rig), "its first line is shown")
        gate.touch()
        await until(lambda: rig.call("Bash")["statuses"][-1] in ("completed", "failed"), "it ends")
        holds("line-two" in shown(rig), f"its last line is in {shown(rig)!r}")
        holds("3" in shown(rig).rsplit("line-two", 1)[1], f"its exit code is in {shown(rig)!r}")
        await asyncio.sleep(0)


async def subagent(rig):
    """What an agent does is below its call, and its answer is the call's."""
    async with talk(rig) as on:
        on.client.permit = allow()
        inner = tool("Bash", command="echo inner", description="Say it") + "\n%say the inner report"
        await on.says(
            tool("Agent", description="Look into it", prompt=inner, subagent_type="general-purpose", run_in_background=False),
            "%say done",
        )
        outer, nested = rig.call("Agent"), rig.call("Bash")
        equal(nested["_meta"]["claudeCode"]["parentToolUseId"], outer["toolCallId"], "the parent")
        equal(outer["statuses"][-1], "completed", "the last status")
        holds("the inner report" in str(outer["content"]), f"its answer is in {outer['content']}")
        equal(rig.text(), "done", "the text of the conversation")


async def background_agent(rig):
    """An agent in the background: its call stays open until it is done, and has its answer in the end."""
    async with talk(rig) as on:
        on.client.permit = allow()
        inner = tool("Bash", command="while [ ! -e gate ]; do sleep 0.05; done", description="Wait") + "\n%say the inner report"
        await on.says(
            tool("Agent", description="Look into it", prompt=inner, subagent_type="general-purpose", run_in_background=True),
            "%say it runs",
        )
        outer = rig.call("Agent")
        equal(outer["statuses"][-1], "in_progress", "the status while it runs")
        holds("internal" not in str(outer["content"]), f"nothing internal is shown: {outer['content']}")
        (rig.project / "gate").touch()
        await until(lambda: rig.call("Agent")["statuses"][-1] == "completed", "it ends")
        holds("the inner report" in str(rig.call("Agent")["content"]), f"its answer is in {rig.call('Agent')['content']}")


def shown(rig):
    """All that was ever shown of the command."""
    return "\n".join(
        str(update.get("content", "")) + str(update.get("_meta", ""))
        for update in rig.updates("tool_call_update")
        if update.get("content") or update.get("_meta")
    )
