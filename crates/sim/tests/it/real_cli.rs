//! The pinned `claude`, driven frame by frame, with the scripted API behind it.

use std::error::Error;
use std::time::Duration;

use outrigger_sim::api::{MessagesApi, Reply, RequestOutcome};
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, Seen, executable};
use outrigger_sim::script::Raw;
use outrigger_sim::script::Script;
use serde_json::{Value, json};

type Outcomes = Result<(), Box<dyn Error>>;

const SOON: Duration = Duration::from_secs(60);

struct Rig {
    api: MessagesApi,
    sandbox: Sandbox,
    launch: Launch,
}

impl Rig {
    async fn new() -> Result<Self, Box<dyn Error>> {
        let api = MessagesApi::builder().start().await?;
        let sandbox = Sandbox::new()?;
        let launch = Launch::new(executable().await?, &sandbox, &api.base_url());
        Ok(Self { api, sandbox, launch })
    }

    fn spawn(&self, arguments: &[&str]) -> Result<ClaudeProcess, Box<dyn Error>> {
        let launch = arguments
            .iter()
            .fold(self.launch.clone(), |launch, argument| launch.arg(*argument));
        Ok(launch.spawn()?)
    }
}

fn kinds(turn: &[Seen]) -> Vec<String> {
    turn.iter()
        .map(|seen| match seen.frame.subtype() {
            Some(subtype) => format!("{}/{subtype}", seen.frame.kind()),
            None => seen.frame.kind().to_owned(),
        })
        .collect()
}

fn of_kind<'a>(turn: &'a [Seen], kind: &str) -> Vec<&'a Value> {
    turn.iter()
        .filter(|seen| seen.frame.kind() == kind)
        .map(|seen| &seen.value)
        .collect()
}

