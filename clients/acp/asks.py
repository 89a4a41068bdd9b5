"""What the agent asks: permissions, questions, plans; and the modes that change what is asked."""

from acp import schema
from official import allow, talk
from rig import equal, holds, tool


async def permission_reject(rig):
    """A call that is refused does not run, and says that it failed."""
    async with talk(rig) as on:
        on.client.permit = allow("reject")
        made = rig.project / "made.txt"
        reply = await on.prompt(tool("Write", file_path=made, content="made"), "%say so be it")
        holds(reply.stop_reason in ("end_turn", "cancelled"), f"the stop reason is {reply.stop_reason}")
        holds(not made.exists(), "the call did not run")
        equal(rig.call("Write")["statuses"][-1], "failed", "the last status")


async def permission_for_the_session(rig):
    """What is allowed for the session is not asked about again."""
    async with talk(rig) as on:

        async def permit(_call, options):
            return next(option.option_id for option in options if option.kind == "allow_always")

        on.client.permit = permit
        for name in ("one", "two"):
            await on.says(tool("Write", file_path=rig.project / name, content="made"))
        equal(len(on.client.permissions), 1, "requests")


async def mode_accept_edits(rig):
    """In a mode that accepts edits nobody is asked about them, and the client is told of the mode."""
    async with talk(rig, session=False) as on:
        made = await on.new()
        holds("acceptEdits" in [mode.id for mode in made.modes.available_modes], f"the modes are {made.modes}")
        await on.connection.set_session_mode(session_id=on.session, mode_id="acceptEdits")
        await on.says(tool("Write", file_path=rig.project / "made.txt", content="made"))
        holds((rig.project / "made.txt").exists(), "the call ran")


async def mode_unknown(rig):
    """A mode that there is not is refused."""
    async with talk(rig) as on:
        await on.refuses(on.connection.set_session_mode(session_id=on.session, mode_id="delegate"), -32602)


async def plan_approved(rig):
    """Leaving plan mode asks, and the mode that was chosen holds."""
    async with talk(rig) as on:
        await on.connection.set_session_mode(session_id=on.session, mode_id="plan")

        async def permit(call, options):
            holds("plan" in call.title.lower(), f"the title is {call.title!r}")
            holds("exit-plan-default" in [option.option_id for option in options], f"the options are {options}")
            return "exit-plan-default"

        on.client.permit = permit
        await on.says('%tool ExitPlanMode {"plan": "# First this\\n"}', "%say let us begin")
        equal(len(on.client.permissions), 1, "requests")
        modes = [update["currentModeId"] for update in rig.updates("current_mode_update")]
        holds(modes and modes[-1] == "default", f"the modes were {modes}")


async def question_as_form(rig):
    """A question of the model is a form for a client that has some."""
    elicitation = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    async with talk(rig, elicitation=elicitation) as on:

        async def form(_message, mode):
            properties = mode.requested_schema.properties
            key = next(key for key in properties if not key.endswith("_custom"))
            return schema.AcceptElicitationResponse(action="accept", content={key: "Red"})

        on.client.form = form
        await on.says(QUESTION, "%say thanks")
        equal(len(on.client.forms), 1, "forms")
        equal(rig.call("AskUserQuestion")["statuses"][-1], "completed", "the last status")
        holds("Red" in str(rig.call("AskUserQuestion")["content"]), "the answer is shown")


async def question_as_options(rig):
    """A question of the model is a list of options for a client that has no forms."""
    async with talk(rig) as on:

        async def permit(_call, options):
            return next(option.option_id for option in options if "Red" in option.name)

        on.client.permit = permit
        await on.says(QUESTION, "%say thanks")
        equal(len(on.client.permissions), 1, "requests")
        equal(rig.call("AskUserQuestion")["statuses"][-1], "completed", "the last status")
        holds("Red" in str(rig.call("AskUserQuestion")["content"]), "the answer is shown")


QUESTION = (
    '%tool AskUserQuestion {"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false, '
    '"options": [{"label": "Red", "description": "Like a rose"}, {"label": "Blue", "description": "Like the sea"}]}]}'
)
"""A question with two answers."""


async def prompts_refused(rig):
    """An empty prompt, and sounds, are refused."""
    async with talk(rig) as on:
        await on.refuses(on.connection.prompt(session_id=on.session, prompt=[]), -32602)
        sound = schema.AudioContentBlock(type="audio", data="AAAA", mime_type="audio/wav")
        await on.refuses(on.connection.prompt(session_id=on.session, prompt=[sound]), -32602)
        await on.says("%say still here")


async def prompt_with_files(rig):
    """Links and files in a prompt reach the model."""
    async with talk(rig) as on:
        link = schema.ResourceContentBlock(type="resource_link", name="a.txt", uri=f"file://{rig.project}/a.txt")
        text = schema.TextResourceContents(uri="file:///b.txt", text="inside of b", mime_type="text/plain")
        resource = schema.EmbeddedResourceContentBlock(type="resource", resource=text)
        said = schema.TextContentBlock(type="text", text="%say got it")
        reply = await on.connection.prompt(session_id=on.session, prompt=[said, link, resource])
        equal(reply.stop_reason, "end_turn", "the stop reason")
        equal(rig.text(), "got it", "the text")
