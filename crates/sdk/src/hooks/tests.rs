//! How hooks fail, and what goes out then.

use std::time::Duration;

use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};
use serde_json::{Value, json};

use super::handler::HookCall;
use super::*;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::env::Surroundings;
use crate::options::{Auth, Confirmation, Host, Launch, Options};

/// What goes out when the hook of an event fails: unless told otherwise, and when it is to block.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fails {
    /// A failure refuses, either way.
    Closed,
    /// A failure gives no opinion, or refuses if the options say so.
    AsTold,
    /// No opinion; to block is refused when the options are checked.
    Open,
}
use Fails::{AsTold, Closed, Open};

/// Every event, what becomes of its hooks' failures, and its refusal with `WHY` for the reason.
fn table() -> Vec<(&'static str, Fails, Value)> {
    let block = || json!({"decision":"block","reason":"WHY"});
    let specific = |event: &str, output: Value| {
        let mut output = output;
        output["hookEventName"] = json!(event);
        json!({"hookSpecificOutput": output})
    };
    let declined = |event: &str| {
        let mut output = block();
        output["hookSpecificOutput"] = json!({"hookEventName": event, "action": "decline"});
        output
    };
    let denied = json!({"permissionDecision":"deny","permissionDecisionReason":"WHY"});
    let mut withheld = block();
    withheld["continue"] = json!(false);
    withheld["stopReason"] = json!("WHY");
    withheld["hookSpecificOutput"] = json!({"hookEventName":"PostToolUse",
        "updatedToolOutput":{"stdout":"[withheld: WHY]","code":7,"type":"text"}});
    let none = json!({});
    vec![
        ("PreToolUse", Closed, specific("PreToolUse", denied.clone())),
        ("PostToolUse", AsTold, withheld),
        ("PostToolUseFailure", Open, none.clone()),
        ("PostToolBatch", AsTold, block()),
        ("Notification", Open, none.clone()),
        ("UserPromptSubmit", Closed, block()),
        ("UserPromptExpansion", Closed, block()),
        ("SessionStart", Open, none.clone()),
        ("SessionEnd", Open, none.clone()),
        ("Stop", AsTold, block()),
        ("StopFailure", Open, none.clone()),
        ("SubagentStart", Open, none.clone()),
        ("SubagentStop", AsTold, block()),
        ("PreCompact", AsTold, block()),
        ("PostCompact", Open, none.clone()),
        (
            "PreModelSwitch",
            Closed,
            specific("PreModelSwitch", denied.clone()),
        ),
        ("PostModelSwitch", Open, none.clone()),
        (
            "PermissionRequest",
            Closed,
            specific(
                "PermissionRequest",
                json!({"decision":{"behavior":"deny","message":"WHY"}}),
            ),
        ),
        ("PermissionDenied", Open, none.clone()),
        ("Setup", Open, none.clone()),
        ("TeammateIdle", AsTold, block()),
        ("TaskCreated", AsTold, block()),
        ("TaskCompleted", AsTold, block()),
        ("Elicitation", Closed, declined("Elicitation")),
        ("ElicitationResult", Closed, declined("ElicitationResult")),
        ("ConfigChange", Closed, block()),
        ("WorktreeCreate", Closed, block()),
        ("WorktreeRemove", Open, none.clone()),
        ("InstructionsLoaded", Open, none.clone()),
        ("CwdChanged", Open, none.clone()),
        ("FileChanged", Open, none.clone()),
        ("DirectoryAdded", Open, none),
        (
            "MessageDisplay",
            AsTold,
            specific("MessageDisplay", json!({"displayContent":"[withheld: WHY]"})),
        ),
        (
            "PreSkillShellCommand",
            Closed,
            specific("PreSkillShellCommand", denied),
        ),
        ("AnEventOfNextYear", Closed, block()),
    ]
}

