//! The draft of version 2 as an editor sees it. Each line is validated by the draft's JSON Schema, and the updates of a session by the
//! laws of its state.

use std::path::Path;

use outrigger::testing::Simulated;
use outrigger::testing::sim::script::Script;
use outrigger_acp::{Config, Protocol};
use outrigger_sim::peer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::editor::{Editor, said, updates};
use crate::schema::Version;
use crate::servers::{serving, text};

pub(crate) const QUESTION: &str = "%tool AskUserQuestion {\"questions\": [{\"question\": \"Which colour?\", \"header\": \"Colour\", \
    \"multiSelect\": false, \"options\": [{\"label\": \"Red\", \"description\": \"warm\"}, {\"label\": \"Blue\", \
    \"description\": \"cold\"}]}]}\n%say done";

fn hello(version: u16, capabilities: &Value) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities, "info": {"name": "test", "version": "1"}})
}

pub(crate) async fn meet(editor: &mut Editor, capabilities: &Value) -> Value {
    editor.version = Version::Draft;
    editor.call("initialize", hello(2, capabilities)).await
}

async fn met(cli: &Simulated, capabilities: Value) -> (Editor, Value) {
    let mut editor = Editor::of(cli);
    let told = meet(&mut editor, &capabilities).await;
    (editor, told)
}

pub(crate) async fn opened(editor: &mut Editor, cwd: &Path) -> String {
    let opened = editor.call("session/new", json!({"cwd": cwd})).await;
    opened["sessionId"].as_str().expect("an id").to_owned()
}

async fn started() -> (Editor, Simulated, String, TempDir) {
    started_with(Simulated::agent(|agent| agent.directives().real_tools(true))).await
}

async fn started_with(cli: Simulated) -> (Editor, Simulated, String, TempDir) {
    let (mut editor, _) = met(&cli, json!({"elicitation": {"form": {}}})).await;
    let home = tempfile::tempdir().unwrap();
    let session = opened(&mut editor, home.path()).await;
    (editor, cli, session, home)
}

pub(crate) fn state(line: &Value) -> Option<&str> {
    let update = &line["params"]["update"];
    let is_state = update["sessionUpdate"] == "state_update";
    update["state"].as_str().filter(|_| is_state)
}

/// All lines up to the end of the current foreground work.
pub(crate) async fn idle(editor: &mut Editor) -> Vec<Value> {
    let mut lines = Vec::new();
    loop {
        let line = editor.next().await.expect("the agent is there");
        let is_end = state(&line) == Some("idle") && line["params"]["update"].get("stopReason").is_some();
        lines.push(line);
        if is_end {
            return lines;
        }
    }
}

/// A whole turn: the lines from the prompt to the idle state.
pub(crate) async fn turn(editor: &mut Editor, session: &str, text: &str) -> Vec<Value> {
    let prompt = editor.prompt(session, text).await;
    let lines = idle(editor).await;
    laws(&lines);
    acknowledged(&lines, prompt, text);
    lines
}

/// The laws for the updates of a session.
pub(crate) fn laws(lines: &[Value]) {
    let mut is_active = false;
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        let update = &line["params"]["update"];
        match state(line) {
            Some("idle") => {
                assert_eq!(
                    update.get("stopReason").is_some(),
                    is_active,
                    "an end is told once, and says why: {line}"
                );
                is_active = false;
            }
            Some(_) => is_active = true,
            None if update["sessionUpdate"] == "user_message" => {
                assert!(is_active, "a prompt is part of work that was told of: {line}");
                let id = update["messageId"].as_str().expect("an id");
                assert!(!told.contains(&id), "it is told back once: {line}");
                told.push(id);
            }
            None if update["sessionUpdate"] == "agent_message_chunk" => {
                assert!(is_active, "the model speaks while it works: {line}");
            }
            None => {}
        }
        if state(line).is_some() {
            assert!(update["background"].is_array(), "{line}");
        }
    }
}

/// The prompt was answered once, with the id of its message.
pub(crate) fn acknowledged(lines: &[Value], prompt: i64, text: &str) {
    let answers: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("method").is_none() && line["id"] == prompt)
        .collect();
    assert_eq!(answers.len(), 1, "{lines:#?}");
    let id = &answers[0]["result"]["messageId"];
    let echoes = updates(lines, "user_message");
    let echo = echoes.iter().find(|echo| echo["messageId"] == *id);
    let echo = echo.unwrap_or_else(|| panic!("{id} was not told back: {lines:#?}"));
    assert_eq!(echo["content"], json!([{"type": "text", "text": text}]));
}

