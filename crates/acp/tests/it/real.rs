//! The agent with the real CLI, against a scripted API.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger::Agent;
use outrigger::options::{Auth, Isolation, Secret};
use outrigger_acp::Config;
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Sandbox, executable};
use serde_json::json;

use crate::draft;
use crate::editor::{Editor, PATIENCE, said, updates};
use crate::servers::{serving, text};

pub(crate) struct Rig {
    pub(crate) api: MessagesApi,
    pub(crate) sandbox: Sandbox,
    pub(crate) config: Config,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let api = MessagesApi::builder()
            .directives(true)
            .start()
            .await
            .expect("the API starts");
        let sandbox = Sandbox::new().expect("a directory");
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
            .cli_path(executable().await.expect("the pinned CLI"));
        for (name, value) in sandbox.env(&api.base_url()) {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        Self {
            api,
            sandbox,
            config: Config::new().options(options),
        }
    }

    pub(crate) fn editor(&self) -> Editor {
        Editor::with(self.config.clone())
    }

    /// A sandbox with everything that the CLI loads for a user.
    pub(crate) fn interactive(mut self) -> Self {
        let options = self.config.options.clone().isolation(Isolation::Interactive);
        self.config = self.config.options(options);
        self
    }

    /// Waits until a spare is parked: it has a directory, and has published its socket.
    pub(crate) async fn parked(&self) {
        let has = |name: &str, end: &str| {
            let found = std::fs::read_dir(self.sandbox.config().join(name));
            let mut names = found
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name());
            names.any(|name| name.to_string_lossy().ends_with(end))
        };
        let wait = async {
            while !(has("spares", "") && has("sessions", ".key")) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, wait).await;
        assert!(in_time.is_ok(), "no spare is parked");
    }
}

