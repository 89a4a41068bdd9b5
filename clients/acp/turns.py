"""Turns: text, tools, their order, and their end."""

import asyncio

import acp
from official import allow, talk
from rig import equal, holds, tool


async def turn(rig):
    """Text, a tool that needs permission, and text."""
    async with talk(rig) as on:
        on.client.permit = allow()
        made = rig.project / "made.txt"
        await on.says("%say before", tool("Write", "+", file_path=made, content="made\n"), "%say after")
        equal(made.read_text(), "made\n", "the file")
        holds(rig.text().startswith("before"), f"{rig.text()!r} begins with what was said first")
        holds(rig.text().endswith("after"), f"{rig.text()!r} ends with what was said last")
        call = rig.call()
        equal(call["kind"], "edit", "the kind")
        holds("made.txt" in call["title"], f"the title {call['title']!r} names the file")
        equal(call["statuses"][0], "pending", "the first status")
        equal(call["statuses"][-1], "completed", "the last status")
        equal([item["type"] for item in call["content"]], ["diff"], "the content")
        equal(call["content"][0]["newText"], "made\n", "the new text")
        (asked, options) = on.client.permissions[0]
        equal(asked.tool_call_id, call["toolCallId"], "the call that is asked about")
        holds({"allow-once", "reject"} <= {option.option_id for option in options}, f"the options are {options}")


async def turn_in_progress(rig):
    """A call says when it begins to run."""
    async with talk(rig) as on:
        on.client.permit = allow()
        await on.says(tool("Bash", command="echo from-bash > made", description="Say it"))
        equal(rig.call("Bash")["statuses"], ["pending", "in_progress", "completed"], "the statuses")


async def turn_bash(rig):
    """A command, its output and its title."""
    async with talk(rig) as on:
        on.client.permit = allow()
        await on.says(tool("Bash", command="echo from-$((1+1))", description="Say it"))
        call = rig.call("Bash")
        equal(call["kind"], "execute", "the kind")
        holds("echo from-" in call["title"], f"the title {call['title']!r} is the command")
        holds("from-2" in str(call["content"]), f"the output is in {call['content']}")


async def thinking(rig):
    """What the model thinks is told apart from what it says."""
    async with talk(rig) as on:
        await on.says("%think deep", "%+say shallow")
        equal(rig.text("agent_thought_chunk"), "deep", "the thought")
        equal(rig.text(), "shallow", "the text")


async def long_text(rig):
    """A long text arrives whole and in order, before the turn is said to have ended."""
    async with talk(rig) as on:
        await on.says("%big 200000")
        equal(len(rig.text()), 200000, "characters")


async def tool_failure(rig):
    """A call that fails says so."""
    async with talk(rig) as on:
        await on.says(tool("Read", file_path=rig.project / "nothing.txt"))
        equal(rig.call("Read")["statuses"][-1], "failed", "the last status")


async def cancel_text(rig):
    """A turn that is cancelled while it speaks ends as cancelled, and the next one works."""
    async with talk(rig) as on:
        turn = asyncio.create_task(on.prompt("%slow 20 chunk=1", "%big 5000"))
        while not rig.text():
            await asyncio.sleep(0.01)
        await on.connection.cancel(session_id=on.session)
        equal((await turn).stop_reason, "cancelled", "the stop reason")
        before = len(rig.text())
        await on.says("%say again")
        holds(rig.text()[before:].endswith("again"), "the next turn says what it is to say")


async def cancel_tool(rig):
    """A turn that is cancelled while a tool runs ends as cancelled, and the call with it."""
    async with talk(rig) as on:
        on.client.permit = allow()
        mark = rig.project / "mark"
        turn = asyncio.create_task(on.prompt(tool("Bash", command="touch mark; sleep 60", description="Wait")))
        while not mark.exists():
            await asyncio.sleep(0.01)
        await on.connection.cancel(session_id=on.session)
        equal((await turn).stop_reason, "cancelled", "the stop reason")
        holds(rig.call("Bash")["statuses"][-1] in ("failed", "cancelled"), f"the call ended: {rig.call('Bash')}")


async def cancel_permission(rig):
    """A turn that is cancelled while it is asked about a call ends as cancelled, and the call does not run."""
    async with talk(rig) as on:
        asked = asyncio.Event()
        gone = asyncio.Event()

        async def permit(_call, _options):
            asked.set()
            await gone.wait()

        on.client.permit = permit
        made = rig.project / "made.txt"
        turn = asyncio.create_task(on.prompt(tool("Write", file_path=made, content="made")))
        await asked.wait()
        await on.connection.cancel(session_id=on.session)
        gone.set()
        equal((await turn).stop_reason, "cancelled", "the stop reason")
        holds(not made.exists(), "the call did not run")


async def cancel_idle(rig):
    """Cancelling while nothing runs does nothing."""
    async with talk(rig) as on:
        await on.connection.cancel(session_id=on.session)
        await on.says("%say still here")
        equal(rig.text(), "still here", "the text")


async def prompts_queue(rig):
    """Two prompts at once are two turns, and both are answered."""
    async with talk(rig) as on:
        first = asyncio.create_task(on.prompt("%slow 20 chunk=4", "%say first-is-here"))
        second = asyncio.create_task(on.prompt("%say second-is-here"))
        for reply in await asyncio.gather(first, second):
            equal(reply.stop_reason, "end_turn", "the stop reason")
        holds(
            rig.text().index("first-is-here") < rig.text().index("second-is-here"), f"{rig.text()!r} is in order"
        )


async def api_error(rig):
    """A turn that the API fails is an error that says so, and no silence."""
    async with talk(rig) as on:
        try:
            reply = await on.prompt('%error 400 n=20 msg="no such key"')
        except acp.RequestError as error:
            holds("no such key" in str(error) or "no such key" in str(error.data) or error.code == -32000, f"{error}")
        else:
            raise AssertionError(f"the turn ended with {reply.stop_reason}")


async def usage(rig):
    """What it costs is told."""
    async with talk(rig) as on:
        await on.says("%usage in=100 out=50", "%say costly")
        told = rig.updates("usage_update")
        holds(told, "there is an update of usage")
        holds(told[-1]["used"] >= 150, f"{told[-1]} counts what was used")
        holds(told[-1].get("cost"), f"{told[-1]} says what it cost")
