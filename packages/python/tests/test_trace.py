"""What a trace says of its frames."""

import pytest
from outrigger_sim import Frame, Process, Trace

ASK = Frame(0, "cli", "control_request/can_use_tool", {"request_id": "q", "request": {"tool_name": "Bash"}})
WITHDRAWS = Frame(0, "cli", "control_cancel_request", {"type": "control_cancel_request", "request_id": "q"})


def reply(**response):
    response = {"subtype": "success", "request_id": "q", "response": response}
    return Frame(0, "client", "control_response/success", {"type": "control_response", "response": response})


ALLOW, DENY = reply(behavior="allow"), reply(behavior="deny", message="no")


@pytest.mark.parametrize(
    ("outcome", "frames"),
    [
        ("allowed", [ALLOW, DENY]),
        ("denied", [DENY, ALLOW]),
        ("allowed", [reply(behavior="allow", updatedInput={"command": "ls"}), WITHDRAWS]),
        ("failed", [WITHDRAWS, ALLOW]),
        ("failed", [reply(behavior="allow", updatedInput=None)]),
        ("failed", [reply(behavior="allow", updatedInput=["ls"])]),
        ("failed", [reply(behavior="deny")]),
    ],
)
def test_only_a_reply_that_the_cli_reads_and_understands_decides(outcome, frames):
    trace = Trace([Process(1, [], "/", False, 0, None, [ASK, *frames])])
    assert trace.permission_requests[0].outcome == outcome
