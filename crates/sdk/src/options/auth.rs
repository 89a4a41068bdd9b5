//! The account that pays, and the check that the CLI uses it.

use std::ffi::{OsStr, OsString};
use std::fmt;

use outrigger_protocol::outbound::InitializeReply;
use outrigger_protocol::outbound::control::{AccountInfo, ApiProvider};

use super::Secret;
use crate::cause::Cause;
use crate::env::{self, KEYS, Variables};
use crate::error::{Error, ModuleProblem};

/// The variables that select an account. Only [`Auth`] puts them into the CLI's environment.
const CREDENTIALS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_SCOPES",
    "CLAUDE_CODE_USE_*",
    "AWS_BEARER_TOKEN_BEDROCK",
];

/// Which account pays for the session.
///
/// [`Agent::builder`](crate::Agent::builder) takes [`Inherit`](Self::Inherit): the account that `claude` itself would use here.
/// If several are available, the CLI prefers a key of the environment to its stored login. A program that must use one account and
/// no other names it: then the SDK keeps the others out of the child's environment, and
/// [`Auth::matches`] and [`Auth::matches_account`] compare the choice with what the CLI reports.
///
/// With [`Inherit`](Self::Inherit) and [`Login`](Self::Login), [`Options::start`](super::Options::start) fails with
/// [`Cause::NotLoggedIn`](crate::Cause::NotLoggedIn) when the CLI reports that it has no account. A missing or unknown report, as
/// from an older CLI, is no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// The account that the CLI finds: the login in its configuration directory, an `apiKeyHelper` of the settings that are loaded, and
    /// this process's `ANTHROPIC_*`, `CLAUDE_CODE_OAUTH_TOKEN` and cloud provider variables.
    Inherit,
    /// As `Inherit`, but the session also starts when the CLI reports no account. For a program that signs in through the session,
    /// and for wrong reports of the CLI. Do not use it for a proxy that adds the credentials: the CLI sends nothing without an
    /// account, so give it any [`AuthToken`](Self::AuthToken) or [`Gateway`](Self::Gateway)
    /// token, which the proxy replaces.
    Unchecked,
    /// Only the login that `claude` stored. No credential of this process's environment is passed.
    Login,
    /// Only the `apiKeyHelper` program of the settings.
    ApiKeyHelper,
    /// A key of the Claude API, as `ANTHROPIC_API_KEY`.
    ApiKey(Secret),
    /// A bearer token, as `ANTHROPIC_AUTH_TOKEN`.
    AuthToken(Secret),
    /// A long-lived token of a subscription (`claude setup-token`), as `CLAUDE_CODE_OAUTH_TOKEN`.
    OAuthToken(Secret),
    /// A gateway that speaks the Messages API: `ANTHROPIC_BASE_URL` and `ANTHROPIC_AUTH_TOKEN`.
    Gateway {
        /// The gateway's URL, for example `https://llm.example.com`.
        base_url: String,
        /// The gateway's bearer token.
        token: Secret,
    },
    /// Amazon Bedrock (`CLAUDE_CODE_USE_BEDROCK=1`) with this process's `AWS_*` and `ANTHROPIC_BEDROCK_*` variables.
    Bedrock,
    /// Google Vertex AI (`CLAUDE_CODE_USE_VERTEX=1`) with this process's Google Cloud and `ANTHROPIC_VERTEX_*` variables.
    Vertex,
    /// Microsoft Foundry (`CLAUDE_CODE_USE_FOUNDRY=1`) with this process's `AZURE_*` and `ANTHROPIC_FOUNDRY_*` variables.
    Foundry,
}

/// A cloud provider: its switch, its variables, and its name in the CLI's account information.
struct Provider {
    switch: &'static str,
    passed: &'static [&'static str],
    name: &'static str,
}

/// Model names differ between providers, so their defaults belong to the provider.
const MODELS: &[&str] = &[
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL*",
    "ANTHROPIC_DEFAULT_*",
];