pub(crate) fn end(lines: &[Value]) -> &Value {
    &lines.last().expect("lines")["params"]["update"]
}

pub(crate) fn states(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(state).collect()
}

#[tokio::test]
async fn the_version_is_the_one_that_was_asked_for() {
    for (protocol, asked, given) in [
        (Protocol::Auto, 1, Ok(1)),
        (Protocol::Auto, 0, Ok(1)),
        (Protocol::Auto, 2, Ok(2)),
        (Protocol::Auto, 9, Ok(2)),
        (Protocol::V1, 1, Ok(1)),
        (Protocol::V1, 2, Ok(1)),
        (Protocol::V2, 2, Ok(2)),
        (Protocol::V2, 1, Err(-32022)),
    ] {
        let cli = Simulated::agent(|agent| agent.directives());
        let mut editor = Editor::with(Config::new().options(cli.options()).protocol(protocol));
        if given == Ok(2) {
            editor.version = Version::Draft;
        }
        let mut params = hello(asked, &json!({}));
        params["clientCapabilities"] = json!({});
        let id = editor.ask_badly("initialize", params).await;
        let (_, answer) = editor.until(id).await;
        match given {
            Ok(version) => assert_eq!(
                answer["result"]["protocolVersion"], version,
                "{protocol:?} {asked}"
            ),
            Err(code) => assert_eq!(answer["error"]["code"], code, "{protocol:?} {asked}: {answer}"),
        }
        editor.leave().await;
    }
}

#[tokio::test]
async fn the_agent_says_what_it_can_without_a_process() {
    let cli = Simulated::agent(|agent| agent.directives());
    let (mut editor, told) = met(&cli, json!({"auth": {"terminal": {}}})).await;
    assert_eq!(told["info"]["name"], "outrigger-acp");
    let session = &told["capabilities"]["session"];
    assert!(
        session["prompt"]["image"].is_object() && session["prompt"].get("audio").is_none(),
        "{told:#}"
    );
    assert_eq!(told["authMethods"][0]["type"], "terminal");
    assert!(cli.started().is_empty());
    // The editor signs in by itself, in a terminal.
    let refused = editor
        .refused("auth/login", json!({"methodId": "claude-ai-login"}))
        .await;
    assert_eq!(refused["code"], -32602);
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_is_acknowledged_told_back_and_ended_by_the_state() {
    let (mut editor, _cli, session, _home) = started().await;
    for text in ["%say hello, editor", "%say again"] {
        let lines = turn(&mut editor, &session, text).await;
        assert_eq!(states(&lines), ["running", "idle"]);
        assert_eq!(said(&lines), text["%say ".len()..]);
        let end = end(&lines);
        assert_eq!(end["stopReason"], "end_turn");
        assert!(
            end["usage"]["totalTokens"]
                .as_u64()
                .is_some_and(|tokens| tokens > 0),
            "{end}"
        );
        assert!(end["_meta"]["quota"].is_object(), "{end}");
    }
    editor.leave().await;
}

#[tokio::test]
async fn a_call_waits_for_its_permission_and_says_so() {
    let (mut editor, _cli, session, home) = started().await;
    for (choice, status, is_there) in [("reject", "failed", false), ("allow-once", "completed", true)] {
        editor.answer =
            Box::new(move |_| Some(json!({"outcome": {"outcome": "selected", "optionId": choice}})));
        let file = home.path().join("a.txt");
        let text = format!("%tool Write {{\"file_path\": {file:?}, \"content\": \"hello\"}}\n%say done");
        let lines = turn(&mut editor, &session, &text).await;
        assert_eq!(
            states(&lines),
            ["running", "requires_action", "running", "idle"],
            "{lines:#?}"
        );
        let at = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted).expect("it is there");
        let question = at(&|line| line["method"] == "session/request_permission");
        let asked = &lines[question]["params"];
        assert!(
            asked["title"]
                .as_str()
                .is_some_and(|title| title.contains("a.txt")),
            "{asked:#}"
        );
        assert_eq!(asked["subject"]["type"], "tool_call");
        let call = &asked["subject"]["toolCall"]["toolCallId"];
        let calls = updates(&lines, "tool_call_update");
        let of_it: Vec<_> = calls
            .iter()
            .filter(|update| update["toolCallId"] == *call)
            .collect();
        assert_eq!(of_it.last().expect("updates")["status"], status, "{of_it:#?}");
        assert_eq!(of_it[0]["name"], "Write");
        // The call comes before the question, and the state `requires_action` after both.
        let told = at(&|line| line["params"]["update"]["toolCallId"] == *call);
        assert!(told < question && question < at(&|line| state(line) == Some("requires_action")));
        assert_eq!(file.exists(), is_there);
    }
    editor.leave().await;
}

