//! Results and the life of prompts, other than one result for each prompt.

use std::time::Duration;

use outrigger::{AmbientEvent, Cause, Outcome, Policy, Session, Verdict};
use outrigger_sim::peer::faulty::{FaultyScript, FaultyStep, frames};
use serde_json::{Value, json};

use super::stand::{Stand, on_both_runtimes, read, turn};
use crate::support::PATIENCE;

fn lines(frames: impl IntoIterator<Item = Value>) -> FaultyScript {
    FaultyScript::from(frames.into_iter().map(FaultyStep::Line).collect::<Vec<_>>())
}

/// A point that the test decides when to pass.
fn gate(name: &str) -> FaultyScript {
    FaultyScript::new().request(name).reply(json!({}))
}

async fn pass(session: &Session, gate: &str) {
    session.raw_request(gate, json!({})).await.unwrap();
}

async fn ambient_turn(ambient: &mut outrigger::Ambient) -> Outcome {
    loop {
        match ambient.next().await.expect("the session lives") {
            AmbientEvent::TurnEnded(outcome) => return outcome,
            _ => continue,
        }
    }
}

/// A turn that leaves an agent in the background, whose end begins another turn. `reports`: whether it says what state it is in.
fn with_an_agent(reports: bool) -> FaultyScript {
    let state = |state| lines(reports.then(|| frames::state(state)));
    FaultyScript::new()
        .initialize()
        .prompt()
        .then(state("running"))
        .then(lines(frames::agent_begins("a1")))
        .say("I'll wait for the agent")
        .result("I'll wait for the agent")
        .then(gate("agent"))
        .then(lines(frames::agent_ends("a1")))
        .line(frames::init())
        .say("it found it")
        .line(frames::foreign_result("it found it"))
        .then(state("idle"))
}

async fn an_interim_result_is_not_the_end_of_the_run() {
    for reports in [true, false] {
        let stand = Stand::new(&with_an_agent(reports));
        let session = stand.session().await;
        let mut ambient = session.ambient();
        let (told, interim) = turn(&session, "go").await;
        assert_eq!(interim.result_text(), "I'll wait for the agent");
        assert_eq!(told.last().unwrap(), "text I'll wait for the agent");
        assert_eq!(session.tasks().running().count(), 1);
        let error = session.wait_run_end(Duration::from_millis(50)).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        pass(&session, "agent").await;
        let found = ambient_turn(&mut ambient).await;
        assert_eq!(
            (found.result_text(), found.origin(), found.prompts().len()),
            ("it found it", Some("task-notification"), 0)
        );
        session.wait_run_end(PATIENCE).await.unwrap();
        assert_eq!(session.tasks().running().count(), 0);
        stand.closed(session).await;
    }
}

/// A one-shot query keeps stdin open until the run is over: questions that come after the first result are answered, and what
/// the background found is the answer.
async fn stdin_lives_as_long_as_the_run() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .line(frames::state("running"))
            .then(lines(frames::agent_begins("a1")))
            .result("I'll wait for the agent")
            .ask("late", "Bash")
            .answer_to("late")
            .then(lines(frames::agent_ends("a1")))
            .line(frames::init())
            .ask("later", "Bash")
            .answer_to("later")
            .line(frames::foreign_result("it found it"))
            .line(frames::state("idle"))
            .take_end(),
    );
    let answer = stand
        .options()
        .permissions(Policy::allow_all())
        .query_text("go")
        .await
        .unwrap();
    assert_eq!(answer.text(), "it found it");
    assert_eq!(answer.other_outcomes().len(), 1);
    assert_eq!(stand.answers().len(), 2);
    stand.gone().await;
}

/// A CLI that never says that it is idle, nor anything of its prompts, as those before `msg_lifecycle_v1`.
async fn a_cli_that_tells_nothing_of_its_state_is_followed_by_its_results() {
    let mut initialized = frames::initialized();
    initialized["response"]["response"]["capabilities"] = json!([]);
    let silent = |text: &str| {
        let mut init = frames::init();
        init["capabilities"] = json!([]);
        FaultyScript::new()
            .take_prompt()
            .line(init)
            .say(text)
            .line(frames::nobodys_result(text))
    };
    let stand = Stand::new(
        &FaultyScript::new()
            .request("initialize")
            .line(initialized)
            .then(silent("one"))
            .then(silent("two"))
            .take_end(),
    );
    let session = stand.session().await;
    let mut both = [
        session.prompt("1").await.unwrap(),
        session.prompt("2").await.unwrap(),
    ];
    let [one, two] = &mut both;
    assert_eq!(read(one).await.0, ["text one"]);
    assert_eq!(read(two).await.0, ["text two"]);
    session.wait_run_end(PATIENCE).await.unwrap();
    stand.closed(session).await;
}