const BEDROCK: Provider = Provider {
    switch: "CLAUDE_CODE_USE_BEDROCK",
    passed: &["AWS_*", "ANTHROPIC_BEDROCK_*", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"],
    name: "bedrock",
};

const VERTEX: Provider = Provider {
    switch: "CLAUDE_CODE_USE_VERTEX",
    passed: &[
        "GOOGLE_*",
        "GCLOUD_*",
        "CLOUDSDK_*",
        "CLOUD_ML_REGION",
        "VERTEX_REGION_*",
        "ANTHROPIC_VERTEX_*",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    ],
    name: "vertex",
};

const FOUNDRY: Provider = Provider {
    switch: "CLAUDE_CODE_USE_FOUNDRY",
    passed: &["AZURE_*", "ANTHROPIC_FOUNDRY_*", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH"],
    name: "foundry",
};

impl Auth {
    /// The choice in one word, as errors show it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Inherit => "Inherit",
            Self::Unchecked => "Unchecked",
            Self::Login => "Login",
            Self::ApiKeyHelper => "ApiKeyHelper",
            Self::ApiKey(_) => "ApiKey",
            Self::AuthToken(_) => "AuthToken",
            Self::OAuthToken(_) => "OAuthToken",
            Self::Gateway { .. } => "Gateway",
            Self::Bedrock => "Bedrock",
            Self::Vertex => "Vertex",
            Self::Foundry => "Foundry",
        }
    }

    /// Whether the credential is in the user's config directory, which a hermetic session does not see.
    pub(crate) fn lives_in_home(&self) -> bool {
        matches!(self, Self::Login | Self::ApiKeyHelper)
    }

    /// Whether the login in the user's config directory may pay.
    pub(crate) fn may_be_login(&self) -> bool {
        self.lives_in_home() || matches!(self, Self::Inherit | Self::Unchecked)
    }

    /// Whether the choice decides this variable, so that nothing else may set it.
    pub(crate) fn decides(&self, name: &OsStr) -> bool {
        match self {
            Self::Inherit | Self::Unchecked => false,
            Self::Gateway { .. } if env::same(name, OsStr::new("ANTHROPIC_BASE_URL")) => true,
            _ => env::is_listed(CREDENTIALS, name),
        }
    }

    /// Whether the choice needs a secret and has none.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::ApiKey(secret) | Self::AuthToken(secret) | Self::OAuthToken(secret) => secret.is_empty(),
            Self::Gateway { base_url, token } => base_url.is_empty() || token.is_empty(),
            _ => false,
        }
    }

    fn provider(&self) -> Option<&'static Provider> {
        match self {
            Self::Bedrock => Some(&BEDROCK),
            Self::Vertex => Some(&VERTEX),
            Self::Foundry => Some(&FOUNDRY),
            _ => None,
        }
    }

    /// The variables that the choice adds to the CLI's environment, some of them from `parent`.
    pub fn variables(&self, parent: &Variables) -> Variables {
        let mut out = Variables::new();
        let mut pass = |list: &[&str]| {
            for (name, value) in parent {
                if env::is_listed(list, name) {
                    out.insert(name.clone(), value.clone());
                }
            }
        };
        match self {
            Self::Login | Self::ApiKeyHelper => {}
            Self::Inherit | Self::Unchecked => {
                pass(&["ANTHROPIC_*", "CLAUDE_CODE_SKIP_*"]);
                pass(CREDENTIALS);
                for provider in [&BEDROCK, &VERTEX, &FOUNDRY] {
                    if env::get(parent, provider.switch).is_some() {
                        pass(provider.passed);
                    }
                }
            }
            Self::ApiKey(secret) => set(&mut out, "ANTHROPIC_API_KEY", secret.reveal()),
            Self::AuthToken(secret) => set(&mut out, "ANTHROPIC_AUTH_TOKEN", secret.reveal()),
            Self::OAuthToken(secret) => set(&mut out, "CLAUDE_CODE_OAUTH_TOKEN", secret.reveal()),
            Self::Gateway { base_url, token } => {
                set(&mut out, "ANTHROPIC_BASE_URL", base_url);
                set(&mut out, "ANTHROPIC_AUTH_TOKEN", token.reveal());
            }
            Self::Bedrock | Self::Vertex | Self::Foundry => {
                if let Some(provider) = self.provider() {
                    pass(provider.passed);
                    pass(MODELS);
                    set(&mut out, provider.switch, "1");
                }
            }
        }
        out
    }

    /// Compares the choice with `apiKeySource` of `system/init`, which comes with every turn.
    ///
    /// # Errors
    ///
    /// If the CLI uses another source than the chosen one.
    pub fn matches(&self, api_key_source: &str) -> Result<(), AuthMismatch> {
        let expected: &[&'static str] = match self {
            Self::Inherit | Self::Unchecked | Self::Bedrock | Self::Vertex | Self::Foundry => return Ok(()),
            Self::ApiKey(_) => &["ANTHROPIC_API_KEY"],
            Self::ApiKeyHelper => &["apiKeyHelper"],
            // A login at the console leaves a managed key; a subscription needs none.
            Self::Login => &["none", "/login managed key"],
            Self::AuthToken(_) | Self::OAuthToken(_) | Self::Gateway { .. } => &["none"],
        };
        self.expect("apiKeySource", expected, Some(api_key_source))
    }

    /// Compares the choice with `account` of the reply to `initialize`, which comes before the first prompt is sent.
    ///
    /// The report lacks a key that the CLI does not have, and it lacks the source of a login's token; CLI 2.0 also omits that of
    /// an OAuth token, and versions such as 2.1.50 never name the provider. So an absent key means no key; any other absent field
    /// is unknown, and matches.
    ///
    /// # Errors
    ///
    /// If the CLI uses another token, key or provider than the chosen one.
    pub fn matches_account(
        &self,
        token_source: Option<&str>,
        api_key_source: Option<&str>,
        api_provider: Option<&str>,
    ) -> Result<(), AuthMismatch> {
        if matches!(self, Self::Inherit | Self::Unchecked) {
            return Ok(());
        }
        let provider = self.provider().map_or("firstParty", |provider| provider.name);
        self.expect("apiProvider", &[provider], Some(api_provider.unwrap_or(provider)))?;
        if self.provider().is_some() {
            return Ok(());
        }
        self.matches(api_key_source.unwrap_or("none"))?;
        let Some(token_source) = token_source else {
            return Ok(());
        };
        let expected: &[&'static str] = match self {
            Self::AuthToken(_) | Self::Gateway { .. } => &["ANTHROPIC_AUTH_TOKEN"],
            Self::OAuthToken(_) => &["CLAUDE_CODE_OAUTH_TOKEN"],
            Self::ApiKeyHelper => &["none", "apiKeyHelper"],
            // A login that is stored beside the key is reported, and not used.
            Self::ApiKey(_) | Self::Login => &["none", "claude.ai"],
            Self::Inherit | Self::Unchecked | Self::Bedrock | Self::Vertex | Self::Foundry => return Ok(()),
        };
        self.expect("tokenSource", expected, Some(token_source))
    }

    /// [`matches_account`](Self::matches_account) with the reply itself.
    ///
    /// # Errors
    ///
    /// If the CLI uses another token, key or provider than the chosen one.
    pub fn matches_reply(&self, reply: &InitializeReply) -> Result<(), AuthMismatch> {
        let account = &reply.account;
        let provider = account.api_provider.as_ref().map(ApiProvider::as_str);
        self.matches_account(
            account.token_source.as_deref(),
            account.api_key_source.as_deref(),
            provider,
        )
    }

    fn expect(
        &self,
        field: &'static str,
        expected: &[&'static str],
        found: Option<&str>,
    ) -> Result<(), AuthMismatch> {
        if found.is_some_and(|found| expected.contains(&found)) {
            return Ok(());
        }
        Err(AuthMismatch {
            chosen: self.name(),
            field,
            expected: expected.to_vec(),
            found: found.map(str::to_owned),
        })
    }
}

