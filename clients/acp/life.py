"""Life: processes that begin and end."""

import asyncio
import os
import signal

from official import allow, talk
from rig import equal, holds, tool, until


def cli(rig):
    """The processes of the CLI."""
    return [pid for pid, command in rig.processes() if command.startswith(os.environ["CLAUDE_CODE_EXECUTABLE"])]


async def initialize_starts_nothing_slow(rig):
    """The agent says hello without waiting for a CLI."""
    async with talk(rig, session=False) as on:
        holds(on.initialized.agent_info.name, "the agent has a name")
        equal(on.initialized.protocol_version, 1, "the version")


async def cli_dies_idle(rig):
    """The CLI dies between two turns; the next turn knows what was said before."""
    async with talk(rig) as on:
        await on.says("%say one")
        killed = cli(rig)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        # The next one may be started ahead in this very moment.
        await until(lambda: not set(killed) & set(cli(rig)), "the CLI is gone")
        await on.says("%say two")
        equal(rig.text(), "onetwo", "the text")


async def cli_dies_in_a_turn(rig):
    """The CLI dies in a turn, which fails; the next one works."""
    async with talk(rig) as on:
        turn = asyncio.create_task(on.prompt("%slow 20 chunk=1", "%big 5000"))
        await until(rig.text, "there is some text")
        for pid in cli(rig):
            os.kill(pid, signal.SIGKILL)
        await on.refuses(turn, -32603)
        before = len(rig.text())
        await on.says("%say again")
        holds(rig.text()[before:].endswith("again"), "the next turn says what it is to say")


async def end_of_input(rig):
    """When the client closes the pipe in the middle of a turn, the agent and its CLI end."""
    async with talk(rig) as on:
        on.client.permit = allow()
        mark = rig.project / "mark"
        turn = asyncio.create_task(on.prompt(tool("Bash", command="touch mark; sleep 60", description="Wait")))
        await until(mark.exists, "the tool runs")
        on.process.stdin.close()
        await asyncio.wait_for(on.process.wait(), 10)
        await until(lambda: not rig.processes(), "nothing is left", 10)
        turn.cancel()


async def killed(rig):
    """When the agent is killed, its CLI and what that runs end."""
    async with talk(rig) as on:
        on.client.permit = allow()
        mark = rig.project / "mark"
        turn = asyncio.create_task(on.prompt(tool("Bash", command="touch mark; sleep 60", description="Wait")))
        await until(mark.exists, "the tool runs")
        on.process.kill()
        await until(lambda: not rig.processes(), "nothing is left", 10)
        turn.cancel()