#[tokio::test]
async fn a_choice_that_was_not_offered_is_no_leave() {
    let (mut editor, _cli, session, home) = started().await;
    for outcome in [
        json!({"outcome": "selected", "optionId": "everything"}),
        json!({"outcome": "_shrug"}),
    ] {
        let answer = json!({"outcome": outcome});
        editor.answer = Box::new(move |_| Some(answer.clone()));
        let file = home.path().join("a.txt");
        let text = format!("%tool Write {{\"file_path\": {file:?}, \"content\": \"hello\"}}\n%say done");
        let lines = turn(&mut editor, &session, &text).await;
        assert!(!file.exists(), "{lines:#?}");
    }
    editor.leave().await;
}

#[tokio::test]
async fn questions_are_forms() {
    let (mut editor, _cli, session, _home) = started().await;
    editor.answer = Box::new(|question| {
        assert_eq!(question["method"], "elicitation/create", "{question:#}");
        assert_eq!(question["params"]["mode"], "form");
        Some(json!({"action": "accept", "content": {"question_0": "Blue"}}))
    });
    let lines = turn(&mut editor, &session, QUESTION).await;
    assert_eq!(states(&lines), ["running", "requires_action", "running", "idle"]);
    let calls = updates(&lines, "tool_call_update");
    let last = calls.last().expect("a call");
    assert_eq!(last["status"], "completed", "{calls:#?}");
    assert!(
        last.to_string().contains("Blue") || calls.iter().any(|call| call.to_string().contains("Blue")),
        "{calls:#?}"
    );
    editor.leave().await;
}

#[tokio::test]
async fn a_cancel_ends_the_work_and_gives_back_what_was_not_begun() {
    let (mut editor, _cli, session, _home) = started().await;
    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    let waiting = editor.prompt(&session, "%say never").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let mut lines = idle(&mut editor).await;
    assert_eq!(end(&lines)["stopReason"], "cancelled");
    acknowledged(&lines, running, "%hang\n%say beginning");
    let is_refusal = |line: &Value| line["id"] == waiting && line.get("error").is_some();
    if !lines.iter().any(is_refusal) {
        lines.push(editor.wait_for(is_refusal).await);
    }
    let refusal = lines.iter().find(|line| is_refusal(line)).expect("a refusal");
    assert_eq!(refusal["error"]["code"], -32800);
    laws(&lines);
    assert!(!said(&lines).contains("never"));
    // Without a prompt, a cancel has no effect.
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let lines = turn(&mut editor, &session, "%say on we go").await;
    assert_eq!(end(&lines)["stopReason"], "end_turn");
    editor.leave().await;
}