/// A turn of the background that runs when the prompt comes, and results of such turns while the prompt's own runs.
async fn a_foreign_result_resolves_nobody() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .line(frames::init())
            .say("not yours")
            .take_prompt()
            .line(frames::lifecycle("queued"))
            .line(frames::foreign_result("not yours"))
            .line(frames::lifecycle("started"))
            .line(frames::init())
            .say("yours")
            .line(frames::foreign_result("nor this"))
            .say("too")
            .result("yours, too"),
    );
    let session = stand.session().await;
    let mut ambient = session.ambient();
    let (told, outcome) = turn(&session, "go").await;
    assert_eq!(
        (told, outcome.result_text()),
        (vec!["text yours".to_owned(), "text too".into()], "yours, too")
    );
    assert_eq!(ambient_turn(&mut ambient).await.result_text(), "not yours");
    assert_eq!(ambient_turn(&mut ambient).await.result_text(), "nor this");
    stand.closed(session).await;
}

/// A result that comes twice, and one that comes again when the next prompt's turn runs: nobody is one turn behind.
async fn late_and_doubled_results_end_no_other_turn() {
    let first = || frames::result_of(&["$prompt.0"], "first");
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .line(first())
            .line(first())
            .line(frames::lifecycle("completed"))
            .line(frames::lifecycle("completed"))
            .prompt()
            .line(first())
            .say("second")
            .line(frames::lifecycle_of("$prompt.0", "completed"))
            .result("second"),
    );
    let session = stand.session().await;
    let (_, outcome) = turn(&session, "1").await;
    assert_eq!(outcome.result_text(), "first");
    let (told, outcome) = turn(&session, "2").await;
    assert_eq!(
        (told, outcome.result_text()),
        (vec!["text second".to_owned()], "second")
    );
    stand.closed(session).await;
}

/// The interrupt is given up before the turn has ended. The next prompt waits all the same, so that the late result is not
/// taken for its own.
async fn the_late_result_of_an_interrupted_turn_is_not_the_next_ones() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .request("interrupt")
            .reply(json!({"still_queued": []}))
            .then(gate("late"))
            .line(frames::aborted())
            .line(frames::lifecycle("completed"))
            .turn("mine"),
    );
    let session = stand
        .options()
        .interrupt_deadline(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    let mut first = session.prompt("1").await.unwrap();
    assert!(first.next().await.is_some());
    assert!(session.interrupt().await.unwrap_err().is_timeout());
    let mut second = session.prompt("2").await.unwrap();
    pass(&session, "late").await;
    assert_eq!(first.outcome().await.unwrap().verdict(), &Verdict::Interrupted);
    let (told, outcome) = read(&mut second).await;
    assert_eq!(
        (told, outcome.result_text()),
        (vec!["text mine".to_owned()], "mine")
    );
    stand.closed(session).await;
}

/// Folded into the running turn, and merged with another that waits: one result each, and both know theirs.
async fn folded_and_merged_prompts_all_get_an_outcome() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .say("working")
            .take_prompt()
            .line(frames::lifecycle("queued"))
            .line(frames::lifecycle("started"))
            .line(frames::lifecycle("completed"))
            .say("as you wish")
            .line(frames::result_of(&["$prompt.0", "$prompt.1"], "folded"))
            .line(frames::lifecycle_of("$prompt.0", "completed"))
            .take_prompt()
            .take_prompt()
            .line(frames::lifecycle_of("$prompt.2", "started"))
            .line(frames::lifecycle_of("$prompt.3", "started"))
            .line(frames::init())
            .line(frames::result_of(&["$prompt.2", "$prompt.3"], "merged"))
            .line(frames::lifecycle_of("$prompt.2", "completed"))
            .line(frames::lifecycle_of("$prompt.3", "completed")),
    );
    let session = stand.session().await;
    for text in ["folded", "merged"] {
        let mut one = session.queue("1").await.unwrap();
        let mut two = session.steer("2").await.unwrap();
        let (one, two) = (one.outcome().await.unwrap(), two.outcome().await.unwrap());
        assert_eq!((one.result_text(), two.result_text()), (text, text));
        assert_eq!(one.prompts().len(), 2);
    }
    stand.closed(session).await;
}