fn set(variables: &mut Variables, name: &str, value: &str) {
    variables.insert(OsString::from(name), OsString::from(value));
}

/// The CLI would be paid by another account than the one chosen. Raised before a model is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthMismatch {
    /// The variant of [`Auth`] that was chosen.
    pub chosen: &'static str,
    /// The field of the CLI's report that differs.
    pub field: &'static str,
    /// The expected value.
    pub expected: Vec<&'static str>,
    /// The reported value; `None` if the field was absent.
    pub found: Option<String>,
}

impl fmt::Display for AuthMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`Auth::{}` was chosen, but the CLI reports {} {}, not {}; look for a login, an apiKeyHelper in the settings or a \
             variable that outranks it, or choose `Auth::Inherit` to accept whatever the CLI finds",
            self.chosen,
            self.field,
            self.found
                .as_ref()
                .map_or_else(|| "absent".to_owned(), |found| format!("{found:?}")),
            self.expected
                .iter()
                .map(|e| format!("{e:?}"))
                .collect::<Vec<_>>()
                .join(" or "),
        )
    }
}

impl std::error::Error for AuthMismatch {}

/// The session would be paid by another account than the chosen one.
#[derive(Debug, thiserror::Error)]
#[error("the session would be paid by another account than the chosen one")]
pub(crate) struct OtherAccount(#[source] pub(crate) AuthMismatch);

impl ModuleProblem for OtherAccount {
    fn names_options(&self) -> bool {
        true
    }
}

/// The CLI reports that it has no account. Raised before a model is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoAccount {
    /// The variant of [`Auth`] that was chosen.
    pub chosen: &'static str,
    /// The variables of this process that hold a credential which the choice does not pass on.
    pub withheld: Vec<&'static str>,
    /// Whether the session is hermetic, so that the CLI does not see the user's login.
    pub hermetic: bool,
}

