//! Hooks on models, displayed messages, instructions and compaction.

use super::*;

impl Hand {
    /// The next call of a callback, for this event.
    async fn called(&mut self, event: &str) -> Value {
        let request = self.until("control_request/hook_callback").await;
        assert_eq!(request["request"]["input"]["hook_event_name"], event);
        request
    }
}

fn hooks(events: &[&str]) -> Value {
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": [event]}])))
        .collect();
    json!({"subtype": "initialize", "hooks": hooks})
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_against_another_model() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(hooks(&["PreModelSwitch", "PostModelSwitch"])).await;
    hand.until("control_response/success").await;
    let switch = json!({"subtype": "set_model", "model": "sonnet"});
    hand.request(switch.clone()).await;
    let asked = hand.called("PreModelSwitch").await;
    assert_eq!(asked["request"]["input"]["to_model"], "claude-sonnet-5-5");
    let deny = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny", "permissionDecisionReason": "no"});
    hand.answer(&asked, json!({ "hookSpecificOutput": deny })).await;
    let refused = hand.until("control_response/error").await;
    assert_eq!(refused["response"]["error_code"], "blocked_by_hook");
    assert_eq!(refused["response"]["model"], "claude-opus-5-5");
    // The next time it is not, and with the next prompt it hears of it.
    hand.request(switch).await;
    let asked = hand.called("PreModelSwitch").await;
    hand.answer(&asked, json!({})).await;
    hand.until("control_response/success").await;
    hand.prompt("%say hello").await;
    let told = hand.called("PostModelSwitch").await;
    hand.answer(&told, json!({})).await;
    let init = hand.until("system/init").await;
    assert_eq!(init["model"], "claude-sonnet-5-5");
    hand.until("result/success").await;
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn instructions_are_told_of_and_messages_displayed() {
    let agent = Agent::builder().files([("CLAUDE.md".to_owned(), "Be brief.".to_owned())]);
    let mut hand = Hand::new(agent);
    hand.request(hooks(&["InstructionsLoaded", "MessageDisplay"]))
        .await;
    hand.prompt("%say hello").await;
    let loaded = hand.called("InstructionsLoaded").await;
    let input = &loaded["request"]["input"];
    assert_eq!(input["file_path"], "/home/user/project/CLAUDE.md");
    assert_eq!(
        (&input["memory_type"], &input["load_reason"]),
        (&json!("Project"), &json!("session_start"))
    );
    hand.answer(&loaded, json!({})).await;
    let shown = hand.called("MessageDisplay").await;
    assert_eq!(shown["request"]["input"]["delta"], "hello");
    let output = json!({"hookEventName": "MessageDisplay", "displayContent": "good evening"});
    hand.answer(&shown, json!({ "hookSpecificOutput": output })).await;
    let assistant = hand.until("assistant").await;
    assert_eq!(assistant["message"]["content"][0]["text"], "good evening");
    assert_eq!(hand.until("result/success").await["result"], "good evening");
    hand.end().await;
}
