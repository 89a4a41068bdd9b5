//! Settings files: those of the user, of the project, and of the project on this machine.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Config;
use super::rules::RuleSource;

/// All of them, the strongest last, with the name under which `--setting-sources` knows them.
const FILES: [(RuleSource, &str); 3] = [
    (RuleSource::User, "user"),
    (RuleSource::Project, "project"),
    (RuleSource::Local, "local"),
];

/// The contents of settings files.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// The settings of each, whether or not it is read.
    pub(super) kept: Vec<(RuleSource, Map<String, Value>)>,
    /// The problems of the files, for `get_settings`.
    pub(super) errors: Vec<Value>,
    /// The CLI's complaints about them on stderr.
    pub(super) complaints: Vec<String>,
    /// Whether the project may grant permissions.
    pub(super) trusted: bool,
    /// The MCP servers of `.mcp.json`, which settings may disable.
    pub(super) shared_servers: Vec<String>,
    /// Whether the user has configured MCP servers.
    pub(super) own_servers: bool,
}

/// Whether a file is read, and so written.
pub(super) fn counts(source: RuleSource, config: &Config) -> bool {
    let mut files = FILES.iter();
    files.any(|(known, name)| *known == source && config.reads(name))
}

/// Where a file is.
pub(super) fn path(source: RuleSource, config_dir: Option<&Path>, cwd: &Path) -> Option<PathBuf> {
    match source {
        RuleSource::User => config_dir.map(|directory| directory.join("settings.json")),
        RuleSource::Project => Some(cwd.join(".claude/settings.json")),
        RuleSource::Local => Some(cwd.join(".claude/settings.local.json")),
        _ => None,
    }
}

impl Files {
    /// Reads those that count.
    pub(super) fn read(config: &Config) -> Self {
        let config_dir = config.config_dir.as_deref();
        let mut files = Self::default();
        for (source, name) in FILES {
            let path = path(source, config_dir, &config.cwd).filter(|_| config.reads(name));
            let settings = match path.as_deref().map(read) {
                Some(Ok(Some(settings))) => settings,
                Some(Ok(None)) | None => Map::new(),
                Some(Err(())) => {
                    files.errors.push(json!({
                        "file": path.unwrap_or_default().to_string_lossy(), "path": "",
                        "message": "Invalid or malformed JSON",
                    }));
                    Map::new()
                }
            };
            files.kept.push((source, settings));
        }
        files.find_servers(config);
        files.trusted = is_trusted(config);
        if !files.trusted {
            files.distrust(config);
        }
        files
    }

    /// Looks for MCP servers that the project or the user has configured.
    fn find_servers(&mut self, config: &Config) {
        if config.strict_mcp_config {
            return;
        }
        let names = |servers: &Value| -> Vec<String> {
            let servers = servers.as_object().into_iter().flatten();
            servers.map(|(name, _)| name.clone()).collect()
        };
        let file = |path: &Path| Value::from(read(path).ok().flatten().unwrap_or_default());
        if config.reads("project") {
            for directory in config.cwd.ancestors() {
                let shared = file(&directory.join(".mcp.json"));
                self.shared_servers.extend(names(&shared["mcpServers"]));
            }
        }
        if let Some(directory) = &config.config_dir {
            let registry = file(&directory.join(".claude.json"));
            let of_project = &registry["projects"][config.cwd.to_string_lossy().as_ref()];
            let has = |source: &str, of: &Value| config.reads(source) && !names(&of["mcpServers"]).is_empty();
            self.own_servers = has("user", &registry) || has("local", of_project);
        }
    }

    /// Complains about permissions that a project grants without being trusted yet.
    fn distrust(&mut self, config: &Config) {
        let Some((_, project)) = self
            .kept
            .iter()
            .find(|(source, _)| *source == RuleSource::Project)
        else {
            return;
        };
        let registry = config.config_dir.as_deref().unwrap_or(Path::new(&config.home));
        for key in ["allow", "additionalDirectories"] {
            let ignored = strings(&project.get("permissions").unwrap_or(&Value::Null)[key]).len();
            if ignored > 0 {
                let entries = if ignored == 1 { "entry" } else { "entries" };
                self.complaints.push(format!(
                    "Ignoring {ignored} permissions.{key} {entries} from .claude/settings.json: this workspace has not been \
                     trusted. Run Claude Code interactively here once and accept the trust dialog, or set \
                     projects[\"{}\"].hasTrustDialogAccepted: true in {}.",
                    config.cwd.display(),
                    registry.join(".claude.json").display(),
                ));
            }
        }
    }
}