/// The ways in which a hook can fail, with the words that tell which.
const WAYS: &[(&str, &str)] = &[
    ("panic", "it panicked"),
    ("deadline", "it was not done within"),
    ("error", "the disk is full"),
    ("unreadable input", "its input could not be read"),
    ("unwritable output", "its answer could not be written"),
    ("unreadable call", "could not be read"),
    ("unknown id", "no hook has this id"),
    ("another event's id", "is for another event"),
    ("no room", "too many requests"),
];

/// A hook that fails in that way.
fn failing(event: &str, way: &str) -> Registration {
    let run = match way {
        "panic" => HookCall::raw(|_, _| async { panic!("a bug in the hook") as Result<RawJson, String> }),
        "deadline" => HookCall::raw(|_, _| std::future::pending::<Result<RawJson, String>>()),
        "error" => HookCall::raw(|_, _| async { Err("the disk is full") }),
        "unwritable output" => HookCall::raw(|_, _| async { Ok::<_, String>(RawJson::from(json!([]))) }),
        _ => HookCall::raw(|_, _| async { Ok::<_, String>(RawJson::from(json!({"decision":"approve"}))) }),
    };
    Registration::new(HookEvent::from(event), run)
}

fn frame(id: &Value, input: &Value) -> Frame {
    let line = json!({"type":"control_request","request_id":"r","request":{
        "subtype":"hook_callback","callback_id":id,"tool_use_id":"t","input":input}});
    Frame::from_line(line.to_string().into_bytes()).remove(0)
}

fn input(event: &str) -> Value {
    json!({"hook_event_name":event,"session_id":"s","transcript_path":"/t","cwd":"/c","stop_hook_active":false,
        "tool_response":{"stdout":"secret","code":7,"type":"text"}})
}

async fn call(hooks: &Hooks, frame: Frame) -> CliReply {
    let context = Context::detached(RequestId::from("r".to_owned()));
    hooks.accept(CliRequest { frame, context }).await
}

fn said(answer: CliReply) -> Value {
    match answer {
        CliReply::Success(payload) => payload.to_value().unwrap(),
        CliReply::Error(why) => json!({"error": why}),
        other => panic!("{other:?}"),
    }
}

/// Has a hook fail, and tells what went out.
async fn fail(event: &str, way: &str, on_failure: Option<OnFailure>) -> Value {
    let mut hook = failing(event, way);
    hook.on_failure = on_failure;
    let told = input(event);
    if way == "unreadable input" {
        // Only typed hooks read.
        hook.call = unreadable();
    }
    let hooks = Hooks::new(&[failing("Other", "none"), hook]);
    said(match way {
        "unreadable call" => call(&hooks, frame(&json!(null), &told)).await,
        "unknown id" => call(&hooks, frame(&json!("hook_01"), &told)).await,
        "another event's id" => call(&hooks, frame(&json!("hook_0"), &told)).await,
        "no room" => hooks.refuse(
            &frame(&json!("hook_1"), &told),
            "too many requests are open at once",
        ),
        _ => call(&hooks, frame(&json!("hook_1"), &told)).await,
    })
}

/// A typed hook, whose input `input` does not fit.
fn unreadable() -> HookCall {
    HookCall::closure::<event::FileChanged, _, _>(|_, _| async { HookOutput::<event::FileChanged>::none() })
}

/// Replaces the reason by `WHY`, and checks that it says the right thing.
fn without_reason(mut said: Value, words: &str) -> Value {
    fn walk(value: &mut Value, words: &str) {
        match value {
            Value::String(text) if text.contains(words) => {
                *text = if text.starts_with("[withheld: ") {
                    "[withheld: WHY]"
                } else {
                    "WHY"
                }
                .to_owned();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, words)),
            Value::Object(fields) => fields.values_mut().for_each(|field| walk(field, words)),
            _ => {}
        }
    }
    walk(&mut said, words);
    said
}

