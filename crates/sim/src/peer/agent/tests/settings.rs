//! Settings files.

use super::*;

fn place() -> (tempfile::TempDir, Builder) {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("project");
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    let agent = Agent::builder()
        .cwd(&project)
        .home(place.path().to_string_lossy())
        .config_dir(place.path().join("config"))
        .setting_sources(["user", "project", "local"]);
    (place, agent)
}

#[tokio::test]
async fn what_is_granted_for_good_stands_in_the_file() {
    let (place, agent) = place();
    let file = place.path().join("project/.claude/settings.local.json");
    std::fs::write(&file, r#"{"other": 1, "permissions": {"allow": ["Read"]}}"#).unwrap();
    let mut hand = Hand::ready(agent).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    let first = question["request"]["permission_suggestions"][0].clone();
    assert_eq!(first["destination"], "localSettings");
    hand.answer(
        &question,
        json!({"behavior": "allow", "updatedPermissions": [first]}),
    )
    .await;
    hand.until("result/success").await;
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        kept,
        json!({"other": 1, "permissions": {"allow": ["Read", "Bash(touch a.txt)"]}})
    );
    hand.prompt(&format!("{TOUCH}\n%say again")).await;
    hand.until("result/success").await;
    let (_, kinds) = hand.end().await;
    let asked = kinds
        .iter()
        .filter(|kind| *kind == "control_request/can_use_tool");
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn a_project_that_nobody_trusts_grants_nothing() {
    let settings = r#"{"permissions": {"allow": ["Bash(touch:*)"], "deny": ["Write"]}, "model": "haiku"}"#;
    for trusted in [false, true] {
        let (place, agent) = place();
        std::fs::write(place.path().join("project/.claude/settings.json"), settings).unwrap();
        if trusted {
            let project = place.path().join("project");
            let registry = json!({"projects": {project.to_string_lossy(): {"hasTrustDialogAccepted": true}}});
            std::fs::write(place.path().join(".claude.json"), registry.to_string()).unwrap();
        }
        let mut hand = Hand::ready(agent).await;
        hand.prompt(&format!("{TOUCH}\n%say done")).await;
        let init = hand.until("system/init").await;
        assert_eq!(init["model"], "claude-haiku-5-5");
        let tools = init["tools"].as_array().unwrap();
        assert!(!tools.contains(&json!("Write")));
        if !trusted {
            let question = hand.until("control_request/can_use_tool").await;
            hand.answer(&question, json!({"behavior": "allow"})).await;
        }
        hand.until("result/success").await;
        let (_, kinds) = hand.end().await;
        let asked = kinds.contains(&"control_request/can_use_tool".to_owned());
        assert_eq!(asked, !trusted);
    }
}