#[tokio::test]
async fn an_editor_that_cancels_while_it_is_asked_gets_the_call_back() {
    let (mut editor, _cli, session, home) = started().await;
    let file = home.path().join("a.txt");
    let text = format!("%tool Write {{\"file_path\": {file:?}, \"content\": \"hello\"}}\n%say done");
    editor.prompt(&session, &text).await;
    let question = editor
        .wait_for(|line| line["method"] == "session/request_permission")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    editor
        .reply(&question, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    let lines = idle(&mut editor).await;
    laws(&lines);
    assert_eq!(end(&lines)["stopReason"], "cancelled");
    let calls = updates(&lines, "tool_call_update");
    let status = calls.iter().rev().find_map(|call| call["status"].as_str());
    assert!(matches!(status, Some("cancelled" | "failed")), "{calls:#?}");
    assert!(!file.exists());
    editor.leave().await;
}

#[tokio::test]
async fn prompts_wait_their_turn_and_one_can_be_taken_back_until_then() {
    let (mut editor, _cli, session, _home) = started().await;
    let first = editor.prompt(&session, "%slow 20 chunk=1\n%say slowly").await;
    let second = editor.prompt(&session, "%say never").await;
    let third = editor.prompt(&session, "%say then").await;
    editor
        .notify("$/cancel_request", json!({"requestId": second}))
        .await;
    let mut lines = idle(&mut editor).await;
    lines.extend(idle(&mut editor).await);
    laws(&lines);
    acknowledged(&lines, first, "%slow 20 chunk=1\n%say slowly");
    acknowledged(&lines, third, "%say then");
    let refused = lines.iter().find(|line| line["id"] == second).expect("an answer");
    assert_eq!(refused["error"]["code"], -32800);
    assert_eq!(states(&lines), ["running", "idle", "running", "idle"]);
    assert_eq!(said(&lines), "slowlythen");
    editor.leave().await;
}

/// What was said before it may be held back for a moment.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_joins_a_turn_comes_behind_what_was_said_before_it() {
    // Nothing is shown of the call, and the context stays as full as it is: nothing else sends the words.
    let script = "prompts:
  - prompt: first
    steps: [{say: words}]
  - prompt: go
    steps: [{pace: {chunk: 3, every: 2ms}}, {say: held words}, {call: {tool: TaskList, input: {}, result: none}}, {say: on}]
";
    let cli = Simulated::script(Script::from_yaml(script).unwrap());
    let mut editor = Editor::of(&cli);
    meet(&mut editor, &json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let session = opened(&mut editor, home.path()).await;
    turn(&mut editor, &session, "first").await;
    editor.prompt(&session, "go").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "joins"}],
        "_meta": {"claudeCode": {"delivery": "steer"}}});
    editor.ask("session/prompt", params).await;
    let lines = idle(&mut editor).await;
    laws(&lines);
    let echo = |line: &Value| line["params"]["update"]["content"][0]["text"] == "joins";
    let joined = lines.iter().position(echo).expect("the prompt joins the turn");
    assert_eq!(said(&lines[..joined]), "held words", "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_that_is_folded_in_ends_with_the_turn_once() {
    let (mut editor, _cli, session, _home) = started().await;
    editor
        .prompt(
            &session,
            "%slow 20 chunk=1\n%say a longer answer that takes its time",
        )
        .await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say steered"}],
        "_meta": {"claudeCode": {"delivery": "steer"}}});
    let steered = editor.ask("session/prompt", params).await;
    let mut lines = idle(&mut editor).await;
    // The CLI may have ended the turn before it read the cancel.
    if !lines.iter().any(|line| line["id"] == steered) {
        lines.extend(idle(&mut editor).await);
    }
    laws(&lines);
    acknowledged(&lines, steered, "%say steered");
    editor.leave().await;
}

#[tokio::test]
async fn what_fails_ends_the_work_with_an_error() {
    let (mut editor, cli, session, _home) = started().await;
    let lines = turn(
        &mut editor,
        &session,
        "%error 400 n=9 msg=\"no such thing\"\n%say never",
    )
    .await;
    assert_eq!(end(&lines)["stopReason"], "error", "{lines:#?}");
    assert!(end(&lines)["error"]["message"].is_string());
    let running = editor.prompt(&session, "%hang\n%say two").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    cli.started()[0].signal(peer::Signal::Kill);
    let lines = idle(&mut editor).await;
    laws(&lines);
    acknowledged(&lines, running, "%hang\n%say two");
    assert_eq!(end(&lines)["stopReason"], "error");
    let lines = turn(&mut editor, &session, "%say back").await;
    assert_eq!(said(&lines), "back");
    editor.leave().await;
}

#[tokio::test]
async fn closing_ends_the_work_before_it_is_answered() {
    let (mut editor, cli, session, _home) = started().await;
    editor.prompt(&session, "%hang\n%say one").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let close = editor.ask("session/close", json!({"sessionId": session})).await;
    let (lines, answer) = editor.until(close).await;
    assert!(answer["result"].is_object(), "{answer}");
    laws(&lines);
    let ends: Vec<_> = lines.iter().filter(|line| state(line) == Some("idle")).collect();
    assert_eq!(ends.len(), 1, "{lines:#?}");
    assert_eq!(ends[0]["params"]["update"]["stopReason"], "cancelled");
    assert!(cli.started()[0].exited().is_some());
    // A session that is not open counts as closed.
    editor.call("session/close", json!({"sessionId": session})).await;
    editor.leave().await;
}

