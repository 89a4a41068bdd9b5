import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


# The program under test.
async def summarize(options: ClaudeAgentOptions) -> str:
    async for message in query(prompt="Summarize the notes.", options=options):
        if isinstance(message, ResultMessage):
            return message.result or ""
    return ""


SCRIPT = """
files: {notes.md: "buy milk"}
prompts:
  - prompt: {contains: Summarize}
    steps:
      - call: {tool: Read, input: {file_path: notes.md}}
      - say: You want milk.
expect:
  tools: [Read]
"""


@pytest.mark.anyio
async def test_summary(claude_sim):
    sim = claude_sim(SCRIPT)

    assert await summarize(ClaudeAgentOptions(**sim.options)) == "You want milk."

    trace = sim.trace()
    trace.assert_prompts("Summarize the notes.")
    [read] = trace.assert_tool("Read", times=1, is_error=False)
    assert "buy milk" in read.result
