"""`acp-client`, a small client that was written against another agent."""

import acp_client
import rig as place
from rig import equal, holds, tool


async def small_turn(rig):
    """Text, a tool that needs permission, and text."""
    asked = []

    async def permission(request):
        asked.append(request)
        return "allow-once"

    made = rig.project / "made.txt"
    agent = acp_client.Agent(command(rig), rig.project, permission=permission)
    try:
        answer = await agent.ask("\n".join(["%say before", tool("Write", "+", file_path=made, content="made"), "%say after"]))
        holds("before" in answer and "after" in answer, f"the answer is {answer!r}")
        equal(made.read_text(), "made", "the file")
        equal(len(asked), 1, "requests")
    finally:
        await agent.stop()


async def small_carries_on(rig):
    """A session that goes on in another process."""
    agent = acp_client.Agent(command(rig), rig.project)
    try:
        equal(await agent.ask("%say one"), "one", "the answer")
        session = agent.session
    finally:
        await agent.stop()
    agent = acp_client.Agent(command(rig), rig.project, session=session)
    try:
        equal(await agent.ask("%say two"), "two", "the answer")
        equal(agent.session, session, "the session")
    finally:
        await agent.stop()


def command(rig):
    """The agent, in the environment of this place; the client hands on its own."""
    return ["env", "-i", *(f"{name}={value}" for name, value in rig.env.items()), *place.AGENT]
