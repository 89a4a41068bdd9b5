//! Hooks around tool calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::hooks::{
    self, ContextOutput, Hook, HookOutput, OnFailure, PermissionRequestDecision, PermissionRequestDeny,
    PostToolUseOutput, PreToolUseOutput, event,
};
use outrigger::permissions::{PermissionDecision, PermissionRequest};
use outrigger::protocol::RawJson;
use outrigger::protocol::tools::BashInput;
use outrigger::{Options, Policy, Verdict};
use serde_json::json;

use super::super::flow::{bash, tool};
use super::super::rig::{Rig, turn};
use super::{Desk, WRITE, is_written, until};

/// Options that allow everything and note the commands that were asked about.
fn asking(rig: &Rig) -> (Options, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = Arc::clone(&asked);
    let options = rig.options().can_use_tool(move |request: PermissionRequest| {
        let input = request.input.to_value().unwrap();
        note.lock()
            .unwrap()
            .push(input["command"].as_str().unwrap_or_default().to_owned());
        async { PermissionDecision::allow() }
    });
    (options, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_decides_about_a_call_before_anybody_is_asked() {
    let rig = Rig::start().await;
    let (options, asked) = asking(&rig);
    let desk = Desk::<event::PreToolUse>::new();
    let told = Arc::clone(&desk);
    let hook = hooks::pre_tool_use(move |input, _| {
        let answer = told.take(format!("{} {}", input.tool_name, input.tool_input));
        async move { answer }
    });
    let session = options.hook(hook.matcher("Bash")).start().await.unwrap();
    let other = BashInput::new("echo other > f.txt && echo other");
    let specific = HookOutput::specific;
    // What is answered, whether the command runs, what somebody is asked, and what the model reads.
    let table = [
        (
            HookOutput::none(),
            true,
            vec!["echo hi > f.txt"],
            "completed with no output",
        ),
        (
            specific(PreToolUseOutput::allow()),
            true,
            vec![],
            "completed with no output",
        ),
        (
            specific(PreToolUseOutput::deny("not on Sundays")),
            false,
            vec![],
            "not on Sundays",
        ),
        (
            HookOutput::block("in the old way"),
            false,
            vec![],
            "in the old way",
        ),
        (
            specific(PreToolUseOutput::ask("are you sure")),
            true,
            vec!["echo hi > f.txt"],
            "no output",
        ),
        (
            specific(PreToolUseOutput::allow().updated_input(&other).unwrap()),
            true,
            vec![],
            "other",
        ),
        (
            specific(PreToolUseOutput::default().updated_input(&other).unwrap()),
            true,
            vec!["echo other > f.txt && echo other"],
            "other",
        ),
        (
            HookOutput::in_background(),
            true,
            vec!["echo hi > f.txt"],
            "no output",
        ),
    ];
    for (answer, runs, asks, reads) in table {
        let what = format!("{answer:?}");
        desk.next(answer);
        let (_, outcome) = turn(&session, WRITE).await;
        assert!(
            outcome.result_text().contains(reads),
            "{what}: {}",
            outcome.result_text()
        );
        assert_eq!(is_written(&rig), runs, "{what}");
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), asks, "{what}");
        let noted = desk.noted();
        assert!(
            noted.len() == 1 && noted[0].starts_with("Bash {\"command\":\"echo hi > f.txt\""),
            "{noted:?}"
        );
    }

    desk.next(HookOutput::stop("enough"));
    let (_, outcome) = turn(&session, WRITE).await;
    assert_eq!(outcome.verdict(), &Verdict::StoppedByHook);
    assert!(is_written(&rig), "the tool runs all the same");

    desk.next(specific(PreToolUseOutput::defer()));
    let (_, outcome) = turn(&session, WRITE).await;
    assert_eq!(outcome.verdict(), &Verdict::Deferred);
    assert!(!is_written(&rig));
}

