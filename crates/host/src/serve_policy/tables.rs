//! The tables of a policy file, as they stand in it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use outrigger::protocol::shared::{PermissionMode, SettingSource};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) sessions: SessionsTable,
    pub(super) workspaces: Option<WorkspacesTable>,
    #[serde(default)]
    pub(super) options: OptionsTable,
    #[serde(default)]
    pub(super) environment: EnvironmentTable,
    pub(super) account: Option<Spanned<AccountTable>>,
    #[serde(default)]
    pub(super) server: ServerTable,
    #[serde(default)]
    pub(super) webhooks: WebhooksTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsTable {
    pub(super) roots: Spanned<Vec<Spanned<PathBuf>>>,
    #[serde(default)]
    pub(super) models: Vec<String>,
    #[serde(default)]
    pub(super) permission_modes: Vec<PermissionMode>,
    pub(super) idle_seconds: Option<u64>,
    pub(super) max_processes: Option<Spanned<usize>>,
    pub(super) spares: Option<Spanned<usize>>,
    #[serde(default)]
    pub(super) changed_inputs: bool,
    pub(super) memory_soft_mib: Option<u64>,
    pub(super) memory_hard_mib: Option<Spanned<u64>>,
    pub(super) approvals_expire_seconds: Option<u64>,
    pub(super) deferred: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspacesTable {
    pub(super) directory: PathBuf,
    pub(super) worktrees: Option<bool>,
    pub(super) snapshots: Option<bool>,
    pub(super) max_worktrees: Option<usize>,
    #[serde(default)]
    pub(super) setup: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OptionsTable {
    pub(super) cli: Option<PathBuf>,
    pub(super) model: Option<String>,
    pub(super) permission_mode: Option<PermissionMode>,
    pub(super) allowed_tools: Vec<Spanned<String>>,
    pub(super) disallowed_tools: Vec<Spanned<String>>,
    pub(super) additional_directories: Vec<PathBuf>,
    pub(super) setting_sources: Option<Vec<SettingSource>>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_budget_usd: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvironmentTable {
    pub(super) pass: Vec<String>,
    pub(super) set: BTreeMap<String, Spanned<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AccountTable {
    pub(super) api_key: Option<Spanned<Reference>>,
    pub(super) auth_token: Option<Spanned<Reference>>,
    pub(super) oauth_token: Option<Spanned<Reference>>,
}

/// A value of a variable: as it stands there, or a secret that is named.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, `{ file = \"…\" }` or `{ env = \"…\" }`")]
pub(super) enum Value {
    Text(String),
    Named(Reference),
}

/// Where a secret is.
pub(super) enum Reference {
    /// In this file, without the line break at its end.
    File(PathBuf),
    /// In this variable of the host's environment.
    Env(String),
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;

        impl<'de> serde::de::Visitor<'de> for Named {
            type Value = Reference;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`{ file = \"…\" }` or `{ env = \"…\" }`")
            }

            /// The message of serde would have the text, which may be the secret.
            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Reference, E> {
                Err(E::custom(
                    "a secret is not written here, but named: `{ file = \"…\" }` or `{ env = \"…\" }`",
                ))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Reference, A::Error> {
                let reference = match map.next_key::<String>()?.as_deref() {
                    Some("file") => Reference::File(map.next_value()?),
                    Some("env") => Reference::Env(map.next_value()?),
                    _ => return Err(serde::de::Error::invalid_length(0, &self)),
                };
                match map.next_key::<String>()? {
                    None => Ok(reference),
                    Some(_) => Err(serde::de::Error::invalid_length(2, &self)),
                }
            }
        }

        deserializer.deserialize_any(Named)
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerTable {
    pub(super) listen: Option<Spanned<SocketAddr>>,
    pub(super) proxy_names: Vec<String>,
    pub(super) origins: Vec<Spanned<String>>,
    pub(super) tls: Option<TlsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsTable {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    #[serde(default)]
    pub(super) names: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebhooksTable {
    pub(super) networks: Vec<Spanned<String>>,
}
