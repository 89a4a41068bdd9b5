//! What is managed: by a server, by the machine's administrator, by the embedding program.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::accepted::Author;
use super::cascade::{lay_over, lay_under};
use super::settings_file::{self, SettingsObject};
use super::{PolicyKind, PolicyOrigin, ResolveSettings, SettingsProblem, managed_dir, restrict};

/// What holds, and what could not be read.
pub(super) struct Managed {
    pub(super) settings: Option<(PolicyOrigin, SettingsObject)>,
    pub(super) did_not_load: Vec<PolicyKind>,
}

/// The first of server, files and program that has anything holds; it may let in what comes below.
pub(super) fn read(asked: &ResolveSettings, problems: &mut Vec<SettingsProblem>) -> Managed {
    let mut did_not_load = elsewhere();
    let (files, complete) = files(asked, problems);
    if !complete {
        did_not_load.push(PolicyKind::File);
    }
    let server = asked.server_managed_settings.as_ref().map(|given| {
        settings_file::read_given_settings(
            given,
            "the managed settings from a server",
            Author::Administrator,
            problems,
        )
    });
    let parent = asked
        .managed_settings
        .as_ref()
        .map(restrict::to_restrictions)
        .unwrap_or_default();
    let mut admins = [
        (PolicyOrigin::Remote, server.unwrap_or_default()),
        (PolicyOrigin::File, files),
    ]
    .into_iter()
    .filter(|(_, settings)| !settings.is_empty());
    let settings = match admins.next() {
        None if parent.is_empty() => None,
        None => Some((PolicyOrigin::Parent, parent)),
        Some((origin, mut settings)) => {
            if wants_merge(&settings, "managedSourcesBehavior") {
                for (_, lower) in admins {
                    lay_under(&mut settings, lower);
                }
                settings.remove("managedSourcesBehavior");
            }
            if !parent.is_empty() {
                if wants_merge(&settings, "parentSettingsBehavior") {
                    settings = below_admin(parent, settings);
                } else {
                    problems.push(SettingsProblem {
                        place: "the managed settings of the embedding program".to_owned(),
                        problem: format!("do not count: there are managed settings {origin}, without `parentSettingsBehavior: \"merge\"`"),
                    });
                }
            }
            Some((origin, settings))
        }
    };
    Managed {
        settings,
        did_not_load,
    }
}

fn wants_merge(settings: &SettingsObject, key: &str) -> bool {
    settings.get(key).and_then(|value| value.as_str()) == Some("merge")
}

/// Lists that say what may be used: the administrator's replaces the program's, which could widen it.
const ALLOWED: &[&str] = &[
    "allowedHttpHookUrls",
    "allowedMcpServers",
    "allowedProviders",
    "availableModels",
    "forceLoginOrgUUID",
    "httpHookAllowedEnvVars",
    "strictKnownMarketplaces",
];

fn below_admin(mut parent: SettingsObject, admin: SettingsObject) -> SettingsObject {
    parent.retain(|key, _| !(ALLOWED.contains(&key.as_str()) && admin.contains_key(key)));
    lay_over(&mut parent, admin);
    parent
}

/// `managed-settings.json` and on top of it the files of `managed-settings.d`, in the order of their names. Also whether all
/// that is there could be read.
fn files(asked: &ResolveSettings, problems: &mut Vec<SettingsProblem>) -> (SettingsObject, bool) {
    let (paths, mut complete) = paths(asked, problems);
    let mut all = SettingsObject::new();
    for path in paths {
        match settings_file::read(&path, Author::Administrator, problems) {
            Ok(Some(settings)) => lay_over(&mut all, settings),
            Ok(None) => {}
            Err(settings_file::Refused) => complete = false,
        }
    }
    (all, complete)
}

/// Where these files are, and whether all of them were found.
pub(super) fn paths(asked: &ResolveSettings, problems: &mut Vec<SettingsProblem>) -> (Vec<PathBuf>, bool) {
    let directory = asked.managed_dir.as_deref().unwrap_or_else(|| managed_dir());
    let drop_ins = directory.join("managed-settings.d");
    let mut paths = vec![directory.join("managed-settings.json")];
    let mut complete = true;
    match fs::read_dir(&drop_ins) {
        Ok(entries) => {
            let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            found.retain(|path| {
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default();
                name.ends_with(".json") && !name.starts_with('.')
            });
            found.sort();
            paths.append(&mut found);
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(error) => {
            complete = false;
            problems.push(SettingsProblem {
                place: drop_ins.display().to_string(),
                problem: format!("cannot be read: {error}"),
            });
        }
    }
    (paths, complete)
}

/// Policies that may be on this machine and are not read here.
fn elsewhere() -> Vec<PolicyKind> {
    if cfg!(windows) {
        return vec![PolicyKind::Registry];
    }
    let profile = "/Library/Managed Preferences/com.anthropic.claudecode.plist";
    if cfg!(target_os = "macos") && fs::exists(profile).unwrap_or(true) {
        return vec![PolicyKind::Profile];
    }
    Vec::new()
}
