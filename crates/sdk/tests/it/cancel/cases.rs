//! The calls that are more than one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::permissions::PermissionResult;
use outrigger::{
    AmbientEvent, Claim, ElicitationResult, Event, Options, Session, Turn, UserDialogResult, Verdict,
};
use outrigger_sim::peer::Running;
use tokio::time::{sleep, timeout};

use super::{Cancel, Case, ENOUGH, When, agent, case, closes, in_order, no_tasks, still_works, survives};
use crate::support::{Again, PATIENCE, reaching};

/// A turn of several frames over some time.
const SLOW: &str = "%slow 20 chunk=2\n%say abcdefgh";

async fn begun(session: &Session) -> Turn {
    let turn = session.prompt("%hang\n%say partly").await.unwrap();
    // The CLI has begun its turn.
    sleep(Duration::from_millis(200)).await;
    turn
}

async fn settle(turn: &mut Turn) -> outrigger::Outcome {
    timeout(PATIENCE, turn.outcome())
        .await
        .expect("the turn ends")
        .unwrap()
}

/// Whether the call came to its end, which is that nothing is open.
fn not_open(answered: Option<outrigger::Result<()>>) -> bool {
    match answered {
        Some(answered) => {
            assert!(answered.unwrap_err().is_not_open());
            true
        }
        None => false,
    }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("Session::prompt", |session, cancel| async move {
            cancel.of(session.prompt(SLOW)).await.is_some()
        }),
        case("Session::queue", |session, cancel| async move {
            cancel.of(session.queue(SLOW)).await.is_some()
        }),
        case("Session::steer", |session, cancel| async move {
            let mut running = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(session.steer("%say steered")).await.is_some();
            assert_eq!(settle(&mut running).await.verdict(), &Verdict::Completed);
            done
        }),
        case("Session::prompt_now", |session, cancel| async move {
            let mut running = begun(&session).await;
            let now = cancel.of(session.prompt_now("%say now")).await;
            match now {
                Some(now) => {
                    let text = now.unwrap().text().await.unwrap().0;
                    assert_eq!(text, "now");
                    assert_eq!(settle(&mut running).await.verdict(), &Verdict::Interrupted);
                    true
                }
                None => {
                    running.cancel().await.unwrap();
                    false
                }
            }
        }),
        case("Session::decide", |session, cancel| async move {
            not_open(
                cancel
                    .of(session.decide(&"x".into(), PermissionResult::allow()))
                    .await,
            )
        }),
        case("Session::answer_elicitation", |session, cancel| async move {
            let answer = ElicitationResult::Decline;
            not_open(cancel.of(session.answer_elicitation(&"x".into(), answer)).await)
        }),
        case("Session::answer_dialog", |session, cancel| async move {
            let answer = UserDialogResult::Cancelled;
            not_open(cancel.of(session.answer_dialog(&"x".into(), answer)).await)
        }),
        case("Session::reinitialize", |session, cancel| async move {
            cancel.of(session.reinitialize()).await.is_some()
        }),
        case("Session::interrupt", |session, cancel| async move {
            let mut running = begun(&session).await;
            let mut waiting = session.prompt("%say after").await.unwrap();
            let done = cancel.of(session.interrupt()).await.is_some();
            // Whether the first took effect or not, a second one leaves no doubt.
            timeout(PATIENCE, running.cancel()).await.unwrap().unwrap();
            assert_eq!(settle(&mut running).await.verdict(), &Verdict::Interrupted);
            assert_eq!(settle(&mut waiting).await.result_text(), "after");
            done
        }),
        case(
            "Session::interrupt_and_cancel_queued",
            |session, cancel| async move {
                let mut running = begun(&session).await;
                let mut queued = session.queue("%say after").await.unwrap();
                let done = cancel
                    .of(session.interrupt_and_cancel_queued())
                    .await
                    .inspect(|done| assert!(done.is_ok(), "{done:?}"))
                    .is_some();
                timeout(PATIENCE, running.cancel()).await.unwrap().unwrap();
                assert_eq!(settle(&mut running).await.verdict(), &Verdict::Interrupted);
                let ended = settle(&mut queued).await;
                assert!(
                    ended.verdict() == &Verdict::Cancelled || ended.result_text() == "after",
                    "{ended:?}"
                );
                done
            },
        ),
        case("Turn::cancel", |session, cancel| async move {
            let mut running = begun(&session).await;
            let done = cancel.of(running.cancel()).await.is_some();
            timeout(PATIENCE, running.cancel()).await.unwrap().unwrap();
            assert_eq!(settle(&mut running).await.verdict(), &Verdict::Interrupted);
            done
        }),
        case("Turn::cancel", |session, cancel| async move {
            // One that the CLI has in its queue.
            let running = begun(&session).await;
            let mut queued = session.queue("%say queued").await.unwrap();
            let done = cancel.of(queued.cancel()).await.is_some();
            timeout(PATIENCE, running.cancel()).await.unwrap().unwrap();
            let ended = settle(&mut queued).await;
            assert!(
                ended.verdict() == &Verdict::Cancelled || (!done && ended.result_text() == "queued"),
                "{ended:?}"
            );
            done
        }),
        case("Turn::cancel", |session, cancel| async move {
            // One that has just been given, and one that waits here.
            let mut first = session.prompt("%hang\n%say first").await.unwrap();
            let mut held = session.prompt("%say held").await.unwrap();
            let done = [cancel.of(held.cancel()).await, cancel.of(first.cancel()).await]
                .iter()
                .all(Option::is_some);
            timeout(PATIENCE, first.cancel()).await.unwrap().unwrap();
            let ended = settle(&mut first).await;
            assert!(
                matches!(ended.verdict(), Verdict::Cancelled | Verdict::Interrupted),
                "{ended:?}"
            );
            let ended = settle(&mut held).await;
            assert!(
                ended.verdict() == &Verdict::Cancelled || (!done && ended.result_text() == "held"),
                "{ended:?}"
            );
            done
        }),
        case("Turn::next", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let (mut text, mut done) = (String::new(), true);
            loop {
                let event = match cancel.of(turn.next()).await {
                    Some(event) => event,
                    None => {
                        done = false;
                        turn.next().await
                    }
                };
                match event {
                    None => break,
                    Some(Ok(Event::Text(part))) => text.push_str(&part),
                    Some(event) => drop(event.unwrap()),
                }
            }
            assert_eq!(text, "abcdefgh", "nothing is lost, and nothing comes twice");
            assert_eq!(settle(&mut turn).await.result_text(), "abcdefgh");
            done
        }),
        case("Turn::next_frame", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let mut frames = session.frames();
            let (mut kinds, mut done) = (Vec::new(), true);
            loop {
                let frame = match cancel.of(turn.next_frame()).await {
                    Some(frame) => frame,
                    None => {
                        done = false;
                        turn.next_frame().await
                    }
                };
                match frame {
                    None => break,
                    Some(frame) => kinds.push(frame.unwrap().uuid().map(str::to_owned)),
                }
            }
            let all: Vec<_> = async {
                let mut all = Vec::new();
                while let Some(Ok(frame)) = frames.next().await {
                    let last = frame.kind() == "result";
                    all.push(frame.uuid().map(str::to_owned));
                    if last {
                        break;
                    }
                }
                all
            }
            .await;
            kinds.retain(|id| all.contains(id));
            let mut once = kinds.clone();
            once.dedup();
            assert_eq!(once, kinds, "no frame comes twice");
            done
        }),
        case("Turn::outcome", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(turn.outcome()).await.is_some();
            assert_eq!(settle(&mut turn).await.result_text(), "abcdefgh");
            done
        }),
        case("Turn::answer", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(turn.answer()).await.is_some();
            assert_eq!(turn.answer().await.unwrap().text(), "abcdefgh");
            done
        }),
        case("Turn::answer_as", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(turn.answer_as::<Number>()).await.is_some();
            let error = turn.answer_as::<Number>().await.unwrap_err();
            assert_eq!(error.raw_output(), Some("abcdefgh"));
            done
        }),
        case("OutcomeWatch::outcome", |session, cancel| async move {
            let watch = session.prompt(SLOW).await.unwrap().watch();
            let done = cancel.of(watch.outcome()).await.is_some();
            assert_eq!(watch.outcome().await.unwrap().result_text(), "abcdefgh");
            done
        }),
        case("Turn::text", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(turn.text()).await.is_some();
            // What was gathered goes with the future; the outcome has all of it.
            let (rest, outcome) = turn.text().await.unwrap();
            assert!("abcdefgh".ends_with(&rest), "{rest}");
            assert_eq!(outcome.result_text(), "abcdefgh");
            done
        }),
        case("Session::wait_run_end", |session, cancel| async move {
            let mut turn = session.prompt(SLOW).await.unwrap();
            let done = cancel.of(session.wait_run_end(PATIENCE)).await.is_some();
            settle(&mut turn).await;
            done
        }),
        case("Frames::next", |session, cancel| async move {
            let mut frames = session.frames();
            let mut everything = session.frames();
            let mut turn = session.prompt(SLOW).await.unwrap();
            let (mut seen, mut done) = (Vec::new(), true);
            loop {
                let frame = match cancel.of(frames.next()).await {
                    Some(frame) => frame,
                    None => {
                        done = false;
                        frames.next().await
                    }
                };
                let frame = frame.unwrap().unwrap();
                seen.push(frame.line().to_vec());
                if frame.kind() == "result" {
                    break;
                }
            }
            for line in &seen {
                assert_eq!(everything.next().await.unwrap().unwrap().line(), line);
            }
            settle(&mut turn).await;
            done
        }),
        case("Ambient::next", |session, cancel| async move {
            let mut ambient = session.ambient();
            let prompt = "%tool Bash {\"command\":\"sleep 2\",\"description\":\"wait\",\"run_in_background\":true}\n%say started";
            let mut turn = session.prompt(prompt).await.unwrap();
            settle(&mut turn).await;
            let mut done = true;
            loop {
                let event = match cancel.of(ambient.next()).await {
                    Some(event) => event,
                    None => {
                        done = false;
                        timeout(PATIENCE, ambient.next())
                            .await
                            .expect("the shell's end is told")
                    }
                };
                if let AmbientEvent::TurnEnded(outcome) = event.unwrap() {
                    assert_eq!(outcome.origin(), Some("task-notification"));
                    break done;
                }
            }
        }),
    ]
}