#[tokio::test]
async fn one_turn() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    let answer = claude.initialize().await?;
    assert_eq!(answer["subtype"], "success");
    assert_eq!(
        answer["response"]["claude_code_version"],
        outrigger_sim::claude::pin().version
    );

    claude.prompt("%usage in=7 out=3\n%say hello").await?;
    let turn = claude.turn().await?;
    assert_eq!(kinds(&turn), ["system/init", "assistant", "result/success"]);
    assert_eq!(
        turn[1].value["message"]["content"],
        json!([{"type": "text", "text": "hello"}])
    );
    let result = &turn[2].value;
    assert_eq!(
        (&result["result"], &result["is_error"]),
        (&json!("hello"), &json!(false))
    );
    assert_eq!(
        (
            &result["usage"]["input_tokens"],
            &result["usage"]["output_tokens"]
        ),
        (&json!(7), &json!(3))
    );

    let requests = rig.api.requests();
    let [request] = &requests[..] else {
        panic!("{requests:#?}")
    };
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!(request.headers["x-api-key"], "dummy");
    assert_eq!(request.session_id(), turn[0].frame.session_id());
    assert_eq!(
        request.last_user_text().as_deref(),
        Some("%usage in=7 out=3\n%say hello")
    );
    assert!(request.stream() && request.agent_id().is_none() && request.tools().any(|tool| tool == "Bash"));

    let (status, transcript) = claude.finish().await?;
    assert!(status.success(), "{transcript}");
    assert!(rig.sandbox.config().join("projects").is_dir());
    rig.api.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn partial_messages_come_as_the_api_sends_them() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&["--include-partial-messages"])?;
    claude.initialize().await?;
    claude
        .prompt("%think let me see\n%+say half {{gate:middle}}whole")
        .await?;

    // While the reply is held, what was sent before must be out already.
    let half = claude
        .until("the first half", |seen| {
            seen.value["event"]["delta"]["text"] == "lf"
        })
        .await?;
    assert_eq!(half.value["event"]["index"], 1);
    rig.api.gate("middle").reached(1, SOON).await?;
    rig.api.gate("middle").open();

    let turn = claude.turn().await?;
    let deltas = of_kind(&turn, "stream_event")
        .into_iter()
        .filter_map(|event| event["event"]["delta"]["text"].as_str());
    assert_eq!(deltas.collect::<String>(), " whole");
    let assistants = of_kind(&turn, "assistant");
    assert_eq!(
        assistants.last().unwrap()["message"]["content"][0]["text"],
        "half whole"
    );
    assert_eq!(turn.last().unwrap().value["result"], "half whole");
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_tool_call_that_is_allowed() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    claude
        .prompt(
            "%say two calls\n%+tool Bash {\"command\":\"touch made\",\"description\":\"x\"}\n%+tool Bash {\"command\":\"echo also\",\"description\":\"y\"}\n%say saw {{last}}",
        )
        .await?;
    let request = claude.permission_request().await?;
    assert_eq!(request.value["request"]["tool_name"], "Bash");
    assert_eq!(request.value["request"]["input"]["command"], "touch made");
    assert!(!rig.sandbox.project().join("made").exists());
    claude.answer(&request, json!({"behavior": "allow"})).await?;

    let turn = claude.turn().await?;
    assert!(rig.sandbox.project().join("made").exists());
    assert_eq!(turn.last().unwrap().value["result"], "saw also");
    let requests = rig.api.wait_for_requests(2, SOON).await?;
    assert_eq!(
        requests.iter().map(|request| request.turn).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(requests[1].last_tool_result().as_deref(), Some("also"));
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn an_overloaded_api_is_asked_again() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    claude.prompt("%error 529\n%say recovered").await?;
    let turn = claude.turn().await?;
    let retry = turn
        .iter()
        .find(|seen| seen.frame.subtype() == Some("api_retry"))
        .expect("a retry is announced");
    assert_eq!(
        (&retry.value["error_status"], &retry.value["attempt"]),
        (&json!(529), &json!(1))
    );
    assert_eq!(turn.last().unwrap().value["result"], "recovered");
    let outcomes: Vec<_> = rig.api.requests().iter().map(|request| request.outcome).collect();
    assert_eq!(
        outcomes,
        [RequestOutcome::Answered(529), RequestOutcome::Answered(200)]
    );
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn broken_streams_are_asked_for_again() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    for (fault, outcome) in [
        ("%cut", RequestOutcome::Broken),
        ("%drop", RequestOutcome::Broken),
        ("%sse-error overloaded_error", RequestOutcome::Answered(200)),
    ] {
        let before = rig.api.requests().len();
        claude
            .prompt(&format!("{fault}\n%say recovered from {fault}"))
            .await?;
        let result = claude.result().await?;
        assert_eq!(result.value["result"], format!("recovered from {fault}"));
        let outcomes: Vec<_> = rig.api.requests()[before..]
            .iter()
            .map(|request| request.outcome)
            .collect();
        assert_eq!(outcomes, [outcome, RequestOutcome::Answered(200)], "{fault}");
    }
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn an_interrupt_hangs_up_on_the_api() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    rig.api.push(Reply::new().hold("start").and_say("never"));
    claude.prompt("hi").await?;
    rig.api.gate("start").reached(1, SOON).await?;
    claude.control(json!({"subtype": "interrupt"})).await?;
    let result = claude.result().await?;
    assert_eq!(
        result.value["terminal_reason"],
        "aborted_streaming",
        "{}",
        claude.transcript()
    );
    rig.api
        .wait_until("the CLI to hang up", SOON, |requests| {
            requests[0].outcome == RequestOutcome::ClientGone
        })
        .await?;
    let (status, _) = claude.finish().await?;
    assert_eq!(status.code(), Some(1));
    Ok(())
}

