//! Copies the parts of the user's configuration that a session in a private directory needs, without secrets that must not be copied.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use serde_json::Value;

use crate::options::RunAs;
use crate::options::handover::{as_user, make_private};
use crate::regular_file;

/// Settings that would make the CLI search and install plugins anew each time.
const PLUGIN_SETTINGS: [&str; 3] = [
    "enabledPlugins",
    "extraKnownMarketplaces",
    "additionalMarketplaces",
];

/// Where the CLI keeps what an organization decided, for starts at which it does not reach its server: with none of them there, it would
/// start without the organization's policy.
const POLICY_FILES: [&str; 12] = [
    "remote-settings.json",
    "remote-settings.json.signature.json",
    "remote-settings.json.signature-iat.json",
    "remote-settings.json.synced-at",
    "policy-limits.json",
    "policy-limits.json.signature.json",
    "policy-limits.json.signature-iat.json",
    "policy-limits.json.stamp.json",
    "state/hybrid-settings.json",
    "state/hybrid-settings-staging-oauth.json",
    "state/hybrid-settings-local-oauth.json",
    "state/hybrid-settings-custom-oauth.json",
];

/// What `.claude.json` is called with another server for logins.
const OTHER_CLAUDE_JSON: [&str; 3] = [
    ".claude-staging-oauth.json",
    ".claude-local-oauth.json",
    ".claude-custom-oauth.json",
];

/// The user's configuration.
#[derive(Debug, Clone)]
pub(super) struct UserConfig {
    /// The config directory.
    pub(super) config: PathBuf,
    /// Where `.claude.json` is: in the config directory if one was named, else in the home.
    pub(super) claude_json: PathBuf,
    /// Whether the login there pays for the session.
    pub(super) login: bool,
}

type Filter = fn(Vec<u8>) -> Vec<u8>;

/// The largest file that is copied; real ones have a few MB at most.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Copies the files that the user of the CLI may read. Missing or unreadable files are skipped: the CLI reports what it lacks.
pub(super) fn copy(source: &UserConfig, user: Option<RunAs>, to: &Path) -> io::Result<()> {
    let unchanged = |text: Vec<u8>| text;
    let mut files: Vec<(PathBuf, &str, Filter)> = vec![
        (source.claude_json.clone(), ".claude.json", unchanged),
        (source.config.join(".config.json"), ".config.json", unchanged),
        (
            source.config.join("settings.json"),
            "settings.json",
            without_plugins,
        ),
        (
            source.config.join("cowork_settings.json"),
            "cowork_settings.json",
            without_plugins,
        ),
    ];
    let unchanged_in_config = |name| (source.config.join(name), name, unchanged as Filter);
    files.extend(POLICY_FILES.map(unchanged_in_config));
    files.extend(
        OTHER_CLAUDE_JSON.map(|name| (source.claude_json.with_file_name(name), name, unchanged as Filter)),
    );
    if source.login {
        let credentials = source.config.join(".credentials.json");
        files.push((credentials, ".credentials.json", without_refresh_tokens));
    }
    // With the rights of that user: a name in a home may be a link to what only this program may read.
    let read = as_user(user, || {
        let read = files
            .into_iter()
            .map(|(from, name, filter)| (read(&from), from, name, filter));
        Ok(read.collect::<Vec<_>>())
    })?;
    for (content, from, name, filter) in read {
        match content {
            Ok(Some(content)) => {
                let path = to.join(name);
                if let Some(directory) = path.parent() {
                    make_private(directory)?;
                }
                write_private(&path, &filter(content))?;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, file = %from.display(), "not copied for a session that is resumed from a store")
            }
        }
    }
    Ok(())
}

/// A regular file, if there is one.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match regular_file::read(path, MOST_BYTES) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a file that only this user can read.
pub(super) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)?.write_all(content)
}

type SeedObject = BTreeMap<String, RawJson>;

/// A JSON object, with or without the mark that some editors put before it.
fn object(text: &[u8]) -> Option<SeedObject> {
    let text = std::str::from_utf8(text).ok()?;
    RawJson::from_text(text.trim_start_matches('\u{feff}'))
        .ok()?
        .decode()
        .ok()
}

/// The same settings without what would misbehave in another directory. What can't be read stays: the CLI says what is wrong.
fn without_plugins(text: Vec<u8>) -> Vec<u8> {
    let Some(mut settings) = object(&text) else {
        return text;
    };
    let before = settings.len();
    settings.retain(|key, _| !PLUGIN_SETTINGS.contains(&key.as_str()));
    let mut changed = settings.len() < before;
    if let Some(mut env) = settings
        .get("env")
        .and_then(|env| env.decode::<SeedObject>().ok())
        && env.remove("CLAUDE_CONFIG_DIR").is_some()
        && let Ok(env) = RawJson::encode(&env)
    {
        settings.insert("env".to_owned(), env);
        changed = true;
    }
    match RawJson::encode(&settings) {
        Ok(settings) if changed => settings.get().as_bytes().to_vec(),
        _ => text,
    }
}

