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