#[test]
fn the_table_has_every_event() {
    let known: Vec<&str> = table().iter().map(|row| row.0).collect();
    let mut expected = HookEvent::KNOWN.to_vec();
    expected.push("AnEventOfNextYear");
    assert_eq!(known, expected);
}

#[tokio::test(start_paused = true)]
async fn every_way_to_fail_at_every_event_is_answered_as_the_table_says() {
    for (event, fails, refusal) in table() {
        for &(way, words) in WAYS {
            let what = format!("{event}, {way}");
            let by_default = fail(event, way, None).await;
            let is_ours = !matches!(way, "unreadable call" | "unknown id" | "another event's id");
            match (is_ours, fails) {
                // A call that can't be read at all may be that of a guard.
                _ if way == "unreadable call" => {
                    let said = without_reason(by_default, words);
                    assert_eq!(said, json!({"decision":"block","reason":"WHY"}), "{what}");
                    continue;
                }
                (false, Closed) | (true, Closed) => {
                    assert_eq!(without_reason(by_default, words), refusal, "{what}");
                }
                (false, _) => {
                    let error = by_default["error"].as_str().unwrap_or_default();
                    assert!(error.contains(words), "{what}: {by_default}");
                    continue;
                }
                (true, AsTold | Open) => assert_eq!(by_default, json!({}), "{what}"),
            }
            if is_ours {
                let blocks = fail(event, way, Some(OnFailure::Block)).await;
                assert_eq!(without_reason(blocks, words), refusal, "{what}, to block");
                let goes_on = fail(event, way, Some(OnFailure::Continue)).await;
                assert_eq!(goes_on, json!({}), "{what}, to continue");
            }
        }
    }
}

