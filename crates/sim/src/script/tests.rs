use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::peer::{Exit as End, Report};

/// Sends these prompts, allows what is asked for, and gives the report.
async fn play(script: &AgentScript, prompts: &[&str]) -> Report {
    let (mut client, agent) = script.spawn_in_memory();
    for prompt in prompts {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        client
            .stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let results = |report: &Report| report.sent().filter(|line| line["type"] == "result").count();
        let before = results(&agent.report());
        while results(&agent.report()) == before && agent.exited().is_none() {
            for request in open_requests(&agent.report()) {
                let answer = json!({"type": "control_response", "response": {
                    "subtype": "success", "request_id": request, "response": {"behavior": "allow", "updatedInput": {}},
                }});
                client
                    .stdin
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .unwrap();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(client.stdin);
    agent.join().await
}

fn open_requests(report: &Report) -> Vec<Value> {
    let asked = report.sent().filter(|line| line["type"] == "control_request");
    let open = |id: &Value| {
        !report
            .received()
            .any(|line| line["response"]["request_id"] == *id)
    };
    asked
        .map(|line| line["request_id"].clone())
        .filter(open)
        .collect()
}

fn result(report: &Report) -> &Value {
    report
        .sent()
        .filter(|line| line["type"] == "result")
        .last()
        .unwrap()
}

const TIDY: &str = r#"
prompts:
  - prompt: {contains: tidy up}
    steps:
      - think: The log is old.
      - say: I will remove the old log.
      - call: {tool: Bash, input: {command: rm old.log, description: Remove the log}}
      - assert: {permission: allowed, prompts: 1}
      - say: Done.
expect:
  tools: [Bash]
"#;

#[tokio::test(start_paused = true)]
async fn a_script_plays_the_model_and_judges_the_client() {
    let script = AgentScript::from_yaml(TIDY).unwrap();
    let report = play(&script, &["please tidy up"]).await;
    report.content().unwrap();
    assert_eq!(result(&report)["result"], "Done.");
    assert_eq!(report.exit, Some(End::Code(0)));
    let mut kinds = report.sent_kinds();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "system/init",
            "system/thinking_tokens",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_script_does_not_expect_is_a_flaw() {
    let script = AgentScript::from_yaml(TIDY).unwrap();
    let report = play(&script, &["please clean up"]).await;
    let flaws = report.content().unwrap_err().to_string();
    assert_eq!(
        flaws,
        "script: no rule of the script is for the prompt \"please clean up\"; the nearest is at script:3:5, for something with \
         \"tidy up\"\nscript:3:5: this rule was never used\nscript:11:11: expected Bash to be called at least once, but it \
         never was"
    );
    assert_eq!(result(&report)["is_error"], true);
}
