//! Traps about where turns begin and end, and whose they are.

use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger::testing::assert::{Trace, question};
use outrigger::testing::sim::peer::faulty::frames;
use outrigger::{AmbientEvent, Event, Phase, Policy, Verdict};
use serde_json::json;

use crate::kit::{AGES, Says as _, agreed, cli, outcome, read};

/// Guard: `query.rs` closes stdin at the end of the run and not at the first result.
#[tokio::test(start_paused = true)]
async fn stdin_lifetime_matrix() {
    for reports in [true, false] {
        let state = move |state| reports.then(|| frames::state(state));
        let cli = cli(move |script| {
            script
                .begins()
                .says_all(state("running"))
                .says_all(frames::agent_begins("a1"))
                .ends("I'll wait for the agent")
                .says(frames::ask("late", "Bash"))
                .takes_answer("late")
                .says_all(frames::agent_ends("a1"))
                .says(frames::init())
                .says(frames::ask("later", "Bash"))
                .takes_answer("later")
                .says(frames::foreign_result("it found it"))
                .says_all(state("idle"))
                .expect_end()
        });
        let answer = cli
            .options()
            .permissions(Policy::allow_all())
            .query_text("go")
            .await
            .unwrap();
        assert_eq!(answer.text(), "it found it");
        agreed(&cli);
        let trace = Trace::from(cli.report().unwrap());
        trace
            .asked([question("Bash").allowed(), question("Bash").allowed()])
            .unwrap();
        trace.all_answered().unwrap();
    }
}

/// Guard: `conn/core/turns.rs` ends the prompt's turn, `ledger.rs` keeps the run open.
#[tokio::test(start_paused = true)]
async fn interim_result() {
    let cli = cli(|script| {
        script
            .begins()
            .says_all(frames::agent_begins("a1"))
            .ends("I'll wait for the agent")
            .takes("gate")
            .says_all(frames::agent_ends("a1"))
            .says(frames::init())
            .says(frames::foreign_result("it found it"))
            .says(frames::state("idle"))
    });
    let session = cli.options().start().await.unwrap();
    let mut ambient = session.ambient();
    assert_eq!(
        outcome(&session, "go").await.result_text(),
        "I'll wait for the agent"
    );
    assert_eq!(session.tasks().running().count(), 1);
    assert!(
        session
            .wait_run_end(Duration::from_millis(50))
            .await
            .unwrap_err()
            .is_timeout()
    );
    session.raw_request("gate", json!({})).await.unwrap();
    let found = loop {
        if let AmbientEvent::TurnEnded(outcome) = ambient.next().await.unwrap() {
            break outcome;
        }
    };
    assert_eq!(found.result_text(), "it found it");
    session.wait_run_end(AGES).await.unwrap();
}

/// Guard: `conn/core/turns.rs`, a result of foreign origin that names no prompt is none's.
#[tokio::test(start_paused = true)]
async fn foreign_origin_result() {
    let cli = cli(|script| {
        script
            .begins()
            .says(frames::foreign_result("somebody else's"))
            .says(frames::init())
            .says(frames::text("mine"))
            .ends("mine")
    });
    let session = cli.options().start().await.unwrap();
    let mine = outcome(&session, "go").await;
    assert_eq!((mine.result_text(), mine.origin()), ("mine", None));
}

/// Guard: `conn/core/turns.rs`, a result ends the turns of all prompts that it names.
#[tokio::test(start_paused = true)]
async fn folded_steer() {
    let cli = cli(|script| {
        script
            .begins()
            .says(frames::text("working"))
            .takes_prompt()
            .says(frames::lifecycle("queued"))
            .says(frames::lifecycle("started"))
            .says(frames::lifecycle("completed"))
            .says(frames::result_of(
                &["$prompt.0", "$prompt.1"],
                "one result for two",
            ))
            .says(frames::lifecycle_of("$prompt.0", "completed"))
            .turn("next")
    });
    let session = cli.options().start().await.unwrap();
    let mut first = session.prompt("1").await.unwrap();
    let mut steer = session.steer("2").await.unwrap();
    assert_eq!(first.outcome().await.unwrap().result_text(), "one result for two");
    assert_eq!(steer.outcome().await.unwrap().result_text(), "one result for two");
    assert_eq!(outcome(&session, "3").await.result_text(), "next");
}