/// The same credentials without the tokens that are good for one use: used there, their successors would be lost with the directory,
/// and the user logged out, of the API or of an MCP server.
fn without_refresh_tokens(text: Vec<u8>) -> Vec<u8> {
    let credentials = std::str::from_utf8(&text).ok();
    let credentials =
        credentials.and_then(|text| serde_json::from_str(text.trim_start_matches('\u{feff}')).ok());
    match credentials {
        Some(Value::Object(mut fields)) => {
            // A logout there would withdraw this one for good.
            fields.remove("chatHistoryOauth");
            let mut credentials = Value::Object(fields);
            remove_refresh_tokens(&mut credentials);
            credentials.to_string().into_bytes()
        }
        // Fails closed: what is not understood may hold one.
        _ => b"{}".to_vec(),
    }
}

fn remove_refresh_tokens(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_one = |name: &str| {
                name.replace('_', "")
                    .to_ascii_lowercase()
                    .ends_with("refreshtoken")
            };
            fields.retain(|name, _| !is_one(name));
            fields.values_mut().for_each(remove_refresh_tokens);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_refresh_tokens),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_lose_what_belongs_to_their_place() {
        let filtered = |text: &str| String::from_utf8(without_plugins(text.into())).unwrap();
        let settings = "\u{feff}{\"model\":\"x\",\"enabledPlugins\":{},\"extraKnownMarketplaces\":{},\
                        \"additionalMarketplaces\":[],\"env\":{\"A\":\"1\",\"CLAUDE_CONFIG_DIR\":\"/c\"},\"n\":1e999}";
        assert_eq!(filtered(settings), r#"{"env":{"A":"1"},"model":"x","n":1e999}"#);
        for same in ["{ \"model\" : 1 }", "not json", "[]", ""] {
            assert_eq!(filtered(same), same);
        }
    }

    #[test]
    fn no_refresh_token_leaves_its_place() {
        let filtered =
            |text: &str| -> Value { serde_json::from_slice(&without_refresh_tokens(text.into())).unwrap() };
        let text = r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r"},"n":1,"chatHistoryOauth":{"accessToken":"c"},
            "mcpOAuth":{"s|1":{"accessToken":"a","refreshToken":"r","more":[{"idp_refresh_token":"r"}]}}}"#;
        assert_eq!(
            filtered(text),
            json!({"claudeAiOauth": {"accessToken": "a"}, "n": 1, "mcpOAuth": {"s|1": {"accessToken": "a", "more": [{}]}}})
        );
        for unknown in [r#"{"claudeAiOauth":{"refreshToken":"#, r#"["refreshToken"]"#] {
            assert_eq!(filtered(unknown), json!({}));
        }
    }

    #[test]
    fn what_is_there_is_copied_for_the_user_alone() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = from.path().join("c");
        fs::create_dir(&config).unwrap();
        fs::write(from.path().join(".claude.json"), "{}").unwrap();
        fs::write(
            config.join(".credentials.json"),
            r#"{"claudeAiOauth":{"refreshToken":"r"}}"#,
        )
        .unwrap();
        fs::write(config.join("settings.json"), "{}").unwrap();
        fs::create_dir(config.join("cowork_settings.json")).unwrap();
        fs::write(config.join("remote-settings.json"), "{}").unwrap();
        fs::create_dir(config.join("state")).unwrap();
        fs::write(config.join("state/hybrid-settings.json"), "{}").unwrap();
        fs::write(config.join("state/else.json"), "{}").unwrap();
        let names = |login: bool| {
            let source = UserConfig {
                config: config.clone(),
                claude_json: from.path().join(".claude.json"),
                login,
            };
            let to = to.path().join(login.to_string());
            fs::create_dir(&to).unwrap();
            copy(&source, None, &to).unwrap();
            let listed = |directory: &Path| {
                let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
                let names = entries.map(|entry| {
                    #[cfg(unix)]
                    {
                        use std::os::unix::fs::PermissionsExt;
                        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0);
                    }
                    entry.file_name().into_string().unwrap()
                });
                let mut names: Vec<_> = names.collect();
                names.sort();
                names
            };
            (listed(&to), listed(&to.join("state")))
        };
        let hybrid = vec!["hybrid-settings.json".to_owned()];
        let (names_with_login, state) = names(true);
        assert_eq!(
            names_with_login,
            [
                ".claude.json",
                ".credentials.json",
                "remote-settings.json",
                "settings.json",
                "state"
            ]
        );
        assert_eq!(state, hybrid);
        assert_eq!(
            names(false),
            (
                [".claude.json", "remote-settings.json", "settings.json", "state"]
                    .map(str::to_owned)
                    .to_vec(),
                hybrid
            )
        );
    }
}
