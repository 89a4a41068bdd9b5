//! The settings of the CLI as they lie on disk, put together as the CLI puts them together, without starting it.
//!
//! The CLI reads `settings.json` of the user, `.claude/settings.json` and `.claude/settings.local.json` of the project, what
//! `--settings` says, and what an administrator manages, the later ones on top. [`ResolveSettings`] does the same and tells of
//! each key where it comes from; it is `resolveSettings` of the TypeScript SDK, whose JSON [`ResolvedSettings`] serializes to.
//!
//! ```
//! use outrigger::settings::ResolveSettings;
//!
//! # let place = tempfile::tempdir()?;
//! # let (config, project) = (place.path().join("config"), place.path().join("project"));
//! # std::fs::create_dir_all(&config)?;
//! # std::fs::write(config.join("settings.json"), r#"{"model":"opus"}"#)?;
//! # std::fs::create_dir_all(project.join(".claude"))?;
//! # std::fs::write(project.join(".claude/settings.json"), r#"{"model":"haiku","permissions":{"defaultMode":"auto"}}"#)?;
//! let resolved = ResolveSettings::new().cwd(&project).config_dir(&config).resolve();
//! assert_eq!(resolved.effective.model.as_deref(), Some("haiku"));
//! println!("the model comes from {}", resolved.provenance["model"]);
//! for problem in &resolved.problems {
//!     eprintln!("{problem}");
//! }
//! // A repository may not loosen the permission mode: a mode that the CLI would ignore is dropped.
//! let heeded = resolved.without_escalating_default_mode();
//! assert!(heeded.permissions.is_none_or(|permissions| permissions.default_mode.is_none()));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! This only reports the files: it is no security decision. Not looked at are the helper program that an
//! administrator may name (`policyHelper`), the cache of settings that came from a server, profiles of macOS and the registry of
//! Windows; [`MachinePolicy`] reports what exists and was not read.

mod accepted;
mod cascade;
mod key_rules;
mod managed;
mod models;
mod restrict;
mod settings_file;
mod shape;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use outrigger_protocol::settings::Settings;
use outrigger_protocol::shared::{JsonObject, ReportedPermissionMode};
use serde::Serialize;

pub use self::models::{DeniedModelsMatch, match_denied_models};
pub use outrigger_protocol::shared::SettingSource;

use self::settings_file::SettingsObject;

/// What to put together, and from where. Reads files when [`resolve`](Self::resolve) is called, and keeps nothing.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is read before `resolve`"]
pub struct ResolveSettings {
    cwd: Option<PathBuf>,
    config_dir: Option<PathBuf>,
    managed_dir: Option<PathBuf>,
    setting_sources: Option<Vec<SettingSource>>,
    flag_settings: Option<JsonObject>,
    managed_settings: Option<JsonObject>,
    server_managed_settings: Option<JsonObject>,
}

impl ResolveSettings {
    /// All sources, for the current directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The directory whose project and local settings are read, `.claude/settings.json` and `.claude/settings.local.json` in
    /// itself. The process's own by default.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Where the user's `settings.json` is: by default `CLAUDE_CONFIG_DIR` of this process, else `.claude` in its home.
    pub fn config_dir(mut self, config_dir: impl Into<PathBuf>) -> Self {
        self.config_dir = Some(config_dir.into());
        self
    }

    /// Where `managed-settings.json` and the files of `managed-settings.d` are: by default the place that the CLI has on this
    /// system, `/etc/claude-code` on Linux.
    pub fn managed_dir(mut self, managed_dir: impl Into<PathBuf>) -> Self {
        self.managed_dir = Some(managed_dir.into());
        self
    }

    /// The files to read; all by default. Their order does not matter. What an administrator manages is always read.
    pub fn setting_sources(mut self, sources: impl IntoIterator<Item = SettingSource>) -> Self {
        self.setting_sources = Some(sources.into_iter().collect());
        self
    }

    /// What `--settings` would say ([`Options::settings`](crate::Options::settings)): on top of all files but the managed ones.
    pub fn flag_settings(mut self, settings: JsonObject) -> Self {
        self.flag_settings = Some(settings);
        self
    }

    /// What the program that embeds the CLI manages ([`Options::managed_settings`](crate::Options::managed_settings)). It can
    /// only restrict: the other keys are dropped. It counts if no administrator manages anything, or if the administrator's
    /// settings have `parentSettingsBehavior: "merge"`.
    pub fn managed_settings(mut self, settings: JsonObject) -> Self {
        self.managed_settings = Some(settings);
        self
    }

    /// Managed settings that the program got from a server. They come before the managed files of this machine, and replace them
    /// unless they have `managedSourcesBehavior: "merge"`.
    pub fn server_managed_settings(mut self, settings: JsonObject) -> Self {
        self.server_managed_settings = Some(settings);
        self
    }