/// The files below a directory.
fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            _ => found.push(entry.path().to_string_lossy().into_owned()),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cli_that_is_started_ahead_is_seen_by_nobody_until_it_is_a_session() {
    let rig = Rig::start().await.interactive();
    let seen = rig.sandbox.path().join("seen");
    let hook = format!("pwd -P >> {}", seen.display());
    let settings =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": hook}]}]}}).to_string();
    std::fs::write(rig.sandbox.config().join("settings.json"), settings).expect("it is ours");
    let cwd = rig.sandbox.project().canonicalize().expect("it is there");
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (before, _) = editor.open(&cwd).await;
    editor.call("session/close", json!({"sessionId": before})).await;
    std::fs::remove_file(&seen).expect("the hook ran for the session before");
    rig.parked().await;
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(rig.api.request_count(), 0);
    assert!(!seen.exists(), "hooks ran for nobody");
    assert!(files(&rig.sandbox.config().join("projects")).is_empty());
    let lists = files(&rig.sandbox.config().join("sessions"));
    assert!(!lists.iter().any(|file| file.ends_with(".json")), "{lists:?}");

    let (session, _) = editor.open(&cwd).await;
    let (lines, _) = editor.turn(&session, "%say it is me").await;
    assert_eq!(said(&lines), "it is me");
    assert_eq!(
        std::fs::read_to_string(&seen)
            .expect("the hook ran")
            .lines()
            .collect::<Vec<_>>(),
        [cwd.to_str().expect("a path in UTF-8")]
    );
    // The stored session has the id that the editor got.
    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed:#}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_that_no_spare_can_work_in_gets_a_cli_of_its_own() {
    let rig = Rig::start().await.interactive();
    let settings = json!({"permissions": {"defaultMode": "plan"}, "env": {"FROM_PROJECT": "1"}}).to_string();
    rig.sandbox
        .write(".claude/settings.json", settings)
        .expect("it is ours");
    let cwd = rig.sandbox.project();
    assert!(cwd.join(".claude/settings.json").exists());
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    editor.open(&std::env::temp_dir()).await;
    rig.parked().await;
    let (session, opened) = editor.open(&cwd).await;
    // The answer has the spare's mode; the session reports the project's.
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let told = editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "current_mode_update")
        .await;
    assert_eq!(told["params"]["update"]["currentModeId"], "plan");
    assert_eq!(told["params"]["sessionId"], session.as_str());
    let (lines, answer) = editor.turn(&session, "%say planned").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("planned", &json!("end_turn"))
    );
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_from_its_beginning_to_its_end() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, opened) = editor.open(&rig.sandbox.project()).await;
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let account = &opened["_meta"]["claudeCode"]["account"];
    assert!(
        account.as_object().is_some_and(|account| !account.is_empty()),
        "{opened:#}"
    );

    // A turn with an allowed call.
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let file = rig.sandbox.project().join("made.txt");
    let write = json!({"file_path": file, "content": "by the agent"});
    let (lines, answer) = editor
        .turn(&session, &format!("%tool Write {write}\n%say done"))
        .await;
    assert_eq!(answer["stopReason"], "end_turn", "{answer}");
    assert_eq!(said(&lines), "done");
    assert_eq!(
        std::fs::read_to_string(&file).expect("it was written"),
        "by the agent"
    );
    let last = updates(&lines, "tool_call_update");
    assert_eq!(
        last.iter().filter_map(|call| call["status"].as_str()).next_back(),
        Some("completed"),
        "{lines:#?}"
    );

    // A cancelled turn.
    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(running).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");

    let (lines, answer) = editor.turn(&session, "%say and on").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("and on", &json!("end_turn"))
    );
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_at_rest_are_listed_gone_on_with_and_deleted() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&cwd).await;
    editor.turn(&session, "%say I will remember").await;
    editor.call("session/close", json!({"sessionId": session})).await;

    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed:#}");
    assert!(listed["sessions"][0]["updatedAt"].is_string());
    assert!(listed["nextCursor"].is_null());
    let elsewhere = editor.call("session/list", json!({"cwd": "/"})).await;
    assert_eq!(elsewhere["sessions"], json!([]));
    let refused = editor.refused("session/list", json!({"cursor": "7"})).await;
    assert_eq!(refused["data"]["parameter"], "cursor");

    // The replay comes before the answer.
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer["result"]["modes"].is_object(), "{answer:#}");
    let again = updates(&lines, "user_message_chunk");
    assert_eq!(again[0]["content"]["text"], "%say I will remember", "{lines:#?}");
    assert_eq!(said(&lines), "I will remember");
    let (lines, _) = editor.turn(&session, "%say going on").await;
    assert_eq!(said(&lines), "going on");

    // A fork has its own messages.
    let fork = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/fork", fork).await;
    let (lines, answer) = editor.until(id).await;
    assert!(updates(&lines, "user_message_chunk").is_empty());
    let copy = answer["result"]["sessionId"].as_str().expect("an id").to_owned();
    assert_ne!(copy, session);
    let (lines, _) = editor.turn(&copy, "%say apart").await;
    assert_eq!(said(&lines), "apart");

    editor.call("session/delete", json!({"sessionId": copy})).await;
    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed:#}");
    for method in ["session/load", "session/resume", "session/fork"] {
        let gone = json!({"sessionId": copy, "cwd": cwd, "mcpServers": []});
        assert_eq!(editor.refused(method, gone).await["code"], -32002, "{method}");
    }
    let refused = editor
        .refused("session/delete", json!({"sessionId": "../../etc"}))
        .await;
    assert_eq!(refused["code"], -32002);

    // Resumed without a replay.
    let resume = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/resume", resume).await;
    let (lines, _) = editor.until(id).await;
    assert!(updates(&lines, "user_message_chunk").is_empty());
    let (lines, _) = editor.turn(&session, "%say still here").await;
    assert_eq!(said(&lines), "still here");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_in_the_background_is_shown_until_it_ends() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor
        .initialize(json!({"_meta": {"terminal_output": true}}))
        .await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let bash = json!({
        "command": "echo first; sleep 1; echo second; exit 3", "description": "Count", "run_in_background": true,
    });
    let (mut lines, answer) = editor
        .turn(&session, &format!("%tool Bash {bash}\n%say it runs"))
        .await;
    assert_eq!(answer["stopReason"], "end_turn");
    let is_end = |line: &serde_json::Value| {
        let update = &line["params"]["update"];
        update["sessionUpdate"] == "tool_call_update"
            && matches!(update["status"].as_str(), Some("completed" | "failed"))
    };
    while !lines.iter().any(is_end) {
        lines.push(editor.next().await.expect("the command ends"));
    }
    let output: String = lines
        .iter()
        .filter_map(|line| line["params"]["update"]["_meta"]["terminal_output"]["data"].as_str())
        .collect();
    assert!(
        output.contains("first") && output.contains("second"),
        "{output:?}: {lines:#?}"
    );
    let exit = lines
        .iter()
        .find_map(|line| line["params"]["update"]["_meta"]["terminal_exit"]["exit_code"].as_i64());
    assert_eq!(exit, Some(3), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_the_editor_are_reached_over_its_connection() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    editor.answer = serving(|params| Some(text(params["arguments"]["text"].as_str().unwrap_or_default())));
    let server = json!({"type": "acp", "name": "My Tools", "serverId": "tools"});
    let params = json!({"cwd": rig.sandbox.project(), "mcpServers": [server]});
    let opened = editor.call("session/new", params).await;
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    let call = "%tool mcp__My_Tools__echo {\"text\": \"from the editor\"}";
    let (lines, answer) = editor.turn(&session, &format!("{call}\n%say done")).await;
    assert_eq!(answer["stopReason"], "end_turn", "{answer}");
    let last = updates(&lines, "tool_call_update");
    let last = last.last().expect("the call ended");
    assert_eq!(last["status"], "completed", "{last:#}");
    assert!(last.to_string().contains("from the editor"), "{last:#}");

    // A cancel also cancels the request to the editor.
    editor.answer = serving(|_| None);
    let prompt = editor.prompt(&session, call).await;
    let is_call = |line: &serde_json::Value| line["params"]["method"] == "tools/call";
    let asked = editor.wait_for(is_call).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    editor
        .wait_for(|line| line["method"] == "$/cancel_request" && line["params"]["requestId"] == asked["id"])
        .await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_draft_goes_on_with_a_session() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    draft::meet(&mut editor, &json!({})).await;
    let session = draft::opened(&mut editor, &cwd).await;
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let file = cwd.join("made.txt");
    let write = json!({"file_path": file, "content": "by the agent"});
    let text = format!("%tool Write {write}\n%say done");
    let lines = draft::turn(&mut editor, &session, &text).await;
    assert_eq!(
        draft::states(&lines),
        ["running", "requires_action", "running", "idle"],
        "{lines:#?}"
    );
    assert_eq!(said(&lines), "done");
    assert_eq!(
        std::fs::read_to_string(&file).expect("it was written"),
        "by the agent"
    );
    let prompt = updates(&lines, "user_message")[0]["messageId"].clone();

    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let lines = draft::idle(&mut editor).await;
    draft::laws(&lines);
    draft::acknowledged(&lines, running, "%hang\n%say beginning");
    assert_eq!(draft::end(&lines)["stopReason"], "cancelled");
    editor.call("session/close", json!({"sessionId": session})).await;

    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed:#}");
    let resume = json!({"sessionId": session, "cwd": cwd, "replayFrom": {"type": "start"}});
    let id = editor.ask("session/resume", resume).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer["result"].is_object(), "{answer:#}");
    // The same message has the same id, and the state comes last.
    let again = updates(&lines, "user_message_chunk");
    assert_eq!(again[0]["content"]["text"], text, "{lines:#?}");
    assert_eq!(again[0]["messageId"], prompt, "{lines:#?}");
    assert_eq!(lines.last().and_then(draft::state), Some("idle"), "{lines:#?}");
    let lines = draft::turn(&mut editor, &session, "%say going on").await;
    assert_eq!(said(&lines), "going on");

    let fork = json!({"sessionId": session, "cwd": cwd});
    let copy = editor.call("session/fork", fork).await;
    let copy = copy["sessionId"].as_str().expect("an id").to_owned();
    let lines = draft::turn(&mut editor, &copy, "%say apart").await;
    assert_eq!(said(&lines), "apart");
    editor.call("session/delete", json!({"sessionId": copy})).await;
    let gone = json!({"sessionId": copy, "cwd": cwd});
    assert_eq!(editor.refused("session/resume", gone).await["code"], -32002);
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_draft_shows_terminals_and_what_goes_on_behind_a_turn() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    draft::meet(&mut editor, &json!({})).await;
    let session = draft::opened(&mut editor, &rig.sandbox.project()).await;
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let bash = json!({
        "command": "echo first; sleep 2; echo second; exit 3", "description": "Count", "run_in_background": true,
    });
    let text = format!("%tool Bash {bash}\n%say it runs");
    let mut lines = draft::turn(&mut editor, &session, &text).await;
    let terminal = updates(&lines, "terminal_update")[0]["terminalId"].clone();
    let background = &draft::end(&lines)["background"];
    assert_eq!(background[0]["terminalId"], terminal, "{background}");
    let is_over = |line: &serde_json::Value| {
        draft::state(line).is_some() && line["params"]["update"]["background"] == json!([])
    };
    let from = lines.len();
    while !lines[from..].iter().any(is_over) {
        lines.push(editor.next().await.expect("the command ends"));
    }
    let exits = updates(&lines, "terminal_update");
    let exit = exits
        .iter()
        .find_map(|update| update["exitStatus"]["exitCode"].as_i64());
    assert_eq!(exit, Some(3), "{exits:#?}");
    let output: Vec<u8> = updates(&lines, "terminal_output_chunk")
        .iter()
        .flat_map(|chunk| {
            assert_eq!(chunk["terminalId"], terminal);
            STANDARD
                .decode(chunk["data"].as_str().expect("data"))
                .expect("base64")
        })
        .collect();
    // The CLI reports the result to the model in a turn of its own, which counts as work.
    let of_its_own = |lines: &[serde_json::Value]| draft::states(lines).last() == Some(&"idle");
    while !(draft::states(&lines[from..]).contains(&"running") && of_its_own(&lines[from..])) {
        lines.push(editor.next().await.expect("a turn"));
    }
    draft::laws(&lines);
    assert_eq!(updates(&lines, "user_message").len(), 1, "{lines:#?}");

    // The CLI appends the end of the command.
    let output = String::from_utf8(output).expect("text");
    assert!(output.starts_with("first\nsecond\n"), "{output:?}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_editor_gives_for_a_session_holds() {
    let rig = Rig::start().await;
    let more = rig.sandbox.path().join("more");
    std::fs::create_dir(&more).expect("it is ours");
    std::fs::write(more.join("a.txt"), "from elsewhere").expect("it is ours");
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let schema =
        json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let options = json!({
        "outputFormat": {"type": "json_schema", "schema": schema}, "model": "haiku",
        "permissionMode": "acceptEdits", "disallowedTools": ["WebSearch"],
    });
    let opened = editor
        .call(
            "session/new",
            json!({
                "cwd": rig.sandbox.project(), "mcpServers": [], "additionalDirectories": [more],
                "systemPrompt": {"mode": "override", "content": [{"type": "text", "text": "You are a parrot."}]},
                "_meta": {"claudeCode": {"options": options, "emitRawSDKMessages": [{"type": "result"}]}},
            }),
        )
        .await;
    assert_eq!(opened["modes"]["currentModeId"], "acceptEdits");
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    // An additional directory of the session needs no permission.
    let read = json!({"file_path": more.join("a.txt")});
    let output = json!({"colour": "green"});
    let prompt = format!("%tool Read {read}\n%tool StructuredOutput {output}\n%say done");
    let (lines, answer) = editor.turn(&session, &prompt).await;
    assert_eq!(
        answer["_meta"]["claudeCode"]["structuredOutput"], output,
        "{answer:#} {lines:#?}"
    );
    assert!(
        !lines
            .iter()
            .any(|line| line["method"] == "session/request_permission")
    );
    let raw: Vec<_> = lines
        .iter()
        .filter(|line| line["method"] == "_claude/sdkMessage")
        .collect();
    assert_eq!(raw.len(), 1, "{raw:#?}");
    assert_eq!(raw[0]["params"]["message"]["structured_output"], output);

    let asked = rig.api.message_requests();
    let asked = asked
        .iter()
        .find(|request| request.tools().any(|tool| tool == "Read"))
        .expect("the model was asked");
    let system = asked.system_text();
    assert!(system.contains("You are a parrot."), "{system}");
    assert!(!asked.tools().any(|tool| tool == "WebSearch"));
    assert!(asked.model().is_some_and(|model| model.contains("haiku")));
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_much_is_thought_is_told_once_a_second() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    let thought = "thinking about it. ".repeat(200);
    let began = std::time::Instant::now();
    let (lines, _) = editor
        .turn(
            &session,
            &format!("%slow 1 chunk=19\n%think {thought}\n%+say done"),
        )
        .await;
    let seconds = began.elapsed().as_secs() as usize;
    let told = updates(&lines, "session_info_update");
    let estimates = told
        .iter()
        .filter(|update| update["_meta"]["claudeCode"]["thinking_tokens"].is_object());
    let estimates = estimates.count();
    assert!(
        (1..=seconds + 2).contains(&estimates),
        "{estimates} in {seconds} s"
    );
    let thoughts = updates(&lines, "agent_thought_chunk").into_iter();
    let pieces: Vec<&str> = thoughts
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect();
    assert_eq!(pieces.concat().trim(), thought.trim());
    // One in 12 ms, at any speed of the model.
    assert!(pieces.len() < 150, "{}", pieces.len());
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_full_the_context_is_is_told_while_the_first_turn_runs() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&cwd).await;
    let is_gauge = |line: &serde_json::Value| line["params"]["update"]["sessionUpdate"] == "usage_update";
    // The second answer never ends, so the turn does not, either.
    let read = json!({"file_path": cwd.join("a.txt")});
    editor
        .prompt(
            &session,
            &format!("%usage in=1200 out=42\n%tool Read {read}\n%hang\n%say and on"),
        )
        .await;
    let gauge = editor.wait_for(is_gauge).await;
    let gauge = &gauge["params"]["update"];
    assert_eq!(gauge["used"], 1242, "{gauge:#}");
    assert!(
        gauge["size"].as_u64().is_some_and(|size| size >= 200_000),
        "{gauge:#}"
    );
    editor.call("session/close", json!({"sessionId": session})).await;
    editor.leave().await;

    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    editor.call("session/load", load).await;
    let gauge = editor.wait_for(is_gauge).await;
    let gauge = &gauge["params"]["update"];
    assert!(gauge["used"].as_u64().is_some_and(|used| used > 0), "{gauge:#}");
    editor.leave().await;
}
