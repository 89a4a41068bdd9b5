//! Recorded conversations of the real CLI, played back to a session that says what was said then.
//!
//! The prompts of most recordings had no id, so their frames name none and say nothing of the life of prompts, although the CLI
//! announced that it would. `OUTRIGGER_RECORDINGS` names another directory of recordings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use outrigger::{Outcome, Policy, Prompt, Session};
use outrigger_sim::peer::faulty::{FaultyScript, FaultyStep};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::faults::boundaries::named;
use crate::faults::stand::Stand;
use crate::support::PATIENCE;

/// What was recorded: `dir` and `msg`. Nothing if it can't be written as a script (lone surrogates).
pub(crate) fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap_or_default()
}

/// The CLI's side as a script, which goes on when the session has said what it said then.
pub(crate) fn script(recorded: &[Value]) -> Vec<FaultyStep> {
    let mut names = BTreeMap::new();
    let (mut prompts, mut requests) = (0, 0);
    let step = |line: &Value| {
        let json = &line["msg"];
        if line["dir"] != "in" {
            return (line["dir"] == "out").then(|| FaultyStep::Line(named(json, &names)));
        }
        Some(FaultyStep::Await(match json["type"].as_str()? {
            "control_request" => {
                let id = json["request_id"].as_str()?.to_owned();
                names.insert(id, format!("$request.{requests}"));
                requests += 1;
                json!({"type": "control_request"})
            }
            "control_response" => {
                json!({"type": "control_response", "response": {"request_id": json["response"]["request_id"]}})
            }
            kind => {
                if let Some(id) = json["uuid"].as_str() {
                    names.insert(id.to_owned(), format!("$prompt.{prompts}"));
                }
                prompts += 1;
                json!({"type": kind})
            }
        }))
    };
    recorded.iter().filter_map(step).collect()
}

/// What one says in a session: prompts, one after the other, and requests between them.
async fn say(session: &Session, recorded: &[Value]) -> Vec<outrigger::Result<Outcome>> {
    let mut outcomes = Vec::new();
    for line in recorded.iter().filter(|line| line["dir"] == "in") {
        let json = &line["msg"];
        match json["type"].as_str() {
            Some("user") => {
                let outcome = match session.prompt(Prompt::text("what was said then")).await {
                    Ok(mut turn) => turn.outcome().await,
                    Err(error) => Err(error),
                };
                outcomes.push(outcome);
            }
            Some("control_request") if json["request"]["subtype"] != "initialize" => {
                let mut fields = json["request"].clone();
                let subtype = fields["subtype"].as_str().unwrap_or_default().to_owned();
                fields.as_object_mut().unwrap().remove("subtype");
                // Its refusal was recorded, too.
                let _ = session.raw_request(&subtype, fields).await;
            }
            _ => {}
        }
    }
    outcomes
}

/// Whether a session would say these things by itself or by being told to, one after the other.
fn can_be_said(recorded: &[Value]) -> bool {
    let said = |line: &&Value| line["dir"] == "in" && line["msg"].is_object();
    let mut open = false;
    let mut lines = recorded.iter().filter(said).peekable();
    let begins = lines
        .peek()
        .is_some_and(|line| line["msg"]["request"]["subtype"] == "initialize");
    begins
        && recorded.iter().all(|line| {
            let json = &line["msg"];
            match (line["dir"].as_str(), json["type"].as_str()) {
                (Some("in"), Some("user")) => !std::mem::replace(&mut open, true),
                (Some("in"), Some("control_request")) => {
                    json["request_id"].is_string() && (!open || json["request"]["subtype"] == "initialize")
                }
                (Some("in"), Some("control_response")) => true,
                (Some("in"), _) => false,
                (Some("out"), Some("result")) => {
                    open = false;
                    true
                }
                // Only permissions are answered here.
                (Some("out"), Some("control_request")) => json["request"]["subtype"] == "can_use_tool",
                _ => true,
            }
        })
        && !open
}

fn recordings() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/recordings");
    let directory = std::env::var_os("OUTRIGGER_RECORDINGS").map_or(here, PathBuf::from);
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Plays one, and says what did not come out as it was.
async fn play(recorded: &[Value]) -> Result<(), String> {
    let stand = Stand::new(&FaultyScript::from(script(recorded)));
    let options = stand.options().permissions(Policy::allow_all());
    let session = options.start().await.map_err(|error| error.to_string())?;
    let said = timeout(PATIENCE / 4, say(&session, recorded)).await;
    let said = said.map_err(|_| "it hangs".to_owned())?;
    let texts: Vec<_> = said
        .into_iter()
        .map(|outcome| outcome.map(|outcome| outcome.result_text().to_owned()))
        .map(|text| text.unwrap_or_else(|error| error.to_string()))
        .collect();
    let results = recorded.iter().filter(|line| {
        line["dir"] == "out" && line["msg"]["type"] == "result" && line["msg"]["origin"].is_null()
    });
    let expected: Vec<_> = results
        .map(|line| line["msg"]["result"].as_str().unwrap_or_default().to_owned())
        .collect();
    session.close().await.map_err(|error| error.to_string())?;
    stand.gone().await;
    if texts == expected {
        Ok(())
    } else {
        Err(format!("{texts:?} instead of {expected:?}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_conversations_come_to_the_end_that_they_came_to() {
    let all = recordings().into_iter().map(|path| (read(&path), path));
    let all: Vec<_> = all.filter(|(recorded, _)| can_be_said(recorded)).collect();
    assert!(all.len() > 1, "{} recordings can be played", all.len());
    let played = futures_util::stream::iter(&all).map(|(recorded, path)| async move {
        let played = play(recorded).await;
        played.err().map(|error| format!("{}: {error}", path.display()))
    });
    let wrong: Vec<_> = played
        .buffer_unordered(8)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(wrong.is_empty(), "of {}: {wrong:#?}", all.len());
}