#[tokio::test]
async fn subagents_and_several_processes_share_one_server() -> Outcomes {
    let rig = Rig::new().await?;
    let mut first = rig.spawn(&["--allowedTools=Agent"])?;
    let mut second = rig.spawn(&[])?;
    first.initialize().await?;
    second.initialize().await?;
    let agent = json!({"description": "x", "prompt": "%say from below", "run_in_background": false});
    first.prompt(&format!("%tool Agent {agent}\n%say above")).await?;
    second.prompt("%say beside").await?;
    assert_eq!(second.result().await?.value["result"], "beside");
    assert_eq!(first.result().await?.value["result"], "above");
    let requests = rig.api.requests();
    let below: Vec<_> = requests
        .iter()
        .filter(|request| request.agent_id().is_some())
        .collect();
    assert_eq!(below.len(), 1, "{requests:#?}");
    assert_eq!(below[0].last_user_text().as_deref(), Some("%say from below"));
    let sessions: std::collections::BTreeSet<_> = requests
        .iter()
        .filter_map(|request| request.session_id())
        .collect();
    assert_eq!((requests.len(), sessions.len()), (4, 2));
    first.finish().await?;
    second.finish().await?;
    Ok(())
}

#[tokio::test]
async fn scripts_go_on_through_what_the_cli_asks_of_itself() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    // It asks a model that was cut short to go on, and one that said nothing to say something.
    claude
        .prompt("%stop max_tokens\n%say cut short\n%say continued")
        .await?;
    assert_eq!(claude.result().await?.value["result"], "continued");
    claude.prompt("%json []\n%say after nothing").await?;
    assert_eq!(claude.result().await?.value["result"], "after nothing");
    // A lone surrogate comes back with the next request.
    rig.api
        .push(Reply::new().step(Raw::Block(r#"{"type":"text","text":"lone \ud83d end"}"#.into())));
    claude.prompt("hi").await?;
    assert_eq!(claude.result().await?.value["result"], "lone \u{fffd} end");
    claude.prompt("%say still here").await?;
    assert_eq!(claude.result().await?.value["result"], "still here");
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn prompts_during_a_turn_do_not_displace_its_script() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&[])?;
    claude.initialize().await?;
    claude
        .prompt(
            "%say {{gate:hold}}first\n%+tool Bash {\"command\":\"echo x\",\"description\":\"x\"}\n%say last",
        )
        .await?;
    rig.api.gate("hold").reached(1, SOON).await?;
    claude.prompt("%say folded").await?;
    // Answered after the prompt was read, since stdin is read in order.
    claude.control(json!({"subtype": "mcp_status"})).await?;
    rig.api.gate("hold").open();
    assert_eq!(claude.result().await?.value["result"], "last");
    assert_eq!(rig.api.request_count(), 2);
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_stream_that_hangs_keeps_what_it_said() -> Outcomes {
    let rig = Rig::new().await?;
    let mut claude = rig.spawn(&["--include-partial-messages"])?;
    claude.initialize().await?;
    claude.prompt("%hang\n%say never ends").await?;
    claude
        .until("the text", |seen| seen.value["event"]["delta"]["text"] == "ds")
        .await?;
    claude.control(json!({"subtype": "interrupt"})).await?;
    let turn = claude.turn().await?;
    assert_eq!(
        of_kind(&turn, "assistant")[0]["message"]["content"][0]["text"],
        "never ends"
    );
    claude.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_gate_of_a_script_is_opened_by_its_name_or_by_a_file() -> Outcomes {
    let gates = tempfile::tempdir()?;
    let script = Script::from_yaml(
        "prompts: [{steps: [wait: {gate: a}, say: first]}, {steps: [wait: {gate: b}, say: second]}]",
    )?;
    let api = MessagesApi::builder()
        .gate_files(gates.path())
        .script(script)?
        .start()
        .await?;
    let sandbox = Sandbox::new()?;
    let mut claude = Launch::new(executable().await?, &sandbox, &api.base_url()).spawn()?;
    claude.initialize().await?;

    claude.prompt("one").await?;
    tokio::time::timeout(SOON, api.gates().gate("a").arrival()).await?;
    assert!(gates.path().join("a.reached").exists());
    api.gates().open("a");
    assert_eq!(claude.result().await?.value["result"], "first");

    claude.prompt("two").await?;
    tokio::time::timeout(SOON, api.gates().gate("b").arrival()).await?;
    std::fs::write(gates.path().join("b"), "")?;
    assert_eq!(claude.result().await?.value["result"], "second");
    claude.finish().await?;
    Ok(())
}
