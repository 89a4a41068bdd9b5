//! Messages in pieces.

use super::*;

#[tokio::test(start_paused = true)]
async fn partial_messages() {
    let mut hand = Hand::ready(Agent::builder().partial_messages(true)).await;
    hand.prompt(
        "%think let me see\n%+say I will list files.\n%+tool Bash {\"command\":\"touch made-by-tool\",\
         \"description\":\"touch\"}\n%say done",
    )
    .await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let result = hand.until("result/success").await;
    assert_eq!(
        result["begun_message_ids"],
        json!(["msg_sim_0001", "msg_sim_0002"])
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    let (start, delta, stop) = (
        "stream_event/content_block_start",
        "stream_event/content_block_delta",
        "stream_event/content_block_stop",
    );
    let deltas = "stream_event/content_block_deltas";
    let thought = "system/thinking_tokens";
    assert_eq!(
        squeezed(kinds),
        [
            "system/init",
            "system/status",
            "stream_event/message_start",
            start,
            thought,
            delta,
            thought,
            delta,
            thought,
            deltas,
            "assistant",
            stop,
            start,
            deltas,
            "assistant",
            stop,
            start,
            deltas,
            "assistant",
            stop,
            "stream_event/message_delta",
            "control_request/can_use_tool",
            "stream_event/message_stop",
            "user",
            "system/status",
            "stream_event/message_start",
            start,
            deltas,
            "assistant",
            stop,
            "stream_event/message_delta",
            "stream_event/message_stop",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupted_stream_is_closed() {
    let mut hand = Hand::ready(Agent::builder().partial_messages(true)).await;
    hand.prompt(SLOW).await;
    hand.until("stream_event/content_block_delta").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let stop = hand.until("stream_event/message_stop").await;
    assert_eq!(
        stop["abandoned_blocks"],
        json!({"api_message_id": "msg_sim_0001", "from_block_index": 1})
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(
        kinds[5..],
        [
            "control_response/success",
            "assistant",
            "user",
            "stream_event/content_block_stop",
            "stream_event/message_delta",
            "stream_event/message_stop",
            "result/error_during_execution",
        ]
    );
}
