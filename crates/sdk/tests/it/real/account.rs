//! Which account pays, as the real CLI reports it, and what becomes of a start without one.

use outrigger::options::{Auth, Isolation, Secret};
use outrigger::{Cause, Claim, Error, Options, Pool, PoolLimits};
use outrigger_sim::peer::Steps;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};
use crate::support::reaching;

/// A login as `claude` stores it; the scripted API takes any.
const LOGIN: &str = r#"{"claudeAiOauth": {"accessToken": "sk-ant-oat01-none", "refreshToken": "sk-ant-ort01-none",
    "expiresAt": 4102444800000, "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}"#;

fn store_login(rig: &Rig) {
    std::fs::write(rig.sandbox().config().join(".credentials.json"), LOGIN).unwrap();
}

/// Options that find no account but what is given to them, whatever the environment of the tests has.
fn bare(rig: &Rig) -> Options {
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_VERTEX",
    ]
    .into_iter()
    .fold(rig.options().auth(Auth::Inherit), |options, name| {
        options.env(name, "")
    })
}

fn not_logged_in(error: &Error) {
    assert_eq!(error.cause(), Some(Cause::NotLoggedIn), "{error:?}");
    assert!(error.to_string().contains("not logged in"), "{error}");
    assert!(error.hint().unwrap().contains("ANTHROPIC_API_KEY"));
}

async fn says_hello(options: Options) {
    let session = timeout(PATIENCE, options.start()).await.unwrap().unwrap();
    let (_, outcome) = turn(&session, "%say hello").await;
    assert_eq!(outcome.result_text(), "hello");
    session.close().await.unwrap();
}

/// What every supported version does with an account and without one.
pub(crate) async fn promised() {
    let rig = Rig::start().await;
    not_logged_in(&bare(&rig).start().await.unwrap_err());
    let login = rig.options().auth(Auth::Login).start().await;
    not_logged_in(&login.unwrap_err());
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "dummy"),
        ("ANTHROPIC_AUTH_TOKEN", "dummy"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-none"),
    ] {
        says_hello(bare(&rig).env(name, value)).await;
    }
    let token = Auth::OAuthToken(Secret::new("sk-ant-oat01-none"));
    says_hello(rig.options().auth(token)).await;
    store_login(&rig);
    says_hello(bare(&rig)).await;
    says_hello(rig.options().auth(Auth::Login)).await;
    says_hello(rig.options().auth(Auth::ApiKey(Secret::new("dummy")))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_cli_finds_is_used() {
    let rig = Rig::start().await;
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "dummy"),
        ("ANTHROPIC_AUTH_TOKEN", "dummy"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-none"),
        // The CLI reports no account, and needs none.
        (
            "ANTHROPIC_CUSTOM_HEADERS",
            "X-Other: 1\nAuthorization: Bearer dummy",
        ),
    ] {
        says_hello(bare(&rig).env(name, value)).await;
    }
    let settings = rig.sandbox().config().join("settings.json");
    for own in [
        r#"{"apiKeyHelper": "echo dummy"}"#,
        r#"{"env": {"ANTHROPIC_API_KEY": "dummy"}}"#,
        r#"{"env": {"ANTHROPIC_CUSTOM_HEADERS": "x-api-key: dummy"}}"#,
    ] {
        std::fs::write(&settings, own).unwrap();
        says_hello(bare(&rig).isolation(Isolation::Interactive)).await;
        // Without settings that is no account.
        not_logged_in(&bare(&rig).start().await.unwrap_err());
    }
    std::fs::remove_file(settings).unwrap();
    store_login(&rig);
    says_hello(bare(&rig)).await;
    says_hello(rig.options().auth(Auth::Login)).await;
    // The key is what pays, though the CLI reports the login, too.
    says_hello(rig.options().auth(Auth::ApiKey(Secret::new("dummy")))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_an_account_fails_and_says_how_to_have_one() {
    let rig = Rig::start().await;
    not_logged_in(&bare(&rig).start().await.unwrap_err());
    not_logged_in(&bare(&rig).env("ANTHROPIC_API_KEY", "").start().await.unwrap_err());
    not_logged_in(
        &bare(&rig)
            .env("ANTHROPIC_CUSTOM_HEADERS", "X-Other: 1")
            .start()
            .await
            .unwrap_err(),
    );
    let login = rig.options().auth(Auth::Login).start().await.unwrap_err();
    not_logged_in(&login);
    assert!(login.to_string().contains("no stored login"), "{login}");
    not_logged_in(&bare(&rig).query_text("%say hello").await.unwrap_err());
    let unknown = bare(&rig).resume("00000000-0000-4000-8000-000000000000");
    assert_ne!(
        unknown.start().await.unwrap_err().cause(),
        Some(Cause::NotLoggedIn)
    );
    assert_eq!(rig.api().request_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_not_resumed_without_an_account() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    turn(&session, "%say hello").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    not_logged_in(&bare(&rig).resume(id).start().await.unwrap_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_no_account_starts_without_one() {
    let rig = Rig::start().await;
    let session = bare(&rig).auth(Auth::Unchecked).start().await.unwrap();
    assert_eq!(
        session.initialized().account.token_source.as_deref(),
        Some("none")
    );
    let (_, outcome) = turn(&session, "%say hello").await;
    assert!(!outcome.is_success());
    session.close().await.unwrap();
    // With one it is as any other.
    says_hello(bare(&rig).auth(Auth::Unchecked).env("ANTHROPIC_API_KEY", "dummy")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_without_an_account_is_not_claimed() {
    let rig = Rig::start().await;
    let claim = || Claim::new(rig.sandbox().project());
    let spare = bare(&rig).prewarm().await.unwrap();
    not_logged_in(&spare.claim(claim()).await.unwrap_err().error);

    // The settings of a claim may bring the account.
    let spare = bare(&rig).prewarm().await.unwrap();
    let settings = serde_json::from_str(r#"{"apiKeyHelper": "echo dummy"}"#).unwrap();
    let session = spare.claim(claim().settings(settings)).await.unwrap();
    let (_, outcome) = turn(&session, "%say hello").await;
    assert_eq!(outcome.result_text(), "hello");
    session.close().await.unwrap();

    let pool = Pool::new(PoolLimits::default());
    let key = pool.keep(bare(&rig), 1).unwrap();
    not_logged_in(&pool.get(&key, claim()).await.unwrap_err());
    pool.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_missing_is_no_failure() {
    let silent = json!({"tokenSource": null, "apiKeySource": null, "apiProvider": null});
    for account in [
        Value::Null,
        silent,
        json!({"tokenSource": "none", "apiProvider": "bedrock"}),
    ] {
        let script = Steps::new()
            .initialize_with(json!({ "account": account }))
            .expect_end()
            .exit(0);
        let (options, _running) = reaching(script.spawn_in_memory());
        let session = options.auth(Auth::Inherit).start().await.unwrap();
        session.close().await.unwrap();
    }
}
