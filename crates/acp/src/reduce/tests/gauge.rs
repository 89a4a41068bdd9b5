//! The fill of the context.

use serde_json::{Value, json};

use super::support::Run;

fn event(uuid: &str, event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "uuid": uuid, "session_id": "s"})
}

fn start(uuid: &str, usage: Value) -> Value {
    let message = json!({"id": uuid, "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    event(uuid, json!({"type": "message_start", "message": message}))
}

fn delta(uuid: &str, usage: Value) -> Value {
    event(
        uuid,
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": usage}),
    )
}

#[test]
fn what_a_message_counts_only_at_its_beginning_counts() {
    let mut run = Run::new();
    let steps = run.reducer.sized("m[1m]", 1_000_000, 0);
    run.take(steps);
    run.json(start(
        "1",
        json!({"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 1}),
    ));
    run.json(delta("2", json!({"output_tokens": 42})));
    assert_eq!(run.story(), "usage 1242/1000000 None Some(\"m\")\n");
    // The usage at the end counts.
    run.json(start("3", json!({"input_tokens": 1, "output_tokens": 1})));
    run.json(delta(
        "4",
        json!({"input_tokens": 1300, "cache_read_input_tokens": 0, "output_tokens": 50}),
    ));
    assert_eq!(run.story(), "usage 1350/1000000 None Some(\"m\")\n");
}

#[test]
fn the_size_is_asked_for_once_and_told_when_it_is_there() {
    let mut run = Run::new();
    assert!(!run.reducer.wants_size());
    run.json(start("1", json!({"input_tokens": 1000, "output_tokens": 1})));
    assert!(run.reducer.wants_size());
    assert!(!run.reducer.wants_size());
    run.json(delta("2", json!({"output_tokens": 5})));
    assert_eq!(run.story(), "");
    let steps = run.reducer.sized("m", 200_000, 900);
    run.take(steps);
    assert_eq!(run.story(), "usage 1005/200000 None Some(\"m\")\n");
    // A resumed session has no other data yet.
    let mut run = Run::new();
    let steps = run.reducer.sized("m", 200_000, 900);
    run.take(steps);
    assert_eq!(run.story(), "usage 900/200000 None Some(\"m\")\n");
}
