"""A client on the official Python SDK, whose models check every line that the agent writes."""

from contextlib import asynccontextmanager

import acp
from acp import schema
from rig import AGENT, equal, holds

REQUESTS = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "elicitation/create": schema.CreateElicitationRequest,
}
"""The models of what the agent asks and tells."""

REPLIES = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
"""The models of what it answers."""


class Client(acp.Client):
    """Keeps what the agent says, and answers what it asks with `permit`, `form` and `read`."""

    def __init__(self, rig, capabilities):
        self.rig = rig
        self.capabilities = capabilities
        self.asked = {}
        self.permissions = []
        self.permit = None
        self.forms = []
        self.form = None
        self.read = None

    async def session_update(self, session_id, update, **_):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.permissions.append((tool_call, options))
        holds(self.permit, f"nobody expected to be asked about {tool_call.title}")
        chosen = await self.permit(tool_call, options)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        holds(chosen in [option.option_id for option in options], f"{chosen} is none of {options}")
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message, mode, **_):
        self.forms.append((message, mode))
        holds(self.form, f"nobody expected a form: {message}")
        return await self.form(message, mode)

    async def read_text_file(self, path, session_id, **_):
        holds(self.read, f"nobody expected to be asked for {path}")
        return await self.read(path, session_id)

    async def complete_elicitation(self, elicitation_id, **_):
        pass

    async def ext_notification(self, method, params):
        pass

    def watch(self, event):
        """Looks at each line, before and beside what the SDK makes of it."""
        message = event.message
        agent = event.direction.value == "incoming"
        self.rig.lines.append(("agent" if agent else "client", message))
        if not agent:
            if "method" in message and "id" in message:
                self.asked[message["id"]] = message["method"]
            return
        if method := message.get("method"):
            if model := REQUESTS.get(method):
                model.model_validate(message["params"])
            else:
                holds(method.startswith(("_", "$/")), f"the agent sends {method}")
        elif "result" in message and (model := REPLIES.get(self.asked.get(message["id"]))):
            model.model_validate(message["result"])


class Talk:
    """A connection, with its client and its session."""

    def __init__(self, rig, client, connection, process):
        self.rig = rig
        self.client = client
        self.connection = connection
        self.process = process
        self.initialized = None
        self.session = None

    async def new(self, servers=(), **more):
        """A session in the project, with these MCP servers."""
        made = await self.connection.new_session(cwd=str(self.rig.project), mcp_servers=list(servers), **more)
        self.session = made.session_id
        return made

    async def prompt(self, *lines, session=None):
        """Says something, and waits until the turn has ended."""
        text = acp.text_block("\n".join(lines))
        return await self.connection.prompt(session_id=session or self.session, prompt=[text])

    async def says(self, *lines, ends="end_turn"):
        """The same, where it is known how it ends."""
        reply = await self.prompt(*lines)
        equal(reply.stop_reason, ends, "the stop reason")
        return reply

    async def refuses(self, asked, code):
        """Something that the agent has to refuse."""
        try:
            answer = await asked
        except acp.RequestError as error:
            equal(error.code, code, f"the code of {error}")
            return error
        raise AssertionError(f"it was not refused, but answered {answer}")


@asynccontextmanager
async def talk(rig, session=True, **capabilities):
    """Starts the agent and says hello; by default with a session."""
    client = Client(rig, capabilities)
    async with acp.spawn_agent_process(
        client,
        *AGENT,
        env=rig.env,
        cwd=rig.root,
        transport_kwargs={"limit": 64 << 20, "stderr": None},
        observers=[client.watch],
        use_unstable_protocol=True,
    ) as (connection, process):
        talk = Talk(rig, client, connection, process)
        talk.initialized = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(**capabilities),
            client_info=schema.Implementation(name="scenarios", version="1"),
        )
        if session:
            await talk.new()
        yield talk


def allow(option="allow-once"):
    """Answers every request with this option."""

    async def permit(_call, _options):
        return option

    return permit
