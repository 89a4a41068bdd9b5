//! The account of the user, and signing out. The CLI itself signs in, in a terminal: see [`crate::capabilities`].

use std::process::{Output, Stdio};
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, ErrorCode};
use outrigger::Options;
use outrigger::env::Surroundings;
use outrigger::options::Host;
use outrigger::protocol::outbound::control::{AccountInfo, ApiProvider};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::client::{Client, Connection, KnownAccount};
use crate::{capabilities, error};

/// The time limit of a sign-out.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time limit of `auth status`, for which the editor waits.
const STATUS_PATIENCE: Duration = Duration::from_secs(10);

/// Signs the user out by `auth logout`.
pub(crate) async fn logout(options: &Options) -> Result<(), Error> {
    let output = tokio::time::timeout(PATIENCE, auth(options, &["logout"]))
        .await
        .map_err(|_| {
            error::internal("the CLI did not sign out in time; try `claude auth logout` in a terminal")
        })??;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(error::internal(format!(
        "the CLI could not sign out ({}): {}",
        output.status,
        said.trim()
    )))
}

/// Runs `claude auth …` with the environment of sessions.
async fn auth(options: &Options, arguments: &[&str]) -> Result<Output, Error> {
    let launch = options.launch(&Surroundings::of_this_process(), Host::default());
    let launch = launch.map_err(error::internal)?;
    // If the CLI is a script, its interpreter comes first.
    let script = launch
        .args
        .iter()
        .take_while(|argument| !argument.to_string_lossy().starts_with('-'));
    Command::new(&launch.program)
        .args(script)
        .arg("auth")
        .args(arguments)
        .env_clear()
        .envs(&launch.env)
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| error::internal(format!("the CLI could not be started: {error}")))
}

/// The account as `auth status --json` reports it. A failure gives the state "unknown".
async fn ask(options: &Options) -> acp::AuthStatusResponse {
    let unknown = |why: String| {
        tracing::warn!(why, "whether somebody is signed in could not be found out");
        acp::AuthStatusResponse::new(acp::AuthState::Unknown)
            .meta(json!({ "claudeCode": { "reason": why } }).as_object().cloned())
    };
    match tokio::time::timeout(STATUS_PATIENCE, auth(options, &["status", "--json"])).await {
        // The exit status also depends on the sign-in, so it is no failure.
        Ok(Ok(output)) => match serde_json::from_slice::<AuthStatusOutput>(&output.stdout) {
            Ok(told) => told.status(),
            Err(error) => unknown(format!(
                "what the CLI said of it could not be read ({}): {error}",
                output.status
            )),
        },
        Ok(Err(error)) => unknown(error.message),
        Err(_) => unknown(format!(
            "the CLI said nothing for {} s",
            STATUS_PATIENCE.as_secs()
        )),
    }
}

/// The fields of `auth status --json` that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuthStatusOutput {
    logged_in: bool,
    auth_method: Option<String>,
    api_provider: Option<String>,
    api_key_source: Option<String>,
    email: Option<String>,
    org_name: Option<String>,
    subscription_type: Option<String>,
}

impl AuthStatusOutput {
    fn status(self) -> acp::AuthStatusResponse {
        let provider = self.api_provider.filter(|provider| provider != "firstParty");
        let token = self.auth_method.filter(|method| method == "oauth_token");
        of(LoginStatus {
            is_in: self.logged_in,
            provider,
            key: self.api_key_source.filter(|source| is_some(source)),
            token,
            email: self.email,
            organization: self.org_name,
            plan: self.subscription_type,
        })
    }
}

/// The account that a session's CLI reported at its start.
pub(crate) fn of_account(account: &AccountInfo) -> acp::AuthStatusResponse {
    let provider = account.api_provider.as_ref();
    let provider = provider.filter(|provider| **provider != ApiProvider::FirstParty);
    let key = account.api_key_source.clone().filter(|source| is_some(source));
    let token = account.token_source.clone().filter(|source| is_some(source));
    of(LoginStatus {
        is_in: provider.is_some() || key.is_some() || token.is_some() || account.email.is_some(),
        provider: provider.map(|provider| provider.as_str().to_owned()),
        key,
        token,
        email: account.email.clone(),
        organization: account.organization.clone(),
        plan: account.subscription_type.clone(),
    })
}

/// Whether the reply means that nobody is signed in.
pub(crate) fn is_nobody(account: &AccountInfo) -> bool {
    of_account(account).state == acp::AuthState::Unauthenticated
}

fn is_some(source: &str) -> bool {
    !source.is_empty() && source != "none"
}

struct LoginStatus {
    is_in: bool,
    provider: Option<String>,
    key: Option<String>,
    token: Option<String>,
    email: Option<String>,
    organization: Option<String>,
    plan: Option<String>,
}

fn of(standing: LoginStatus) -> acp::AuthStatusResponse {
    if !standing.is_in {
        return nobody();
    }
    // Other providers have their own sign-in.
    let state = match standing.provider {
        Some(_) => acp::AuthState::NotRequired,
        None => acp::AuthState::Authenticated,
    };
    let label = match (&standing.provider, &standing.plan, &standing.key) {
        (Some(provider), _, _) => provider.clone(),
        (_, Some(plan), _) => format!("Claude {plan}"),
        (_, _, Some(key)) => format!("API key ({key})"),
        _ => standing.token.unwrap_or_else(|| "Claude".to_owned()),
    };
    let account = acp::AuthAccount::new(label)
        .active(true)
        .email(standing.email)
        .organization(standing.organization);
    acp::AuthStatusResponse::new(state).accounts(vec![account])
}

