//! A CLI that does not tell its version when it is introduced to is asked for it beside its start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, CliAge, Options, Session};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// A script for Node, as the old ones are. It does this when it is asked for its version; else it answers `initialize` without one, once
/// the version was asked for, and waits for the end of its input.
fn old_cli(directory: &TempDir, says: &str) -> PathBuf {
    let path = directory.path().join("cli.js");
    let asked = directory.path().join("asked");
    let text = format!(
        r#"const fs = require("fs"), asked = {asked:?};
if (process.argv[2] === "--version") {{
  fs.appendFileSync(asked, process.env.HOME + "\n");
  {says}
}} else {{
  const account = {{ apiKeySource: "ANTHROPIC_API_KEY" }};
  require("readline").createInterface({{ input: process.stdin }}).once("line", (line) => {{
    const response = {{ subtype: "success", request_id: JSON.parse(line).request_id, response: {{ account }} }};
    const answer = () => fs.existsSync(asked)
      ? console.log(JSON.stringify({{ type: "control_response", response }}))
      : setTimeout(answer, 10);
    answer();
  }});
}}
"#
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn options(cli: &Path) -> Options {
    Agent::builder()
        .auth(Auth::ApiKey(Secret::new("simulated")))
        .cli_path(cli)
}

fn asked(directory: &TempDir) -> Vec<String> {
    let homes = std::fs::read_to_string(directory.path().join("asked")).unwrap_or_default();
    homes.lines().map(str::to_owned).collect()
}

async fn version_comes(session: &Session) {
    let told = async {
        while session.cli_version().is_none() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(20), told).await.expect("it is told");
}

#[tokio::test]
async fn an_old_cli_is_known_when_its_session_starts() {
    let directory = TempDir::new().unwrap();
    let cli = old_cli(&directory, r#"console.log("2.0.77 (Claude Code)");"#);
    let session = options(&cli).start().await.unwrap();
    version_comes(&session).await;
    let version = session.cli_version().unwrap();
    assert_eq!((version.as_str(), version.age()), ("2.0.77", CliAge::Older));
    assert!(
        version
            .lacks()
            .iter()
            .any(|what| what.contains("why a turn ended"))
    );
    session.close().await.unwrap();

    // The file is asked once, and in a home of its own, which is gone.
    let again = options(&cli).start().await.unwrap();
    version_comes(&again).await;
    again.close().await.unwrap();
    let homes = asked(&directory);
    assert_eq!(homes.len(), 1, "{homes:?}");
    assert!(homes.iter().all(|home| !Path::new(home).exists()), "{homes:?}");
    assert_ne!(
        homes.first().map(String::as_str),
        std::env::var("HOME").ok().as_deref()
    );
}

#[tokio::test]
async fn a_cli_that_does_not_say_its_version_holds_up_nobody() {
    let directory = TempDir::new().unwrap();
    let cli = old_cli(&directory, "setInterval(() => {}, 1000);");
    let session = timeout(Duration::from_secs(8), options(&cli).start())
        .await
        .expect("the start does not wait for the version")
        .unwrap();
    assert_eq!(session.cli_version(), None);
    session.close().await.unwrap();
}

#[tokio::test]
async fn what_may_be_a_wrapper_is_not_asked() {
    let directory = TempDir::new().unwrap();
    let cli = directory.path().join("claude");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo x >> {}\nread -r line\nid=${{line#*'\"request_id\":\"'}}\nid=${{id%%'\"'*}}\n\
         printf '{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":\"%s\",\
         \"response\":{{\"account\":{{\"apiKeySource\":\"ANTHROPIC_API_KEY\"}}}}}}}}\\n' \"$id\"\nexec cat >/dev/null\n",
        directory.path().join("asked").display()
    );
    outrigger_needs::script(&cli, text).unwrap();
    let session = options(&cli).start().await.unwrap();
    session.close().await.unwrap();
    assert!(asked(&directory).is_empty());
}