#[tokio::test]
async fn what_can_be_chosen_are_options() {
    let (mut editor, _cli, _, home) = started().await;
    let opened = editor.call("session/new", json!({"cwd": home.path()})).await;
    let session = opened["sessionId"].as_str().expect("an id");
    let ids: Vec<&str> = opened["configOptions"]
        .as_array()
        .expect("options")
        .iter()
        .filter_map(|option| option["configId"].as_str())
        .collect();
    assert_eq!(&ids[..2], ["mode", "model"]);
    let choice = json!({"sessionId": session, "configId": "mode", "type": "id", "value": "plan"});
    let set = editor.call("session/set_config_option", choice).await;
    assert_eq!(set["configOptions"][0]["currentValue"], "plan");
    let odd = json!({"sessionId": session, "configId": "colour", "type": "id", "value": "red"});
    let refused = editor.refused("session/set_config_option", odd).await;
    assert_eq!(refused["data"]["parameter"], "configId");
    editor.leave().await;
}

#[tokio::test]
async fn what_the_draft_does_not_have_is_refused() {
    let (mut editor, _cli, session, home) = started().await;
    let sse = json!([{"type": "sse", "name": "a", "url": "http://127.0.0.1:1/", "headers": []}]);
    let refused = editor
        .refused("session/new", json!({"cwd": home.path(), "mcpServers": sse}))
        .await;
    assert_eq!(refused["data"]["parameter"], "mcpServers[0]", "{refused}");
    let odd = json!({"sessionId": session, "cwd": home.path(), "replayFrom": {"type": "_middle"}});
    let refused = editor.refused("session/resume", odd).await;
    assert_eq!(refused["data"]["parameter"], "replayFrom", "{refused}");
    let odd = json!({"sessionId": session, "prompt": [{"type": "_smell"}]});
    let refused = editor.refused("session/prompt", odd).await;
    assert_eq!(refused["data"]["parameter"], "prompt[0]", "{refused}");
    for (method, params) in [
        (
            "session/load",
            json!({"sessionId": session, "cwd": home.path(), "mcpServers": []}),
        ),
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": "plan"}),
        ),
    ] {
        assert_eq!(editor.refused(method, params).await["code"], -32601, "{method}");
    }
    let nobody = json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "hello"}]});
    assert_eq!(editor.refused("session/prompt", nobody).await["code"], -32002);
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_reads_late_misses_nothing() {
    let (mut editor, _cli, session, _home) = started().await;
    let words: Vec<String> = (0..3000).map(|number| format!("word{number:04}")).collect();
    let text = words.join(" ");
    editor
        .prompt(&session, &format!("%slow 0 chunk=9\n%say {text}"))
        .await;
    // The paused clock advances only when no task can run: nothing more can be written.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let lines = idle(&mut editor).await;
    laws(&lines);
    assert_eq!(said(&lines), text);
    editor.leave().await;
}