#[test]
fn to_block_is_refused_where_nothing_can_be_blocked() {
    for (event, fails, _) in table() {
        let mut hook = failing(event, "none");
        hook.on_failure = Some(OnFailure::Block);
        assert_eq!(hook.check().is_err(), fails == Open, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_not_kept_going_for_ever() {
    for event in ["Stop", "SubagentStop"] {
        let mut hook = failing(event, "panic");
        hook.on_failure = Some(OnFailure::Block);
        let hooks = Hooks::new(&[hook]);
        for active in [json!(true), json!(null)] {
            let mut told = input(event);
            told["stop_hook_active"] = active;
            assert_eq!(
                said(call(&hooks, frame(&json!("hook_0"), &told)).await),
                json!({})
            );
        }
    }
}

/// An allowance that changes permissions passes the check of every other answer.
#[tokio::test]
async fn rules_of_an_answer_allow_no_more_than_they_say() {
    let rule = |behavior: &str, content: &str| {
        json!({"type": "addRules", "behavior": behavior, "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": content}]})
    };
    let odd = rule("allow", "find . -name \\*.rs");
    let taken = json!({"type": "removeRules", "behavior": "deny", "destination": "cliArg", "rules": [{"toolName": "Bash"}]});
    for (update, suggested, is_allowed) in [
        (rule("allow", "e* a*"), None, false),
        (taken, None, false),
        (odd.clone(), None, false),
        (odd.clone(), Some(odd), true),
        (rule("allow", "git log:*"), None, true),
        (rule("deny", "e* a*"), None, true),
    ] {
        let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
            "decision": {"behavior": "allow", "updatedPermissions": [update]}}});
        let answer = RawJson::from(answer);
        let run = HookCall::raw(move |_, _| std::future::ready(Ok::<_, String>(answer.clone())));
        let hooks = Hooks::new(&[Registration::new(HookEvent::PermissionRequest, run)]);
        let mut told = input("PermissionRequest");
        told["permission_suggestions"] = json!(suggested.iter().collect::<Vec<_>>());
        let said = said(call(&hooks, frame(&json!("hook_0"), &told)).await);
        let behavior = if is_allowed { "allow" } else { "deny" };
        assert_eq!(
            said["hookSpecificOutput"]["decision"]["behavior"], behavior,
            "{update}: {said}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_is_the_shorter_one_of_ours_and_the_clis() {
    let hooks = Hooks::new(&[failing("PreToolUse", "deadline")]);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as f64;
    for (deadline, issued, expected) in [
        (None, None, 585.0),
        (Some(10_000.0), None, 8.0),
        (Some(100_000.0), None, 85.0),
        (Some(9e9), None, 585.0),
        // Eight of ten seconds are gone.
        (Some(10_000.0), Some(now - 8_000.0), 1.6),
        // Clocks that disagree.
        (Some(10_000.0), Some(now + 50_000.0), 8.0),
        (Some(10_000.0), Some(now - 50_000.0), 8.0),
        (Some(f64::NAN), None, 585.0),
        (Some(-1.0), None, 585.0),
    ] {
        let mut line = json!({"type":"control_request","request_id":"r","request":{
            "subtype":"hook_callback","callback_id":"hook_0","input":input("PreToolUse")}});
        line["request"]["deadline_ms"] = json!(deadline);
        line["request"]["issued_at"] = json!(issued);
        let asked = tokio::time::Instant::now();
        let answer = call(&hooks, Frame::from_line(line.to_string().into_bytes()).remove(0)).await;
        assert!(said(answer).to_string().contains("not done within"));
        let took = asked.elapsed().as_secs_f64();
        assert!((took - expected).abs() < 0.2, "{deadline:?} {issued:?}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_context_hears_of_the_deadline() {
    let (heard, hears) = tokio::sync::oneshot::channel();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Some(heard)));
    let hook = pre_tool_use(move |_, context: Context| {
        let heard = heard.lock().unwrap().take().unwrap();
        tokio::spawn(async move {
            context.cancelled().cancelled().await;
            heard.send(()).unwrap();
        });
        std::future::pending::<HookOutput<event::PreToolUse>>()
    })
    .timeout(Duration::from_secs(2));
    let hooks = Hooks::new(&[hook.registration]);
    let mut told = input("PreToolUse");
    told["tool_name"] = json!("Bash");
    told["tool_input"] = json!({});
    told["tool_use_id"] = json!("t");
    let answer = said(call(&hooks, frame(&json!("hook_0"), &told)).await);
    assert!(answer.to_string().contains("not done within 2s"), "{answer}");
    hears.await.unwrap();
}

/// The time passes even though the closure never gives its thread back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_blocks_its_thread_is_answered_in_time() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = std::sync::Mutex::new(stopped);
    let hook = Hook::raw("PreToolUse", move |_, _| {
        // Until the test is over.
        let _ = stopped.lock().unwrap().recv();
        async { Ok::<_, String>(RawJson::from(json!({}))) }
    })
    .timeout(Duration::from_millis(100));
    let hooks = Hooks::new(&[hook.registration]);
    let answer = said(call(&hooks, frame(&json!("hook_0"), &input("PreToolUse"))).await);
    assert_eq!(
        answer["hookSpecificOutput"]["permissionDecision"], "deny",
        "{answer}"
    );
    drop(stop);
}

fn launched(options: &Options) -> Launch {
    // What is elsewhere is not looked for.
    let host = Host::default().remote();
    options.launch(&Surroundings::of_this_process(), host).unwrap()
}

