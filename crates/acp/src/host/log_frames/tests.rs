use outrigger::protocol::inbound::Message;

use super::*;

const OWN: &str = "11111111-1111-4111-8111-111111111111";
const THEIRS: &str = "22222222-2222-4222-8222-222222222222";

/// A log that is written event by event.
struct TestLog {
    frames: LogFrames,
    number: u64,
}

impl TestLog {
    fn new() -> Self {
        let mut frames = LogFrames::new("s");
        frames.sends(OWN);
        Self { frames, number: 0 }
    }

    fn event(&mut self, source: &str, id: &str, payload: Value) -> Vec<Value> {
        self.number += 1;
        let event =
            json!({"event_id": id, "sequence_num": self.number, "source": source, "payload": payload});
        let event: Envelope = serde_json::from_value(event).unwrap();
        let lines = self.frames.event(&event).into_iter();
        let frames = lines.map(|line| {
            let frame = Frame::from_line(&line).remove(0);
            let message = frame.decode().expect("a frame that is typed");
            assert!(!matches!(message, Message::Unknown(_)), "{line}");
            serde_json::from_str(&line).unwrap()
        });
        frames.collect()
    }

    fn prompt(&mut self, id: &str) -> Vec<Value> {
        let payload = json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "Hello."}});
        self.event("client", id, payload)
    }

    fn host(&mut self, payload: Value) -> Vec<Value> {
        let id = format!("h{}", self.number);
        self.event("host", &id, payload)
    }

    fn delivery(&mut self, id: &str, status: &str) -> Vec<Value> {
        self.host(json!({"type": "delivery_update", "event_id": id, "status": status}))
    }

    fn result(&mut self, names: &[&str]) -> Vec<Value> {
        let payload = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "x", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
            "total_cost_usd": 0.25, "usage": {"input_tokens": 1, "output_tokens": 1}, "modelUsage": {}, "permission_denials": [],
            "uuid": "r", "session_id": "s", "user_message_uuids": names,
        });
        self.event("worker", "r", payload)
    }
}

fn end_of<'a>(frames: &'a [Value], prompt: &str) -> &'a str {
    assert_eq!(frames.len(), 1, "{frames:#?}");
    assert_eq!(
        (&frames[0]["type"], &frames[0]["is_error"]),
        (&json!("result"), &json!(true))
    );
    assert_eq!(frames[0]["user_message_uuids"], json!([prompt]));
    frames[0]["errors"][0].as_str().unwrap()
}

#[test]
fn prompts_of_others_come_when_their_turn_begins_and_own_ones_never() {
    let mut log = TestLog::new();
    assert!(log.prompt(OWN).is_empty() && log.prompt(THEIRS).is_empty());
    assert!(log.delivery(THEIRS, "received").is_empty());
    assert!(log.delivery(OWN, "processing").is_empty());
    assert!(log.frames.is_running(OWN) && !log.frames.is_running(THEIRS));
    assert_eq!(log.result(&[OWN]).len(), 1);
    assert!(log.delivery(OWN, "processed").is_empty());
    let told = log.delivery(THEIRS, "processing");
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["uuid"], &told[0]["isReplay"]),
        (&json!(THEIRS), &json!(true))
    );
    assert!(log.delivery(THEIRS, "processing").is_empty(), "once");
}

#[test]
fn a_turn_without_a_result_is_ended_once() {
    // The process ended.
    let mut log = TestLog::new();
    log.delivery(OWN, "processing");
    // A result of background work is not its own.
    log.result(&[THEIRS]);
    let told = log.delivery(OWN, "interrupted");
    assert!(end_of(&told, OWN).contains("in the middle of the turn"));
    assert_eq!(told[0]["total_cost_usd"], 0.25, "costs only grow");
    assert!(log.delivery(OWN, "interrupted").len() <= 1);

    // The host gave it up.
    let mut log = TestLog::new();
    log.delivery(OWN, "processing");
    log.host(json!({"type": "prompt_failed", "event_id": OWN, "error": "the budget is spent"}));
    let told = log.delivery(OWN, "processed");
    assert_eq!(end_of(&told, OWN), "the budget is spent");

    // What has its result is not ended again.
    for status in ["processed", "interrupted"] {
        let mut log = TestLog::new();
        log.delivery(OWN, "processing");
        log.result(&[OWN]);
        log.host(json!({"type": "prompt_failed", "event_id": OWN, "error": "x"}));
        assert!(log.delivery(OWN, status).is_empty(), "{status}");
    }
}