#[tokio::test]
async fn what_else_editors_ask() {
    let home = tempfile::tempdir().unwrap();
    let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
    let options = cli.options().env("CLAUDE_CONFIG_DIR", home.path().join("config"));
    let mut editor = Editor::of_options(options);
    meet(&mut editor, &json!({})).await;
    let session = opened(&mut editor, home.path()).await;
    turn(&mut editor, &session, "%say one").await;
    let lines = turn(&mut editor, &session, "%say two").await;
    let this = json!({"sessionId": session});
    assert_eq!(
        editor.call("session/status", this.clone()).await["status"],
        "open"
    );

    // Rewinds to before the second prompt, by its message id.
    let prompt = &updates(&lines, "user_message")[0]["messageId"];
    let back = json!({"sessionId": session, "messageId": prompt, "files": false});
    let id = editor.ask_badly("_session/rewind", back).await;
    let (_, answer) = editor.until(id).await;
    assert_eq!(answer["result"]["canRewind"], true, "{answer:#}");
    let lines = turn(&mut editor, &session, "%say three").await;
    assert_eq!(said(&lines), "three");

    let title = json!({"sessionId": session, "title": "A title"});
    assert_eq!(editor.call("session/set_title", title).await["title"], "A title");
    editor.call("session/archive", this.clone()).await;
    assert_eq!(
        editor.call("session/status", this.clone()).await["status"],
        "saved"
    );
    let listed = editor.call("session/list", json!({"cwd": home.path()})).await;
    assert_eq!(listed["sessions"], json!([]));
    let all = json!({"cwd": home.path(), "archived": "include"});
    let listed = editor.call("session/list", all).await;
    assert_eq!(listed["sessions"][0]["title"], "A title", "{listed:#}");
    assert_eq!(listed["sessions"][0]["archived"], true);
    editor.call("session/unarchive", this).await;

    // The replay has the kept messages and not the removed ones.
    let resume = json!({"sessionId": session, "cwd": home.path(), "replayFrom": {"type": "start"}});
    let id = editor.ask("session/resume", resume).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer["result"].is_object(), "{answer:#}");
    assert_eq!(said(&lines), "onethree");
    assert_eq!(lines.last().and_then(state), Some("idle"), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn servers_in_the_editor_are_reached() {
    let (mut editor, _cli, _, home) = started().await;
    editor.answer = serving(|params| Some(text(params["arguments"]["text"].as_str().unwrap())));
    let server = json!({"type": "acp", "name": "My Tools", "serverId": "tools-1"});
    let opened = editor
        .call("session/new", json!({"cwd": home.path(), "mcpServers": [server]}))
        .await;
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let call = "%tool mcp__My_Tools__echo {\"text\": \"from the editor\"}\n%say done";
    let lines = turn(&mut editor, &session, call).await;
    assert_eq!(said(&lines), "done");
    let calls = updates(&lines, "tool_call_update");
    assert!(
        calls
            .iter()
            .any(|call| call["status"] == "completed" && call.to_string().contains("from the editor")),
        "{calls:#?}"
    );
    editor.leave().await;
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// With a paused clock no tool runs a real process, as the clock would not wait for it.
#[tokio::test(start_paused = true)]
async fn whatever_happens_each_prompt_is_answered_once_and_the_session_idles() {
    for seed in 0..16 {
        let mut dice = Dice(seed);
        let cli = Simulated::agent(|agent| agent.directives());
        let (mut editor, _cli, session, _home) = started_with(cli).await;
        editor.answer =
            Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
        let mut prompts: Vec<(i64, String)> = Vec::new();
        for number in 0..8 {
            let text = match dice.roll(8) {
                0 | 1 => format!("%say word {number}"),
                2 => format!("%slow 5 chunk=2\n%say slow word {number}"),
                3 => format!("%hang\n%say hanging {number}"),
                4 => format!("%error 400 n=9\n%say never {number}"),
                5 => format!("%tool Bash {{\"command\": \"true\"}}\n%say ran {number}"),
                6 => {
                    editor
                        .notify("session/cancel", json!({"sessionId": session}))
                        .await;
                    continue;
                }
                _ => {
                    if let Some((id, _)) = prompts.last() {
                        editor.notify("$/cancel_request", json!({"requestId": id})).await;
                    }
                    continue;
                }
            };
            let how = ["queue", "queue", "steer", "now"][dice.roll(4) as usize];
            let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}],
                "_meta": {"claudeCode": {"delivery": how}}});
            prompts.push((editor.ask("session/prompt", params).await, text));
            tokio::time::sleep(std::time::Duration::from_millis(dice.roll(40))).await;
        }
        // Hanging turns end in no other way.
        editor
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
        let status = editor.ask("session/status", json!({"sessionId": session})).await;
        let mut open: Vec<i64> = prompts.iter().map(|(id, _)| *id).chain([status]).collect();
        let (mut lines, mut is_idle) = (Vec::new(), true);
        while !(open.is_empty() && is_idle) {
            let line = editor.next().await.expect("the agent is there");
            if line.get("method").is_none() {
                open.retain(|id| line["id"] != *id);
            }
            is_idle = state(&line).map_or(is_idle, |state| state == "idle");
            lines.push(line);
        }
        laws(&lines);
        for (id, text) in &prompts {
            let answer = lines
                .iter()
                .find(|line| line.get("method").is_none() && line["id"] == *id);
            match answer.and_then(|answer| answer.get("error")) {
                None => acknowledged(&lines, *id, text),
                Some(error) => assert_eq!(error["code"], -32800, "seed {seed}: {error}"),
            }
        }
        let told = lines
            .iter()
            .filter(|line| line["params"]["update"]["sessionUpdate"] == "user_message")
            .count();
        let begun = lines
            .iter()
            .filter(|line| line["result"]["messageId"].is_string())
            .count();
        assert_eq!(told, begun, "seed {seed}");
        let last = turn(&mut editor, &session, "%say and on").await;
        assert_eq!(end(&last)["stopReason"], "end_turn", "seed {seed}");
        editor.leave().await;
    }
}
