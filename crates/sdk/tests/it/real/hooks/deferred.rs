//! A call that waits for a decision while nothing runs.

use outrigger::hooks::{self, HookOutput, PreToolUseOutput};
use outrigger::{AmbientEvent, BlockKind, Event, Session, Verdict};
use tokio::time::timeout;

use super::super::rig::{PATIENCE, Rig, turn};
use super::{WRITE, is_written};

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_call_is_decided_in_another_process() {
    for is_approved in [true, false] {
        let rig = Rig::start().await;
        let put_off = hooks::pre_tool_use(async |_, _| HookOutput::specific(PreToolUseOutput::defer()));
        let session = rig.options().hook(put_off.matcher("Bash")).start().await.unwrap();
        let (_, outcome) = turn(&session, WRITE).await;
        assert_eq!(outcome.verdict(), &Verdict::Deferred);
        let call = outcome.deferred().expect("it is named");
        assert_eq!(call.name, "Bash");
        assert!(call.input.get().contains("echo hi > f.txt"), "{}", call.input);
        let (id, pid) = (session.id().unwrap(), session.pid());
        session.close().await.unwrap();
        assert!(!is_written(&rig));

        let (told, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let decided = hooks::pre_tool_use(move |input, _| {
            told.send((input.tool_use_id, input.tool_input.to_string()))
                .unwrap();
            async move {
                HookOutput::specific(match is_approved {
                    true => PreToolUseOutput::allow(),
                    false => PreToolUseOutput::deny("not today"),
                })
            }
        });
        let options = rig.options().hook(decided.matcher("Bash")).resume(id.clone());
        let session = options.start().await.unwrap();
        assert_ne!(session.pid(), pid);
        // Else the CLI may decide before it knows of the hook.
        assert!(awaits(&session));
        // No prompt is sent.
        let mut ambient = session.ambient();
        let mut printed = String::new();
        let outcome = timeout(PATIENCE, async {
            loop {
                match ambient.next().await.expect("the session lives") {
                    AmbientEvent::Event(Event::Text(text)) => printed.push_str(&text),
                    AmbientEvent::Event(Event::ContentBlockStop {
                        kind: BlockKind::Text,
                        ..
                    }) => printed.push('\n'),
                    AmbientEvent::TurnEnded(outcome) => return outcome,
                    _ => {}
                }
            }
        });
        let outcome = outcome.await.expect("the turn ends in time");
        assert_eq!(outcome.verdict(), &Verdict::Completed);
        let again = asked.try_recv().expect("the hook is asked again");
        assert_eq!(again, (Some(call.id.clone()), call.input.to_string()));
        assert!(asked.try_recv().is_err(), "it is asked once");
        assert_eq!(is_written(&rig), is_approved);
        let said = if is_approved { "no output" } else { "not today" };
        assert!(printed.contains(said), "{printed}");
        assert_eq!(session.id(), Some(id));
        session.close().await.unwrap();
    }
}

/// Whether the CLI was started to wait for `initialize`.
fn awaits(session: &Session) -> bool {
    let arguments = format!("/proc/{}/cmdline", session.pid().unwrap());
    let arguments = std::fs::read(arguments).unwrap();
    arguments
        .split(|byte| *byte == 0)
        .any(|argument| argument == b"--await-initialize")
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_session_with_hooks_that_goes_on_waits_for_them() {
    let rig = Rig::start().await;
    let hook = || hooks::pre_tool_use(async |_, _| HookOutput::none());
    let session = rig.options().hook(hook()).start().await.unwrap();
    assert!(!awaits(&session), "it begins");
    turn(&session, "%say one").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    let session = rig.options().resume(id).start().await.unwrap();
    assert!(!awaits(&session), "it has no hooks");
    session.close().await.unwrap();
    let options = rig.options().hook(hook()).continue_conversation(true);
    let session = options.start().await.unwrap();
    assert!(awaits(&session));
    session.close().await.unwrap();
}