#[tokio::test(start_paused = true)]
async fn turns_and_streams() {
    for case in cases() {
        survives(&case).await;
    }
}

pub(super) fn endings() -> Vec<Case> {
    vec![
        case("Session::wait_ended", |session, cancel| async move {
            let ended = session.clone();
            let done = cancel.of(session.wait_ended()).await.is_some();
            if cancel.polls > 2 {
                // Nothing but its end resolves it.
                ended.kill().await.unwrap();
                return true;
            }
            done
        })
        .ends_the_session(),
        case("Session::drain_and_close", |session, cancel| async move {
            let _turn = session.prompt(SLOW).await.unwrap();
            cancel.of(session.drain_and_close(PATIENCE)).await.is_some()
        })
        .ends_the_session(),
        case("Session::close", |session, cancel| async move {
            cancel.of(session.close()).await.is_some()
        })
        .ends_the_session(),
        case("Session::kill", |session, cancel| async move {
            cancel.of(session.kill()).await.is_some()
        })
        .ends_the_session(),
    ]
}

#[tokio::test(start_paused = true)]
async fn endings_of_a_session() {
    for case in endings() {
        survives(&case).await;
    }
}

/// A call that begins with options.
pub(super) struct Beginning {
    pub(super) name: &'static str,
    run: fn(Options, Cancel) -> futures_util::future::BoxFuture<'static, bool>,
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u32,
}