/// The settings in a file; none if it does not exist.
fn read(path: &Path) -> Result<Option<Map<String, Value>>, ()> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|_| ())
}

/// Whether the user trusts this project to grant permissions.
fn is_trusted(config: &Config) -> bool {
    let home = Path::new(&config.home);
    let places = [config.config_dir.as_deref().unwrap_or(home), home];
    let cwd = config.cwd.to_string_lossy();
    places.iter().any(|place| {
        let registry = read(&place.join(".claude.json")).ok().flatten();
        registry.is_some_and(|registry| {
            registry
                .get("projects")
                .is_some_and(|projects| projects[cwd.as_ref()]["hasTrustDialogAccepted"] == true)
        })
    })
}

/// Notes that the user trusts the project, if there is a directory for such notes.
pub(super) fn note_trust(config: &Config) -> Result<(), String> {
    let Some(directory) = &config.config_dir else {
        return Ok(());
    };
    let object = |value: &mut Value| {
        if !value.is_object() {
            *value = json!({});
        }
    };
    change(&directory.join(".claude.json"), |registry| {
        let projects = registry.entry("projects").or_insert(Value::Null);
        object(projects);
        let project = &mut projects[config.cwd.to_string_lossy().as_ref()];
        object(project);
        project["hasTrustDialogAccepted"] = json!(true);
    })
}

pub(super) fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect()
}

/// Changes a file, and creates it if it does not exist.
///
/// # Errors
///
/// The message for stderr: the file cannot be read, has something else than settings, or cannot be written.
pub(super) fn change(path: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), String> {
    let failed = |what: &str| format!("Error: cannot write settings to {}: {what}", path.display());
    let mut settings = read(path)
        .map_err(|()| failed("what is there is no JSON object"))?
        .unwrap_or_default();
    change(&mut settings);
    let text = serde_json::to_string_pretty(&settings).map_err(|error| failed(&error.to_string()))?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| failed(&error.to_string()))?;
    }
    std::fs::write(path, text + "\n").map_err(|error| failed(&error.to_string()))
}

/// Makes a change of permissions in settings as they stand in a file.
pub(super) fn apply(settings: &mut Map<String, Value>, update: &Value, rules: &[String]) {
    let permissions = settings
        .entry("permissions")
        .or_insert_with(|| json!({}))
        .as_object_mut();
    let Some(permissions) = permissions else { return };
    let mut set = |key: &str, change: &dyn Fn(Vec<String>) -> Vec<String>| {
        let before = strings(permissions.get(key).unwrap_or(&Value::Null));
        permissions.insert(key.to_owned(), json!(change(before)));
    };
    let behavior = update["behavior"].as_str().unwrap_or_default();
    let more = |new: &[String], before: Vec<String>| -> Vec<String> {
        let fresh = new.iter().filter(|entry| !before.contains(entry));
        let fresh: Vec<String> = fresh.cloned().collect();
        [before, fresh].concat()
    };
    let less = |gone: &[String], mut before: Vec<String>| -> Vec<String> {
        before.retain(|entry| !gone.contains(entry));
        before
    };
    let directories = strings(&update["directories"]);
    match update["type"].as_str() {
        Some("addRules") => set(behavior, &|before| more(rules, before)),
        Some("replaceRules") => set(behavior, &|_| rules.to_vec()),
        Some("removeRules") => set(behavior, &|before| less(rules, before)),
        Some("addDirectories") => set("additionalDirectories", &|before| more(&directories, before)),
        Some("removeDirectories") => set("additionalDirectories", &|before| less(&directories, before)),
        Some("setMode") => {
            permissions.insert("defaultMode".to_owned(), update["mode"].clone());
        }
        _ => {}
    }
}
