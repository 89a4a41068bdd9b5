//! The pinned `claude` with a scripted API: loops of tool calls, and every fault once.

use std::error::Error;
use std::time::Duration;

use outrigger_sim::api::{MessagesApi, RequestOutcome};
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, executable};
use outrigger_sim::script::{Expect, Script, ScriptPlayer};
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
    let script = Script::from_yaml(
        r"
prompts:
  - prompt: {regex: '^look at (?<what>\w+)$'}
    steps:
      - think: A look first.
      - say: I look.
      - usage: {input: 7, output: 3}
      - call: {tool: Bash, input: {command: 'echo found {{what}}', description: Look}}
      - assert: {result: found it, is_error: false}
      - subagent: {description: x, prompt: go below, steps: [{say: from below}]}
      - call: {tool: Agent, input: {description: y, prompt: go deeper, run_in_background: false}}
      - say: '{{result}}'
  - {prompt: go deeper, from: subagent, steps: [say: from the ground]}
expect:
  sessions: 3
  subagents: 6
  api_requests: 18
  prompts: 3
  tools: [{tool: Bash, times: 3, is_error: false}, {tool: Agent, times: 6}]
  tool_results: [found it, {contains: from below}]
",
    )?;
    let api = MessagesApi::builder().script(script)?.start().await?;
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
        assert!(said.contains("from the ground"), "{}", claude.transcript());
        claude.finish().await?;
    }
    api.verdict()?;
    Ok(())
}