/// Guard: `conn/core/watchdog.rs`, a deadline for each phase.
#[tokio::test(start_paused = true)]
async fn stalled_stream_per_phase() {
    for phase in [Phase::FirstToken, Phase::BetweenEvents] {
        let cli = cli(move |script| {
            let mut begun = script.begins();
            if phase == Phase::BetweenEvents {
                begun = begun
                    .says_all(frames::stream_begins())
                    .says(frames::delta("so far"));
            }
            begun
                .patience(AGES)
                .takes("interrupt")
                .says(frames::aborted())
                .says(frames::lifecycle("completed"))
                .turn("next")
        });
        let session = cli
            .options()
            .include_partial_messages(true)
            .start()
            .await
            .unwrap();
        let mut turn = session.prompt("go").await.unwrap();
        let stalled = tokio::time::timeout(AGES, turn.outcome())
            .await
            .expect("it does not hang");
        let error = stalled.unwrap_err();
        assert_eq!(error.stalled(), Some(phase), "{error}");
        assert_eq!(outcome(&session, "go on").await.result_text(), "next");
    }
}

/// Guard: `conn/core/turns.rs`, the result of an interrupted turn is that turn's, however late it comes.
#[tokio::test(start_paused = true)]
async fn interrupt_mid_call() {
    let cli = cli(|script| {
        script
            .begins()
            .says(frames::tool_use("t1", "Bash", json!({"command": "sleep 100"})))
            .takes("interrupt")
            // Long after the receipt.
            .sleep(Duration::from_secs(5))
            .says(frames::aborted())
            .says(frames::lifecycle("completed"))
            .turn("next")
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    while !matches!(turn.next().await, Some(Ok(Event::ToolUse(_)))) {}
    tokio::time::timeout(AGES, session.interrupt())
        .await
        .expect("it settles")
        .unwrap();
    let mut next = session.prompt("next").await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().verdict(), &Verdict::Interrupted);
    assert_eq!(next.outcome().await.unwrap().result_text(), "next");
}

/// Guard: `session.rs` follows the id that the CLI says it has.
#[tokio::test(start_paused = true)]
async fn id_change_on_clear() {
    const NEW: &str = "5e551000-0000-4000-8000-00000000000f";
    let cli = cli(|script| {
        let renamed = |mut frame: serde_json::Value| {
            frame["session_id"] = json!(NEW);
            frame
        };
        script
            .turn("before")
            .takes_prompt()
            .says(renamed(frames::lifecycle("queued")))
            .says(renamed(frames::lifecycle("started")))
            .says(renamed(frames::init()))
            .says(renamed(frames::text("after")))
            .says(renamed(frames::result("after")))
            .says(renamed(frames::lifecycle("completed")))
    });
    let session = cli.options().start().await.unwrap();
    outcome(&session, "one").await;
    let old = session.id().unwrap();
    assert_eq!(outcome(&session, "two").await.result_text(), "after");
    assert_eq!(session.id().as_deref(), Some(NEW));
    assert_eq!(session.ids(), [old, NEW.parse().unwrap()]);
}

/// Guard: `usage.rs`, what a turn cost is the difference between two sums.
#[tokio::test(start_paused = true)]
async fn cumulative_cost_deltas() {
    let cli = Simulated::agent(|agent| agent);
    let session = cli.options().start().await.unwrap();
    let first = outcome(&session, "%usage in=1000 out=300\n%say one").await;
    let second = outcome(&session, "%usage in=7 out=5\n%say two").await;
    assert!(
        second.cost() > 0.0 && second.cost() < first.cost(),
        "{} then {}",
        first.cost(),
        second.cost()
    );
    assert!((session.usage().cost_usd - first.cost() - second.cost()).abs() < 1e-9);
    let sums: Vec<f64> = Trace::from(cli.report().unwrap())
        .lines()
        .iter()
        .filter_map(|line| line.json["total_cost_usd"].as_f64())
        .collect();
    assert!(sums[1] > sums[0], "the CLI reports sums: {sums:?}");
}

/// Guard: `event.rs`, a message that was told in pieces is not told again.
#[tokio::test(start_paused = true)]
async fn partial_and_final_dedupe() {
    let cli = Simulated::agent(|agent| agent);
    for partial in [true, false] {
        let session = cli
            .options()
            .include_partial_messages(partial)
            .start()
            .await
            .unwrap();
        let mut turn = session
            .prompt("%slow 1 chunk=4\n%say hello there, world")
            .await
            .unwrap();
        let (texts, outcome) = read(&mut turn).await;
        assert_eq!(texts.concat(), "hello there, world");
        assert_eq!(texts.len() > 1, partial, "{texts:?}");
        assert_eq!(outcome.result_text(), "hello there, world");
    }
}

/// Guard: `event.rs`, what a subagent says is no text of the turn.
#[tokio::test(start_paused = true)]
async fn subagent_attribution() {
    let cli = cli(|script| {
        let mut inner = frames::text("what the subagent says");
        inner["parent_tool_use_id"] = json!("toolu_agent");
        script
            .begins()
            .says(frames::tool_use(
                "toolu_agent",
                "Agent",
                json!({"prompt": "look"}),
            ))
            .says(inner)
            .says(frames::tool_result("toolu_agent", "done"))
            .says(frames::text("mine"))
            .ends("mine")
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    assert_eq!(read(&mut turn).await.0, ["mine"]);
}
