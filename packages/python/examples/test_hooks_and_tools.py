import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    create_sdk_mcp_server,
    tool,
)


@tool("find", "Where an order is", {"number": int})
async def find(args):
    return {"content": [{"type": "text", "text": f"order {args['number']} is on its way"}]}


async def no_secrets(input, tool_use_id, context):
    if ".env" not in input["tool_input"].get("file_path", ""):
        return {}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "secrets stay here",
        }
    }


@pytest.mark.anyio
async def test_a_hook_and_a_tool_of_the_program(claude_sim):
    sim = claude_sim(
        {
            "files": {".env": "KEY=1"},
            "prompts": [
                {
                    "prompt": "Where is order 7?",
                    "steps": [
                        {"call": {"tool": "Read", "input": {"file_path": ".env"}}},
                        {"assert": {"hook": {"hookSpecificOutput": {"permissionDecision": "deny"}}}},
                        {"call": {"tool": "mcp__shop__find", "input": {"number": 7}}},
                        {"assert": {"result": "order 7 is on its way"}},
                        {"say": "It is on its way."},
                    ],
                }
            ],
        }
    )
    options = ClaudeAgentOptions(
        **sim.options,
        hooks={"PreToolUse": [HookMatcher(matcher="Read", hooks=[no_secrets])]},
        mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[find])},
        allowed_tools=["mcp__shop__find"],
    )

    async with ClaudeSDKClient(options) as client:
        await client.query("Where is order 7?")
        async for _ in client.receive_response():
            pass

    trace = sim.trace()
    [hook] = trace.assert_hook("PreToolUse", times=1)
    assert hook.input["tool_name"] == "Read"
    trace.assert_tool("Read", is_error=True)
    trace.assert_tool("mcp__shop__find", {"number": 7}, is_error=False)
