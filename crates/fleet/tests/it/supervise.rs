//! Supervised sessions, with simulated CLIs that are killed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Signal, Steps};
use outrigger::{Event, Options, Verdict};
use outrigger_fleet::budget::{Amount, Budget, Cap};
use outrigger_fleet::supervise::{
    AfterLoss, HealthState, IdFiles, IdStore, Rotation, SavedConversation, SuperviseError, Supervised,
    Supervision,
};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

struct Place {
    cli: Simulated,
    ids: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            cli: Simulated::agent(|agent| agent.directives()),
            ids: tempfile::tempdir().unwrap(),
        }
    }

    fn session(&self, supervision: Supervision) -> Supervised {
        self.with(self.cli.options(), supervision)
    }

    fn with(&self, options: Options, supervision: Supervision) -> Supervised {
        Supervised::new("helper", options, supervision, IdFiles::new(self.ids.path()))
    }

    /// Kills the newest process.
    fn kill(&self) {
        self.cli.started().last().unwrap().signal(Signal::Kill);
    }

    /// A turn whose process is killed at its first text.
    async fn killed(&self, session: &Supervised, prompt: &str) -> Result<outrigger::Outcome, SuperviseError> {
        let processes = Mutex::new(self.cli.started().len());
        session
            .turn_with(prompt, |event| {
                let mut killed_in = processes.lock().unwrap();
                // Only once: not in the process that takes the turn up.
                if matches!(event, Event::Text(_))
                    && *killed_in <= self.cli.started().len()
                    && *killed_in < 100
                {
                    *killed_in = 100;
                    self.kill();
                }
            })
            .await
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_on_in_the_next_process_and_the_next_program() {
    let place = Place::new();
    let session = place.session(Supervision::new());
    assert_eq!(session.health().state, HealthState::NotStarted);
    let one = session.turn("%say one").await.unwrap();
    assert_eq!(one.result_text(), "one");
    let id = session.health().session_id.unwrap();

    // It dies between two turns.
    place.kill();
    let began = Instant::now();
    let two = session.turn("%say two").await.unwrap();
    assert_eq!(two.result_text(), "two");
    assert!(began.elapsed() >= Duration::from_secs(1), "a restart waits");
    let health = session.health();
    assert_eq!(
        (health.state, health.deaths, health.turns),
        (HealthState::Running, 1, 2)
    );
    assert_eq!(health.session_id.as_ref(), Some(&id));
    assert!(health.last_death.is_some());
    let tokens = |outcome: &outrigger::Outcome| Amount::from(outcome.usage()).tokens;
    assert!(tokens(&one) > 0);
    assert_eq!(health.spent.tokens, tokens(&one) + tokens(&two), "each turn once");
    session.close().await.unwrap();

    // Another program of the same name.
    let session = place.session(Supervision::new());
    let three = session.turn("%say three").await.unwrap();
    let health = session.health();
    assert_eq!(health.session_id, Some(id));
    assert_eq!(place.cli.started().len(), 3);
    assert_eq!(
        health.spent.tokens,
        tokens(&one) + tokens(&two) + tokens(&three),
        "what programs before have spent, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_holds_over_all_processes_and_programs() {
    let place = Place::new();
    let tokens = |outcome: &outrigger::Outcome| Amount::from(outcome.usage()).tokens;
    let one = {
        let session = place.session(Supervision::new());
        session.turn("%say one").await.unwrap()
    };
    let used = tokens(&one);
    let reserve = Amount {
        tokens: used,
        ..Amount::default()
    };
    // For three turns, of which a program without a budget ran one.
    let program = |above: &Budget| {
        let supervision = Supervision::new().budget(above, Cap::tokens(3 * used), reserve);
        place.session(supervision.after_loss(AfterLoss::RepeatAlways))
    };
    let above = Budget::new("all", Cap::none());
    let session = program(&above);
    session.turn("%say one").await.unwrap();
    assert_eq!(above.spent().tokens, 2 * used, "what was used before counts");
    place.kill();
    session.turn("%say one").await.unwrap();
    let refused = |error: SuperviseError| match error {
        SuperviseError::Budget {
            exhausted,
            outcome: None,
            ..
        } => exhausted.budget,
        error => panic!("{error}"),
    };
    let path = ["all", "helper"];
    assert_eq!(refused(session.turn("%say one").await.unwrap_err()), path);
    assert_eq!(session.health().spent.tokens, 3 * used);
    session.close().await.unwrap();

    // A budget that begins anew, and one that was restored.
    for rows in [Vec::new(), above.ledger()] {
        let above = Budget::new("all", Cap::none());
        above.restore(rows);
        let session = program(&above);
        assert_eq!(refused(session.turn("%say one").await.unwrap_err()), path);
        assert_eq!(above.spent().tokens, 3 * used, "once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_killed_in_a_turn_is_charged_with_what_was_reserved() {
    let place = Place::new();
    let reserve = Amount {
        tokens: 1_000,
        ..Amount::default()
    };
    let program = |above: &Budget| {
        let supervision = Supervision::new().budget(above, Cap::tokens(1_500), reserve);
        place.session(supervision)
    };
    let session = program(&Budget::new("all", Cap::none()));
    let turn = session.turn_with("%hang", |_| {});
    // The process of the program is gone with all that it knew.
    let gone = tokio::time::timeout(Duration::from_secs(60), turn).await;
    assert!(gone.is_err());
    std::mem::forget(session);
    let above = Budget::new("all", Cap::none());
    let error = program(&above).turn("%say two").await.unwrap_err();
    assert!(
        matches!(error, SuperviseError::Budget { outcome: None, .. }),
        "{error}"
    );
    assert_eq!(above.spent(), reserve);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_reaches_the_cap_is_interrupted() {
    let place = Place::new();
    let above = Budget::new("all", Cap::none());
    let supervision = Supervision::new().budget(&above, Cap::tokens(5000), Amount::default());
    let session = place.session(supervision);
    let error = session
        .turn("%usage in=2000 out=10\n%tool TodoWrite {\"todos\": []}\n".repeat(20))
        .await
        .unwrap_err();
    let SuperviseError::Budget {
        outcome: Some(outcome),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(*outcome.verdict(), Verdict::Interrupted);
    assert_eq!(session.health().turns, 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_lost_is_reported_repeated_or_gone_on_with() {
    let text = "%slow 1000 chunk=1\n%say abc";
    let tool = "%tool TodoWrite {\"todos\": []}\n%slow 1000 chunk=1\n%say abc";
    for (then, prompt, expected) in [
        (AfterLoss::Report, text, Err(false)),
        (AfterLoss::Report, tool, Err(true)),
        (AfterLoss::Repeat, text, Ok("abc")),
        (AfterLoss::Repeat, tool, Err(true)),
        (AfterLoss::RepeatAlways, tool, Ok("abc")),
        (AfterLoss::GoOn("%say went on".to_owned()), text, Ok("abc")),
        (AfterLoss::GoOn("%say went on".to_owned()), tool, Ok("went on")),
    ] {
        let place = Place::new();
        let session = place.with(
            place.cli.options().include_partial_messages(true),
            Supervision::new().after_loss(then.clone()),
        );
        match (place.killed(&session, prompt).await, expected) {
            (Ok(outcome), Ok(text)) => assert_eq!(outcome.result_text(), text, "{then:?}"),
            (
                Err(SuperviseError::Lost {
                    tools_may_have_run, ..
                }),
                Err(tools),
            ) => {
                assert_eq!(tools_may_have_run, tools, "{then:?} {prompt}");
                // The conversation goes on.
                assert!(session.turn("%say next").await.unwrap().is_success());
            }
            (ended, expected) => panic!("{then:?} {prompt}: {ended:?}, not {expected:?}"),
        }
        assert_eq!(session.health().deaths, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_dies_too_often_is_given_up_until_it_is_reset() {
    let place = Place::new();
    let supervision = Supervision::new()
        .restarts(2, Duration::from_secs(3600))
        .delays(Duration::from_secs(2), Duration::from_secs(3));
    let session = place.session(supervision);
    session.turn("%say 0").await.unwrap();
    for (death, wait) in [(1, 2), (2, 3)] {
        place.kill();
        let began = Instant::now();
        session.turn(format!("%say {death}")).await.unwrap();
        let waited = began.elapsed();
        assert!((wait..wait + 1).contains(&waited.as_secs()), "{waited:?}");
    }
    place.kill();
    for _ in 0..2 {
        let error = session.turn("%say never").await.unwrap_err();
        assert!(
            matches!(error, SuperviseError::GaveUp { deaths: 3, .. }),
            "{error}"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
    assert_eq!(session.health().state, HealthState::GaveUp);
    assert_eq!(place.cli.started().len(), 3, "nothing is started any more");
    session.reset().await;
    assert!(session.turn("%say again").await.unwrap().is_success());
}

#[tokio::test(start_paused = true)]
async fn deaths_that_are_long_ago_do_not_count() {
    let place = Place::new();
    let session = place.session(Supervision::new().restarts(1, Duration::from_secs(60)));
    for turn in 0..5 {
        assert!(session.turn(format!("%say {turn}")).await.unwrap().is_success());
        place.kill();
        tokio::time::sleep(Duration::from_secs(61)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_too_old_is_handed_over() {
    let place = Place::new();
    let rotation = Rotation::hand_over()
        .asking("%say we were building a boat")
        .older_than(Duration::from_secs(3600));
    let session = place.session(Supervision::new().rotate(rotation));
    session.turn("%say hello").await.unwrap();
    let first = session.health().session_id;
    session.turn("%say still here").await.unwrap();
    assert_eq!(session.health().rotations, 0);
    tokio::time::sleep(Duration::from_secs(3601)).await;
    assert_eq!(session.turn("%say new").await.unwrap().result_text(), "new");
    let health = session.health();
    assert_eq!(health.rotations, 1);
    assert_ne!(health.session_id, first);
    let report = place.cli.report().unwrap();
    let prompts: Vec<String> = report
        .received()
        .filter(|frame| frame["type"] == "user")
        .map(ToString::to_string)
        .collect();
    assert_eq!(prompts.len(), 1);
    assert!(prompts[0].contains("we were building a boat"), "{prompts:?}");
    // What is stored is the new conversation.
    session.close().await.unwrap();
    let session = place.session(Supervision::new());
    session.turn("%say on").await.unwrap();
    assert_eq!(session.health().session_id, health.session_id);
}

/// Files that cannot be written while it says so.
#[derive(Debug, Clone)]
struct FullDisk(IdFiles, Arc<AtomicBool>);

impl IdStore for FullDisk {
    fn load(&self, name: &str) -> io::Result<Option<SavedConversation>> {
        self.0.load(name)
    }

    fn save(&self, name: &str, kept: &SavedConversation) -> io::Result<()> {
        match self.1.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => self.0.save(name, kept),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_loses_no_turn_and_no_summary() {
    let place = Place::new();
    let is_full = Arc::new(AtomicBool::new(false));
    let ids = FullDisk(IdFiles::new(place.ids.path()), Arc::clone(&is_full));
    let rotation = Rotation::hand_over()
        .asking("%say we were building a boat")
        .older_than(Duration::from_secs(3600));
    let supervision = Supervision::new().rotate(rotation);
    let session = Supervised::new("helper", place.cli.options(), supervision, ids);
    let prompts = || {
        let report = place.cli.report().unwrap();
        let received = report.received().filter(|frame| frame["type"] == "user");
        received.map(ToString::to_string).collect::<Vec<_>>()
    };

    // The turn has ended, whatever is known of it afterwards.
    is_full.store(true, Ordering::Relaxed);
    assert_eq!(session.turn("%say one").await.unwrap().result_text(), "one");
    // Nothing more is sent until that is made up for.
    let error = session.turn("%say two").await.unwrap_err();
    assert!(matches!(error, SuperviseError::Ids { .. }), "{error}");
    assert_eq!(prompts().len(), 1);
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(session.turn("%say two").await.unwrap().result_text(), "two");

    // The conversation is handed over, and then its prompt cannot be sent.
    tokio::time::sleep(Duration::from_secs(3601)).await;
    is_full.store(true, Ordering::Relaxed);
    let error = session.turn("%say three").await.unwrap_err();
    assert!(matches!(error, SuperviseError::Ids { .. }), "{error}");
    assert_eq!((session.health().rotations, prompts().len()), (1, 0));
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(session.turn("%say three").await.unwrap().result_text(), "three");
    assert!(
        prompts()[0].contains("we were building a boat"),
        "{:?}",
        prompts()
    );
    session.turn("%say four").await.unwrap();
    assert!(!prompts()[1].contains("we were building a boat"), "once");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ignores_the_interrupt_at_the_cap_is_killed() {
    let cli = Simulated::steps(|| {
        let begin = Steps::new().initialize().expect(Match::prompt("spend"));
        (0..1000).fold(begin, |steps, number| {
            steps.sleep(Duration::from_secs(5)).send(json!({
                "type": "assistant", "parent_tool_use_id": null, "session_id": "00000000-0000-4000-8000-000000000001", "uuid": Uuid::new_v4(),
                "message": {"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m",
                    "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {}}],
                    "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1}},
            }))
        })
    });
    let place = Place::new();
    let above = Budget::new("all", Cap::none());
    let supervision = Supervision::new().budget(&above, Cap::tokens(500), Amount::default());
    let session = Supervised::new(
        "helper",
        cli.options(),
        supervision,
        IdFiles::new(place.ids.path()),
    );
    let error = session.turn("spend").await.unwrap_err();
    assert!(
        matches!(error, SuperviseError::Budget { outcome: None, .. }),
        "{error}"
    );
    assert_eq!(
        session.health().state,
        HealthState::Down,
        "nothing spends any more"
    );
    // What was seen of the turn is charged.
    assert!(above.spent().tokens > 500, "{}", above.spent());
    assert_eq!(above.reserved(), Amount::default());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_while_it_summarizes_is_followed_by_another() {
    let place = Place::new();
    let rotation = Rotation::hand_over()
        .asking("%slow 1000 chunk=1\n%say summary")
        .older_than(Duration::from_secs(3600));
    let session = place.session(Supervision::new().rotate(rotation));
    session.turn("%say hello").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3601)).await;
    let killer = async {
        // It is in the midst of the summary.
        tokio::time::sleep(Duration::from_secs(2)).await;
        place.kill();
    };
    let (outcome, ()) = tokio::join!(session.turn("%say new"), killer);
    assert_eq!(outcome.unwrap().result_text(), "new");
    let health = session.health();
    assert_eq!((health.deaths, health.rotations), (1, 1));
    assert_eq!(place.cli.started().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_is_no_death() {
    let place = Place::new();
    let session = place.session(Supervision::new());
    let outcome = session.turn("%error 400 n=9").await.unwrap();
    assert!(matches!(outcome.verdict(), Verdict::Failed(_)));
    assert_eq!(session.health().deaths, 0);
}

#[tokio::test(start_paused = true)]
async fn how_a_session_begins_counts_once() {
    let place = Place::new();
    let origin = place.cli.options().start().await.unwrap();
    let outcome = origin
        .prompt("%say origin")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.is_success());
    let (origin_id, used) = (origin.id().unwrap(), origin.usage());
    origin.close().await.unwrap();
    let forked = Uuid::new_v4().to_string();
    let options = place
        .cli
        .options()
        .resume(origin_id.as_str())
        .fork_session(true)
        .session_id(&forked)
        .usage_so_far(used.clone());
    let rotation = || {
        let rotation = Rotation::hand_over().asking("%say we were building a boat");
        Supervision::new().rotate(rotation.older_than(Duration::from_secs(3600)))
    };
    let tokens = |outcome: &outrigger::Outcome| Amount::from(outcome.usage()).tokens;

    let session = place.with(options.clone(), rotation());
    let mut expected = Amount::from(&used).tokens + tokens(&session.turn("%say one").await.unwrap());
    assert_eq!(session.health().session_id.unwrap().as_str(), forked);
    session.close().await.unwrap();
    // The process after that, and the next program.
    expected += tokens(&session.turn("%say two").await.unwrap());
    session.close().await.unwrap();
    let session = place.with(options, rotation());
    expected += tokens(&session.turn("%say three").await.unwrap());
    let health = session.health();
    assert_eq!(health.session_id.unwrap().as_str(), forked, "it is forked once");
    assert_eq!(health.spent.tokens, expected, "what was used before counts once");

    // The conversation that it is handed over to is a new one.
    tokio::time::sleep(Duration::from_secs(3601)).await;
    session.turn("%say four").await.unwrap();
    let health = session.health();
    assert_eq!(health.rotations, 1);
    let handed_over = health.session_id.unwrap();
    assert!(handed_over.as_str() != forked && handed_over != origin_id);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_whose_turn_was_dropped_is_kept_when_the_session_is_closed() {
    let place = Place::new();
    let session = place.session(Supervision::new());
    let turn = session.turn("%tool TodoWrite {\"todos\": []}\n%hang");
    tokio::time::timeout(Duration::from_secs(60), turn)
        .await
        .unwrap_err();
    session.close().await.unwrap();
    let id = session.health().session_id.unwrap();
    let session = place.session(Supervision::new());
    session.turn("%say on").await.unwrap();
    assert_eq!(session.health().session_id, Some(id));
}

/// The CLI ends the turn in the time that `close` gives it.
#[tokio::test(start_paused = true)]
async fn what_a_dropped_turn_comes_to_while_the_session_is_closed_is_kept() {
    let place = Place::new();
    let id = Uuid::new_v4().to_string();
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
        "result": "done", "session_id": id, "uuid": Uuid::new_v4(), "total_cost_usd": 0.5, "permission_denials": [],
        "usage": {"input_tokens": 900, "output_tokens": 100},
        "modelUsage": {"m": {"inputTokens": 900, "outputTokens": 100, "costUSD": 0.5}},
    });
    let slow = Simulated::steps(move || {
        Steps::new()
            .initialize()
            .expect(Match::prompt("go"))
            .expect_end()
            .send(result.clone())
            .exit(0)
    });
    let session = place.with(slow.options(), Supervision::new());
    let turn = tokio::time::timeout(Duration::from_secs(60), session.turn("go"));
    turn.await.unwrap_err();
    assert_eq!(session.health().session_id, None, "nothing has come yet");
    session.close().await.unwrap();
    let health = session.health();
    assert_eq!(health.spent.tokens, 1000);
    let kept = IdFiles::new(place.ids.path()).load("helper").unwrap().unwrap();
    assert_eq!(Amount::from(&kept.usage), health.spent);
    assert_eq!(kept.session_id.unwrap().as_str(), id);
}
