//! The pinned `claude`, recorded on its way to an API and played without one.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use outrigger_sim::api::{ApiRecorder, MessagesApi, Upstream};
use outrigger_sim::cassette::RedactionRules;
use outrigger_sim::claude::{Launch, Sandbox, Seen, executable};
use outrigger_sim::script::Script;
use serde_json::{Value, json};

type Outcomes = Result<(), Box<dyn Error>>;

const SOON: Duration = Duration::from_secs(60);

/// The prompts of the recorded session. What the model answers is in the first recording only.
fn prompts(sandbox: &Sandbox) -> [String; 3] {
    let file = sandbox.project().join("made.txt");
    let write = json!({"file_path": file.to_string_lossy(), "content": "made"});
    let bash = json!({"command": "cat made.txt", "description": "Look"});
    [
        format!(
            "%think hm\n%+say I write.\n%+tool Write {write}\n%tool Bash {bash}\n%say it holds {{{{last}}}}"
        ),
        "%error 529\n%say recovered".to_owned(),
        "%usage in=7 out=3\n%say third".to_owned(),
    ]
}

/// Runs the session in a place of its own, and returns what the CLI wrote in each turn.
async fn session(api: &MessagesApi, sandbox: &Sandbox) -> Result<Vec<Vec<Seen>>, Box<dyn Error>> {
    let launch = Launch::new(executable().await?, sandbox, &api.base_url())
        .arg("--include-partial-messages")
        .arg("--allowedTools=Write,Bash");
    let mut claude = launch.spawn()?;
    claude.initialize().await?;
    let mut turns = Vec::new();
    for prompt in prompts(sandbox) {
        claude.prompt(&prompt).await?;
        turns.push(claude.turn().await?);
    }
    claude.finish().await?;
    Ok(turns)
}

/// What kinds of frames there are, and what they say.
fn gist(turns: &[Vec<Seen>], sandbox: &Sandbox) -> Vec<String> {
    let place = sandbox.path().to_string_lossy().into_owned();
    let frames = turns.iter().flatten().map(|seen| {
        let value = &seen.value;
        // The pieces of a tool's input are cut elsewhere where they name another place.
        let texts = [&value["event"]["delta"]["text"], &value["result"]];
        let blocks = value["message"]["content"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let blocks: Vec<Value> = blocks
            .into_iter()
            .map(|mut block| {
                if let Some(block) = block.as_object_mut() {
                    block.remove("id");
                    block.remove("tool_use_id");
                }
                block
            })
            .collect();
        let text = format!(
            "{} {} {} {texts:?} {}",
            seen.frame.kind(),
            seen.frame.subtype().unwrap_or_default(),
            value["event"]["type"],
            Value::from(blocks)
        );
        text.replace(&place, "PLACE")
    });
    frames.collect()
}

async fn recorded(sandbox: &Sandbox, file: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let upstream = MessagesApi::builder().start().await?;
    let proxy = MessagesApi::builder()
        .upstream(Upstream::new(&upstream.base_url())?)
        .record(ApiRecorder::create(file, RedactionRules::new())?)
        .home(sandbox.home().to_string_lossy())
        .start()
        .await?;
    let gist = gist(&session(&proxy, sandbox).await?, sandbox);
    let settled = |requests: &[outrigger_sim::api::ApiRequest]| {
        let pending = outrigger_sim::api::RequestOutcome::Pending;
        requests.iter().all(|request| request.outcome != pending)
    };
    proxy.wait_until("all to be answered", SOON, settled).await?;
    assert_eq!(proxy.write_failure(), None);
    upstream.shutdown().await;
    Ok(gist)
}

#[tokio::test]
async fn a_recorded_session_is_the_same_again_elsewhere() -> Outcomes {
    let sandbox = Sandbox::new()?;
    let file = sandbox.path().join("recorded.yaml");
    let was = recorded(&sandbox, &file).await?;

    // Nothing of the CLI's own prompts, and nothing of the place.
    let text = std::fs::read_to_string(&file)?;
    for own in [
        "You are",
        "Claude Code",
        "IMPORTANT:",
        "input_schema",
        &*sandbox.path().to_string_lossy(),
    ] {
        assert!(!text.contains(own), "{own} in {text}");
    }

    let api = MessagesApi::builder()
        .script(Script::from_file(&file)?)?
        .directives(false)
        .start()
        .await?;
    let elsewhere = [Sandbox::new()?, Sandbox::new()?];
    // Two at once, and each gets the whole session.
    let (one, two) = tokio::join!(session(&api, &elsewhere[0]), session(&api, &elsewhere[1]));
    for (is, sandbox) in [(one?, &elsewhere[0]), (two?, &elsewhere[1])] {
        let is = gist(&is, sandbox);
        for (was, is) in was.iter().zip(&is) {
            assert_eq!(is, was);
        }
        assert_eq!(is.len(), was.len());
        assert_eq!(
            std::fs::read_to_string(sandbox.project().join("made.txt"))?,
            "made"
        );
    }
    api.verdict()?;
    Ok(())
}

#[tokio::test]
async fn what_was_not_recorded_is_told_in_the_result() -> Outcomes {
    let sandbox = Sandbox::new()?;
    let file = sandbox.path().join("recorded.yaml");
    recorded(&sandbox, &file).await?;
    let api = MessagesApi::builder()
        .script(Script::from_file(&file)?)?
        .directives(false)
        .start()
        .await?;
    let mut claude = Launch::new(executable().await?, &sandbox, &api.base_url()).spawn()?;
    claude.initialize().await?;
    claude.prompt("%usage in=7 out=3\n%say fourth").await?;
    let result = claude.result().await?.value;
    assert_eq!(result["is_error"], true);
    let told = result["result"].as_str().unwrap_or_default();
    let why = "no rule of the script is for the prompt";
    assert!(
        told.contains(why) && told.contains("third") && told.contains("fourth"),
        "{told}"
    );
    let verdict = api.verdict().unwrap_err().to_string();
    assert!(verdict.contains(why), "{verdict}");
    claude.finish().await?;
    Ok(())
}
