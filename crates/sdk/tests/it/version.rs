//! A CLI that does not tell its version when it is introduced to is asked for it beside its start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, CliAge, Options, Session};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Does this when it is asked for its version; else it answers `initialize` without one, and waits for the end of its input.
fn old_cli(directory: &TempDir, says: &str) -> PathBuf {
    let path = directory.path().join("claude");
    let text = format!(
        r#"#!/bin/sh
if [ "$1" = --version ]; then
  echo "$HOME" >> {0}/asked
  {says}
  exit 0
fi
IFS= read -r line || exit 0
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
{1}
printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":{{"account":{{"apiKeySource":"ANTHROPIC_API_KEY"}}}}}}}}\n' "$id"
exec cat >/dev/null
"#,
        directory.path().display(),
        // The answer comes when the version is there, if it is to be there.
        if says.starts_with("echo") {
            format!(
                "while [ ! -e {}/asked ]; do sleep 0.01; done; sleep 0.2",
                directory.path().display()
            )
        } else {
            String::new()
        }
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
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
    let cli = old_cli(&directory, "echo '2.0.77 (Claude Code)'");
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
    let cli = old_cli(&directory, "exec sleep 1000");
    let session = timeout(Duration::from_secs(8), options(&cli).start())
        .await
        .expect("the start does not wait for the version")
        .unwrap();
    assert_eq!(session.cli_version(), None);
    session.close().await.unwrap();
}

#[tokio::test]
async fn what_is_behind_other_arguments_is_not_asked() {
    let directory = TempDir::new().unwrap();
    let cli = old_cli(&directory, "exit 1");
    let mut options = options(&cli);
    options.executable_args = vec!["exec".to_owned()];
    let session = options.start().await.unwrap();
    session.close().await.unwrap();
    assert!(asked(&directory).is_empty());
}
