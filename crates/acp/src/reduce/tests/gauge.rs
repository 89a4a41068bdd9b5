//! The fill of the context, and the cost.

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

/// A result with the CLI's sum, and with what is new of it.
fn result(uuid: &str, sum: f64, since: Option<f64>) -> Value {
    let usage = |cost: f64| {
        json!({"m": {"inputTokens": 1, "outputTokens": 1, "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": cost, "contextWindow": 200_000, "maxOutputTokens": 1}})
    };
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
        "num_turns": 1, "result": "", "stop_reason": "end_turn", "total_cost_usd": sum, "usage": {"input_tokens": 1,
        "output_tokens": 1}, "modelUsage": usage(sum), "permission_denials": [], "uuid": uuid, "session_id": "s"});
    if let Some(since) = since {
        result["model_usage_since_last_result"] = usage(since);
    }
    result
}

#[test]
fn the_cost_goes_on_when_a_process_is_killed() {
    for has_since in [true, false] {
        let mut run = Run::new();
        let steps = run.reducer.sized("m", 200_000, 900);
        run.take(steps);
        run.story();
        let mut number = 0;
        let mut told = |run: &mut Run, sum: f64, since: f64| {
            number += 1;
            run.json(result(&number.to_string(), sum, has_since.then_some(since)));
            run.story()
        };
        let usage = |cost: &str| format!("usage 900/200000 Some({cost}) Some(\"m\")\n");
        // What earlier programs used is in the first sum.
        assert_eq!(told(&mut run, 0.75, 0.25), usage("0.75"));
        assert_eq!(told(&mut run, 1.0, 0.25), usage("1.0"));
        // A killed process has left nothing of it to the next one.
        let steps = run.reducer.died();
        run.take(steps);
        assert_eq!(told(&mut run, 0.5, 0.5), usage("1.5"));
        assert_eq!(told(&mut run, 0.75, 0.25), usage("1.75"));
        // One that ends in good order has, and `/clear` counts from nothing.
        let mut run = Run::new();
        let steps = run.reducer.sized("m", 200_000, 900);
        run.take(steps);
        run.story();
        assert_eq!(told(&mut run, 1.0, 1.0), usage("1.0"));
        let steps = run.reducer.died();
        run.take(steps);
        assert_eq!(told(&mut run, 1.5, 0.5), usage("1.5"));
        assert_eq!(told(&mut run, 0.25, 0.25), usage("1.75"));
    }
}
