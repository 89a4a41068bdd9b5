//! `outrigger settings`.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

#[test]
fn what_holds_is_shown_with_its_source_and_without_secrets() {
    let place = TempDir::new().unwrap();
    let (config, project) = (place.path().join("config"), place.path().join("project"));
    fs::create_dir_all(&config).unwrap();
    fs::create_dir_all(project.join(".claude")).unwrap();
    let user = json!({"model": "opus", "env": {"A": "1", "SOME_TOKEN": "hush"}});
    fs::write(config.join("settings.json"), user.to_string()).unwrap();
    fs::write(
        project.join(".claude/settings.json"),
        r#"{"permissions":{"defaultMode":"auto"},"model":7}"#,
    )
    .unwrap();
    let show = |more: &[&str]| {
        let mut command = outrigger(&["settings", "show"]);
        command
            .arg("--dir")
            .arg(&project)
            .arg("--managed-dir")
            .arg(place.path());
        ran(command.args(more).env("CLAUDE_CONFIG_DIR", &config))
    };
    let (text, code) = show(&[]);
    assert_eq!(code, 0);
    assert!(text.contains("model: \"opus\"   # the user settings ("), "{text}");
    assert!(text.contains("(not shown)") && !text.contains("hush"), "{text}");
    let (text, code) = show(&["--json", "--settings", r#"{"model":"haiku"}"#]);
    assert_eq!(code, 0);
    let resolved: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(resolved["effective"]["model"], "haiku");
    assert_eq!(resolved["provenance"]["model"]["source"], "flag");
    assert!(
        resolved["problems"][0]["problem"]
            .as_str()
            .unwrap()
            .contains("`model`"),
        "{text}"
    );
    fs::write(
        project.join(".claude/settings.json"),
        r#"{"permissions":{"defaultMode":"auto"}}"#,
    )
    .unwrap();
    let (text, _) = show(&["permissions"]);
    assert!(text.contains("auto") && !text.contains("model"), "{text}");
    let (text, _) = show(&["permissions", "--heeded"]);
    assert!(!text.contains("auto"), "{text}");
    let (_, code) = show(&["--settings", "[]"]);
    assert_eq!(code, 2);
}