impl NoAccount {
    /// For a launch with this choice, from a process with these variables.
    pub(crate) fn of(auth: &Auth, hermetic: bool, parent: &Variables) -> Self {
        let passed = auth.variables(parent);
        let is_withheld = |name: &&'static str| {
            env::get(parent, name).is_some_and(|value| !value.is_empty()) && env::get(&passed, name).is_none()
        };
        Self {
            chosen: auth.name(),
            withheld: KEYS.iter().copied().filter(is_withheld).collect(),
            hermetic,
        }
    }
}

impl fmt::Display for NoAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.chosen == "Login" {
            "the CLI is not logged in: it found no stored login"
        } else {
            "the CLI is not logged in: it found no API key, no token and no stored login"
        })?;
        if !self.withheld.is_empty() {
            let (names, chosen) = (self.withheld.join(", "), self.chosen);
            write!(
                f,
                "; {names} in the environment is not passed on with `Auth::{chosen}`"
            )?;
        }
        if self.hermetic {
            f.write_str("; `Isolation::Hermetic` hides the user's login")?;
        }
        Ok(())
    }
}

impl std::error::Error for NoAccount {}

impl ModuleProblem for NoAccount {
    fn names_options(&self) -> bool {
        true
    }

    fn known_cause(&self) -> Option<Cause> {
        Some(Cause::NotLoggedIn)
    }
}

impl Error {
    /// The problem, if the CLI reported that it has no account.
    pub fn as_no_account(&self) -> Option<&NoAccount> {
        self.problem()
    }
}

/// Whether the CLI reports that it has no account. All versions since 2.0.0 then send `tokenSource: "none"` without a key, a plan
/// or an address. An empty report, which older versions send for a cloud provider, does not mean that.
pub(crate) fn reports_none(account: &AccountInfo) -> bool {
    let is_none = |source: &Option<String>| source.as_deref().is_none_or(|source| source == "none");
    let is_first_party = |provider: &ApiProvider| *provider == ApiProvider::FirstParty;
    account.token_source.as_deref() == Some("none")
        && is_none(&account.api_key_source)
        && account.api_provider.as_ref().is_none_or(is_first_party)
        && account.email.is_none()
        && account.organization.is_none()
        && account.subscription_type.is_none()
}

