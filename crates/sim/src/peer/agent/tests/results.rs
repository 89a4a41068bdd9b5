//! Structured output, budgets, and what adds up.

use super::*;

fn schema() -> Value {
    json!({
        "type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["name", "n"], "additionalProperties": false,
    })
}

#[tokio::test(start_paused = true)]
async fn structured_output() {
    let mut hand = Hand::ready(Agent::builder().json_schema(&schema()).unwrap()).await;
    // A text is a number where a number belongs.
    hand.prompt("%tool StructuredOutput {\"name\":\"x\",\"n\":\"3\"}\n%say finished")
        .await;
    let init = hand.next().await;
    assert!(
        init["tools"]
            .as_array()
            .unwrap()
            .contains(&json!("StructuredOutput"))
    );
    let result = hand.until("result/success").await;
    assert_eq!(result["structured_output"], json!({"name": "x", "n": 3}));
    assert_eq!(result["result"], "{\"name\":\"x\",\"n\":3}");
    assert_eq!(result["stop_reason"], "tool_use");
    let (_, kinds) = hand.end().await;
    assert_eq!(kinds, ["system/init", "assistant", "user", "result/success"]);
}

#[tokio::test(start_paused = true)]
async fn structured_output_that_is_wrong_or_missing() {
    let mut hand = Hand::new(Agent::builder());
    hand.request(json!({"subtype": "initialize", "jsonSchema": schema()}))
        .await;
    hand.prompt(&"%tool StructuredOutput {\"name\":5}\n".repeat(8))
        .await;
    let result = hand.until("result/error_max_structured_output_retries").await;
    assert_eq!(result["terminal_reason"], "structured_output_retry_exhausted");
    assert_eq!(
        result["errors"],
        json!([
            "Failed to provide valid structured output after 5 attempts — last StructuredOutput error: Output does not match \
             required schema: root: must have required property 'n', /name: must be string"
        ])
    );
    hand.prompt("%say plain\n%say still plain").await;
    let reminder = hand.until("user").await;
    assert_eq!(reminder["isSynthetic"], true);
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "still plain");
    assert_eq!(result.get("structured_output"), None);
    assert_eq!(hand.end().await.0, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_it() {
    let mut hand = Hand::ready(Agent::builder().max_budget_usd(0.01)).await;
    hand.prompt("%usage in=100000 out=1000\n%tool Bash {\"command\":\"echo 1\"}\n%say done")
        .await;
    let result = hand.until("result/error_max_budget_usd").await;
    assert_eq!(result["errors"], json!(["Reached maximum budget ($0.01)"]));
    assert_eq!(dollars(&result["total_cost_usd"]), 0.42);
    hand.prompt("%say next").await;
    let result = hand.until("result/error_max_budget_usd").await;
    assert_eq!(result["num_turns"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "result/error_max_budget_usd",
            "system/init",
            "result/error_max_budget_usd"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn costs_add_up_by_model() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("%usage in=1000 out=100\n%say one").await;
    let first = hand.until("result/success").await;
    assert_eq!(dollars(&first["total_cost_usd"]), 0.006);
    hand.request(json!({"subtype": "set_model", "model": "sonnet"}))
        .await;
    hand.prompt("%usage in=1000 out=100\n%say two").await;
    let second = hand.until("result/success").await;
    assert_eq!(dollars(&second["total_cost_usd"]), 0.009);
    assert_eq!(
        dollars(&second["modelUsage"]["claude-sonnet-5-5"]["costUSD"]),
        0.003
    );
    assert_eq!(
        dollars(&second["modelUsage"]["claude-opus-5-5"]["costUSD"]),
        0.006
    );
    let since = second["model_usage_since_last_result"].as_object().unwrap();
    assert_eq!(since.keys().collect::<Vec<_>>(), ["claude-sonnet-5-5"]);
    assert_eq!(
        (&second["usage"]["input_tokens"], &second["result_index"]),
        (&json!(1000), &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn behind_a_response_that_only_fails_comes_what_is_next() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("%error 529 n=1").await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!("ok"), &json!(1))
    );
    hand.end().await;
}
