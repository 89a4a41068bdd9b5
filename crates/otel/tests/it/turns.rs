//! The spans of turns.

use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Steps};
use outrigger::{Options, Policy, hooks};
use outrigger_otel::Telemetry;

use outrigger_sim::peer::Signal;

use crate::collector::{Collector, of};

const SECRET: &str = "sk-ant-api03-aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3";

/// One turn with a tool that is allowed, one that fails, and a revived session's one.
pub(crate) async fn play(telemetry: &Telemetry) {
    let cli = Simulated::agent(|agent| agent);
    let trace = telemetry.session();
    let hook = hooks::pre_tool_use(async |_, _| outrigger::hooks::HookOutput::none()).matcher("Bash");
    let options = |options: Options| options.permissions(Policy::allow_all()).hook(hook);
    let session = trace.options(options(cli.options())).start().await.unwrap();
    trace.observe(&session);
    let prompt = format!(
        "%usage in=1000 out=200\n%tool Bash {{\"command\": \"touch {SECRET}\", \"description\": \"x\"}}\n%say private answer"
    );
    let mut turn = session.prompt(prompt).await.unwrap();
    assert!(turn.outcome().await.unwrap().is_success());
    let mut turn = session.prompt("%error 400 n=9").await.unwrap();
    assert!(!turn.outcome().await.unwrap().is_success());
    drop(turn);
    cli.started()[0].signal(Signal::Kill);
    session.wait_ended().await;
    let revived = session.revive().await.unwrap();
    trace.observe(&revived.session);
    let mut turn = revived.session.prompt("%say again").await.unwrap();
    turn.outcome().await.unwrap();
    drop(turn);
    revived.session.close().await.unwrap();
}

#[tokio::test]
async fn a_turn_is_a_tree_of_spans() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    play(&exporter.telemetry()).await;
    exporter.shutdown().await.unwrap();

    let received = collector.received();
    let session = received.span("session");
    let turns: Vec<_> = received
        .spans
        .iter()
        .map(|(_, span)| span)
        .filter(|span| of(span, "gen_ai.operation.name").as_deref() == Some("invoke_agent"))
        .collect();
    let verdicts: Vec<_> = turns
        .iter()
        .map(|turn| of(turn, "outrigger.verdict").unwrap())
        .collect();
    assert_eq!(verdicts, ["completed", "failed", "completed"]);
    assert!(turns.iter().all(|turn| turn.parent_span_id == session.span_id));
    assert!(
        received
            .spans
            .iter()
            .all(|(_, span)| span.trace_id == session.trace_id)
    );
    let first = turns[0];
    let tool = received.span("execute_tool Bash");
    assert_eq!(tool.parent_span_id, first.span_id);
    let permission = received.span("permission Bash");
    assert_eq!(permission.parent_span_id, tool.span_id);
    assert_eq!(of(permission, "outrigger.decision").as_deref(), Some("allow"));
    let hook = received.span("hook PreToolUse");
    assert_eq!(hook.parent_span_id, tool.span_id);
    // The request with the call, and the one with the answer.
    let chats: Vec<_> = received
        .spans
        .iter()
        .map(|(_, span)| span)
        .filter(|span| span.name.starts_with("chat ") && span.parent_span_id == first.span_id)
        .collect();
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert!(chat.start_time_unix_nano >= first.start_time_unix_nano);
        assert!(chat.end_time_unix_nano <= first.end_time_unix_nano);
    }
    assert!(
        of(first, "gen_ai.usage.input_tokens")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            >= 1000
    );
    assert!(of(first, "outrigger.cost_usd").unwrap().parse::<f64>().unwrap() > 0.0);
    assert_eq!(turns[1].status.as_ref().unwrap().code, 2);
    assert!(of(turns[1], "error.type").is_some());

    let cost: f64 = turns
        .iter()
        .map(|turn| of(turn, "outrigger.cost_usd").unwrap().parse::<f64>().unwrap())
        .sum();
    assert!((received.sums["outrigger.cost"] - cost).abs() < 1e-9);
    assert_eq!(received.sums["outrigger.restarts"], 1.0);
    // No content unless it is asked for.
    assert!(!received.has("private answer") && !received.has(SECRET) && !received.has("touch "));
}

#[tokio::test]
async fn content_is_there_if_it_is_asked_for_and_without_secrets() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    play(&exporter.telemetry().with_content(true)).await;
    exporter.shutdown().await.unwrap();
    let received = collector.received();
    assert!(received.has("private answer") && received.has("touch "));
    assert!(!received.has(SECRET));
    let tool = received.span("execute_tool Bash");
    assert!(
        of(tool, "gen_ai.tool.call.arguments")
            .unwrap()
            .contains("[redacted]")
    );
}

#[tokio::test]
async fn the_last_request_of_a_subagent_ends_with_the_subagent() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let cli = Simulated::agent(|agent| agent);
    let trace = exporter.telemetry().session();
    let options = cli
        .options()
        .permissions(Policy::allow_all())
        .forward_subagent_text(true);
    let session = trace.options(options).start().await.unwrap();
    trace.observe(&session);
    let agent = serde_json::json!({
        "description": "a helper", "subagent_type": "general-purpose", "prompt": "%say found", "run_in_background": false,
    });
    let mut turn = session
        .prompt(format!("%tool Agent {agent}\n%say done"))
        .await
        .unwrap();
    assert!(turn.outcome().await.unwrap().is_success());
    // The session goes on.
    exporter.shutdown().await.unwrap();
    let received = collector.received();
    let call = &received.span("execute_tool Agent").span_id;
    let of_subagent = received
        .spans
        .iter()
        .filter(|(_, span)| span.name.starts_with("chat ") && span.parent_span_id == *call);
    assert_eq!(of_subagent.count(), 1);
}

/// A gateway writes them.
#[tokio::test]
async fn odd_counts_of_a_message_lose_no_span() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let said = |id: &str, usage: serde_json::Value| {
        serde_json::json!({
            "type": "assistant", "parent_tool_use_id": null, "session_id": "00000000-0000-4000-8000-000000000001", "uuid": id,
            "message": {"id": id, "type": "message", "role": "assistant", "model": id, "stop_reason": null, "stop_sequence": null,
                "content": [{"type": "text", "text": "hello"}], "usage": usage},
        })
    };
    let large = serde_json::json!({"input_tokens": u64::MAX, "output_tokens": 7, "cache_read_input_tokens": null, "cache_creation_input_tokens": 1});
    let odd = serde_json::json!({"input_tokens": -1.5});
    let result = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
        "result": "hello", "session_id": "00000000-0000-4000-8000-000000000001", "uuid": "r", "total_cost_usd": 0,
        "permission_denials": [], "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let cli = Simulated::steps(move || {
        Steps::new()
            .initialize()
            .expect(Match::prompt("count"))
            .send(said("large", large.clone()))
            .send(said("odd", odd.clone()))
            .send(result.clone())
            .expect_end()
    });
    let trace = exporter.telemetry().session();
    let session = trace.options(cli.options()).start().await.unwrap();
    trace.observe(&session);
    let mut turn = session.prompt("count").await.unwrap();
    turn.outcome().await.unwrap();
    drop(turn);
    session.close().await.unwrap();
    exporter.shutdown().await.unwrap();
    let received = collector.received();
    let span = received.span("chat large");
    assert_eq!(of(span, "gen_ai.usage.input_tokens"), Some(i64::MAX.to_string()));
    assert_eq!(of(span, "gen_ai.usage.output_tokens").as_deref(), Some("7"));
    received.span("chat odd");
}
