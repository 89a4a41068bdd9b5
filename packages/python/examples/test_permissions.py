import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny


async def only_logs(tool, input, context):
    if tool == "Bash" and input["command"].endswith(".log"):
        return PermissionResultAllow()
    return PermissionResultDeny(message="only logs may be removed")


@pytest.mark.anyio
async def test_only_logs_are_removed(claude_sim):
    sim = claude_sim("clean-up.yaml")

    async with ClaudeSDKClient(ClaudeAgentOptions(**sim.options, can_use_tool=only_logs)) as client:
        await client.query("Please clean up.")
        async for _ in client.receive_response():
            pass

    trace = sim.trace()
    trace.assert_permission("Bash", "allowed", {"command": "rm build.log"})
    denied = trace.assert_permission("Bash", "denied")
    assert denied.reply["message"] == "only logs may be removed"
