"""Going back to an earlier prompt, and texts that are not saved."""

import json

import acp
from acp import schema
from official import talk
from rig import equal, holds


def _message(reply):
    return reply.field_meta["claudeCode"]["messageUuid"]


async def rewind(rig):
    """Files and conversation go back to before a prompt, and the session goes on from there."""
    async with talk(rig) as on:
        offered = on.initialized.agent_capabilities.field_meta["claudeCode"]["rewind"]
        holds(offered["files"] and offered["conversation"], f"{offered} offers both")
        await on.connection.set_session_mode(session_id=on.session, mode_id="acceptEdits")
        made = rig.project / "made.txt"
        write = "%tool Write " + json.dumps({"file_path": str(made), "content": "made"})
        await on.says("%say the beginning")
        prompt = _message(await on.says(write, "%say the middle"))
        holds(made.exists(), "the file is there")
        asked = {"sessionId": on.session, "messageId": prompt}
        would = await on.connection.ext_method("session/rewind", {**asked, "dryRun": True})
        equal(would["filesChanged"], [str(made)], "the files")
        holds(made.exists(), "a dry run changes nothing")
        done = await on.connection.ext_method("session/rewind", asked)
        holds(done["canRewind"] and not made.exists(), f"the file is gone: {done}")
        await on.says("%say the end")
        session = on.session
    rig.lines.clear()
    async with talk(rig, session=False) as on:
        await on.connection.load_session(cwd=str(rig.project), session_id=session, mcp_servers=[])
        equal(rig.text(), "the beginningthe end", "what was said")


async def cleared(rig):
    """After /clear the session is found by the same id, and is what was said since."""
    async with talk(rig) as on:
        await on.says("%say the beginning")
        await on.says("/clear")
        await on.says("%say the rest")
        session = on.session
    rig.lines.clear()
    async with talk(rig, session=False) as on:
        await on.connection.load_session(cwd=str(rig.project), session_id=session, mcp_servers=[])
        equal(rig.text(), "the rest", "what was said")
        on.session = session
        await on.says("%say more")


async def unsaved_text(rig):
    """A file that a prompt mentions is asked for; an editor that refuses holds up nothing."""
    file = rig.project / "typed.txt"
    file.write_text("saved")
    async with talk(rig, fs=schema.FileSystemCapabilities(read_text_file=True)) as on:
        seen = []

        async def read(path, session_id):
            seen.append((path, session_id))
            if len(seen) > 1:
                raise acp.RequestError.resource_not_found(path)
            return schema.ReadTextFileResponse(content="typed")

        on.client.read = read
        link = acp.resource_link_block("typed.txt", file.as_uri())
        for _ in range(2):
            prompt = [acp.text_block("%say seen"), link]
            reply = await on.connection.prompt(session_id=on.session, prompt=prompt)
            equal(reply.stop_reason, "end_turn", "the stop reason")
        equal(seen, [(str(file), on.session)] * 2, "what was asked")
        equal(rig.text(), "seenseen", "the text")
