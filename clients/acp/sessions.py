"""Sessions: made, listed, loaded, resumed, forked, closed; and what is refused."""

from official import talk
from rig import equal, holds


async def sessions_load(rig):
    """A session that another agent left is told again, and goes on."""
    async with talk(rig) as on:
        await on.says("%say the first answer")
        session = on.session
    rig.lines.clear()
    async with talk(rig, session=False) as on:
        await on.connection.load_session(cwd=str(rig.project), session_id=session, mcp_servers=[])
        holds("the first answer" in rig.text(), f"{rig.text()!r} has the answer")
        holds("the first answer" in rig.text("user_message_chunk"), "what the user said is told, too")
        on.session = session
        await on.says("%say the second answer")


async def sessions_resume(rig):
    """A session that is resumed is not told again, and goes on."""
    async with talk(rig) as on:
        await on.says("%say the first answer")
        session = on.session
    rig.lines.clear()
    async with talk(rig, session=False) as on:
        await on.connection.resume_session(cwd=str(rig.project), session_id=session, mcp_servers=[])
        equal(rig.text(), "", "what is told")
        on.session = session
        await on.says("%say the second answer")
        equal(rig.text(), "the second answer", "the text")


async def sessions_list(rig):
    """Sessions are listed with their titles."""
    async with talk(rig) as on:
        await on.says("%say an answer")
        listed = await on.connection.list_sessions(cwd=str(rig.project))
        equal([session.session_id for session in listed.sessions], [on.session], "the sessions")
        holds(listed.sessions[0].title, "it has a title")


async def sessions_two(rig):
    """Two sessions at once do not mix."""
    async with talk(rig) as on:
        first = on.session
        await on.new()
        second = on.session
        holds(first != second, "the sessions differ")
        await on.prompt("%say one", session=first)
        await on.prompt("%say two", session=second)
        said = {first: "", second: ""}
        for who, message in rig.lines:
            if who == "agent" and message.get("method") == "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    said[message["params"]["sessionId"]] += update["content"]["text"]
        equal(said, {first: "one", second: "two"}, "what was said where")


async def sessions_close(rig):
    """A session that is closed has no process, and takes no prompts."""
    async with talk(rig) as on:
        await on.connection.close_session(session_id=on.session)
        await on.refuses(on.prompt("%say nothing"), -32002)


async def sessions_unknown(rig):
    """A session that there is not, and a directory that is none, are refused."""
    async with talk(rig, session=False) as on:
        none = "00000000-0000-4000-8000-000000000000"
        await on.refuses(on.prompt("%say nothing", session=none), -32002)
        await on.refuses(on.connection.load_session(cwd=str(rig.project), session_id=none, mcp_servers=[]), -32002)
        await on.refuses(on.connection.new_session(cwd="relative", mcp_servers=[]), -32602)
        await on.refuses(on.connection.new_session(cwd=str(rig.root / "nowhere"), mcp_servers=[]), -32602)


async def sessions_fork(rig):
    """A fork knows what was said before, and leaves the other alone."""
    async with talk(rig) as on:
        await on.says("%say an answer")
        made = await on.connection.fork_session(cwd=str(rig.project), session_id=on.session, mcp_servers=[])
        holds(made.session_id != on.session, "it has an id of its own")
        reply = await on.prompt("%say another", session=made.session_id)
        equal(reply.stop_reason, "end_turn", "the stop reason")
        await on.says("%say the first goes on")


async def commands_listed_once(rig):
    """Slash commands are listed once, without those that are nobody's."""
    async with talk(rig) as on:
        await on.says("%say an answer")
        lists = rig.updates("available_commands_update")
        equal(len(lists), 1, "lists")
        names = [command["name"] for command in lists[0]["availableCommands"]]
        holds("compact" in names, f"compact is among {names}")
        holds(not [name for name in names if name.startswith("_")], f"nothing internal is among {names}")


async def config_options(rig):
    """The model and the mode are options, and changing one is told."""
    async with talk(rig, session=False) as on:
        made = await on.new()
        options = {option.id: option for option in made.config_options}
        holds({"mode", "model"} <= set(options), f"the options are {list(options)}")
        other = [choice.value for choice in options["model"].options if choice.value != options["model"].current_value]
        changed = await on.connection.set_config_option(session_id=on.session, config_id="model", value=other[0])
        values = {option.id: option.current_value for option in changed.config_options}
        equal(values["model"], other[0], "the model")
        await on.says("%say on another model")
        await on.refuses(
            on.connection.set_config_option(session_id=on.session, config_id="model", value="no-such-model"), -32602
        )