#[test]
fn the_cli_is_told_of_each_hook() {
    let options = Options::new(Auth::Login)
        .hook(
            pre_tool_use(|_, _| async { HookOutput::none() })
                .matcher("Bash|Edit")
                .timeout(Duration::from_millis(1500)),
        )
        .hook(Hook::<event::Stop>::new(|_, _| async { HookOutput::none() }).on_failure(OnFailure::Block))
        .hook(pre_tool_use(|_, _| async { Err::<HookOutput<_>, _>("no") }).on_failure(OnFailure::Continue))
        .hook(Hook::<event::PostToolUse>::in_background(|_, _| async {}))
        .hook(Hook::raw("Later", |input, _| async { Ok::<_, String>(input) }));
    let launch = launched(&options);
    let sent = RawJson::encode(&launch.initialize).unwrap().to_value().unwrap();
    assert_eq!(
        sent["hooks"],
        json!({
            "Later": [{"hookCallbackIds":["hook_4"],"timeout":600.0,"onFailure":"block"}],
            "PostToolUse": [{"hookCallbackIds":["hook_3"],"timeout":15.0}],
            "PreToolUse": [
                {"matcher":"Bash|Edit","hookCallbackIds":["hook_0"],"timeout":16.5,"onFailure":"block"},
                {"hookCallbackIds":["hook_2"],"timeout":600.0}
            ],
            "Stop": [{"hookCallbackIds":["hook_1"],"timeout":600.0}]
        })
    );
    assert_eq!(
        launch.confirmations,
        [Confirmation::Hooks],
        "nothing was promised that the CLI has to keep"
    );
    let promised =
        options.hook(user_prompt_submit(|_, _| async { HookOutput::none() }).on_failure(OnFailure::Block));
    assert_eq!(
        launched(&promised).confirmations,
        [Confirmation::Hooks, Confirmation::HookOnFailure]
    );
    let none = launched(&Options::new(Auth::Login));
    assert!(none.confirmations.is_empty() && none.initialize.hooks.is_none());
}

#[test]
fn hooks_that_could_not_work_are_refused() {
    fn error<E>(hook: Hook<E>) -> String {
        let options = Options::new(Auth::Login).hook(hook);
        options.check().unwrap_err().to_string()
    }
    fn quiet() -> Hook<event::PreToolUse> {
        pre_tool_use(|_, _| async { HookOutput::none() })
    }
    assert_eq!(
        error(quiet().matcher("Bash(git *)")),
        "`hook` is \"PreToolUse: Bash(git *)\", which is a permission rule, and a matcher only takes the tool's name: look at \
         the tool's input in the hook"
    );
    assert!(error(quiet().timeout(Duration::ZERO)).contains("timeout"));
    assert!(error(quiet().timeout(Duration::MAX)).contains("timeout"));
    assert!(error(setup(|_, _| async { HookOutput::none() })).contains("never called"));
    assert!(error(stop(|_, _| async { HookOutput::none() }).matcher("x")).contains("no matchers"));
    assert!(error(Hook::raw("", |input, _| async { Ok::<_, String>(input) })).contains("no name"));
    assert!(
        error(Hook::<event::PreToolUse>::in_background(|_, _| async {}).on_failure(OnFailure::Block))
            .contains("in the background")
    );
    let bare = Options::new(Auth::Login).extra_arg("bare", None);
    assert!(bare.check().is_ok());
    assert!(bare.hook(quiet()).check().is_err());
    let simple = Options::new(Auth::Login)
        .env("CLAUDE_CODE_SIMPLE", "1")
        .hook(quiet());
    assert!(simple.check().is_err());
    assert!(simple.env("CLAUDE_CODE_SIMPLE", "0").check().is_ok());
    for (value, is_simple) in [
        (json!("true"), true),
        (json!(true), true),
        (json!(1), true),
        (json!(["1"]), true),
        (json!(false), false),
        (json!(0), false),
        (json!("0"), false),
        (json!(null), false),
    ] {
        let env = json!({"env": {"CLAUDE_CODE_SIMPLE": value, "OTHER": 5}});
        let settings: outrigger_protocol::settings::Settings = serde_json::from_value(env).unwrap();
        let simple = Options::new(Auth::Login).settings(settings);
        assert!(simple.check().is_ok());
        assert_eq!(simple.hook(quiet()).check().is_err(), is_simple, "{value}");
    }
}

