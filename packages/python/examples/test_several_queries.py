import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

# Each `query()` is a process, and each process plays the script from its beginning. So each rule may be used at any time, and
# no process has to use all of them.
SCRIPT = """
prompts:
  - {prompt: {contains: title}, anytime: true, steps: [{say: Milk}]}
  - {prompt: {contains: summary}, anytime: true, steps: [{say: You want milk.}]}
  - {prompt: {contains: tags}, anytime: true, steps: [{say: "shopping, food"}]}
expect: {every_rule_used: false}
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
    trace = sim.trace()
    assert len(trace.processes) == 3
    # What `every_rule_used` would have checked.
    trace.assert_prompts("Write a title.", "Write a summary.", "Write a list of tags.")
