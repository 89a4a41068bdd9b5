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

/// Where the CLI looks cannot be chosen, so the place itself is another one: in a mount namespace, whose `/etc` is empty.
#[cfg(target_os = "linux")]
#[test]
fn what_an_administrator_manages_is_read_where_the_cli_reads_it() {
    let apart = ["--map-root-user", "--mount", "sh", "-ec"];
    outrigger_needs::needs!(outrigger_needs::allows(
        std::process::Command::new("unshare")
            .args(apart)
            .arg("mount -t tmpfs none /etc"),
        "a mount namespace, which not every system lets everybody make",
    ));
    let place = TempDir::new().unwrap();
    let (config, project) = (place.path().join("config"), place.path().join("project"));
    fs::create_dir_all(&config).unwrap();
    fs::create_dir_all(&project).unwrap();
    fs::write(
        config.join("settings.json"),
        r#"{"model":"mine","permissions":{"deny":["U"]}}"#,
    )
    .unwrap();
    let script = r#"mount -t tmpfs none /etc
        mkdir -p /etc/claude-code/managed-settings.d
        echo '{"model":"managed","permissions":{"deny":["M"]}}' > /etc/claude-code/managed-settings.json
        echo '{"permissions":{"deny":["D"]}}' > /etc/claude-code/managed-settings.d/10.json
        exec "$0" "$@""#;
    let mut command = std::process::Command::new("unshare");
    command
        .args(apart)
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_outrigger"))
        .args(["settings", "show", "--json", "--dir"])
        .arg(&project)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("CLAUDE_CONFIG_DIR", &config);
    let (text, code) = ran(&mut command);
    assert_eq!(code, 0);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        shown["effective"],
        json!({"model": "managed", "permissions": {"deny": ["U", "M", "D"]}})
    );
    assert_eq!(
        shown["provenance"]["model"],
        json!({"source": "managed", "policyOrigin": "file"})
    );
}
