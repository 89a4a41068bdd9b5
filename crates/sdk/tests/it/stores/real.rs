//! The real CLI and a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger::options::{Auth, Isolation, Secret};
use outrigger::protocol::RawJson;
use outrigger::sessions::place::{project_dir_name, real_path};
use outrigger::sessions::store::{ImportOptions, SessionKey, SessionStore, import_to_store};
use outrigger::{Agent, Claim, Options, Session};
use outrigger_sim::api::ApiRequest;
use tempfile::TempDir;

use super::{Fate, Kept};
use crate::real::rig::{Rig, turn};

/// What the model was told in the last request: the words of both, without what the CLI adds in tags.
pub(super) fn told(rig: &Rig) -> Vec<String> {
    let requests = rig.api().message_requests();
    let messages = requests.last().expect("a request").messages().to_vec();
    let texts = |message: serde_json::Value| -> Vec<String> {
        match &message["content"] {
            serde_json::Value::String(text) => vec![text.clone()],
            content => {
                let blocks = content.as_array().into_iter().flatten();
                blocks
                    .filter_map(|block| Some(block["text"].as_str()?.to_owned()))
                    .collect()
            }
        }
    };
    let all = messages
        .into_iter()
        .filter(|message| message["role"] != "system")
        .flat_map(texts);
    all.filter(|text| !text.starts_with('<')).collect()
}

/// Options for the same directory on "another machine": another home, in which nothing is.
pub(super) fn elsewhere(rig: &Rig, kept: &Arc<Kept>) -> (Options, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let options = rig
        .options()
        .env("HOME", home.path())
        .env("CLAUDE_CONFIG_DIR", home.path().join("config"));
    (options.session_store(Arc::clone(kept) as _), home)
}

pub(super) fn project(rig: &Rig) -> String {
    project_dir_name(&real_path(rig.sandbox().project().as_ref()))
}

/// The environment that the CLI really has.
pub(super) fn config_dir(session: &Session) -> PathBuf {
    let environ = std::fs::read(format!("/proc/{}/environ", session.pid().unwrap())).unwrap();
    let mut variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let found = variables.find_map(|variable| Some(variable.strip_prefix("CLAUDE_CONFIG_DIR=")?.to_owned()));
    found.expect("it is set").into()
}

fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// That the store has what the file has, byte for byte. Lines are long, so only the beginnings are shown.
fn same_lines(stored: &[String], written: &[String]) {
    let short = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.chars().take(60).collect()).collect()
    };
    assert!(stored == written, "{:#?}\n{:#?}", short(stored), short(written));
}

pub(super) async fn two_turns(options: Options) -> String {
    let session = options.start().await.unwrap();
    turn(&session, "%say one").await;
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    id.into()
}

