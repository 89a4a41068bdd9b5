//! Turns that are stopped.

use super::*;

#[tokio::test(start_paused = true)]
async fn interrupt_with_queue() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt_with(SLOW, uuid(1)).await;
    hand.until("system/init").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    hand.prompt_with("%say queued 1", uuid(2)).await;
    hand.prompt_with("%say queued 2", uuid(3)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let receipt = hand.until("control_response/success").await;
    assert_eq!(
        receipt["response"]["response"],
        json!({"still_queued": [uuid(2)["uuid"], uuid(3)["uuid"]]})
    );
    let aborted = hand.next().await;
    assert_eq!(aborted["aborted"], true);
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    assert_eq!(
        result["errors"],
        json!(["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"])
    );
    assert_eq!(
        (&result["stop_reason"], &result["num_turns"]),
        (&Value::Null, &json!(2))
    );
    assert_eq!(hand.until("result/success").await["result"], "queued 2");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "system/init",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "control_response/success",
            "assistant",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
            "command_lifecycle/started",
            "command_lifecycle/started",
            "system/init",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
            "command_lifecycle/completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_cancels_the_queue_when_asked() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt_with(SLOW, uuid(1)).await;
    hand.until("system/init").await;
    hand.prompt_with("%say queued 1", uuid(2)).await;
    hand.request(json!({"subtype": "interrupt", "cancel_queued": true}))
        .await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1), "the last result was an error");
    assert_eq!(
        kinds[3..],
        [
            "command_lifecycle/queued",
            "command_lifecycle/cancelled",
            "control_response/success",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_at_once() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let prompt =
        json!({"type": "user", "message": {"role": "user", "content": "%say one"}, "uuid": uuid(1)["uuid"]});
    let interrupt =
        json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}});
    hand.write(&format!("{prompt}\n{interrupt}")).await;
    let receipt = hand.until("control_response/success").await;
    assert_eq!(
        receipt["response"]["response"],
        json!({"still_queued": [uuid(1)["uuid"]]})
    );
    hand.until("result/error_during_execution").await;
    hand.prompt("%say two").await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "control_response/success",
            "command_lifecycle/started",
            "system/init",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_during_permission() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say must not be reached")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let cancel = hand.next().await;
    assert_eq!(cancel["request_id"], question["request_id"]);
    hand.until("result/error_during_execution").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    hand.prompt("%say next turn works").await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "control_cancel_request",
            "control_response/success",
            "user",
            "user",
            "result/error_during_execution",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}
