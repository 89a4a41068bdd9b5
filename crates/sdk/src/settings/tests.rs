#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use outrigger_protocol::RawJson;
use serde_json::{Value, json};

use super::*;

struct TestHome {
    root: tempfile::TempDir,
}

impl TestHome {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn user(&self, settings: Value) -> &Self {
        self.file("config/settings.json", &settings.to_string())
    }

    fn project(&self, settings: Value) -> &Self {
        self.file("project/.claude/settings.json", &settings.to_string())
    }

    fn managed(&self, settings: Value) -> &Self {
        self.file("managed/managed-settings.json", &settings.to_string())
    }

    fn resolve(&self) -> ResolveSettings {
        let root = self.root.path();
        ResolveSettings::new()
            .config_dir(root.join("config"))
            .cwd(root.join("project"))
            .managed_dir(root.join("managed"))
    }
}

fn json_of(value: &impl Serialize) -> Value {
    RawJson::encode(value).unwrap().decode().unwrap()
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}

#[test]
fn managed_files_are_one_on_top_of_the_other_and_above_all_else() {
    let place = TestHome::new();
    place
        .user(json!({"model": "mine", "env": {"A": "1"}}))
        .managed(json!({"model": "m", "permissions": {"deny": ["A"], "allow": ["X"]}}))
        .file(
            "managed/managed-settings.d/20-b.json",
            r#"{"model":"d20","permissions":{"deny":["B"]}}"#,
        )
        .file(
            "managed/managed-settings.d/10-a.json",
            r#"{"model":"d10","permissions":{"deny":["C"]},"later":1}"#,
        )
        .file("managed/managed-settings.d/.hidden.json", r#"{"hidden":1}"#)
        .file("managed/managed-settings.d/notes.txt", r#"{"text":1}"#);
    let resolved = place.resolve().resolve();
    assert_eq!(
        json_of(&resolved.effective),
        json!({"model": "d20", "env": {"A": "1"}, "permissions": {"allow": ["X"], "deny": ["A", "C", "B"]}, "later": 1})
    );
    assert_eq!(
        json_of(&resolved.provenance["model"]),
        json!({"source": "managed", "policyOrigin": "file"})
    );
    assert_eq!(resolved.provenance["env"].source, ResolvedSettingSource::User);
    assert_eq!(json_of(&resolved.machine_policy), json!({"didNotLoad": false}));
    assert!(resolved.problems.is_empty(), "{:?}", resolved.problems);
}

#[test]
fn a_managed_file_that_cannot_be_read_is_told_of_and_the_others_hold() {
    let place = TestHome::new();
    place
        .file("managed/managed-settings.json", "{")
        .file("managed/managed-settings.d/10.json", r#"{"model":"d"}"#);
    let resolved = place.resolve().resolve();
    assert_eq!(resolved.effective.model.as_deref(), Some("d"));
    assert_eq!(json_of(&resolved.machine_policy), json!({"didNotLoad": ["file"]}));
    assert!(
        resolved.problems[0].place.ends_with("managed-settings.json"),
        "{:?}",
        resolved.problems
    );
}

#[test]
fn a_managed_value_that_does_not_fit_means_the_strictest() {
    let place = TestHome::new();
    place.managed(
        json!({"permissions": 7, "availableModels": null, "disableAutoMode": [], "model": 7, "later": 1}),
    );
    let resolved = place.resolve().resolve();
    let effective = json_of(&resolved.effective);
    assert_eq!(
        effective["permissions"]["disableBypassPermissionsMode"],
        "disable"
    );
    assert_eq!(effective["permissions"]["denyInsteadOfPrompting"], true);
    assert_eq!(effective["availableModels"], json!([]));
    assert_eq!(effective["disableAutoMode"], "disable");
    assert_eq!(effective.get("model"), None);
    assert_eq!(effective["later"], 1);
    assert_eq!(resolved.problems.len(), 4, "{:?}", resolved.problems);
}

#[test]
fn a_file_of_the_user_with_a_wrong_value_does_not_count_and_says_which() {
    let place = TestHome::new();
    place
        .user(json!({"model": 7, "later": 1}))
        .project(json!({"effortLevel": "zz", "later": 2}));
    let resolved = place.resolve().resolve();
    assert_eq!(json_of(&resolved.effective), json!({"later": 2}));
    assert_eq!(resolved.sources.len(), 1);
    let told: Vec<_> = resolved.problems.iter().map(ToString::to_string).collect();
    assert!(
        told[0].contains("config") && told[0].contains("`model`"),
        "{told:?}"
    );
    assert!(
        told[1].contains("project") && told[1].contains("`effortLevel`"),
        "{told:?}"
    );
}

#[test]
fn a_server_replaces_the_files_unless_it_lets_them_in() {
    let place = TestHome::new();
    place.managed(json!({"model": "m", "only": 1, "permissions": {"deny": ["A"]}}));
    let server = |more: Value| {
        let mut settings = json!({"model": "s", "permissions": {"deny": ["S"]}});
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let resolved = place
            .resolve()
            .server_managed_settings(object(settings))
            .resolve();
        json_of(&resolved.effective)
    };
    assert_eq!(
        server(json!({})),
        json!({"model": "s", "permissions": {"deny": ["S"]}})
    );
    assert_eq!(
        server(json!({"managedSourcesBehavior": "merge"})),
        json!({"model": "s", "only": 1, "permissions": {"deny": ["S", "A"]}})
    );
}

#[test]
fn an_embedding_program_can_only_take_away_and_only_where_it_may() {
    let place = TestHome::new();
    let asked = object(json!({
        "model": "p", "permissions": {"deny": ["P"], "defaultMode": "plan"}, "allowManagedHooksOnly": true,
        "disableRemoteControl": false, "availableModels": ["b", "c"]
    }));
    let resolved = place.resolve().managed_settings(asked.clone()).resolve();
    assert_eq!(
        json_of(&resolved.effective),
        json!({"permissions": {"deny": ["P"]}, "allowManagedHooksOnly": true, "availableModels": ["b", "c"]})
    );
    place.managed(json!({"permissions": {"deny": ["A"]}}));
    let resolved = place.resolve().managed_settings(asked.clone()).resolve();
    assert_eq!(
        json_of(&resolved.effective),
        json!({"permissions": {"deny": ["A"]}})
    );
    assert_eq!(resolved.problems.len(), 1, "{:?}", resolved.problems);
    place.managed(
        json!({"permissions": {"deny": ["A"]}, "parentSettingsBehavior": "merge", "availableModels": ["a"]}),
    );
    let resolved = place.resolve().managed_settings(asked).resolve();
    let effective = json_of(&resolved.effective);
    assert_eq!(effective["permissions"]["deny"], json!(["P", "A"]));
    assert_eq!(
        effective["availableModels"],
        json!(["a"]),
        "a list of what may be used is not widened"
    );
}

#[test]
fn a_mode_that_asks_less_is_not_taken_from_a_repository() {
    let mode = |file: &str, mode: &str| {
        let place = TestHome::new();
        place.user(json!({"permissions": {"defaultMode": "plan"}}));
        place.file(file, &json!({"permissions": {"defaultMode": mode}}).to_string());
        let settings = place.resolve().resolve().without_escalating_default_mode();
        settings
            .permissions
            .unwrap()
            .default_mode
            .map(|mode| mode.as_str().to_owned())
    };
    let (project, local) = (
        "project/.claude/settings.json",
        "project/.claude/settings.local.json",
    );
    for escalating in ["bypassPermissions", "auto", "acceptEdits"] {
        assert_eq!(mode(project, escalating), None, "{escalating}");
    }
    assert_eq!(mode(project, "dontAsk").as_deref(), Some("dontAsk"));
    assert_eq!(mode(local, "auto"), None);
    assert_eq!(mode(local, "acceptEdits").as_deref(), Some("acceptEdits"));
    assert_eq!(
        mode("config/settings.json", "bypassPermissions").as_deref(),
        Some("bypassPermissions")
    );
}

#[test]
fn a_flag_is_above_the_files_and_below_what_is_managed() {
    let place = TestHome::new();
    place
        .project(json!({"model": "p", "later": 1}))
        .managed(json!({"later": 3}));
    let resolved = place
        .resolve()
        .flag_settings(object(json!({"model": "f", "later": 2})))
        .resolve();
    assert_eq!(json_of(&resolved.effective), json!({"model": "f", "later": 3}));
    let order: Vec<_> = resolved
        .sources
        .iter()
        .map(|source| source.entry.source)
        .collect();
    use ResolvedSettingSource::{Flag, Managed, Project};
    assert_eq!(order, [Project, Flag, Managed]);
    assert_eq!(resolved.provenance["model"].to_string(), "the flag settings");
}

#[test]
fn of_the_files_the_users_is_the_lowest_and_the_local_one_the_highest() {
    let place = TestHome::new();
    place
        .file("project/.claude/settings.local.json", r#"{"model":"local"}"#)
        .project(json!({"model": "project", "b": 2}))
        .user(json!({"model": "user", "b": 1, "c": 1}));
    let resolved = place.resolve().resolve();
    assert_eq!(
        json_of(&resolved.effective),
        json!({"model": "local", "b": 2, "c": 1})
    );
    use ResolvedSettingSource::{Local, Project, User};
    let from = |key: &str| resolved.provenance[key].source;
    assert_eq!((from("model"), from("b"), from("c")), (Local, Project, User));
    let only = place
        .resolve()
        .setting_sources([SettingSource::Project])
        .resolve();
    assert_eq!(json_of(&only.effective), json!({"model": "project", "b": 2}));
}

#[test]
fn what_may_be_used_is_not_widened_by_an_embedding_program() {
    let place = TestHome::new();
    let lists = json!({
        "allowedMcpServers": [{"serverName": "p"}], "allowedProviders": ["bedrock"], "strictKnownMarketplaces": [{"source": "github", "repo": "a/p"}],
    });
    let admin = json!({
        "allowedMcpServers": [], "allowedProviders": ["anthropic"], "strictKnownMarketplaces": [], "parentSettingsBehavior": "merge",
    });
    place.managed(admin.clone());
    let resolved = place.resolve().managed_settings(object(lists)).resolve();
    assert_eq!(json_of(&resolved.effective), admin);
}

#[test]
fn odd_files_do_no_harm() {
    let deep = format!("{{\"later\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    for text in [
        "",
        "  \n",
        "null",
        "[]",
        "{\"a\":",
        "\u{feff}{\"later\":1}",
        "{\"later\":\"\\ud83d\"}",
        "{\"later\":1e999}",
        &deep,
        "\0",
    ] {
        let place = TestHome::new();
        place.file("config/settings.json", text);
        let _ = place.resolve().resolve();
    }
    let place = TestHome::new();
    fs::create_dir_all(place.root.path().join("config/settings.json")).unwrap();
    assert_eq!(place.resolve().resolve().problems.len(), 1);
}

/// What nobody writes to would be waited for, and what has no end read for ever.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    use std::os::unix::fs::symlink;

    let place = TestHome::new();
    let root = place.root.path();
    for dir in ["config", "project/.claude", "managed"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for path in ["config/settings.json", "managed/managed-settings.json"] {
        let made = std::process::Command::new("mkfifo").arg(root.join(path)).status();
        assert!(made.unwrap().success());
    }
    symlink("/dev/zero", root.join("project/.claude/settings.json")).unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(root.join("project/.claude/settings.local.json")).unwrap();
    place.file("managed/managed-settings.d/10.json", r#"{"model":"d"}"#);

    let resolve = place.resolve();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(Box::new(resolve.resolve())));
    let resolved = told.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(json_of(&resolved.effective), json!({"model": "d"}));
    assert_eq!(json_of(&resolved.machine_policy), json!({"didNotLoad": ["file"]}));
    let problems: Vec<String> = resolved.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:?}");
    let of_kind = problems
        .iter()
        .filter(|problem| problem.contains("no regular file"));
    // A socket cannot even be opened.
    assert_eq!(of_kind.count(), 3, "{problems:?}");
}

#[test]
fn an_entry_of_denied_models_blocks_a_family_a_version_or_a_name() {
    let models = [
        "claude-opus-4-1",
        "claude-opus-4-1-20250805",
        "claude-opus-4-10",
        "claude-opus-4",
        "claude-opus-4-20250514",
        "CLAUDE-OPUS-4-1[1m]",
        "us.anthropic.claude-opus-4-1-20250805-v1:0",
        "anthropic/claude-opus-4-1",
        "claude-opus-4.1",
        "my-claude-opus-4-1",
        "opus",
        "opusplan",
        "claude-3-5-sonnet-20241022",
        "my-model",
        "claude-opus-4-1:thinking",
        "claude-opus-4@20250514",
    ];
    let blocked = |entry: &str| -> Vec<&str> {
        let found = match_denied_models(&models, &[entry]);
        models
            .iter()
            .zip(found.denied)
            .filter(|(_, denied)| *denied)
            .map(|(model, _)| *model)
            .collect()
    };
    let v41 = [
        "claude-opus-4-1",
        "claude-opus-4-1-20250805",
        "CLAUDE-OPUS-4-1[1m]",
        "us.anthropic.claude-opus-4-1-20250805-v1:0",
        "anthropic/claude-opus-4-1",
    ];
    for entry in [
        "claude-opus-4-1",
        "Claude-Opus-4-1",
        "claude-opus-4-1[1m]",
        "claude-opus-4-1-20250805",
        "opus-4-1",
        "us.anthropic.claude-opus-4-1-20250805-v1:0",
        "claude-opus-4-1@20250805",
        "claude-opus-4-1-latest",
    ] {
        assert_eq!(blocked(entry), v41, "{entry}");
    }
    assert_eq!(
        blocked("opus").len(),
        models.len() - 3,
        "all but opusplan, a Sonnet and my-model"
    );
    assert_eq!(
        blocked("claude-opus-4-0"),
        [
            "claude-opus-4",
            "claude-opus-4-20250514",
            "claude-opus-4@20250514"
        ]
    );
    assert!(blocked("claude-opus-4").contains(&"claude-opus-4-10"));
    assert_eq!(blocked("claude-3-5-sonnet"), ["claude-3-5-sonnet-20241022"]);
    assert_eq!(blocked("My-Model[1m]"), ["my-model"]);
    assert_eq!(blocked("claude-opus-4.1"), ["claude-opus-4.1"]);
    assert_eq!(blocked("my-claude-opus-4-1"), ["my-claude-opus-4-1"]);
    assert_eq!(blocked("claude-opus-4-1:thinking"), ["claude-opus-4-1:thinking"]);
    for ignored in ["default", "opusplan", "", " "] {
        assert_eq!(blocked(ignored), [""; 0], "{ignored:?}");
        assert_eq!(
            match_denied_models(&models, &[ignored]).warnings.len(),
            1,
            "{ignored:?}"
        );
    }
}