/// The status when nobody is signed in.
pub(crate) fn nobody() -> acp::AuthStatusResponse {
    acp::AuthStatusResponse::new(acp::AuthState::Unauthenticated)
}

/// Answers `auth/status`: from a running session, or by `auth status`.
pub(crate) async fn answer(
    known: &KnownAccount,
    options: &Options,
    is_open: bool,
) -> acp::AuthStatusResponse {
    // The user may have signed in since.
    let is_nobody = |status: &acp::AuthStatusResponse| status.state == acp::AuthState::Unauthenticated;
    match known.wanted().filter(|known| is_open && !is_nobody(known)) {
        Some(known) => known,
        None => {
            let told = ask(options).await;
            known.set(told.clone());
            told
        }
    }
}

/// Ends a sign-in that was made in a terminal: asks the CLI whether it succeeded.
pub(crate) async fn authenticate(method: &str, options: &Options, client: &Client) -> Result<(), Error> {
    let known = capabilities::sign_ins(client.capabilities());
    if !known.iter().any(|known| known.id().0.as_ref() == method) {
        return Err(error::bad(
            "methodId",
            format!("{method:?} is not a way to sign in"),
        ));
    }
    signed_in(ask(options).await, client)
}

fn signed_in(status: acp::AuthStatusResponse, client: &Client) -> Result<(), Error> {
    let state = status.state.clone();
    client.learned_auth(status);
    if matches!(state, acp::AuthState::Authenticated | acp::AuthState::NotRequired) {
        return Ok(());
    }
    let mut error = Error::new(
        ErrorCode::AUTH_REQUIRED,
        "Nobody is signed in yet: that is done in a terminal, by this agent with the method's arguments",
    );
    with_methods(&mut error, client);
    Err(error)
}

/// Adds the ways to sign in to an error that asks for it: `data.authMethods`.
pub(crate) fn with_methods(error: &mut Error, client: &Client) -> bool {
    if error.code != ErrorCode::AUTH_REQUIRED {
        return false;
    }
    let methods = match client.connection() {
        Connection::V1(_) => json!(capabilities::sign_ins(client.capabilities())),
        Connection::V2(_) => json!(capabilities::draft_sign_ins(client.capabilities())),
    };
    match error
        .data
        .get_or_insert_with(|| Value::Object(serde_json::Map::new()))
    {
        Value::Object(data) => drop(data.insert("authMethods".to_owned(), methods)),
        _ => tracing::debug!("an error has data of another form"),
    }
    true
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use outrigger::options::Auth;

    use super::*;

    /// A program in place of the CLI, which does this.
    fn cli(home: &std::path::Path, does: &str) -> Options {
        let path = home.join("claude");
        outrigger_needs::script(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
        let options = outrigger::Agent::builder().cli_path(path).auth(Auth::Inherit);
        options.cwd(home).env("OF_THE_SESSION", "yes")
    }

    #[tokio::test]
    async fn the_cli_signs_out_in_the_surroundings_of_sessions() {
        let home = tempfile::tempdir().unwrap();
        let seen = home.path().join("seen");
        let does = format!(
            "echo \"$@\" $OF_THE_SESSION $CARGO_MANIFEST_DIR > {}; pwd >> {0}",
            seen.display()
        );
        logout(&cli(home.path(), &does)).await.unwrap();
        let seen = std::fs::read_to_string(seen).unwrap();
        let cwd = home.path().canonicalize().unwrap();
        assert_eq!(seen, format!("auth logout yes\n{}\n", cwd.display()));
    }

    #[tokio::test]
    async fn a_cli_that_does_not_sign_out_is_told() {
        let home = tempfile::tempdir().unwrap();
        let why = logout(&cli(home.path(), "echo no network >&2; exit 3"))
            .await
            .unwrap_err();
        assert!(
            why.message.contains("no network") && why.message.contains('3'),
            "{}",
            why.message
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_cli_that_hangs_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let options = cli(home.path(), "exec sleep 1000");
        let why = logout(&options).await.unwrap_err();
        assert!(why.message.contains("in time"), "{}", why.message);
        let status = ask(&options).await;
        assert_eq!(status.state, acp::AuthState::Unknown);
        let reason = json!(status)["_meta"]["claudeCode"]["reason"].to_string();
        assert!(reason.contains("10 s"), "{reason}");
    }

    #[tokio::test]
    async fn who_is_signed_in_is_what_the_cli_says() {
        let home = tempfile::tempdir().unwrap();
        for (said, state, label) in [
            (
                r#"{"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"}"#,
                "unauthenticated",
                None,
            ),
            (
                r#"{"loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty", "apiKeySource": "ANTHROPIC_API_KEY"}"#,
                "authenticated",
                Some("API key (ANTHROPIC_API_KEY)"),
            ),
            (
                r#"{"loggedIn": true, "authMethod": "claude.ai", "email": "x@example.com", "subscriptionType": "max"}"#,
                "authenticated",
                Some("Claude max"),
            ),
            (
                r#"{"loggedIn": true, "authMethod": "oauth_token"}"#,
                "authenticated",
                Some("oauth_token"),
            ),
            (
                r#"{"loggedIn": true, "authMethod": "third_party", "apiProvider": "bedrock"}"#,
                "not_required",
                Some("bedrock"),
            ),
            ("not JSON", "unknown", None),
        ] {
            let does = format!("echo '{said}'; exit 1");
            let status = json!(ask(&cli(home.path(), &does)).await);
            assert_eq!(status["state"], state, "{said}");
            assert_eq!(status["accounts"][0]["label"].as_str(), label, "{said}");
        }
    }
}
