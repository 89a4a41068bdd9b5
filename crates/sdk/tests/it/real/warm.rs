//! Spares of the real CLI: parked, claimed, refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use outrigger::options::{Auth, Secret};
use outrigger::protocol::outbound::WorkspaceTrust;
use outrigger::protocol::settings::Settings;
use outrigger::protocol::shared::{AgentDefinition, PermissionMode};
use outrigger::{Claim, ClaimProblem, Error, Policy, Pool, PoolLimits, PoolOrigin, Session, Spare, Verdict};
use serde_json::json;

use super::rig::{Rig, turn};

fn settings(json: serde_json::Value) -> Settings {
    serde_json::from_value(json).unwrap()
}

async fn parked(rig: &Rig) -> Spare {
    rig.options().prewarm().await.expect("it is parked")
}

fn parking(rig: &Rig) -> Vec<PathBuf> {
    let spares = rig.sandbox().config().join("spares");
    let Ok(spares) = std::fs::read_dir(spares) else {
        return Vec::new();
    };
    spares.map(|spare| spare.unwrap().path()).collect()
}

async fn gone(rig: &Rig) {
    for _ in 0..600 {
        if parking(rig).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the parking place is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_becomes_the_session_that_is_asked_for() {
    let rig = Rig::start().await;
    let spare = rig
        .options()
        .model("sonnet")
        .system_prompt("You are a test.")
        .prewarm()
        .await
        .unwrap();
    let places = parking(&rig);
    assert_eq!(places.len(), 1);
    let mode = std::fs::metadata(&places[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(spare.is_alive() && spare.pid().is_some());
    // It has begun no session.
    assert!(!rig.sandbox().config().join("projects").exists());

    let more = rig.sandbox().path().join("more");
    std::fs::create_dir(&more).unwrap();
    let claim = Claim::new(rig.sandbox().project())
        .permission_mode(PermissionMode::AcceptEdits)
        .model("haiku")
        .settings(settings(
            json!({"effortLevel": "low", "permissions": {"deny": ["WebFetch"]}}),
        ))
        .additional_directories([&more])
        .append_system_prompt("Be brief.")
        .title("A claimed one")
        .agent("helper", AgentDefinition::new("helps", "You help."))
        .host_session_id("mine");
    let session = spare.claim(claim).await.unwrap();
    let id = session.id().expect("a claimed session has its id at once");
    let mode = session.initialized().current_permission_mode.as_ref();
    assert_eq!(mode.map(|mode| mode.as_str()), Some("acceptEdits"));

    let (seen, outcome) = turn(&session, "%say hello").await;
    assert_eq!(seen, ["text hello"]);
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    let init = session.init().unwrap();
    assert_eq!(
        (session.id().unwrap(), init.session_id.as_str()),
        (id.clone(), id.as_str())
    );
    assert_eq!(
        PathBuf::from(&init.cwd),
        rig.sandbox().project().canonicalize().unwrap()
    );
    assert!(init.agents.iter().flatten().any(|agent| agent == "helper"));
    let requests = rig.api().message_requests();
    let asked = requests.last().unwrap();
    assert!(asked.model().unwrap().contains("haiku"), "{:?}", asked.model());
    assert!(!asked.tools().any(|tool| tool == "WebFetch"));
    let system = asked.body["system"].to_string();
    assert!(system.contains("You are a test.\\n\\nBe brief."), "{system}");
    let get = session.get_settings().await.unwrap();
    assert!(serde_json::to_string(&get).unwrap().contains(r#""effort":"low""#));
    session.close().await.unwrap();
    assert!(parking(&rig).is_empty());

    // The conversation lies where a session of that directory does.
    let title = rig.options().resume(id).start().await.unwrap();
    let (_, outcome) = turn(&title, "%say again").await;
    assert_eq!(outcome.result_text(), "again");
    title.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_options_depend_on_holds_after_the_claim() {
    let rig = Rig::start().await;
    let spare = rig
        .options()
        .settings(settings(json!({"env": {"SOME_TOKEN": "secret-value"}})))
        .disallowed_tools(["WebSearch"])
        .permissions(Policy::deny_all())
        .permission_mode(PermissionMode::Plan)
        .title("From the start")
        .prewarm()
        .await
        .unwrap();
    assert_eq!(spare.initialized().settings_applied, Some(true));
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    // What was confirmed for the spare is still known of the session.
    assert_eq!(session.initialized().settings_applied, Some(true));
    let (_, outcome) = turn(&session, "%say hello").await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    assert_eq!(session.init().unwrap().permission_mode.as_str(), "plan");
    let requests = rig.api().message_requests();
    assert!(!requests.last().unwrap().tools().any(|tool| tool == "WebSearch"));
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_wrong_leaves_the_spare_as_it_is() {
    let rig = Rig::start().await;
    let spare = parked(&rig).await;
    let pid = spare.pid();
    let failed = spare
        .claim(Claim::new(rig.sandbox().project()).settings(settings(json!({"hooks": {}}))))
        .await
        .unwrap_err();
    assert!(failed.error.is_invalid(), "{failed}");
    let spare = failed.spare.expect("nothing was sent");
    let failed = spare
        .claim(Claim::new(rig.sandbox().path().join("nowhere")))
        .await
        .unwrap_err();
    let spare = failed.spare.expect("nothing was sent");
    assert_eq!(spare.pid(), pid);
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    assert_eq!(turn(&session, "%say hello").await.0, ["text hello"]);
    session.close().await.unwrap();
}

async fn refused(rig: &Rig, claim: Claim) -> ClaimProblem {
    let spare = rig.options().isolation(outrigger::options::Isolation::Project);
    let failed = spare.prewarm().await.unwrap().claim(claim).await.unwrap_err();
    assert!(failed.spare.is_none());
    let error = Error::from(failed);
    let problem = error.as_claim_problem();
    problem.unwrap_or_else(|| panic!("{error}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cli_refuses_what_a_spare_cannot_be() {
    let rig = Rig::start().await;
    let here = || Claim::new(rig.sandbox().project());
    let problem = refused(&rig, here().settings(settings(json!({"agent": "nobody"})))).await;
    assert!(
        matches!(problem, ClaimProblem::SettingsNotApplied { .. }),
        "{problem}"
    );
    rig.sandbox()
        .write(".claude/settings.json", r#"{"env": {"A": "b"}}"#)
        .unwrap();
    match refused(&rig, here()).await {
        ClaimProblem::Refused { code, message } => {
            assert_eq!(code, "project_settings_not_claimable");
            assert!(message.contains("env"), "{message}");
        }
        other => panic!("{other}"),
    }
    // Nothing was asked of the model, and nothing is left.
    assert!(rig.api().message_requests().is_empty());
    gone(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_does_not_change_who_pays() {
    let rig = Rig::start().await;
    let options = rig
        .options()
        .auth(Auth::OAuthToken(Secret::new("sk-ant-oat01-old")));
    let spare = options.prewarm().await.unwrap();
    let claim = Claim::new(rig.sandbox().project()).oauth_token("sk-ant-oat01-new");
    let session = spare.claim(claim).await.unwrap();
    assert_eq!(turn(&session, "%say hello").await.0, ["text hello"]);
    let requests = rig.api().message_requests();
    let headers = &requests.last().unwrap().headers;
    assert!(headers.contains_key("authorization") && !headers.contains_key("x-api-key"));
    let account = &session.initialized().account;
    assert_eq!(account.token_source.as_deref(), Some("CLAUDE_CODE_OAUTH_TOKEN"));
    session.close().await.unwrap();

    let paid_by_key = parked(&rig).await;
    let failed = paid_by_key.claim(Claim::new(rig.sandbox().project()).oauth_token("t"));
    assert!(failed.await.unwrap_err().spare.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn spares_that_are_not_wanted_end() {
    let rig = Rig::start().await;
    let exit = parked(&rig).await.close().await.unwrap();
    assert_eq!(exit.code, Some(0));
    let ended = parked(&rig).await.wait_ended();
    assert!(ended.await.is_closed());
    gone(&rig).await;

    // One that dies while it waits is no session.
    let spare = parked(&rig).await;
    let pid = rustix::process::Pid::from_raw(spare.pid().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    spare.wait_ended().await;
    assert!(!spare.is_alive());
    let failed = spare
        .claim(Claim::new(rig.sandbox().project()))
        .await
        .unwrap_err();
    assert!(failed.error.is_closed() && failed.spare.is_none(), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_no_spare_has_are_refused() {
    let rig = Rig::start().await;
    for options in [
        rig.options().resume("x"),
        rig.options().continue_conversation(true),
        rig.options().continue_conversation(true).fork_session(true),
    ] {
        let error = options.prewarm().await.unwrap_err();
        assert!(error.to_string().contains("cannot be had by a spare"), "{error}");
    }
    assert!(parking(&rig).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn startup_gives_a_session_that_is_ready() {
    let rig = Rig::start().await;
    let session: Session = rig.options().startup().await.unwrap();
    assert_eq!(turn(&session, "%say hello").await.0, ["text hello"]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_hooks_is_not_counted_unless_a_deadline_is_set() {
    let rig = Rig::start().await;
    let hook = |command| {
        settings(json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}}))
    };
    // Ready after the hook: a deadline that was set is for everything. It is long enough for a CLI on a busy machine to come to the hook.
    let error = rig
        .options()
        .settings(hook("sleep 60"))
        .initialize_deadline(std::time::Duration::from_secs(15))
        .start()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(
        error
            .to_string()
            .contains("it came as far as `before_loadInitialMessages`"),
        "{error}"
    );
    // A spare does not run it before it is claimed.
    let spare = rig.options().settings(hook("sleep 6")).prewarm().await.unwrap();
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    assert_eq!(turn(&session, "%say hello").await.0, ["text hello"]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_can_be_trusted_in_the_claim() {
    let rig = Rig::start().await;
    let directory = rig
        .sandbox()
        .project()
        .canonicalize()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let trust = WorkspaceTrust {
        accepted: true,
        directory,
    };
    let session = parked(&rig)
        .await
        .claim(Claim::new(rig.sandbox().project()).workspace_trust(trust))
        .await
        .unwrap();
    assert_eq!(turn(&session, "%say hello").await.0, ["text hello"]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_the_real_cli() {
    let rig = Rig::start().await;
    let pool = Pool::new(PoolLimits::default());
    let key = pool
        .keep(rig.options().isolation(outrigger::options::Isolation::Project), 2)
        .unwrap();
    let filled = async {
        while pool.stats().spares < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(super::rig::PATIENCE, filled).await.unwrap();
    let other = rig.sandbox().path().join("other");
    std::fs::create_dir_all(other.join(".claude")).unwrap();
    for place in [rig.sandbox().project(), other.clone()] {
        let pooled = pool.get(&key, Claim::new(&place)).await.unwrap();
        assert!(
            matches!(pooled.origin, PoolOrigin::Spare { .. }),
            "{:?}",
            pooled.origin
        );
        turn(&pooled.session, "%say hello").await;
        let cwd = pooled.session.init().unwrap().cwd;
        assert_eq!(PathBuf::from(cwd), place.canonicalize().unwrap());
        pooled.session.close().await.unwrap();
    }
    tokio::time::timeout(super::rig::PATIENCE, async {
        while pool.stats().spares == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    // A directory that decides for itself gets a session of its own.
    std::fs::write(other.join(".claude/settings.json"), r#"{"env": {"A": "b"}}"#).unwrap();
    let pooled = pool.get(&key, Claim::new(&other)).await.unwrap();
    assert!(
        matches!(pooled.origin, PoolOrigin::Refused(_)),
        "{:?}",
        pooled.origin
    );
    assert_eq!(turn(&pooled.session, "%say cold").await.0, ["text cold"]);
    pooled.session.close().await.unwrap();
    let stats = pool.stats();
    assert_eq!((stats.warm, stats.cold, stats.refused), (2, 0, 1));
    pool.close().await;
    gone(&rig).await;
}
