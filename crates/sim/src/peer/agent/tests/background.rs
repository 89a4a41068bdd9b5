//! Commands that go on behind the turn.

use super::*;

#[tokio::test(start_paused = true)]
async fn background_bash_state_events_sdk_reads() {
    let mut hand = Hand::ready(Agent::builder().sdk_reads_session_state()).await;
    hand.prompt(&format!(
        "%tool Bash {{\"command\":\"sleep 2\",\"description\":\"bg\",\"run_in_background\":true}}\n{TOUCH}\n%say started\n\
         %say it finished"
    ))
    .await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    assert_eq!(hand.until("result/success").await["result"], "started");
    let second = hand.until("result/success").await;
    assert_eq!(second["result"], "it finished");
    assert_eq!(second["origin"]["kind"], "task-notification");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/session_state_changed",
            "system/init",
            "assistant",
            "system/background_tasks_changed",
            "system/task_started",
            "user",
            "assistant",
            "system/session_state_changed",
            "control_request/can_use_tool",
            "system/session_state_changed",
            "user",
            "assistant",
            "result/success",
            "system/session_state_changed",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "system/session_state_changed",
            "system/init",
            "assistant",
            "result/success",
            "system/session_state_changed",
        ]
    );
}

/// The model hears of it with the results of the turn.
#[tokio::test(start_paused = true)]
async fn what_ends_in_a_turn_begins_none() {
    let script = crate::script::Script::from_yaml(
        r"
permission_mode: bypassPermissions
prompts:
  - prompt: go
    steps:
      - background: {command: make, after: 1s, then: [say: It is made.]}
      - call: {tool: Bash, input: {command: sleep 2}}
      - say: Done.
",
    )
    .unwrap();
    let mut hand = Hand::ready(script.agent().unwrap()).await;
    hand.prompt("go").await;
    let mut said = Vec::new();
    while said.len() < 2 {
        let message = hand.until("assistant").await;
        said.extend(
            message["message"]["content"][0]["text"]
                .as_str()
                .map(str::to_owned),
        );
    }
    assert_eq!(said, ["Done.", "It is made."]);
    let (_, kinds) = hand.end().await;
    let turns = kinds.iter().filter(|kind| *kind == "system/init").count();
    assert_eq!(turns, 1);
}

/// An agent that has reported goes on when its command ends.
#[tokio::test(start_paused = true)]
async fn an_agent_waits_for_its_command() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(
        "%tool Agent {\"description\":\"look\",\"prompt\":\"%tool Bash {\\\"command\\\":\\\"sleep 9\\\",\\\"run_in_background\\\":true}\\n\
         %say early\\n%say late\",\"run_in_background\":true}\n%say done",
    )
    .await;
    let mut reports = Vec::new();
    while reports.len() < 2 {
        let ended = hand.until("system/task_notification").await;
        if ended["owned_by_subagent"] != true {
            reports.push((ended["summary"].clone(), ended["summary_is_report"].clone()));
        }
    }
    assert_eq!(
        reports,
        [(json!("early"), Value::Null), (json!("late"), json!(true))]
    );
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn background_tasks_control() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(
        "%tool Bash {\"command\":\"echo fg; sleep 30\",\"description\":\"fg\"}\n%say moved on\n%say stopped",
    )
    .await;
    let started = hand.until("system/task_started").await;
    let id = started["task_id"].clone();
    hand.request(json!({"subtype": "background_tasks"})).await;
    hand.until("result/success").await;
    hand.request(json!({"subtype": "get_task_output", "task_id": id}))
        .await;
    let output = hand.until("control_response/success").await;
    assert_eq!(output["response"]["response"]["output"], "fg\n");
    hand.request(json!({"subtype": "stop_task", "task_id": id})).await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "system/task_started",
            "system/background_tasks_changed",
            "system/task_updated",
            "control_response/success",
            "user",
            "assistant",
            "result/success",
            "control_response/success",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "control_response/success",
        ]
    );
}