    /// Reads the files and puts them together.
    ///
    /// Nothing fails as a whole: a file that cannot be read, or that the CLI would ignore, counts as absent and is told of in
    /// [`ResolvedSettings::problems`]. This reads files and blocks for as long as that takes; in async code it belongs into
    /// `spawn_blocking`.
    pub fn resolve(&self) -> ResolvedSettings {
        let mut problems = Vec::new();
        let mut tiers = Vec::new();
        for source in [SettingSource::User, SettingSource::Project, SettingSource::Local] {
            if self
                .setting_sources
                .as_ref()
                .is_some_and(|sources| !sources.contains(&source))
            {
                continue;
            }
            let (kind, path) = match source {
                SettingSource::User => (ResolvedSettingSource::User, self.user_file()),
                SettingSource::Local => (
                    ResolvedSettingSource::Local,
                    self.project_file("settings.local.json"),
                ),
                _ => (ResolvedSettingSource::Project, self.project_file("settings.json")),
            };
            let Some(path) = path else {
                problems.push(SettingsProblem {
                    place: format!("the {kind} settings"),
                    problem: "where they are is not known: neither HOME nor CLAUDE_CONFIG_DIR is set, or the current directory is gone".to_owned(),
                });
                continue;
            };
            if let Ok(Some(read)) = settings_file::read(&path, accepted::Author::Anybody, &mut problems)
                && !read.is_empty()
            {
                tiers.push(Tier {
                    source: kind,
                    origin: None,
                    path: Some(path),
                    settings: read,
                });
            }
        }
        if let Some(given) = &self.flag_settings {
            let settings = settings_file::read_given_settings(
                given,
                "the settings of the flag",
                accepted::Author::Anybody,
                &mut problems,
            );
            if !settings.is_empty() {
                tiers.push(Tier {
                    source: ResolvedSettingSource::Flag,
                    origin: None,
                    path: None,
                    settings,
                });
            }
        }
        let policy = managed::read(self, &mut problems);
        if let Some((origin, settings)) = policy.settings {
            tiers.push(Tier {
                source: ResolvedSettingSource::Managed,
                origin: Some(origin),
                path: None,
                settings,
            });
        }
        finish(tiers, policy.did_not_load, problems)
    }

    /// What the `env` of any file says of a variable, in whatever of the files it would count: for those who only want to know whether
    /// it may be set. Of what files say besides, nothing is looked at.
    pub(crate) fn variable(&self, name: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let reads = |source| !matches!(&self.setting_sources, Some(sources) if !sources.contains(&source));
        let own = [
            (SettingSource::User, self.user_file()),
            (SettingSource::Project, self.project_file("settings.json")),
            (SettingSource::Local, self.project_file("settings.local.json")),
        ];
        let own = own.into_iter().filter(|(source, _)| reads(*source));
        let (managed, _) = managed::paths(self, &mut problems);
        let paths = own.filter_map(|(_, path)| path).chain(managed);
        paths
            .filter_map(|path| {
                let settings = settings_file::parse(&path, &mut problems).ok()??;
                Some(settings.get("env")?.get(name)?.as_str()?.to_owned())
            })
            .collect()
    }

    fn user_file(&self) -> Option<PathBuf> {
        let directory = match &self.config_dir {
            Some(directory) => directory.clone(),
            None => match std::env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty()) {
                Some(directory) => PathBuf::from(directory),
                None => std::env::home_dir()?.join(".claude"),
            },
        };
        Some(directory.join("settings.json"))
    }

    fn project_file(&self, name: &str) -> Option<PathBuf> {
        let cwd = match &self.cwd {
            Some(cwd) => std::path::absolute(cwd).ok()?,
            None => std::env::current_dir().ok()?,
        };
        Some(cwd.join(".claude").join(name))
    }
}

/// A source with settings.
struct Tier {
    source: ResolvedSettingSource,
    origin: Option<PolicyOrigin>,
    path: Option<PathBuf>,
    settings: SettingsObject,
}

fn finish(
    tiers: Vec<Tier>,
    did_not_load: Vec<PolicyKind>,
    problems: Vec<SettingsProblem>,
) -> ResolvedSettings {
    let mut effective = SettingsObject::new();
    let mut provenance = BTreeMap::new();
    let mut sources = Vec::new();
    for tier in tiers {
        let entry = ProvenanceEntry {
            source: tier.source,
            path: tier.path,
            policy_origin: tier.origin,
        };
        for key in tier.settings.keys() {
            provenance.insert(key.clone(), entry.clone());
        }
        sources.push(SettingsOfSource {
            settings: settings_file::typed(&tier.settings),
            entry,
        });
        cascade::lay_over(&mut effective, tier.settings);
    }
    ResolvedSettings {
        effective: settings_file::typed(&effective),
        provenance,
        sources,
        machine_policy: MachinePolicy { did_not_load },
        problems,
    }
}

/// The settings of all sources together, and where each comes from.
///
/// Serializes to the JSON of the TypeScript SDK's type of the same name, and `problems` beside it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResolvedSettings {
    /// What holds, all sources put together: objects key by key, lists one behind the other without doubles, and of all else the
    /// highest source's value.
    pub effective: Settings,
    /// For each key of the top level of `effective`, the highest source that has it.
    pub provenance: BTreeMap<String, ProvenanceEntry>,
    /// The settings of each source, from the lowest to the highest.
    pub sources: Vec<SettingsOfSource>,
    /// The state of the machine's own policies.
    pub machine_policy: MachinePolicy,
    /// What was there and is not in `effective`, and why.
    pub problems: Vec<SettingsProblem>,
}

