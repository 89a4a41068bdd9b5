//! Recorded conversations of the real CLI, played to a client that says the same with other ids. `OUTRIGGER_RECORDINGS` names
//! another directory of recordings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;
use crate::peer::Signal;

fn recordings() -> Vec<PathBuf> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/tests/recordings");
    let directory = std::env::var_os("OUTRIGGER_RECORDINGS").map_or(here.into(), PathBuf::from);
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The ids that the client made up, and others.
fn renamed(cassette: &Cassette) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for said in cassette.input() {
        let frame = said.value();
        let id = match frame["type"].as_str() {
            Some("control_request") => &frame["request_id"],
            Some("user") => &frame["uuid"],
            _ => continue,
        };
        let Some(id) = id.as_str() else { continue };
        let number = names.len() + 1;
        let new = match uuid::Uuid::try_parse(id) {
            Ok(_) => format!("99999999-0000-4000-8000-{number:012}"),
            Err(_) => format!("new-request-{number}"),
        };
        names.entry(id.to_owned()).or_insert(new);
    }
    names
}

/// Says what was said then, each after what came before it then, and gives what did not come as it did.
async fn play(cassette: &Cassette) -> Option<String> {
    let names = renamed(cassette);
    let (io, playing) = CassetteReplay::new(cassette.clone()).spawn_in_memory();
    let (mut stdin, mut lines) = (Some(io.stdin), BufReader::new(io.stdout).lines());
    let mut stderr = io.stderr;
    tokio::spawn(async move { stderr.read_to_end(&mut Vec::new()).await });
    for event in &cassette.events {
        match &event.what {
            What::In(said) => {
                let line = said.map(|line| {
                    crate::cassette::strings::rewrite(line, |place, text| {
                        let is_id = matches!(place.key(), Some("request_id" | "uuid" | "message_uuid"));
                        names.get(text).filter(|_| is_id && !place.is_key).cloned()
                    })
                });
                let Some(stdin) = &mut stdin else { continue };
                // What the CLI did not read then, it does not read now.
                let _ = stdin.write_all(format!("{}\n", line.text()).as_bytes()).await;
            }
            What::Out(said, _) => {
                let Some(line) = lines.next_line().await.unwrap() else {
                    return Some(format!(
                        "{:?}, nothing instead of {}",
                        playing.divergence(),
                        said.text()
                    ));
                };
                let then = names
                    .iter()
                    .fold(line, |line, (id, new)| line.replace(new.as_str(), id));
                let recorded = Places::default()
                    .fill(said.text())
                    .unwrap_or_else(|| said.text().to_owned());
                if then != recorded {
                    return Some(format!("{then} instead of {recorded}"));
                }
            }
            What::StdinClosed => stdin = None,
            What::Signal(_) => playing.running().signal(Signal::Term),
            _ => {}
        }
    }
    drop(stdin);
    let exit = tokio::time::timeout(Duration::from_secs(100), playing.exit()).await;
    match (exit, playing.divergence()) {
        (Ok(_), divergence) => divergence.map(|divergence| divergence.to_string()),
        (Err(_), _) => Some("it does not end".to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_conversations_play_to_a_client_that_says_the_same() {
    let mut played = 0;
    let mut wrong = Vec::new();
    for path in recordings() {
        let text = std::fs::read_to_string(&path).unwrap();
        // Several conversations in one file, and files that no JSON reader here takes.
        if text.matches("\"scenario\"").count() > 1 {
            continue;
        }
        let text = format!("{{\"t\":0,\"dir\":\"meta\",\"msg\":{{\"cassette\":2}}}}\n{text}");
        // That recorder wrote what was no JSON in pieces, and not in lines.
        let is_piece = |said: &Said| matches!(said, Said::Text(text) if text.contains('\n'));
        let found = match Cassette::parse(&text) {
            Ok(cassette) if cassette.input().any(is_piece) => continue,
            Ok(cassette) => play(&cassette).await,
            Err(error) => Some(error.to_string()),
        };
        played += 1;
        wrong.extend(found.map(|found| format!("{}: {found:.3000}", path.display())));
    }
    assert!(played > 3, "{played}");
    assert!(
        wrong.is_empty(),
        "{} of {played}:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}