const TWO_TURNS: [&str; 4] = ["%say one", "one", "%say two", "two"];

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_kept_line_by_line_and_goes_on_elsewhere() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let key = SessionKey::new(project(&rig), &id);
    let file = rig
        .sandbox()
        .config()
        .join("projects")
        .join(project(&rig))
        .join(format!("{id}.jsonl"));
    // The CLI's records of its own requests are not mirrored, by its own choice.
    let mut written = lines(&file);
    written.retain(|line| !line.starts_with(r#"{"type":"api-request"#));
    same_lines(&kept.texts(&key), &written);

    let (options, home) = elsewhere(&rig, &kept);
    let session = options.clone().resume(id.clone()).start().await.unwrap();
    let place = config_dir(&session);
    assert!(!place.starts_with(home.path()));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    turn(&session, "%say three").await;
    assert_eq!(told(&rig)[..4], TWO_TURNS);
    assert_eq!(session.id().unwrap(), id);
    session.close().await.unwrap();
    assert!(!place.exists(), "what was written for the CLI is gone");
    assert!(kept.texts(&key).iter().any(|line| line.contains("%say three")));
    assert_eq!(kept.memory.len(), 1);

    // Once more, with what the second machine added; the newest without naming it.
    let session = options.continue_conversation(true).start().await.unwrap();
    turn(&session, "%say four").await;
    let told = told(&rig);
    assert_eq!(told[..6], [&TWO_TURNS[..], &["%say three", "three"]].concat()[..]);
    assert_eq!(session.id().unwrap(), id);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_go_on_with_their_session() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let session = rig
        .options()
        .session_store(Arc::clone(&kept) as _)
        .start()
        .await
        .unwrap();
    let spawn =
        r#"%tool Agent {"description":"look","prompt":"%say seen","subagent_type":"general-purpose"}"#;
    turn(&session, &format!("{spawn}\n%say done")).await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    let key = SessionKey::new(project(&rig), &id);
    let parts = kept.list_subkeys(&key).await.unwrap();
    assert_eq!(parts.len(), 1, "{parts:?}");
    let part = key.with_subpath(&parts[0]);
    assert!(kept.texts(&part).iter().any(|line| line.contains("%say seen")));
    // A name that is none on some systems is one here.
    let entry = [RawJson::from_text(r#"{"type":"x"}"#).unwrap()];
    let colon = key.with_subpath("subagents/agent-a:b");
    kept.append(&colon, &entry).await.unwrap();

    let (options, _home) = elsewhere(&rig, &kept);
    let session = options.resume(id.clone()).start().await.unwrap();
    let beside = config_dir(&session)
        .join("projects")
        .join(project(&rig))
        .join(id.as_str());
    let transcript = beside.join(format!("{}.jsonl", parts[0]));
    assert!(transcript.is_file(), "{}", transcript.display());
    let sidecar = std::fs::read_to_string(transcript.with_extension("meta.json")).unwrap();
    assert!(
        sidecar.contains("general-purpose") && !sidecar.contains("agent_metadata"),
        "{sidecar}"
    );
    assert!(
        !lines(&transcript)
            .iter()
            .any(|line| line.contains("agent_metadata"))
    );
    assert_eq!(lines(&beside.join("subagents/agent-a:b.jsonl")), [entry[0].get()]);
    session.close().await.unwrap();

    // What cannot be a file of the session is not left out in silence.
    kept.append(&key.with_subpath("../x"), &entry).await.unwrap();
    let (options, _home) = elsewhere(&rig, &kept);
    let error = options.resume(id.clone()).start().await.unwrap_err();
    let error = format!("{error:?}");
    assert!(
        error.contains("../x") && error.contains("no file below its session"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hermetic_session_goes_on_from_its_store() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let options = || {
        let options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
            .cli_path(rig.executable());
        let mut options = options
            .cwd(rig.sandbox().project())
            .isolation(Isolation::Hermetic);
        for (name, value) in rig.sandbox().env(&rig.api().base_url()) {
            let moved = [
                "HOME",
                "CLAUDE_CONFIG_DIR",
                "CLAUDE_CODE_TMPDIR",
                "ANTHROPIC_API_KEY",
            ];
            if !moved.iter().any(|moved| name == *moved) {
                options = options.env(name, value);
            }
        }
        options.session_store(Arc::clone(&kept) as _)
    };
    let id = two_turns(options()).await;
    let session = options().resume(id.clone()).start().await.unwrap();
    let place = config_dir(&session);
    turn(&session, "%say three").await;
    assert_eq!(told(&rig)[..4], TWO_TURNS);
    session.close().await.unwrap();
    assert!(!place.exists());
    assert!(kept.texts(&SessionKey::new(project(&rig), &id)).len() > 6);

    // A spare becomes such a session, and what the store did not take of it stays here.
    let moment = Duration::from_millis(1);
    let spare = options()
        .session_store_grace(moment)
        .session_store_patience(moment);
    let spare = spare.prewarm().await.unwrap();
    kept.is_away(true);
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    let place = config_dir(&session);
    let watch = session.prompt("%say five").await.unwrap().watch();
    watch.outcome().await.unwrap();
    let id = session.id().unwrap();
    session.close().await.unwrap();
    assert!(place.join("projects").is_dir());
    kept.is_away(false);
    let session = options().resume(id).start().await.unwrap();
    turn(&session, "%say six").await;
    assert_eq!(told(&rig)[..2], ["%say five", "five"]);
    session.close().await.unwrap();
    assert!(!place.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_may_leave_its_place_goes_along() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let config = rig.sandbox().config();
    let credentials = r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1}}"#;
    std::fs::write(config.join(".credentials.json"), credentials).unwrap();
    let settings = r#"{"enabledPlugins":{"x@y":true},"env":{"CLAUDE_CONFIG_DIR":"/c","MINE":"1"}}"#;
    std::fs::write(config.join("settings.json"), settings).unwrap();
    let options = rig.options().session_store(Arc::clone(&kept) as _).resume(id);
    let session = options.start().await.unwrap();
    let place = config_dir(&session);
    // Paid by a key, it has no use for the login.
    assert!(!place.join(".credentials.json").exists());
    let settings = std::fs::read_to_string(place.join("settings.json")).unwrap();
    assert_eq!(settings, r#"{"env":{"MINE":"1"}}"#);
    assert!(place.join(".claude.json").exists());
    // The CLI is killed: only a transcript that it may have written to since stays.
    session.clone().kill().await.unwrap();
    session.wait_ended().await;
    let left = std::fs::read_dir(&place).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        left.iter()
            .all(|name| name == "projects" || name == ".outrigger-owned"),
        "{left:?}"
    );
    // The original is as it was.
    assert_eq!(
        std::fs::read_to_string(config.join(".credentials.json")).unwrap(),
        credentials
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_or_hangs_stops_the_start() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = uuid::Uuid::new_v4().to_string();
    let (options, _home) = elsewhere(&rig, &kept);
    let options = options.resume(id).load_timeout(Duration::from_millis(50));
    *kept.loads.lock().unwrap() = Some(Fate::Fails);
    let error = options.clone().start().await.unwrap_err();
    assert!(error.as_store_error().is_some(), "{error}");
    *kept.loads.lock().unwrap() = Some(Fate::Hangs);
    let error = options.clone().start().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    *kept.loads.lock().unwrap() = Some(Fate::Panics);
    assert!(options.clone().start().await.is_err());
    // What the store doesn't have is for the CLI to find.
    *kept.loads.lock().unwrap() = None;
    let error = options.start().await.unwrap_err();
    assert_eq!(error.cause(), Some(outrigger::Cause::UnknownSession), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nothing_in_the_store_to_continue_a_session_begins() {
    let rig = Rig::start().await;
    // There is one on disk, which is not what was asked for.
    two_turns(rig.options()).await;
    let kept = Kept::new();
    let session = rig
        .options()
        .session_store(Arc::clone(&kept) as _)
        .continue_conversation(true)
        .start()
        .await
        .unwrap();
    turn(&session, "%say anew").await;
    assert_eq!(told(&rig), ["%say anew"]);
    session.close().await.unwrap();
    assert_eq!(kept.memory.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_imported_goes_on_and_a_fork_is_kept_beside_it() {
    let rig = Rig::start().await;
    let id = two_turns(rig.options()).await;
    let file = rig
        .sandbox()
        .config()
        .join("projects")
        .join(project(&rig))
        .join(format!("{id}.jsonl"));
    let kept = Kept::new();
    import_to_store(&file, &*kept, ImportOptions::default())
        .await
        .unwrap();
    let before = kept.texts(&SessionKey::new(project(&rig), &id));
    same_lines(&before, &lines(&file));
    let (options, _home) = elsewhere(&rig, &kept);
    let session = options
        .resume(id.clone())
        .fork_session(true)
        .start()
        .await
        .unwrap();
    turn(&session, "%say three").await;
    assert_eq!(told(&rig)[..4], TWO_TURNS);
    let fork = session.id().unwrap();
    assert_ne!(fork, id);
    session.close().await.unwrap();
    assert_eq!(kept.texts(&SessionKey::new(project(&rig), &id)), before);
    assert!(
        kept.texts(&SessionKey::new(project(&rig), &fork))
            .iter()
            .any(|line| line.contains("%say two"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_killed_is_revived_from_its_store() {
    let rig = Rig::start().await;
    let kept = Kept::new();
    let id = two_turns(rig.options().session_store(Arc::clone(&kept) as _)).await;
    let (options, _home) = elsewhere(&rig, &kept);
    let session = options.resume(id.clone()).start().await.unwrap();
    turn(&session, "%say three").await;
    session.clone().kill().await.unwrap();
    session.wait_ended().await;
    let revived = session.revive().await.unwrap().session;
    turn(&revived, "%say four").await;
    assert_eq!(
        told(&rig)[..6],
        [&TWO_TURNS[..], &["%say three", "three"]].concat()[..]
    );
    assert_eq!(revived.id().unwrap(), id);
    revived.close().await.unwrap();
}