/// Folded, and the result names only the prompt whose turn it was.
async fn a_folded_prompt_that_no_result_names_ends_with_its_turn() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .take_prompt()
            .line(frames::lifecycle("queued"))
            .line(frames::lifecycle("started"))
            .line(frames::lifecycle("completed"))
            .line(frames::result_of(&["$prompt.0"], "one result"))
            .line(frames::lifecycle_of("$prompt.0", "completed")),
    );
    let session = stand.session().await;
    let mut running = session.prompt("go").await.unwrap();
    let mut steer = session.steer("left").await.unwrap();
    assert_eq!(running.outcome().await.unwrap().result_text(), "one result");
    assert_eq!(steer.outcome().await.unwrap().result_text(), "one result");
    stand.closed(session).await;
}

/// The CLI is through with prompts that it never ran.
async fn dropped_prompts_end_without_a_result() {
    let mut script = FaultyScript::new().initialize();
    let states = ["completed", "cancelled", "discarded", "refused", "never_seen"];
    for state in states {
        script = script
            .take_prompt()
            .line(frames::lifecycle("queued"))
            .line(frames::lifecycle(state));
    }
    let stand = Stand::new(&script.turn("still here"));
    let session = stand.session().await;
    let mut verdicts = Vec::new();
    for _ in states {
        let mut turn = session.prompt("go").await.unwrap();
        verdicts.push(turn.outcome().await.unwrap().verdict().clone());
    }
    let dropped = |state: &str| Verdict::Dropped(state.to_owned());
    assert_eq!(
        verdicts,
        [
            Verdict::NoResult,
            Verdict::Cancelled,
            dropped("discarded"),
            dropped("refused"),
            dropped("never_seen")
        ]
    );
    assert_eq!(turn(&session, "go").await.1.result_text(), "still here");
    stand.closed(session).await;
}

/// A `success` that says it is none, and one of a turn that called no model.
async fn a_success_that_is_none_is_no_success() {
    let mut failed = frames::result("API Error: 529 overloaded");
    failed["is_error"] = json!(true);
    failed["terminal_reason"] = json!("api_error");
    failed["api_error_status"] = json!(529);
    let mut blocked = frames::result("blocked by a hook");
    blocked["num_turns"] = json!(0);
    blocked.as_object_mut().unwrap().remove("terminal_reason");
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .line(failed)
            .line(frames::lifecycle("completed"))
            .prompt()
            .line(blocked)
            .line(frames::lifecycle("completed")),
    );
    let session = stand.session().await;
    for verdict in [Verdict::Failed(Cause::Api { status: Some(529) }), Verdict::NotRun] {
        let mut turn = session.prompt("go").await.unwrap();
        let outcome = turn.outcome().await.unwrap();
        assert_eq!((outcome.verdict(), outcome.is_success()), (&verdict, false));
    }
    stand.closed(session).await;
}

/// A control call needs nobody to read a turn or a stream, and works between turns.
async fn requests_are_answered_whoever_reads() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .then(gate("before"))
            .prompt()
            .then(gate("during"))
            .result("fine")
            .then(gate("after")),
    );
    let session = stand.session().await;
    pass(&session, "before").await;
    let unread = session.prompt("go").await.unwrap();
    pass(&session, "during").await;
    assert_eq!(unread.watch().outcome().await.unwrap().result_text(), "fine");
    drop(unread);
    pass(&session, "after").await;
    stand.closed(session).await;
}

on_both_runtimes!(
    an_interim_result_is_not_the_end_of_the_run,
    stdin_lives_as_long_as_the_run,
    a_cli_that_tells_nothing_of_its_state_is_followed_by_its_results,
    a_foreign_result_resolves_nobody,
    late_and_doubled_results_end_no_other_turn,
    the_late_result_of_an_interrupted_turn_is_not_the_next_ones,
    folded_and_merged_prompts_all_get_an_outcome,
    a_folded_prompt_that_no_result_names_ends_with_its_turn,
    dropped_prompts_end_without_a_result,
    a_success_that_is_none_is_no_success,
    requests_are_answered_whoever_reads,
);