pub(super) fn beginnings() -> Vec<Beginning> {
    vec![
        Beginning {
            name: "Options::start",
            run: |options, cancel| Box::pin(async move { cancel.of(options.start()).await.is_some() }),
        },
        Beginning {
            name: "Options::startup",
            run: |options, cancel| Box::pin(async move { cancel.of(options.startup()).await.is_some() }),
        },
        Beginning {
            name: "Options::prewarm",
            run: |options, cancel| {
                Box::pin(async move {
                    let spare = cancel.of(options.prewarm()).await;
                    spare.map(|spare| assert!(spare.is_ok(), "{spare:?}")).is_some()
                })
            },
        },
        Beginning {
            name: "Spare::claim",
            run: |options, cancel| {
                Box::pin(async move {
                    let spare = options.prewarm().await.unwrap();
                    // The simulated CLI refuses it, which comes last.
                    cancel.of(spare.claim(Claim::new("/"))).await.is_some()
                })
            },
        },
        Beginning {
            name: "Spare::wait_ended",
            run: |options, cancel| {
                Box::pin(async move {
                    let spare = options.prewarm().await.unwrap();
                    // Nothing but its end resolves it, and nobody ends it here.
                    assert!(cancel.of(spare.wait_ended()).await.is_none());
                    cancel.polls > 2
                })
            },
        },
        Beginning {
            name: "Spare::close",
            run: |options, cancel| {
                Box::pin(async move {
                    let spare = options.prewarm().await.unwrap();
                    cancel.of(spare.close()).await.is_some()
                })
            },
        },
        Beginning {
            name: "Options::query",
            run: |options, cancel| Box::pin(async move { cancel.of(options.query(SLOW)).await.is_some() }),
        },
        Beginning {
            name: "Options::query_text",
            run: |options, cancel| {
                Box::pin(async move {
                    let text = cancel.of(options.query_text(SLOW)).await;
                    text.map(|text| assert_eq!(text.unwrap().text(), "abcdefgh"))
                        .is_some()
                })
            },
        },
        Beginning {
            name: "Options::query_as",
            run: |options, cancel| {
                Box::pin(async move {
                    // The first answer does not fit, so that there is a second turn.
                    let prompt = "%say {\"m\":1}";
                    let number = cancel.of(options.query_as::<Number>(prompt)).await;
                    number.map(|number| assert!(number.is_err())).is_some()
                })
            },
        },
        Beginning {
            name: "Query::next",
            run: |options, cancel| {
                Box::pin(async move {
                    let mut query = options.query(SLOW).await.unwrap();
                    let (mut text, mut done) = (String::new(), true);
                    loop {
                        let event = match cancel.of(query.next()).await {
                            Some(event) => event,
                            None => {
                                done = false;
                                query.next().await
                            }
                        };
                        match event {
                            None => break,
                            Some(Ok(Event::Text(part))) => text.push_str(&part),
                            Some(event) => drop(event.unwrap()),
                        }
                    }
                    assert_eq!(text, "abcdefgh");
                    let run = query.finish().await.unwrap();
                    assert_eq!(run.answer().unwrap().text(), "abcdefgh");
                    done
                })
            },
        },
        Beginning {
            name: "Query::finish",
            run: |options, cancel| {
                Box::pin(async move {
                    let query = options.query(SLOW).await.unwrap();
                    cancel.of(query.finish()).await.is_some()
                })
            },
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn beginnings_leave_nothing_behind() {
    for Beginning { name, run } in beginnings() {
        for when in [When::AtOnce, When::Woken, When::Later] {
            for polls in 0.. {
                assert!(polls < ENOUGH, "{name} does not end ({when:?})");
                let what = format!("{name} dropped after {polls} polls ({when:?})");
                let (options, running) =
                    reaching(agent().directives().sdk_reads_session_state().spawn_in_memory());
                let done = run(options, Cancel { polls, when }).await;
                timeout(PATIENCE, running.exit())
                    .await
                    .unwrap_or_else(|_| panic!("its process lives on: {what}"));
                no_tasks(&what).await;
                in_order(&running, &what);
                if done {
                    break;
                }
            }
        }
    }
}

/// A session that is being revived is not when the future is dropped, and can be revived again.
#[tokio::test(start_paused = true)]
async fn reviving_can_be_given_up() {
    for when in [When::AtOnce, When::Woken, When::Later] {
        for polls in 0.. {
            assert!(polls < ENOUGH, "it does not end ({when:?})");
            let started = Arc::default();
            let transport = Again {
                agent,
                started: Arc::clone(&started),
            };
            let options = outrigger::Agent::builder()
                .auth(Auth::ApiKey(Secret::new("simulated")))
                .transport(transport);
            let what = format!("revive dropped after {polls} polls ({when:?})");
            let old = options.start().await.unwrap();
            still_works(&old, &what).await;
            old.clone().kill().await.unwrap();
            let revived = Cancel { polls, when }.of(old.revive()).await;
            let done = revived.is_some();
            if !done {
                // What was started ends, and only then is begun anew.
                sleep(Duration::from_secs(30)).await;
                for running in started.lock().unwrap().iter() {
                    assert!(running.exited().is_some(), "its process lives on: {what}");
                }
            }
            let revived = match revived {
                Some(revived) => revived,
                None => old.revive().await,
            };
            let session = revived.unwrap_or_else(|error| panic!("{error}: {what}")).session;
            still_works(&session, &what).await;
            let last = started.lock().unwrap().last().cloned().unwrap();
            drop(old);
            closes(session, &last, &what).await;
            if done {
                break;
            }
        }
    }
}

/// The CLI withdraws a question wherever its handler is: the handler's future goes, and no answer is given.
#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_by_a_withdrawal() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let mut withdrawn = 0;
    for after in (0..60).step_by(5) {
        let alive = Arc::new(AtomicUsize::new(0));
        let handlers = Arc::clone(&alive);
        let handler = move |_| {
            handlers.fetch_add(1, Ordering::Relaxed);
            let alive = Alive(Arc::clone(&handlers));
            async move {
                for _ in 0..4 {
                    sleep(Duration::from_millis(10)).await;
                }
                drop(alive);
                PermissionResult::allow()
            }
        };
        let agent = outrigger_sim::peer::Agent::builder()
            .directives()
            .sdk_reads_session_state()
            .spawn_in_memory();
        let (options, running) = reaching(agent);
        let session = options.permissions(handler).start().await.unwrap();
        let mut turn = session
            .prompt("%tool Bash {\"command\":\"touch x\"}\n%say done")
            .await
            .unwrap();
        sleep(Duration::from_millis(after)).await;
        let what = format!("withdrawn after {after} ms");
        turn.cancel().await.unwrap();
        settle(&mut turn).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(alive.load(Ordering::Relaxed), 0, "{what}");
        withdrawn += withdrawals(&running);
        still_works(&session, &what).await;
        closes(session, &running, &what).await;
    }
    assert!(
        withdrawn > 3,
        "{withdrawn} questions were withdrawn before they were answered"
    );
}

fn withdrawals(running: &Running) -> usize {
    let report = running.report();
    let kinds = report.sent_kinds();
    kinds
        .iter()
        .filter(|kind| *kind == "control_cancel_request")
        .count()
}