/// Whatever goes wrong with a guard, the tool does not run, though everybody else would let it.
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_fails_stops_the_tool() {
    type Output = HookOutput<event::PreToolUse>;
    let hang = || std::future::pending::<Output>();
    let second = Duration::from_secs(1);
    let failing: [(&str, Hook<event::PreToolUse>); 4] = [
        (
            "it panicked",
            hooks::pre_tool_use(|_, _| async { panic!("a bug") as Output }),
        ),
        (
            "the disk is full",
            hooks::pre_tool_use(|_, _| async { Err::<Output, _>("the disk is full") }),
        ),
        (
            "not done within 1s",
            hooks::pre_tool_use(move |_, _| hang()).timeout(second),
        ),
        (
            "not done within 1s",
            // Without an await: the thread is gone, the answer is not.
            hooks::pre_tool_use(|_, _| async {
                std::thread::sleep(Duration::from_secs(3));
                HookOutput::none()
            })
            .timeout(second),
        ),
    ];
    for (why, hook) in failing {
        let rig = Rig::start().await;
        let guarded = rig
            .options()
            .permissions(Policy::allow_all())
            .allowed_tools(["Bash"]);
        let session = guarded.clone().hook(hook.clone()).start().await.unwrap();
        let (_, outcome) = turn(&session, WRITE).await;
        assert!(
            outcome.result_text().contains(why),
            "{why}: {}",
            outcome.result_text()
        );
        assert!(!is_written(&rig), "{why}");
        assert_eq!(outcome.verdict(), &Verdict::Completed);

        let session = guarded
            .hook(hook.on_failure(OnFailure::Continue))
            .start()
            .await
            .unwrap();
        turn(&session, WRITE).await;
        assert!(is_written(&rig), "{why}, and told to go on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_hooks_the_one_that_denies_counts() {
    let rig = Rig::start().await;
    let allow = || hooks::pre_tool_use(|_, _| async { HookOutput::specific(PreToolUseOutput::allow()) });
    let deny = hooks::pre_tool_use(|_, _| async { HookOutput::specific(PreToolUseOutput::deny("no")) });
    let options = rig
        .options()
        .hook(allow())
        .hook(deny.clone().matcher("Read|Write"))
        .hook(allow().matcher("^B.*h$"));
    let session = options.clone().start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(is_written(&rig), "the denying hook is for other tools");
    let session = options.hook(deny.matcher("Bash,Edit")).start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(!is_written(&rig));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_changes_what_the_model_reads_of_a_tool() {
    let rig = Rig::start().await;
    let desk = Desk::<event::PostToolUse>::new();
    let told = Arc::clone(&desk);
    let hook = hooks::post_tool_use(move |input, _| {
        let answer = told.take(input.tool_response.get());
        async move { answer }
    });
    let session = rig
        .options()
        .allowed_tools(["Bash"])
        .hook(hook)
        .start()
        .await
        .unwrap();
    let script = format!("{}\n%say {{{{last}}}}", bash("echo secret"));
    let output = |value| HookOutput::specific(PostToolUseOutput::default().updated_tool_output(value));
    let fits = json!({"stdout": "replaced", "stderr": "", "interrupted": false, "isImage": false});
    for (answer, reads) in [
        (output(fits), "replaced"),
        // The shape is not the tool's own, so nobody hears of it.
        (output(json!("replaced")), "secret"),
        (HookOutput::block("a word besides"), "secret"),
    ] {
        desk.next(answer);
        let (_, outcome) = turn(&session, &script).await;
        assert!(
            outcome.result_text().contains(reads),
            "{reads}: {}",
            outcome.result_text()
        );
        assert!(desk.noted()[0].contains("\"stdout\":\"secret\""));
    }
    let said = rig.api().message_requests().last().unwrap().messages().to_vec();
    assert!(serde_json::to_string(&said).unwrap().contains("a word besides"));
}

/// A hook that was to keep something back and fails: the model does not get it, now or later.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failing_hook_was_to_keep_back_is_kept_back() {
    let rig = Rig::start().await;
    let text = rig.sandbox().write("secret.txt", "the secret\n").unwrap();
    // A picture of one red pixel.
    let red =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    let picture = rig.sandbox().write("secret.png", base64(red)).unwrap();
    let hook = hooks::post_tool_use(|_, _| async { panic!("a bug") as HookOutput<_> });
    let options = rig.options().allowed_tools(["Bash", "Read"]);
    let open = options.clone().hook(hook.clone()).start().await.unwrap();
    let (_, outcome) = turn(&open, &format!("{}\n%say {{{{last}}}}", bash("cat secret.txt"))).await;
    assert!(
        outcome.result_text().contains("the secret"),
        "unless told otherwise it is shown"
    );

    let asked = rig.api().message_requests().len();
    let session = options
        .hook(hook.on_failure(OnFailure::Block))
        .start()
        .await
        .unwrap();
    for call in [
        bash("cat secret.txt"),
        tool("Read", json!({"file_path": text})),
        tool("Read", json!({"file_path": picture})),
    ] {
        let (_, outcome) = turn(&session, &format!("{call}\n%say {{{{last}}}}")).await;
        assert_eq!(outcome.verdict(), &Verdict::StoppedByHook, "{call}");
        let (_, outcome) = turn(&session, "%say still here").await;
        assert_eq!(outcome.result_text(), "still here");
    }
    for request in rig.api().message_requests().iter().skip(asked) {
        let said = serde_json::to_string(request.messages()).unwrap();
        assert!(
            !said.contains("the secret") && !said.contains("P8z8BQDwAEhQGAhKmMIQ"),
            "{said}"
        );
    }
    let said = serde_json::to_string(rig.api().message_requests().last().unwrap().messages()).unwrap();
    assert!(
        said.contains("withheld: the PostToolUse hook failed: it panicked"),
        "{said}"
    );
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_batches_are_told() {
    let rig = Rig::start().await;
    let failures = Desk::<event::PostToolUseFailure>::new();
    let batches = Desk::<event::PostToolBatch>::new();
    let (failed, batch) = (Arc::clone(&failures), Arc::clone(&batches));
    let session = rig
        .options()
        .allowed_tools(["Bash"])
        .hook(hooks::post_tool_use_failure(move |input, _| {
            let answer = failed.take(format!(
                "{} {:?}",
                input.error.contains("Exit code 3"),
                input.is_interrupt
            ));
            async move { answer }
        }))
        .hook(hooks::post_tool_batch(move |input, _| {
            let names: Vec<_> = input.tool_calls.into_iter().map(|call| call.tool_name).collect();
            let answer = batch.take(names.join(" "));
            async move { answer }
        }))
        .start()
        .await
        .unwrap();
    failures.next(HookOutput::specific(ContextOutput::new("mind the gap")));
    let two = format!(
        "{}\n%+tool Bash {{\"command\":\"true\"}}\n%say on",
        bash("exit 3")
    );
    let (_, outcome) = turn(&session, &two).await;
    assert_eq!(outcome.result_text(), "on");
    assert_eq!(failures.noted(), ["true Some(false)"]);
    assert_eq!(batches.noted(), ["Bash Bash"]);
    let said = serde_json::to_string(rig.api().message_requests().last().unwrap().messages()).unwrap();
    assert!(said.contains("mind the gap"));
    batches.next(HookOutput::block("that will do"));
    let (_, outcome) = turn(&session, &two).await;
    assert_eq!(outcome.verdict(), &Verdict::StoppedByHook);
}

/// `PermissionRequest` and the permission handler are asked together, and the first of them decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_permission_hook_and_the_handler_race() {
    let slow = Duration::from_millis(1500);
    let deny = || {
        HookOutput::<event::PermissionRequest>::specific(
            PermissionRequestDecision::Deny(PermissionRequestDeny::default().message("the hook says no"))
                .into(),
        )
    };
    for (hook_waits, handler_waits, runs) in [(Duration::ZERO, slow, false), (slow, Duration::ZERO, true)] {
        let rig = Rig::start().await;
        let session = rig
            .options()
            .can_use_tool(move |_| async move {
                tokio::time::sleep(handler_waits).await;
                PermissionDecision::allow()
            })
            .hook(hooks::permission_request(move |input, _| async move {
                assert_eq!(input.tool_name, "Bash");
                tokio::time::sleep(hook_waits).await;
                deny()
            }))
            .start()
            .await
            .unwrap();
        let (_, outcome) = turn(&session, WRITE).await;
        assert_eq!(is_written(&rig), runs);
        assert_eq!(
            outcome.result_text().contains("the hook says no"),
            !runs,
            "{}",
            outcome.result_text()
        );
        // The slower one may still be at it, and goes unheard.
        until("the end of both", || session.stats().unanswered_by_us == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_hook_that_fails_has_refused() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .can_use_tool(|_| async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            PermissionDecision::allow()
        })
        .hook(hooks::permission_request(|_, _| async {
            panic!("a bug") as HookOutput<_>
        }))
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, WRITE).await;
    assert!(!is_written(&rig));
    assert!(
        outcome
            .result_text()
            .contains("the PermissionRequest hook failed"),
        "{}",
        outcome.result_text()
    );
}

/// Raw hooks say what they like; what the CLI could not take never gets there.
#[tokio::test(flavor = "multi_thread")]
async fn raw_hooks_fail_closed_too() {
    let rig = Rig::start().await;
    let options = rig.options().permissions(Policy::allow_all());
    let answering = |answer: serde_json::Value| {
        Hook::raw("PreToolUse", move |input: RawJson, _| {
            assert!(input.get().contains("\"hook_event_name\":\"PreToolUse\""));
            let answer = RawJson::from(answer.clone());
            async { Ok::<_, String>(answer) }
        })
    };
    let session = options.clone().hook(answering(json!({}))).start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(is_written(&rig));
    let session = options.hook(answering(json!("nonsense"))).start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(!is_written(&rig));
}