#[test]
fn a_turn_that_leaves_a_call_open_ends_with_the_process_that_goes_on() {
    let mut log = TestLog::new();
    log.delivery(OWN, "processing");
    let left_open = json!({
        "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "tool_deferred", "total_cost_usd": 0.125,
        "modelUsage": {}, "uuid": "d", "session_id": "s", "user_message_uuids": [OWN],
    });
    let completed = json!({"type": "command_lifecycle", "command_uuid": OWN, "state": "completed", "uuid": "c", "session_id": "s"});
    let idle = json!({"type": "system", "subtype": "session_state_changed", "state": "idle", "uuid": "i", "session_id": "s"});
    assert!(log.event("worker", "c", completed.clone()).is_empty());
    assert!(log.event("worker", "d", left_open.clone()).is_empty());
    assert!(log.event("worker", "c", completed.clone()).is_empty());
    assert!(log.event("worker", "i", idle.clone()).is_empty());
    // The next process knows nothing of the prompt.
    let told = log.result(&[]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["user_message_uuids"], json!([OWN]));
    assert_eq!(log.event("worker", "i", idle.clone()).len(), 1);
    assert!(log.delivery(OWN, "processed").is_empty());

    // One that leaves no call open is told as it is, also without its result.
    let mut log = TestLog::new();
    log.delivery(OWN, "processing");
    assert!(log.event("worker", "c", completed.clone()).is_empty());
    let told = log.event("worker", "i", idle);
    assert_eq!((told.len(), &told[0]), (2, &completed));
    log.delivery(OWN, "processing");
    log.event("worker", "c", completed.clone());
    let told = log.result(&[OWN]);
    assert_eq!((told.len(), &told[0]), (2, &completed));

    // Or nobody goes on with it.
    let mut log = TestLog::new();
    log.delivery(OWN, "processing");
    log.event("worker", "d", left_open);
    let told = log.delivery(OWN, "interrupted");
    end_of(&told, OWN);
    assert_eq!(told[0]["total_cost_usd"], 0.125);
}

#[test]
fn a_start_that_fails_ends_the_prompts_that_wait_or_is_told() {
    for kind in [
        "start_failed",
        "resume_failed",
        "workspace_failed",
        "turn_not_admitted",
    ] {
        let failed = json!({"type": kind, "error": "no such program"});
        let mut log = TestLog::new();
        let told = log.host(failed.clone());
        assert!(end_of(&told, OWN).contains("no such program"), "{kind}");
        let told = log.host(failed);
        assert_eq!(told[0]["subtype"], "informational", "{kind}");
        assert!(told[0]["content"].as_str().unwrap().contains("no such program"));
    }
}

#[test]
fn the_beginnings_are_told_for_a_cli_that_does_not() {
    let mut log = TestLog::new();
    log.frames.tell_beginnings();
    let told = log.delivery(OWN, "processing");
    assert_eq!(
        (&told[0]["type"], &told[0]["command_uuid"], &told[0]["state"]),
        (&json!("command_lifecycle"), &json!(OWN), &json!("started"))
    );
}

#[test]
fn what_is_not_for_the_sdk_or_not_known_is_left_out() {
    let mut log = TestLog::new();
    for payload in [
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool"}}),
        json!({"type": "control_response", "response": {}}),
    ] {
        assert!(log.event("worker", "w", payload).is_empty());
    }
    for payload in [
        json!({"type": "session_state_changed", "state": "idle"}),
        json!({"type": "from_the_future", "event_id": 7}),
        json!({"no": "type"}),
        json!("text"),
    ] {
        assert!(log.host(payload.clone()).is_empty() && log.event("client", "c", payload).is_empty());
    }
    assert_eq!(log.host(json!({"type": "budget_exhausted"})).len(), 1);
    assert!(
        log.host(json!({"type": "memory_limit", "action": "retired"}))
            .is_empty()
    );
    assert_eq!(
        log.host(json!({"type": "memory_limit", "action": "killed"}))
            .len(),
        1
    );
}

#[test]
fn what_waits_for_ever_is_bounded() {
    let mut log = TestLog::new();
    for number in 0..MOST_WAITING + 10 {
        log.prompt(&number.to_string());
    }
    assert_eq!(log.frames.waiting.len(), MOST_WAITING);
    assert!(log.delivery("3", "processing").is_empty());
    assert_eq!(log.delivery("200", "processing").len(), 1);
}