impl ResolvedSettings {
    /// `effective` without a `permissions.defaultMode` that the CLI would not heed: one that asks less, from a file that a
    /// repository brings.
    ///
    /// That is `bypassPermissions`, `auto` and `acceptEdits` of the project's settings, and the first two of its local ones. What a
    /// lower source said does not come back instead. It is `filterEscalatingDefaultMode` of the TypeScript SDK.
    pub fn without_escalating_default_mode(&self) -> Settings {
        let mut settings = self.effective.clone();
        let Some(permissions) = &mut settings.permissions else {
            return settings;
        };
        let sets = |source: &&SettingsOfSource| {
            let permissions = source.settings.permissions.as_ref();
            permissions.is_some_and(|permissions| permissions.default_mode.is_some())
        };
        let set_by = self
            .sources
            .iter()
            .rev()
            .find(sets)
            .map(|source| source.entry.source);
        use ReportedPermissionMode::{AcceptEdits, Auto, BypassPermissions};
        let escalates = match set_by {
            Some(ResolvedSettingSource::Project) => &[BypassPermissions, Auto, AcceptEdits][..],
            Some(ResolvedSettingSource::Local) => &[BypassPermissions, Auto],
            _ => &[],
        };
        if permissions
            .default_mode
            .as_ref()
            .is_some_and(|mode| escalates.contains(mode))
        {
            permissions.default_mode = None;
        }
        settings
    }
}

/// The settings of one source.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SettingsOfSource {
    /// Which source this is, and where it is.
    #[serde(flatten)]
    pub entry: ProvenanceEntry,
    /// The settings, without what the CLI ignores.
    pub settings: Settings,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProvenanceEntry {
    /// The kind of source.
    pub source: ResolvedSettingSource,
    /// The file, if the source is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How the policy came here, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_origin: Option<PolicyOrigin>,
}

impl fmt::Display for ProvenanceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.policy_origin) {
            (Some(path), _) => write!(f, "the {} settings ({})", self.source, path.display()),
            (None, Some(origin)) => write!(f, "the {} settings ({origin})", self.source),
            (None, None) => write!(f, "the {} settings", self.source),
        }
    }
}

/// The kinds of source, from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResolvedSettingSource {
    /// `settings.json` in the config directory.
    User,
    /// `.claude/settings.json` of the project, which belongs to its repository.
    Project,
    /// `.claude/settings.local.json` of the project, which belongs to this machine.
    Local,
    /// `--settings`.
    Flag,
    /// What an administrator, a server or the embedding program manages.
    Managed,
}

impl fmt::Display for ResolvedSettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "flag",
            Self::Managed => "managed",
        })
    }
}

/// How managed settings came to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PolicyOrigin {
    /// From a server ([`ResolveSettings::server_managed_settings`]).
    Remote,
    /// From the managed files.
    File,
    /// From the embedding program ([`ResolveSettings::managed_settings`]).
    Parent,
}

impl fmt::Display for PolicyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remote => "from a server",
            Self::File => "from the managed files",
            Self::Parent => "from the embedding program",
        })
    }
}

/// A kind of policy that a machine can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PolicyKind {
    /// A profile of macOS, which is never read here.
    Profile,
    /// The registry of Windows, which is never read here.
    Registry,
    /// The managed files.
    File,
}

/// What is known of a machine's own policies. A program that enforces managed settings asks this first: a policy that did not
/// load looks like none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachinePolicy {
    /// The kinds that are there, or may be, and were not read. `false` in JSON when there is none.
    pub did_not_load: Vec<PolicyKind>,
}

impl Serialize for MachinePolicy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(Some(1))?;
        if self.did_not_load.is_empty() {
            map.serialize_entry("didNotLoad", &false)?;
        } else {
            map.serialize_entry("didNotLoad", &self.did_not_load)?;
        }
        map.end()
    }
}

/// Something in a source that the CLI ignores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SettingsProblem {
    /// The file or the source.
    pub place: String,
    /// The problem, and its effect.
    pub problem: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// Where the CLI looks for managed files on this system.
fn managed_dir() -> &'static Path {
    Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else if cfg!(windows) {
        r"C:\Program Files\ClaudeCode"
    } else {
        "/etc/claude-code"
    })
}

/// Why the CLI would start without these settings, if it would: it says nothing of it, and nothing of their rules counts.
pub(crate) fn dropped(settings: &JsonObject) -> Option<String> {
    match value(settings.as_raw()) {
        Ok(serde_json::Value::Object(object)) => accepted::fit(object, accepted::Author::Anybody).err(),
        _ => None,
    }
}

/// A JSON text as a value, also when it has halves of surrogate pairs.
fn value(text: &RawJson) -> Result<serde_json::Value, serde_json::Error> {
    text.decode()
}
