//! Prompts that wait for their turn.

use super::*;

#[tokio::test(start_paused = true)]
async fn queue_two_at_once_during_turn() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(SLOW_THEN_TOOL).await;
    hand.until("system/init").await;
    hand.prompt_with("%say queued A", uuid(1)).await;
    hand.prompt_with("%say queued B", uuid(2)).await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "end of first");
    assert_eq!(result["user_message_uuid"], uuid(2)["uuid"]);
    assert_eq!(
        result["user_message_uuids"],
        json!([uuid(1)["uuid"], uuid(2)["uuid"]])
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "assistant",
            "assistant",
            "user",
            "command_lifecycle/started",
            "command_lifecycle/started",
            "assistant",
            "command_lifecycle/completed",
            "command_lifecycle/completed",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn queue_three_at_once() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (n, text) in ["%say one", "%say two", "%say three"].into_iter().enumerate() {
        hand.prompt_with(text, uuid(n as u32)).await;
    }
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "system/init",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
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
async fn queue_priorities() {
    let tail = SLOW_THEN_TOOL.replace("%say end of first", "%slow 100 chunk=4\n%say tail tail tail");
    for (priority, expected) in [
        (
            "now",
            vec![
                "assistant",
                "result/success",
                "command_lifecycle/cancelled",
                "command_lifecycle/started",
                "system/init",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
        (
            "bogus",
            vec![
                "assistant",
                "assistant",
                "user",
                "command_lifecycle/started",
                "assistant",
                "command_lifecycle/completed",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
        (
            "later",
            vec![
                "assistant",
                "assistant",
                "user",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
                "command_lifecycle/started",
                "system/init",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.prompt_with(&tail, uuid(1)).await;
        hand.until("system/init").await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        let mut extra = uuid(2);
        extra["priority"] = json!(priority);
        hand.prompt_with(&format!("%say from {priority}"), extra).await;
        if priority == "now" {
            let result = hand.until("result/success").await;
            assert_eq!(result["terminal_reason"], "aborted_streaming");
            assert_eq!(
                (&result["is_error"], &result["num_turns"]),
                (&json!(false), &json!(1))
            );
            assert!(result["result"].as_str().unwrap().starts_with("word word"));
        }
        let (exit, kinds) = hand.end().await;
        assert_eq!(exit, Exit::Code(0));
        let beginning = [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "system/init",
            "command_lifecycle/queued",
        ];
        assert_eq!(kinds, [&beginning[..], &expected].concat(), "{priority}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_should_query_and_duplicates() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let mut silent = uuid(1);
    silent["shouldQuery"] = json!(false);
    hand.prompt_with("remember this", silent).await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["num_turns"], result.get("terminal_reason")),
        (&json!(0), None)
    );
    hand.prompt_with(SLOW, uuid(2)).await;
    hand.prompt_with("%say x", uuid(3)).await;
    hand.prompt_with("%say again", uuid(2)).await;
    hand.request(json!({"subtype": "cancel_async_message", "message_uuid": uuid(3)["uuid"]}))
        .await;
    hand.until("command_lifecycle/cancelled").await;
    let answer = hand.next().await;
    assert_eq!(
        answer["response"]["response"],
        json!({"cancelled": true, "message_uuid": uuid(3)["uuid"]})
    );
    let (_, kinds) = hand.end().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "result/success").count(), 2);
}
