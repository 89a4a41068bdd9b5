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


def test_a_call_has_its_result_from_the_process_that_goes_on_with_its_session():
    def frame(kind, session, **block):
        data = {"type": kind, "session_id": session, "message": {"content": [block]}}
        return Frame(0, "cli", kind, data)

    def process(*frames):
        return Process(1, [], "/", False, 0, None, frames)

    def call(session):
        return frame("assistant", session, type="tool_use", id="t", name="Bash", input={})

    def result(session, is_error):
        return frame("user", session, type="tool_result", tool_use_id="t", content="x", is_error=is_error)

    first, other, last = process(call("a")), process(call("b"), result("b", True)), process(result("a", False))
    calls = Trace([first, other, last]).tool_calls
    assert [(call.result, call.is_error) for call in calls] == [("x", False), ("x", True)]
    assert [call.result for call in Trace([first, other]).tool_calls] == [None, "x"]