/// Each fault, what became of the request, and whether the CLI tells of it.
#[tokio::test]
async fn the_cli_gets_over_every_fault() -> Outcomes {
    let retried = |status| Some(json!(status));
    let cases: [(&str, RequestOutcome, Option<Value>); 8] = [
        (
            "api_error: {status: 529, times: 1}",
            RequestOutcome::Answered(529),
            retried(529),
        ),
        (
            "api_error: {status: 429, retry_after: 1, times: 1}",
            RequestOutcome::Answered(429),
            retried(429),
        ),
        ("drop", RequestOutcome::Broken, Some(Value::Null)),
        ("cut", RequestOutcome::Broken, Some(Value::Null)),
        ("truncated", RequestOutcome::Answered(200), None),
        ("malformed_event", RequestOutcome::Answered(200), None),
        (
            "error_event: overloaded_error",
            RequestOutcome::Answered(200),
            None,
        ),
        ("content_type: text/html", RequestOutcome::Answered(200), None),
    ];
    for (fault, outcome, retry) in cases {
        // A stream is a stream, whatever the proxy calls it; and what comes before the first byte has nothing before it.
        let half = match fault {
            "drop" => "",
            fault if fault.starts_with("api_error") || fault.starts_with("content_type") => "",
            _ => "      - say: half of it\n",
        };
        let script =
            format!("prompts:\n  - prompt: hi\n    steps:\n{half}      - {fault}\n      - say: recovered\n");
        let api = MessagesApi::builder()
            .script(Script::from_yaml(&script)?)?
            .start()
            .await?;
        let sandbox = Sandbox::new()?;
        let mut claude = claude(&sandbox, &api).await?;
        claude.prompt("hi").await?;
        let turn = claude.turn().await?;
        let result = turn.last().ok_or("no result")?;
        assert_eq!(
            result.value["result"],
            "recovered",
            "{fault}: {}",
            claude.transcript()
        );
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
    let script = Script::from_yaml(
        r"
prompts:
  - {prompt: one, steps: [{wait: 300ms}, {say: late}]}
  - {prompt: two, steps: [{say: never ends}, {stall}]}
  - {prompt: three, steps: [{say: held}, {wait: interrupt}, {say: never reached}]}
  - {prompt: four, steps: [say: the end]}
",
    )?;
    let api = MessagesApi::builder().script(script)?.start().await?;
    let sandbox = Sandbox::new()?;
    let mut claude = claude(&sandbox, &api).await?;
    claude.prompt("one").await?;
    assert_eq!(claude.result().await?.value["result"], "late");
    for (n, prompt) in [(2, "two"), (3, "three")] {
        claude.prompt(prompt).await?;
        api.wait_for_requests(n as u64, Duration::from_secs(60)).await?;
        claude.control(json!({"subtype": "interrupt"})).await?;
        claude.result().await?;
        api.wait_until("the CLI to hang up", Duration::from_secs(60), |requests| {
            requests[n - 1].outcome == RequestOutcome::ClientGone
        })
        .await?;
    }
    claude.prompt("four").await?;
    assert_eq!(claude.result().await?.value["result"], "the end");
    api.check(&Expect::default().sessions(1).api_requests(4).prompts(4))?;
    claude.finish().await?;
    Ok(())
}

/// The end of background work begins a turn that no prompt began: it gets the steps for it, and only once.
#[tokio::test]
async fn background_work_and_words_of_the_cli_are_no_prompts() -> Outcomes {
    let script = Script::from_yaml(
        r"
prompts:
  - prompt: go
    times: any
    steps:
      - background: {command: echo built, then: [say: it is built]}
      - subagent: {description: x, prompt: go below, background: true, steps: [{wait: 1s}, {say: below}], then: [say: it is back]}
      - say: They run.
  - {prompt: long, steps: [{say: cut short}, {stop_reason: max_tokens}, {say: continued}]}
  - {prompt: silent, steps: [{think: hm}, {stop_reason: end_turn}, {say: spoken}]}
expect: {prompts: 3, subagents: 1}
",
    )?;
    let api = MessagesApi::builder().script(script)?.start().await?;
    let sandbox = Sandbox::new()?;
    let launch = Launch::new(executable().await?, &sandbox, &api.base_url()).arg("--allowedTools=Agent,Bash");
    let mut claude = launch.spawn()?;
    claude.initialize().await?;
    claude.prompt("go").await?;
    let mut said = Vec::new();
    while !said.iter().any(|said| said == "it is back") {
        said.push(claude.result().await?.value["result"].clone());
    }
    assert!(
        said.contains(&json!("They run.")) || said.contains(&json!("it is built")),
        "{said:?}"
    );
    claude.prompt("long").await?;
    assert_eq!(claude.result().await?.value["result"], "continued");
    claude.prompt("silent").await?;
    assert_eq!(claude.result().await?.value["result"], "spoken");
    api.verdict()?;
    claude.finish().await?;
    Ok(())
}

/// A prompt that comes while a tool runs has its rule, and a loop of tool calls has an end.
#[tokio::test]
async fn prompts_are_folded_in_and_loops_end() -> Outcomes {
    let script = Script::from_yaml(
        r"
requests_per_prompt: 5
prompts:
  - {prompt: work, steps: [{call: {tool: Bash, input: {command: touch started; sleep 2, description: Work}}}, {say: worked}]}
  - {prompt: hurry, steps: [say: hurried]}
  - {prompt: loop, steps: [{call: {tool: Bash, input: {command: echo again, description: Loop}}}]}
  - {tool_result: again, times: any, steps: [{call: {tool: Bash, input: {command: echo again, description: Loop}}}]}
",
    )?;
    let api = MessagesApi::builder().script(script)?.start().await?;
    let sandbox = Sandbox::new()?;
    let launch = Launch::new(executable().await?, &sandbox, &api.base_url()).arg("--allowedTools=Bash");
    let mut claude = launch.spawn()?;
    claude.initialize().await?;
    claude.prompt("work").await?;
    let started = sandbox.project().join("started");
    while !started.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    claude.prompt("hurry").await?;
    let said = claude.result().await?.value["result"].clone();
    assert_eq!(said, "hurried", "{}", claude.transcript());
    api.verdict().unwrap_err();
    claude.prompt("loop").await?;
    let result = claude.result().await?;
    assert_eq!(result.value["is_error"], true, "{}", claude.transcript());
    let told = api.verdict().unwrap_err().to_string();
    assert!(
        told.contains("more than 5 requests came since the last prompt, \"loop\""),
        "{told}"
    );
    assert!(api.requests().len() < 20);
    claude.finish().await?;
    Ok(())
}

/// The examples that both players can play, with the prompts that they are for.
#[tokio::test]
async fn the_common_examples_are_played_by_the_real_cli() -> Outcomes {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripts");
    let mut played = Vec::new();
    for entry in std::fs::read_dir(&directory)? {
        let path = entry?.path();
        let script = Script::from_file(&path)?;
        if script.check(ScriptPlayer::Api).is_err() {
            continue;
        }
        let name = path.file_name().ok_or("no name")?.to_string_lossy().into_owned();
        let prompts: &[(&str, &str)] = match &*name {
            "hello.yaml" => &[("Hello", "Hello! What can I do for you?")],
            "weather.yaml" => &[
                ("What is the weather in Oslo?", "In Oslo it is 3 degrees."),
                ("And in Rome?", "In Rome it is 21 degrees."),
            ],
            "network.yaml" => &[
                ("Try", "The third attempt went through."),
                ("Try again", "This came at last."),
            ],
            "team.yaml" => &[("Review it", "The reader says: It does nothing.")],
            _ => return Err(format!("{name} can be played by the real CLI: say with which prompts").into()),
        };
        let api = MessagesApi::builder().script(script)?.start().await?;
        let sandbox = Sandbox::new()?;
        let launch =
            Launch::new(executable().await?, &sandbox, &api.base_url()).arg("--allowedTools=Agent,Bash");
        let mut claude = launch.spawn()?;
        claude.initialize().await?;
        for (prompt, answer) in prompts {
            claude.prompt(prompt).await?;
            let said = claude.result().await?.value["result"].clone();
            assert_eq!(said, *answer, "{name}: {}", claude.transcript());
        }
        api.verdict()?;
        claude.finish().await?;
        played.push(name);
    }
    assert_eq!(played.len(), 4, "{played:?}");
    Ok(())
}
