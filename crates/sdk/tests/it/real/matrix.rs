//! What is promised of every supported version of the CLI; `cargo xtask cli-matrix` runs these with a dozen of them.
//!
//! `OUTRIGGER_TEST_CLI` names the executable.

use std::sync::{Arc, Mutex};

use outrigger::hooks::{self, HookOutput, PreToolUseOutput};
use outrigger::mcp::{SdkMcpServer, Tool};
use outrigger::permissions::{PermissionAllow, PermissionRequest, PermissionResult};
use outrigger::{Policy, Verdict};
use serde_json::json;

use super::flow::{bash, tool};
use super::rig::{Rig, turn};

/// Has the model run `touch asked.txt`; tells what it read of it, and which files there are then.
async fn touch(
    decide: impl Fn(&PermissionRequest) -> PermissionResult + Send + Sync + 'static,
) -> (String, Vec<String>) {
    let rig = Rig::start().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&asked);
    let options = rig.options().can_use_tool(move |request: PermissionRequest| {
        note.lock().unwrap().push(request.tool_name.clone());
        std::future::ready(decide(&request))
    });
    let session = options.start().await.unwrap();
    let (_, outcome) = turn(
        &session,
        &format!("{}\n%say {{{{last}}}}", bash("touch asked.txt")),
    )
    .await;
    session.close().await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["Bash"]);
    let files = std::fs::read_dir(rig.sandbox().project()).unwrap();
    let mut files: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|file| file.ends_with(".txt"))
        .collect();
    files.sort();
    (outcome.result_text().to_owned(), files)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn allow() {
    let (read, files) = touch(|_| PermissionResult::allow()).await;
    assert_eq!(files, ["asked.txt"], "{read}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn deny() {
    let (read, files) = touch(|_| PermissionResult::deny("not on Sundays")).await;
    assert!(
        files.is_empty() && read.contains("not on Sundays"),
        "{files:?} {read}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn changed_input() {
    let other = PermissionAllow::default()
        .updated_input(json!({"command": "touch other.txt"}))
        .unwrap();
    let (read, files) = touch(move |_| other.clone().into()).await;
    assert_eq!(files, ["other.txt"], "{read}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn hooks() {
    let rig = Rig::start().await;
    let called = Arc::new(Mutex::new(Vec::new()));
    let (before, after) = (Arc::clone(&called), Arc::clone(&called));
    let guard = hooks::pre_tool_use(move |input, _| {
        before.lock().unwrap().push("before");
        let is_bad = input.tool_input.to_string().contains("bad");
        let output = if is_bad {
            PreToolUseOutput::deny("not this one")
        } else {
            PreToolUseOutput::allow()
        };
        async { HookOutput::specific(output) }
    });
    let witness = hooks::post_tool_use(move |_, _| {
        after.lock().unwrap().push("after");
        async { HookOutput::none() }
    });
    let options = rig.options().permissions(Policy::deny_all());
    let session = options
        .hook(guard.matcher("Bash"))
        .hook(witness)
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, &format!("{}\n%say {{{{last}}}}", bash("touch bad.txt"))).await;
    assert!(
        outcome.result_text().contains("not this one"),
        "{}",
        outcome.result_text()
    );
    let (_, outcome) = turn(
        &session,
        &format!("{}\n%say {{{{last}}}}", bash("touch good.txt")),
    )
    .await;
    session.close().await.unwrap();
    let exists = |name| rig.sandbox().project().join(name).exists();
    assert!(
        exists("good.txt") && !exists("bad.txt"),
        "{}",
        outcome.result_text()
    );
    assert_eq!(*called.lock().unwrap(), ["before", "before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn mcp() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        a: i64,
        b: i64,
    }
    let rig = Rig::start().await;
    let add = Tool::new("add", "Adds", async |input: Add, _| {
        format!("it is {}", input.a + input.b)
    });
    let options = rig
        .options()
        .sdk_mcp_server("calc", SdkMcpServer::new("calc").tool(add));
    let session = options.permissions(Policy::allow_all()).start().await.unwrap();
    let call = tool("mcp__calc__add", json!({"a": 2, "b": 3}));
    let (seen, outcome) = turn(&session, &format!("{call}\n%say {{{{last}}}}")).await;
    session.close().await.unwrap();
    assert!(
        outcome.result_text().contains("it is 5"),
        "{seen:?} {}",
        outcome.result_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn resume() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    turn(&session, "%say one").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    let session = rig.options().resume(&id).start().await.unwrap();
    let (seen, outcome) = turn(&session, "%say two").await;
    session.close().await.unwrap();
    assert_eq!(
        (outcome.verdict(), &seen[..]),
        (&Verdict::Completed, &["text two".to_owned()][..])
    );
    let requests = rig.api().message_requests();
    let said = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    assert!(said.contains("%say one") && said.contains("%say two"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn streaming() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .start()
        .await
        .unwrap();
    let told = session.cli_version();
    let (seen, outcome) = turn(&session, "%say a text that comes in several pieces").await;
    println!(
        "it says that it is {told:?}, and later {:?}",
        session.cli_version()
    );
    session.close().await.unwrap();
    let pieces: Vec<_> = seen
        .iter()
        .filter_map(|event| event.strip_prefix("text "))
        .collect();
    assert_eq!(
        (pieces.concat().as_str(), pieces.len() > 1),
        (outcome.result_text(), true),
        "{seen:?}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn account() {
    super::account::promised().await;
}

/// Rules that ask about reading and refuse it hold, or the version is known not to keep them. The oldest do not tell their version.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask cli-matrix` runs it"]
async fn rules() {
    let rig = Rig::start().await;
    let file = rig.sandbox().project().join("top.txt");
    std::fs::write(&file, "the secret\n").unwrap();
    let read = tool("Read", json!({"file_path": file}));
    let grep = |path: &std::path::Path| {
        tool(
            "Grep",
            json!({"pattern": "the s.cret", "path": path, "output_mode": "content"}),
        )
    };
    let (searched, around) = (grep(&file), grep(&rig.sandbox().project()));
    let ask = || Policy::ask_all();
    for (policy, call, lacks) in [
        (ask().deny(["Read(./top.txt)"]), &searched, None),
        (ask().deny(["Read(./top.txt)"]), &around, None),
        (
            ask().ask(["Read(./top.txt)"]),
            &searched,
            Some("ask about reading"),
        ),
        (ask().ask(["Read"]), &read, Some("ask about reading")),
        (ask().ask(["Read(./top.txt)"]), &read, Some("ask about reading")),
        (ask().deny(["Read"]), &read, None),
        (ask().deny(["Read(./top.txt)"]), &read, None),
        (
            ask().deny(["Read(./top.txt)"]).allow(["Edit(./**)"]),
            &read,
            Some("refuse reading"),
        ),
    ] {
        let rules = format!("{policy:?}");
        let session = rig.options().permissions(policy).start().await.unwrap();
        let (_, outcome) = turn(&session, &format!("{call}\n%say {{{{last}}}}")).await;
        let version = session.cli_version();
        session.close().await.unwrap();
        if outcome.result_text().contains("the secret") {
            println!("{version:?} does not keep {rules}");
            let is_known = |lacks: &str| {
                version
                    .as_ref()
                    .is_none_or(|version| version.lacks().iter().any(|known| known.contains(lacks)))
            };
            assert!(lacks.is_some_and(is_known), "{version:?}, {rules}");
        }
    }
}
