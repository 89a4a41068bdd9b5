//! The pinned `claude` with a scripted API: loops of tool calls, and every fault once.

use std::error::Error;
use std::time::Duration;

use outrigger_sim::api::script::{ApiExpect, ApiScript};
use outrigger_sim::api::{MessagesApi, Outcome};
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, executable};
use serde_json::{Value, json};

type Outcomes = Result<(), Box<dyn Error>>;

async fn claude(sandbox: &Sandbox, api: &MessagesApi) -> Result<ClaudeProcess, Box<dyn Error>> {
    let launch = Launch::new(executable().await?, sandbox, &api.base_url());
    let mut claude = launch.spawn()?;
    claude.initialize().await?;
    Ok(claude)
}

#[tokio::test]
async fn several_processes_play_one_script_at_once() -> Outcomes {
    let script = ApiScript::from_yaml(
        r"
conversations:
  - prompt: {contains: look}
    from: main
    replies:
      - think: A look first.
        say: I look.
        call: {tool: Bash, input: {command: echo found, description: Look}}
        usage: {input: 7, output: 3}
      - call: {tool: Agent, input: {description: x, prompt: go below, run_in_background: false}}
      - '{{last}}'
  - prompt: {contains: go below}
    from: subagent
    replies: [from below]
expect:
  sessions: 3
  subagents: 3
  requests: 12
  prompts: [look at it, go below]
  tool_results: [found, {contains: from below}]
",
    )?;
    let api = MessagesApi::builder().script(script).start().await?;
    let sandboxes = [Sandbox::new()?, Sandbox::new()?, Sandbox::new()?];
    let mut running = Vec::new();
    for sandbox in &sandboxes {
        let launch =
            Launch::new(executable().await?, sandbox, &api.base_url()).arg("--allowedTools=Agent,Bash");
        let mut claude = launch.spawn()?;
        claude.initialize().await?;
        claude.prompt("look at it").await?;
        running.push(claude);
    }
    for mut claude in running {
        let result = claude.result().await?;
        let said = result.value["result"].as_str().unwrap_or_default();
        assert!(said.contains("from below"), "{}", claude.transcript());
        claude.finish().await?;
    }
    api.verdict()?;
    Ok(())
}

/// Each fault, what became of the request, and whether the CLI tells of it.
#[tokio::test]
async fn the_cli_gets_over_every_fault() -> Outcomes {
    let retried = |status| Some(json!(status));
    let cases: [(&str, Outcome, Option<Value>); 8] = [
        ("{http: {status: 529}}", Outcome::Answered(529), retried(529)),
        (
            "{http: {status: 429, retry_after: 1}}",
            Outcome::Answered(429),
            retried(429),
        ),
        ("drop", Outcome::Broken, Some(Value::Null)),
        ("cut", Outcome::Broken, Some(Value::Null)),
        ("truncated", Outcome::Answered(200), None),
        ("malformed_event", Outcome::Answered(200), None),
        ("{error_event: overloaded_error}", Outcome::Answered(200), None),
        ("{content_type: text/html}", Outcome::Answered(200), None),
    ];
    for (fault, outcome, retry) in cases {
        let script = format!(
            "conversations:\n  - replies:\n      - say: half of it\n        fault: {fault}\n      - {{say: recovered, times: 3}}\nexpect: {{every_reply_given: false}}\n"
        );
        let api = MessagesApi::builder()
            .script(ApiScript::from_yaml(&script)?)
            .start()
            .await?;
        let sandbox = Sandbox::new()?;
        let mut claude = claude(&sandbox, &api).await?;
        claude.prompt("hi").await?;
        let turn = claude.turn().await?;
        let result = turn.last().ok_or("no result")?;
        // A stream is a stream, whatever the proxy calls it.
        let said = if fault.contains("html") {
            "half of it"
        } else {
            "recovered"
        };
        assert_eq!(result.value["result"], said, "{fault}: {}", claude.transcript());
        let told = turn.iter().find(|seen| seen.frame.subtype() == Some("api_retry"));
        if let Some(status) = retry {
            let told = told.ok_or_else(|| format!("{fault}: no retry is announced"))?;
            assert_eq!(told.value["error_status"], status, "{fault}");
        }
        assert_eq!(api.requests()[0].outcome, outcome, "{fault}");
        api.verdict()?;
        claude.finish().await?;
    }
    Ok(())
}

#[tokio::test]
async fn slow_and_stalled_replies_are_waited_for_and_given_up() -> Outcomes {
    let script = ApiScript::from_yaml(
        "conversations:\n  - replies:\n      - {say: late, first_byte_after: 300ms}\n      - {say: never ends, fault: stall}\n",
    )?;
    let api = MessagesApi::builder().script(script).start().await?;
    let sandbox = Sandbox::new()?;
    let mut claude = claude(&sandbox, &api).await?;
    claude.prompt("one").await?;
    assert_eq!(claude.result().await?.value["result"], "late");
    claude.prompt("two").await?;
    api.wait_for_requests(2, Duration::from_secs(60)).await?;
    claude.control(json!({"subtype": "interrupt"})).await?;
    claude.result().await?;
    api.wait_until("the CLI to hang up", Duration::from_secs(60), |requests| {
        requests[1].outcome == Outcome::ClientGone
    })
    .await?;
    api.check(&ApiExpect::new().sessions(1).requests(2))?;
    claude.finish().await?;
    Ok(())
}
