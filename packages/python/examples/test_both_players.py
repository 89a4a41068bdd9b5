import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

SCRIPT = """
prompts:
  - prompt: {contains: notes}
    steps:
      - call: {tool: Write, input: {file_path: notes.md, content: buy milk}}
      - say: It is written.
"""


@pytest.mark.parametrize("real", [False, True], ids=["simulated", "real"])
@pytest.mark.anyio
async def test_notes_are_written(claude_sim, real):
    sim = claude_sim(SCRIPT, real=real)

    options = ClaudeAgentOptions(**sim.options, permission_mode="acceptEdits")
    messages = [message async for message in query(prompt="Write my notes.", options=options)]

    assert isinstance(messages[-1], ResultMessage) and messages[-1].result == "It is written."
    assert (sim.cwd / "notes.md").read_text() == "buy milk"
    sim.trace().assert_tool("Write", times=1, is_error=False)
