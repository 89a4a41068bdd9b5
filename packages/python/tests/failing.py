"""Tests that have to fail. The docstring of each has the lines that its report has to have, in this order; test_plugin.py looks."""

import os
import signal

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, query

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def ask(prompt, sim):
    async for _ in query(prompt=prompt, options=ClaudeAgentOptions(**sim.options)):
        pass


async def talk(sim, *prompts):
    async with ClaudeSDKClient(ClaudeAgentOptions(**sim.options)) as client:
        for prompt in prompts:
            await client.query(prompt)
            async for _ in client.receive_response():
                pass


async def test_expectation(claude_sim):
    """
    *Discontent: the script is not content with the program:
    *script.yaml*Bash*
    *Captured claude*
    *-> user hello
    *<- result/success hi
    """
    await talk(claude_sim("{prompts: [{steps: [{say: hi}]}], expect: {tools: [Bash]}}"), "hello")


async def test_program_fails(claude_sim):
    """
    *Captured claude*
    *no rule of the script is for the prompt "good morning"*
    """
    await ask("good morning", claude_sim("{prompts: [{prompt: good night, steps: [{say: hi}]}]}"))


async def test_unused_rule(claude_sim):
    """
    *Discontent*
    *this rule was never used
    """
    rules = [{"prompt": "a", "steps": [{"say": "1"}]}, {"prompt": "b", "steps": [{"say": "2"}]}]
    await talk(claude_sim({"prompts": rules}), "a")


async def test_not_started(claude_sim):
    """
    *no process of the CLI was started*cli_path*
    """
    claude_sim()


async def test_killed(claude_sim):
    """
    *process * was killed*
    """
    # How a process of the real CLI ended is not known.
    sim = claude_sim("{prompts: [{steps: [{wait: interrupt}]}]}", real=False)
    async with ClaudeSDKClient(ClaudeAgentOptions(**sim.options)) as client:
        await client.query("a")
        async for _ in client.receive_messages():
            break
        [process] = sim.trace(patience=0).processes
        os.kill(process.pid, signal.SIGKILL)


async def test_script_is_wrong(claude_sim):
    """
    *CannotPlay: *script.yaml:2:*stepz*
    """
    await ask("hello", claude_sim("prompts:\n  - {prompt: a, stepz: []}\n"))


async def test_only_the_simulated_cli_plays_it(claude_sim):
    """
    *CannotPlay: *script.yaml:2:*the real CLI cannot play `cost`*
    """
    claude_sim("prompts:\n  - steps: [{cost: 1}]\n", real=True)


async def test_script_is_missing(claude_sim):
    """
    *FileNotFoundError: there is no script *nowhere.yaml
    """
    claude_sim("nowhere.yaml")


async def test_assertion(claude_sim):
    """
    *AssertionError: expected a call of Read with *b.txt*, but there was:
    *ToolCall(*a.txt*
    *Captured claude*
    """
    sim = claude_sim("{prompts: [{steps: [{call: {tool: Read, input: {file_path: a.txt}}}]}]}")
    await ask("go", sim)
    sim.trace().assert_tool("Read", {"file_path": "b.txt"})


@pytest.fixture
async def client(claude_sim):
    sim = claude_sim("{prompts: [{prompt: a, steps: [{say: hi}]}, {prompt: b, steps: [{say: ho}]}]}")
    async with ClaudeSDKClient(ClaudeAgentOptions(**sim.options)) as client:
        yield client


async def test_ended_by_a_fixture(client):
    """
    *Discontent*
    *this rule was never used
    """
    await client.query("a")
    async for _ in client.receive_response():
        pass