/// The variable with additional headers for the API.
pub(crate) const CUSTOM_HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// Whether the additional headers, one per line, have a credential. Then the CLI needs no account, and does not report them.
pub(crate) fn carry_credentials(headers: &str) -> bool {
    headers.lines().any(|line| {
        line.split_once(':').is_some_and(|(name, value)| {
            let name = name.trim();
            let is_credential =
                name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("x-api-key");
            is_credential && !value.trim().is_empty()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> Variables {
        [
            ("ANTHROPIC_API_KEY", "sk-parent"),
            ("ANTHROPIC_BEDROCK_BASE_URL", "http://b"),
            ("ANTHROPIC_DEFAULT_OPUS_MODEL", "opus"),
            ("AWS_REGION", "eu-central-1"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("AZURE_CLIENT_ID", "a"),
            ("HOME", "/h"),
        ]
        .into_iter()
        .map(|(n, v)| (n.into(), v.into()))
        .collect()
    }

    fn names(auth: &Auth) -> Vec<String> {
        auth.variables(&parent())
            .into_keys()
            .map(|name| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn each_choice_brings_its_own_variables() {
        assert_eq!(names(&Auth::Login), [""; 0]);
        assert_eq!(names(&Auth::ApiKeyHelper), [""; 0]);
        assert_eq!(names(&Auth::ApiKey("k".into())), ["ANTHROPIC_API_KEY"]);
        assert_eq!(
            Auth::ApiKey("k".into()).variables(&parent())[OsStr::new("ANTHROPIC_API_KEY")],
            "k"
        );
        assert_eq!(names(&Auth::AuthToken("k".into())), ["ANTHROPIC_AUTH_TOKEN"]);
        assert_eq!(names(&Auth::OAuthToken("k".into())), ["CLAUDE_CODE_OAUTH_TOKEN"]);
        let gateway = Auth::Gateway {
            base_url: "http://g".into(),
            token: "k".into(),
        };
        assert_eq!(names(&gateway), ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"]);
        assert_eq!(
            names(&Auth::Bedrock),
            [
                "ANTHROPIC_BEDROCK_BASE_URL",
                "ANTHROPIC_DEFAULT_OPUS_MODEL",
                "AWS_REGION",
                "CLAUDE_CODE_USE_BEDROCK"
            ]
        );
        assert_eq!(
            names(&Auth::Vertex),
            [
                "ANTHROPIC_DEFAULT_OPUS_MODEL",
                "CLAUDE_CODE_USE_VERTEX",
                "GOOGLE_CLOUD_PROJECT"
            ]
        );
        assert_eq!(
            names(&Auth::Foundry),
            [
                "ANTHROPIC_DEFAULT_OPUS_MODEL",
                "AZURE_CLIENT_ID",
                "CLAUDE_CODE_USE_FOUNDRY"
            ]
        );
        assert_eq!(
            names(&Auth::Inherit),
            [
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_BEDROCK_BASE_URL",
                "ANTHROPIC_DEFAULT_OPUS_MODEL"
            ]
        );
    }

    /// The reports were made by CLI 2.1.330 with these variables set.
    #[test]
    fn reports_of_the_cli() {
        let key = Auth::ApiKey("k".into());
        let token = Auth::AuthToken("k".into());
        let oauth = Auth::OAuthToken("k".into());
        assert_eq!(
            key.matches_account(Some("none"), Some("ANTHROPIC_API_KEY"), Some("firstParty")),
            Ok(())
        );
        assert_eq!(
            token.matches_account(Some("ANTHROPIC_AUTH_TOKEN"), None, Some("firstParty")),
            Ok(())
        );
        assert_eq!(
            oauth.matches_account(Some("CLAUDE_CODE_OAUTH_TOKEN"), None, Some("firstParty")),
            Ok(())
        );
        assert_eq!(Auth::Bedrock.matches_account(None, None, Some("bedrock")), Ok(()));

        let reply = r#"{"account":{"tokenSource":"none","apiKeySource":"ANTHROPIC_API_KEY","apiProvider":"firstParty"}}"#;
        let reply: InitializeReply = serde_json::from_str(reply).unwrap();
        assert_eq!(key.matches_reply(&reply), Ok(()));
        assert!(oauth.matches_reply(&reply).is_err());

        // Both are set: the key would be sent along with the token.
        let both = (
            Some("ANTHROPIC_AUTH_TOKEN"),
            Some("ANTHROPIC_API_KEY"),
            Some("firstParty"),
        );
        assert_eq!(
            token.matches_account(both.0, both.1, both.2).unwrap_err().field,
            "apiKeySource"
        );
        assert_eq!(
            key.matches_account(both.0, both.1, both.2).unwrap_err().field,
            "tokenSource"
        );
        let error = key
            .matches_account(None, Some("ANTHROPIC_API_KEY"), Some("bedrock"))
            .unwrap_err();
        assert_eq!(
            (error.field, error.found.as_deref()),
            ("apiProvider", Some("bedrock"))
        );
        // Settings have a token among their variables: it outranks the login and the helper.
        for name in ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
            for (auth, key_source) in [
                (Auth::Login, None),
                (Auth::Login, Some("/login managed key")),
                (Auth::ApiKeyHelper, Some("apiKeyHelper")),
            ] {
                let error = auth.matches_account(Some(name), key_source, Some("firstParty"));
                assert_eq!(error.unwrap_err().field, "tokenSource", "{auth:?} {name}");
            }
        }
        for token_source in [None, Some("none"), Some("claude.ai")] {
            let login = Auth::Login.matches_account(token_source, None, Some("firstParty"));
            assert_eq!(login, Ok(()), "{token_source:?}");
        }
        for token_source in [None, Some("none"), Some("apiKeyHelper")] {
            let helper =
                Auth::ApiKeyHelper.matches_account(token_source, Some("apiKeyHelper"), Some("firstParty"));
            assert_eq!(helper, Ok(()), "{token_source:?}");
        }
        // A login is stored beside the key, which alone is sent.
        assert_eq!(
            key.matches_account(Some("claude.ai"), Some("ANTHROPIC_API_KEY"), Some("firstParty")),
            Ok(())
        );
    }

    /// The reports were made by 2.0.0 to 2.0.77.
    #[test]
    fn what_older_ones_leave_out_is_no_mismatch() {
        assert_eq!(Auth::Bedrock.matches_account(None, None, None), Ok(()));
        assert_eq!(
            Auth::OAuthToken("k".into()).matches_account(None, None, None),
            Ok(())
        );
        assert_eq!(
            Auth::ApiKey("k".into()).matches_account(Some("none"), Some("ANTHROPIC_API_KEY"), None),
            Ok(())
        );
        // What is told counts.
        assert!(
            Auth::ApiKey("k".into())
                .matches_account(None, None, None)
                .is_err()
        );
    }

    /// What 2.0.0 to 2.1.330 report with and without an account.
    #[test]
    fn no_account_is_told_from_an_unknown_one() {
        let none = |report: &str| reports_none(&serde_json::from_str(report).unwrap());
        for report in [
            r#"{"tokenSource":"none","apiProvider":"firstParty"}"#,
            r#"{"tokenSource":"none"}"#,
            r#"{"tokenSource":"none","apiKeySource":"none"}"#,
        ] {
            assert!(none(report), "{report}");
        }
        for report in [
            "{}",
            r#"{"apiProvider":"firstParty"}"#,
            r#"{"apiProvider":"bedrock"}"#,
            r#"{"tokenSource":"none","apiProvider":"gateway"}"#,
            r#"{"tokenSource":"none","apiProvider":"of tomorrow"}"#,
            r#"{"subscriptionType":"Claude Max","apiProvider":"firstParty"}"#,
            r#"{"tokenSource":"none","subscriptionType":"Claude Max"}"#,
            r#"{"tokenSource":"none","apiKeySource":"ANTHROPIC_API_KEY"}"#,
            r#"{"tokenSource":"none","apiKeySource":"/login managed key"}"#,
            r#"{"tokenSource":"apiKeyHelper","apiKeySource":"apiKeyHelper"}"#,
            r#"{"tokenSource":"ANTHROPIC_AUTH_TOKEN"}"#,
            r#"{"tokenSource":"of tomorrow"}"#,
        ] {
            assert!(!none(report), "{report}");
        }
    }

    #[test]
    fn headers_that_carry_credentials() {
        for headers in ["Authorization: Bearer x", "X-A: 1\nx-api-key:k"] {
            assert!(carry_credentials(headers), "{headers}");
        }
        for headers in [
            "",
            "X-A: 1",
            "authorization",
            "authorization: ",
            "x-authorization: y",
        ] {
            assert!(!carry_credentials(headers), "{headers}");
        }
    }

    #[test]
    fn what_is_withheld_is_named() {
        let told = |auth: &Auth, hermetic| NoAccount::of(auth, hermetic, &parent()).to_string();
        let login = told(&Auth::Login, false);
        assert!(
            login.contains("ANTHROPIC_API_KEY") && login.contains("`Auth::Login`"),
            "{login}"
        );
        let any = told(&Auth::Inherit, true);
        assert!(
            !any.contains("ANTHROPIC_API_KEY") && any.contains("Hermetic"),
            "{any}"
        );
    }

    #[test]
    fn wrong_wallet_is_told() {
        assert_eq!(Auth::Login.matches("none"), Ok(()));
        assert_eq!(Auth::Login.matches("/login managed key"), Ok(()));
        assert!(Auth::Login.matches("ANTHROPIC_API_KEY").is_err());
        assert!(Auth::ApiKey("k".into()).matches("apiKeyHelper").is_err());
        assert_eq!(Auth::ApiKeyHelper.matches("apiKeyHelper"), Ok(()));
        assert_eq!(Auth::Inherit.matches("anything"), Ok(()));
        let text = Auth::OAuthToken("k".into())
            .matches("ANTHROPIC_API_KEY")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("OAuthToken") && text.contains("ANTHROPIC_API_KEY") && !text.contains("\"k\""),
            "{text}"
        );
    }
}
