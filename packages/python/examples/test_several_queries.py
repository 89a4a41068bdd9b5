import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

# Each `query()` is a process, and all processes of a simulation play the script together.
SCRIPT = """
prompts:
  - {prompt: {contains: title}, steps: [{say: Milk}]}
  - {prompt: {contains: summary}, steps: [{say: You want milk.}]}
  - {prompt: {contains: tags}, steps: [{say: "shopping, food"}]}
"""


async def ask(prompt, options):
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            return message.result


@pytest.mark.anyio
async def test_three_questions(claude_sim):
    sim = claude_sim(SCRIPT)
    options = ClaudeAgentOptions(**sim.options)

    answers = [await ask(f"Write a {what}.", options) for what in ("title", "summary", "list of tags")]

    assert answers == ["Milk", "You want milk.", "shopping, food"]
    assert len(sim.trace().processes) == 3