/// The user's own files are out of sight, and may change. The session's settings count for more.
#[test]
fn the_settings_of_a_session_keep_its_hooks_on() {
    let quiet = || user_prompt_submit(|_, _| async { HookOutput::none() });
    let settings = |options: Options| {
        let launch = launched(&options);
        let settings = launch.args.iter().find_map(|argument| {
            let text = argument.to_str().unwrap().strip_prefix("--settings=")?;
            serde_json::from_str::<Value>(text).ok()
        });
        let initialize = launch
            .initialize
            .settings
            .map(|settings| settings.to_value().unwrap());
        settings.or(initialize)
    };
    let on = json!({"env": {"CLAUDE_CODE_SIMPLE": "0"}});
    assert_eq!(settings(Options::new(Auth::Login)), None);
    assert_eq!(settings(Options::new(Auth::Login).hook(quiet())), Some(on));
    let own: outrigger_protocol::settings::Settings =
        serde_json::from_value(json!({"model": "m", "env": {"A": "b"}})).unwrap();
    let with = settings(Options::new(Auth::Login).settings(own).hook(quiet()));
    assert_eq!(
        with,
        Some(json!({"model": "m", "env": {"A": "b", "CLAUDE_CODE_SIMPLE": "0"}}))
    );
}

#[test]
fn a_cli_that_does_not_confirm_is_not_used() {
    use outrigger_protocol::outbound::InitializeReply;
    let reply = |text: &str| serde_json::from_str::<InitializeReply>(text).unwrap();
    let quiet = || user_prompt_submit(|_, _| async { HookOutput::none() });
    let plain = launched(&Options::new(Auth::Login).hook(quiet()));
    assert!(plain.confirm(&reply(r#"{"hooks_applied":true}"#)).is_ok());
    assert!(plain.confirm(&reply("{}")).is_ok(), "older CLIs do not say");
    assert!(plain.confirm(&reply(r#"{"hooks_applied":false}"#)).is_err());
    let promise = launched(&Options::new(Auth::Login).hook(quiet().on_failure(OnFailure::Block)));
    let confirmed = reply(r#"{"hooks_applied":true,"hook_on_failure_supported":true}"#);
    assert!(promise.confirm(&confirmed).is_ok());
    for refused in [
        r#"{"hooks_applied":true}"#,
        r#"{"hook_on_failure_supported":false}"#,
    ] {
        let error = promise.confirm(&reply(refused)).unwrap_err();
        assert_eq!(error.what, Confirmation::HookOnFailure);
        assert!(error.to_string().contains("hook_on_failure_supported"), "{error}");
    }
}

/// With its only thread blocked, the runtime learns of the answer and of the deadline at once.
#[tokio::test]
async fn an_answer_that_comes_after_its_time_does_not_count() {
    let hook = Hook::raw("PreToolUse", |_, _| async {
        std::thread::sleep(Duration::from_millis(100));
        Ok::<_, String>(RawJson::from(json!({})))
    })
    .timeout(Duration::from_millis(10));
    let hooks = Hooks::new(&[hook.registration]);
    let answer = said(call(&hooks, frame(&json!("hook_0"), &input("PreToolUse"))).await);
    assert!(answer.to_string().contains("not done within 10ms"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_run_in_the_background() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let hook = Hook::<event::SubagentStart>::in_background(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    })
    .timeout(Duration::from_secs(60));
    let hooks = Hooks::new(&[hook.registration]);
    for _ in 0..300 {
        let context = Context::detached(RequestId::from("r".to_owned()));
        let frame = frame(&json!("hook_0"), &input("SubagentStart"));
        let answer = said(hooks.accept(CliRequest { frame, context }).await);
        assert_eq!(answer, json!({"async":true}));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(started.load(Ordering::Relaxed), 256);
    tokio::time::sleep(Duration::from_secs(60)).await;
    call(&hooks, frame(&json!("hook_0"), &input("SubagentStart"))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(started.load(Ordering::Relaxed), 257, "there is room again");
}
