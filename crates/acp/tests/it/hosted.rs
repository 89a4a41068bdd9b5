//! Sessions that live on a host, as an editor sees them.

use std::net::SocketAddr;
use std::path::Path;

use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::agent::Builder;
use outrigger::{Options, SessionId};
use outrigger_acp::Config;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, SessionHost};
use outrigger_host_client::{ApprovalFilter, HostClient, NewSession, Prompt, Token};
use outrigger_host_http::{Front, Scope, Tokens};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::draft;
use crate::editor::{Editor, PATIENCE, said, updates};
use crate::real::Rig;
use crate::subagents;

/// A host that can be ended and started again at the same address.
struct Hosted {
    options: Options,
    root: std::path::PathBuf,
    place: TempDir,
    token: String,
    address: SocketAddr,
    running: Option<Running>,
    /// The tools whose approvals outlive the process.
    deferred: Option<String>,
}

struct Running {
    host: SessionHost,
    stop: oneshot::Sender<()>,
    front: JoinHandle<()>,
}

impl Hosted {
    async fn simulated() -> Self {
        Self::with(Builder::directives).await
    }

    async fn with(configure: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        let place = tempfile::tempdir().unwrap();
        let cli = Simulated::agent(configure);
        let config = place.path().join("claude").display().to_string();
        let options = cli.options().env("CLAUDE_CONFIG_DIR", config);
        let root = place.path().join("work");
        std::fs::create_dir(&root).unwrap();
        Self::of(options, root, place).await
    }

    async fn of(options: Options, root: std::path::PathBuf, place: TempDir) -> Self {
        let mut hosted = Self {
            options,
            root,
            place,
            token: String::new(),
            address: ([127, 0, 0, 1], 0).into(),
            running: None,
            deferred: None,
        };
        hosted.begin().await;
        hosted
    }

    async fn begin(&mut self) {
        let options = self.options.clone().include_partial_messages(true);
        let mut policy = HostPolicy::new(options, [&self.root]);
        policy.lease = false;
        policy.deferred.clone_from(&self.deferred);
        policy.permission_modes = ["acceptEdits", "plan"].map(str::to_owned).to_vec();
        let log = SqliteLog::open(self.place.path().join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let tokens = Tokens::open(host.event_log()).await.unwrap();
        if self.token.is_empty() {
            let (token, _) = tokens.issue("ada", Scope::ALL, None).await.unwrap();
            self.token = token.reveal().to_owned();
        }
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let front = Front::new(host.clone(), tokens);
        let (stop, stopped) = oneshot::channel();
        let front = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            front.serve(listener, stopped).await.unwrap();
        });
        self.running = Some(Running { host, stop, front });
    }

    /// Ends the host in order; its turns are interrupted.
    async fn end(&mut self) {
        let Running { host, stop, front } = self.running.take().unwrap();
        stop.send(()).unwrap();
        host.shutdown().await;
        front.await.unwrap();
    }

    fn host(&self) -> &SessionHost {
        &self.running.as_ref().unwrap().host
    }

    fn client_with(&self, token: &str) -> HostClient {
        self.client_at(self.address, token)
    }

    fn client_at(&self, address: SocketAddr, token: &str) -> HostClient {
        let builder = HostClient::builder(format!("http://{address}"));
        builder
            .token(Token::new(token).unwrap())
            .backoff(
                std::time::Duration::from_millis(10),
                std::time::Duration::from_millis(50),
            )
            .build()
            .unwrap()
    }

    fn client(&self) -> HostClient {
        self.client_with(&self.token)
    }

    async fn editor(&self) -> Editor {
        let mut editor = Editor::with(Config::new().host(self.client()));
        editor.initialize(json!({})).await;
        editor
    }

    /// Waits for an event that `wanted` accepts, from the beginning of the log on.
    async fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) {
        let id: SessionId = session.parse().unwrap();
        let mut events = self.host().subscribe(&id, 0).await.unwrap();
        let found = async {
            loop {
                if let Delivered::Event(event) = events.next().await.unwrap()
                    && wanted(&event.payload.to_value().unwrap())
                {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the event");
    }

    async fn until_results(&self, session: &str, count: usize) {
        let seen = std::cell::Cell::new(0);
        self.until(session, |event| {
            seen.set(seen.get() + usize::from(event["type"] == "result"));
            seen.get() == count
        })
        .await;
    }
}

/// Where a [`Wire`] reports a request.
type Reports = mpsc::Sender<oneshot::Sender<()>>;

/// Connections to a host that can be cut.
struct Wire {
    address: SocketAddr,
    cut: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wire {
    async fn to(host: SocketAddr) -> Self {
        Self::that_reports(host, None).await
    }

    /// Reports each request that holds these words, and passes it on when the report has a reply.
    async fn that_reports(host: SocketAddr, reports: Option<(&'static str, Reports)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, cuts) = watch::channel(());
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (mut here, _) = listener.accept().await.unwrap();
                let mut cuts = cuts.clone();
                cuts.mark_unchanged();
                let reports = reports.clone();
                open.spawn(async move {
                    let mut there = TcpStream::connect(host).await.unwrap();
                    let (mut replies, mut requests) = there.split();
                    let (mut read, mut write) = here.split();
                    let pass_on = async {
                        let mut chunk = vec![0; 16 * 1024];
                        loop {
                            let length = read.read(&mut chunk).await?;
                            if length == 0 {
                                return requests.shutdown().await;
                            }
                            if let Some((words, reports)) = &reports
                                && String::from_utf8_lossy(&chunk[..length]).contains(words)
                            {
                                let (reply, replied) = oneshot::channel();
                                reports.send(reply).await.unwrap();
                                replied.await.unwrap();
                            }
                            requests.write_all(&chunk[..length]).await?;
                        }
                    };
                    let asked = async {
                        let passed: std::io::Result<()> = pass_on.await;
                        if passed.is_ok() {
                            std::future::pending::<()>().await;
                        }
                    };
                    // A host that closes its end closes the connection.
                    tokio::select! {
                        _ = tokio::io::copy(&mut replies, &mut write) => {}
                        () = asked => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { address, cut, task }
    }

    fn cut(&self) {
        self.cut.send_replace(());
    }
}

/// Loads a session, and returns what was replayed.
async fn load(editor: &mut Editor, session: &str, cwd: &Path) -> Vec<Value> {
    let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", params).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    lines
}

/// The conversation in these lines: what was said, in one piece for each message, and the calls with the state that they got to.
fn conversation(lines: &[Value]) -> Vec<(String, String, String)> {
    let mut told: Vec<(String, String, String)> = Vec::new();
    for line in lines.iter().filter(|line| line["method"] == "session/update") {
        let update = &line["params"]["update"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&update["sessionUpdate"]);
        match kind.as_str() {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                let (id, said) = (text(&update["messageId"]), text(&update["content"]["text"]));
                match told.last_mut().filter(|last| last.0 == kind && last.1 == id) {
                    Some(last) => last.2.push_str(&said),
                    None => told.push((kind, id, said)),
                }
            }
            "tool_call" => {
                let status = update["status"].as_str().unwrap_or("pending").to_owned();
                told.push(("call".to_owned(), text(&update["toolCallId"]), status));
            }
            "tool_call_update" => {
                let id = text(&update["toolCallId"]);
                let call = told.iter_mut().find(|call| call.0 == "call" && call.1 == id);
                if let (Some(call), Some(status)) = (call, update["status"].as_str()) {
                    status.clone_into(&mut call.2);
                }
            }
            _ => {}
        }
    }
    told
}

/// Waits until the model has said these words.
async fn until_said(editor: &mut Editor, words: &str) {
    let heard = std::cell::RefCell::new(String::new());
    editor
        .wait_for(|line| {
            let update = &line["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                heard.borrow_mut().push_str(text);
            }
            heard.borrow().contains(words)
        })
        .await;
}

fn is_question(line: &Value) -> bool {
    line["method"] == "session/request_permission"
}

fn option(id: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

const BASH: &str = r#"%tool Bash {"command":"touch made","description":"Make it"}"#;

#[tokio::test]
async fn a_session_is_made_left_and_found_again_with_the_same_conversation() {
    let hosted = Hosted::simulated().await;
    let mut first = Editor::with(Config::new().host(hosted.client()));
    let told = first.initialize(json!({"auth": {"terminal": true}})).await;
    let capabilities = &told["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_ne!(capabilities["mcpCapabilities"]["http"], true);
    assert!(
        told["authMethods"].as_array().is_none_or(Vec::is_empty),
        "{told:#}"
    );
    for missing in ["archive", "additionalDirectories", "systemPrompt"] {
        assert!(
            capabilities["sessionCapabilities"][missing].is_null(),
            "{missing}"
        );
    }
    let (session, opened) = first.open(&hosted.root).await;
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let ids: Vec<&str> = opened["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|option| option["id"].as_str())
        .collect();
    assert_eq!(ids, ["mode", "model"], "what the host takes");

    std::fs::write(hosted.root.join("a"), "text").unwrap();
    let read = json!({"file_path": hosted.root.join("a")});
    let prompt = &*format!("Look.\n%think hm\n%+say one two three\n%+tool Read {read}\n%say four");
    let (mut live, answer) = first.turn(&session, prompt).await;
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(said(&live).matches("one two three").count(), 1, "{live:#?}");
    let (more, _) = first.turn(&session, "%say five").await;
    live.extend(more);
    live.extend(first.leave().await);

    // It is listed, and has no editor any more.
    let mut second = hosted.editor().await;
    let listed = second.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], *session);
    assert_eq!(listed["sessions"][0]["cwd"], json!(hosted.root));
    let replayed = load(&mut second, &session, &hosted.root).await;
    let conversation_2 = conversation(&replayed);
    let others: Vec<_> = conversation_2
        .iter()
        .filter(|told| told.0 != "user_message_chunk")
        .cloned()
        .collect();
    assert_eq!(others, conversation(&live));
    let prompts: Vec<_> = conversation_2
        .iter()
        .filter(|told| told.0 == "user_message_chunk")
        .map(|told| &*told.2)
        .collect();
    assert_eq!(prompts, [prompt, "%say five"]);
    // It goes on.
    let (lines, answer) = second.turn(&session, "%say six").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("six", &json!("end_turn"))
    );

    let mut third = hosted.editor().await;
    let mut fourth = hosted.editor().await;
    let replays = [
        load(&mut third, &session, &hosted.root).await,
        load(&mut fourth, &session, &hosted.root).await,
    ];
    assert_eq!(conversation(&replays[0]), conversation(&replays[1]));
    assert!(conversation(&replays[0]).iter().any(|told| told.2 == "six"));
    for editor in [second, third, fourth] {
        editor.leave().await;
    }
}

#[tokio::test]
async fn questions_go_to_the_editor_until_somebody_has_answered() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let status = |lines: &[Value]| {
        let told = conversation(lines);
        told.iter()
            .find(|told| told.0 == "call")
            .map(|call| call.2.clone())
    };

    // Allowed.
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say done")).await;
    let asked = editor.wait_for(is_question).await;
    assert_eq!(asked["params"]["toolCall"]["rawInput"]["command"], "touch made");
    editor.reply(&asked, option("allow-once")).await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(status(&lines).as_deref(), Some("completed"), "{lines:#?}");

    // Denied.
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say so be it")).await;
    let asked = editor.wait_for(is_question).await;
    editor.reply(&asked, option("reject")).await;
    let (lines, _) = editor.until(prompt).await;
    assert_eq!(status(&lines).as_deref(), Some("failed"), "{lines:#?}");
    assert_eq!(said(&lines), "so be it");

    // Decided elsewhere: the question of the editor is withdrawn.
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say done")).await;
    let asked = editor.wait_for(is_question).await;
    let client = hosted.client();
    let pending = client.all_approvals(&ApprovalFilter::pending()).await.unwrap();
    assert_eq!(pending.len(), 1);
    client
        .decide(&pending[0].id, &json!({"behavior": "allow"}).into())
        .await
        .unwrap();
    let withdrawn = editor.wait_for(|line| line["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    editor.fail(&asked, -32800, "cancelled").await;
    let (lines, _) = editor.until(prompt).await;
    assert_eq!(status(&lines).as_deref(), Some("completed"), "{lines:#?}");

    // Another editor gets the question that waits, and answers it.
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say by another")).await;
    let asked = editor.wait_for(is_question).await;
    let mut other = hosted.editor().await;
    load(&mut other, &session, &hosted.root).await;
    let also = other.wait_for(is_question).await;
    assert_eq!(
        also["params"]["toolCall"]["toolCallId"],
        asked["params"]["toolCall"]["toolCallId"]
    );
    other.reply(&also, option("allow-once")).await;
    let (lines, _) = editor.until(prompt).await;
    assert_eq!(said(&lines), "by another");
    until_said(&mut other, "by another").await;
    editor.fail(&asked, -32800, "cancelled").await;
    other.leave().await;
    editor.leave().await;
}

#[tokio::test]
async fn a_question_of_a_subagent_that_comes_while_an_editor_connects_is_in_its_session() {
    let hosted = Hosted::simulated().await;
    let new = NewSession::new(hosted.root.to_str().unwrap());
    let session = hosted.client().create_session(&new).await.unwrap().id;
    let (reports, mut reported) = mpsc::channel(1);
    let wire = Wire::that_reports(hosted.address, Some(("GET /v1/approvals", reports))).await;
    let client = hosted.client_at(wire.address, &hosted.token);
    let mut editor = Editor::with(Config::new().host(client));
    editor.initialize(json!({"subagents": {}})).await;

    let other = async {
        let reply = tokio::time::timeout(PATIENCE, reported.recv());
        let reply = reply.await.expect("the agent looks for open questions").unwrap();
        let agent = subagents::agent("helper", false, &format!("{BASH}\n%say it is made"));
        let prompt = Prompt::text(format!("{agent}\n%say done"));
        hosted.client().send_prompt(&session, &prompt).await.unwrap();
        hosted
            .until(&session, |event| event["type"] == "approval_opened")
            .await;
        reply.send(()).unwrap();
    };
    let (mut lines, ()) = tokio::join!(load(&mut editor, &session, &hosted.root), other);
    while !lines.iter().any(is_question) {
        lines.push(editor.next().await.unwrap());
    }
    let question = lines.iter().find(|line| is_question(line)).unwrap();
    let mut updates = lines.iter().map(|line| &line["params"]["update"]);
    let helper = updates.find(|update| update["sessionUpdate"] == "subagent_update");
    let helper = helper.unwrap_or_else(|| panic!("no subagent before its question: {lines:#?}"));
    assert_eq!(question["params"]["sessionId"], helper["sessionId"], "{lines:#?}");
    editor.reply(question, option("allow-once")).await;
    until_said(&mut editor, "done").await;
    editor.leave().await;
}

#[tokio::test]
async fn a_turn_that_ends_while_its_session_is_replayed_has_ended() {
    let hosted = Hosted::simulated().await;
    let (host, new) = (hosted.client(), NewSession::new(hosted.root.to_str().unwrap()));
    let session = host.create_session(&new).await.unwrap().id;
    let prompt = Prompt::text(format!("{BASH}\n%say done"));
    host.send_prompt(&session, &prompt).await.unwrap();
    hosted
        .until(&session, |event| event["type"] == "approval_opened")
        .await;
    let (reports, mut reported) = mpsc::channel(1);
    let wire = Wire::that_reports(hosted.address, Some(("/events?", reports))).await;
    let mut editor = Editor::with(Config::new().host(hosted.client_at(wire.address, &hosted.token)));
    editor.initialize(json!({})).await;

    let other = async {
        let reply = tokio::time::timeout(PATIENCE, reported.recv());
        let reply = reply.await.expect("the agent reads the log").unwrap();
        let pending = host.all_approvals(&ApprovalFilter::pending()).await.unwrap();
        let allow = json!({"behavior": "allow"}).into();
        host.decide(&pending[0].id, &allow).await.unwrap();
        hosted.until_results(&session, 1).await;
        reply.send(()).unwrap();
        while let Some(reply) = reported.recv().await {
            reply.send(()).unwrap();
        }
    };
    tokio::select! {
        lines = load(&mut editor, &session, &hosted.root) => assert_eq!(said(&lines), "done"),
        () = other => panic!("the wire is gone"),
    }
    // There is nothing to cancel, so the next turn may ask.
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say again")).await;
    let asked = editor.wait_for(is_question).await;
    editor.reply(&asked, option("allow-once")).await;
    let (lines, _) = editor.until(prompt).await;
    assert_eq!(said(&lines), "again");
    editor.leave().await;
}

#[tokio::test]
async fn the_model_s_own_questions_go_to_the_editor() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let question = json!({"questions": [{"question": "Which?", "header": "Colour", "multiSelect": false, "options": options}]});
    let prompt = format!("%tool AskUserQuestion {question}\n%say {{{{result}}}}");
    let prompt = editor.prompt(&session, &prompt).await;
    let asked = editor.wait_for(is_question).await;
    assert_eq!(asked["params"]["toolCall"]["title"], "Which?");
    editor.reply(&asked, option("answer-1")).await;
    let (lines, _) = editor.until(prompt).await;
    assert!(said(&lines).contains("Blue"), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_text_whose_stream_is_cut_is_told_once() {
    let hosted = Hosted::simulated().await;
    let wire = Wire::to(hosted.address).await;
    let client = hosted.client_at(wire.address, &hosted.token);
    let mut editor = Editor::with(Config::new().host(client));
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&hosted.root).await;
    let text: String = (0..100).map(|number| format!("word {number}, ")).collect();
    let text = text.trim_end();
    let prompt = editor
        .prompt(
            &session,
            &format!("%slow 10 chunk=8\n%think {text}\n%+say {text}"),
        )
        .await;
    for kind in ["agent_thought_chunk", "agent_message_chunk"] {
        editor
            .wait_for(|line| line["params"]["update"]["sessionUpdate"] == kind)
            .await;
        wire.cut();
    }
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let told: Vec<_> = conversation(&lines)
        .into_iter()
        .map(|told| (told.0, told.2))
        .collect();
    let expected =
        ["agent_thought_chunk", "agent_message_chunk"].map(|kind| (kind.to_owned(), text.to_owned()));
    assert_eq!(told, expected);
    editor.leave().await;
}

#[tokio::test]
async fn a_session_that_is_deleted_elsewhere_is_told_as_gone() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    editor.turn(&session, "%say one").await;
    hosted.client().delete_session(&session).await.unwrap();
    let prompt = editor.prompt(&session, "%say two").await;
    let (_, answer) = editor.until(prompt).await;
    let why = answer["error"].to_string();
    assert!(why.contains("There is no such session"), "{answer:#}");
    let prompt = editor.prompt(&session, "%say three").await;
    assert!(editor.until(prompt).await.1["error"].is_object());
    // The agent has others.
    let (other, _) = editor.open(&hosted.root).await;
    editor.turn(&other, "%say four").await;
    editor.leave().await;
}

#[tokio::test]
async fn an_editor_of_the_draft_has_sessions_on_a_host() {
    let hosted = Hosted::simulated().await;
    let mut editor = Editor::with(Config::new().host(hosted.client()));
    let told = draft::meet(&mut editor, &json!({})).await;
    assert!(told["capabilities"]["session"]["mcp"].is_null(), "{told:#}");
    let session = draft::opened(&mut editor, &hosted.root).await;
    let lines = draft::turn(&mut editor, &session, "%say one").await;
    assert_eq!(said(&lines), "one");
    // Somebody else's turn is reported as work of the session.
    hosted
        .client()
        .send_prompt(&session, &Prompt::text("%say two"))
        .await
        .unwrap();
    let lines = draft::idle(&mut editor).await;
    draft::laws(&lines);
    assert_eq!(said(&lines), "two");
    editor.leave().await;

    let mut next = Editor::with(Config::new().host(hosted.client()));
    draft::meet(&mut next, &json!({})).await;
    let resumed = json!({"sessionId": session, "cwd": hosted.root, "replayFrom": {"type": "start"}});
    let id = next.ask("session/resume", resumed).await;
    let (lines, answer) = next.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    assert_eq!(said(&lines), "onetwo");
    next.leave().await;
}

#[tokio::test]
async fn an_answer_that_the_host_does_not_allow_is_told_and_the_question_asked_again() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    editor.call("session/set_mode", mode).await;
    let plan = r##"%tool ExitPlanMode {"plan":"# Do it"}"##;
    let prompt = editor.prompt(&session, &format!("{plan}\n%say planned")).await;
    let asked = editor.wait_for(is_question).await;
    let options: Vec<&str> = asked["params"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|option| option["optionId"].as_str())
        .collect();
    assert!(
        !options.iter().any(|id| id.starts_with("exit-plan-clear")),
        "{options:?}"
    );
    // The policy lets clients choose `acceptEdits` and `plan`.
    editor.reply(&asked, option("exit-plan-default")).await;
    let told = editor
        .wait_for(|line| {
            line["params"]["update"]
                .to_string()
                .contains("did not take the answer")
        })
        .await;
    assert!(told.to_string().contains("permission mode default"), "{told}");
    let again = editor
        .wait_for(|line| is_question(line) && line["id"] != asked["id"])
        .await;
    editor.reply(&again, option("exit-plan-accept-edits")).await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    editor.leave().await;
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_a_leave_does_not() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let prompt = editor.prompt(&session, "%hang\n%say begun").await;
    until_said(&mut editor, "begun").await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    hosted.until_results(&session, 1).await;

    // The editor goes in the middle of a turn, which waits for a person.
    editor.prompt(&session, &format!("{BASH}\n%say afterwards")).await;
    editor.wait_for(is_question).await;
    editor.leave().await;
    let mut next = hosted.editor().await;
    let replayed = load(&mut next, &session, &hosted.root).await;
    let call = conversation(&replayed).pop().unwrap();
    assert_eq!((&*call.0, &*call.2), ("call", "pending"), "it still waits");
    let asked = next.wait_for(is_question).await;
    next.reply(&asked, option("allow-once")).await;
    until_said(&mut next, "afterwards").await;
    hosted.until_results(&session, 2).await;
    next.call("session/close", json!({"sessionId": session})).await;
    let gone = next.prompt(&session, "%say x").await;
    assert_eq!(next.until(gone).await.1["error"]["code"], -32002);
    // On the host it is as it was.
    let listed = next.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1));
    let resumed = json!({"sessionId": session, "cwd": hosted.root, "mcpServers": []});
    next.call("session/resume", resumed).await;
    let (lines, _) = next.turn(&session, "%say resumed").await;
    assert_eq!(said(&lines), "resumed", "{lines:#?}");
    next.call("session/delete", json!({"sessionId": session})).await;
    let listed = next.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    next.leave().await;
}

/// What a closed session leaves on the host goes on there, so nothing is said of its end.
#[tokio::test]
async fn a_close_does_not_end_the_calls_of_a_turn_that_goes_on() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say done")).await;
    editor.wait_for(is_question).await;
    let closing = editor.ask("session/close", json!({"sessionId": session})).await;
    let (lines, _) = editor.until(closing).await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let told = conversation(&lines);
    let states: Vec<&str> = told.iter().map(|told| &*told.2).collect();
    assert_eq!(states, ["pending"], "{lines:#?}");
    let replayed = load(&mut editor, &session, &hosted.root).await;
    assert_eq!(conversation(&replayed).last(), told.last());
    let asked = editor.wait_for(is_question).await;
    editor.reply(&asked, option("allow-once")).await;
    until_said(&mut editor, "done").await;
    editor.leave().await;
}

/// The request to end the turn is on its way for longer than a cancelled prompt may stay open.
#[tokio::test]
async fn a_session_works_until_its_cancelled_turn_has_ended_on_the_host() {
    let hosted = Hosted::with(|agent| agent.directives().real_tools(true)).await;
    let (reports, mut reported) = mpsc::channel(1);
    let wire = Wire::that_reports(hosted.address, Some(("\"interrupt\"", reports))).await;
    let client = hosted.client_at(wire.address, &hosted.token);
    let floor = std::time::Duration::from_millis(200);
    let mut editor = Editor::with(Config::new().host(client).cancel_floor(floor));
    draft::meet(&mut editor, &json!({})).await;
    let session = draft::opened(&mut editor, &hosted.root).await;
    editor.answer = Box::new(|_| Some(option("allow-once")));
    editor.prompt(&session, &subagents::waiting("none")).await;
    let is_call = |line: &Value, status: &str| line["params"]["update"]["status"] == status;
    editor.wait_for(|line| is_call(line, "in_progress")).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let interrupt = reported.recv().await.unwrap();
    editor.wait_for(|line| is_call(line, "cancelled")).await;
    let listing = editor.ask("session/list", json!({})).await;
    let (lines, _) = editor.until(listing).await;
    assert!(
        lines.iter().all(|line| draft::state(line) != Some("idle")),
        "{lines:#?}"
    );
    interrupt.send(()).unwrap();
    let lines = draft::idle(&mut editor).await;
    assert_eq!(draft::end(&lines)["stopReason"], "cancelled", "{lines:#?}");
    editor.leave().await;
}

/// All that the editor sends is in the pipe before the agent reads any of it.
#[tokio::test]
async fn what_an_editor_cancels_before_it_leaves_ends() {
    for (is_foreign, closes) in [(false, true), (false, false), (true, true), (true, false)] {
        let hosted = Hosted::simulated().await;
        let mut editor = hosted.editor().await;
        let (session, _) = editor.open(&hosted.root).await;
        if is_foreign {
            let prompt = Prompt::text("%hang\n%say begun");
            hosted.client().send_prompt(&session, &prompt).await.unwrap();
        } else {
            editor.prompt(&session, "%hang\n%say begun").await;
        }
        until_said(&mut editor, "begun").await;
        let of_session = json!({"sessionId": session});
        editor.notify("session/cancel", of_session.clone()).await;
        if closes {
            editor.call("session/close", of_session).await;
        }
        editor.leave().await;
        hosted.until_results(&session, 1).await;
    }
}

#[tokio::test]
async fn a_session_whose_request_is_withdrawn_does_not_stay_on_the_host() {
    let hosted = Hosted::simulated().await;
    let (reports, mut reported) = mpsc::channel(1);
    let wire = Wire::that_reports(hosted.address, Some(("/v1/sessions", reports))).await;
    let mut editor = Editor::with(Config::new().host(hosted.client_at(wire.address, &hosted.token)));
    editor.initialize(json!({})).await;
    let mut next = async || {
        let report = tokio::time::timeout(PATIENCE, reported.recv()).await;
        report.expect("the agent asks the host").unwrap()
    };

    let new = json!({"cwd": hosted.root, "mcpServers": []});
    let opening = editor.ask("session/new", new).await;
    let creation = next().await;
    editor
        .notify("$/cancel_request", json!({"requestId": opening}))
        .await;
    let (_, answer) = editor.until(opening).await;
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    creation.send(()).unwrap();
    let deletion = next().await;
    assert_eq!(hosted.client().all_sessions().await.unwrap().len(), 1);
    deletion.send(()).unwrap();
    editor.leave().await;
    assert!(hosted.client().all_sessions().await.unwrap().is_empty());
}

/// The same as with a process of the editor's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subagents_of_a_session_on_a_host_are_cancelled_each_and_all() {
    let hosted = Hosted::with(|agent| agent.directives().real_tools(true)).await;
    let editor = || Editor::with(Config::new().host(hosted.client()));
    subagents::two_at_once(editor(), &hosted.root).await;
    subagents::all_are_cancelled(editor(), &hosted.root).await;
}

/// A turn that ends with a reason of its own: the model goes on once behind a refusal.
const REFUSED: &str = "%stop refusal\n%say ours\n%stop refusal\n%say ours";

#[tokio::test]
async fn a_prompt_ends_with_its_own_turn_although_others_prompt_too() {
    let hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let client = hosted.client();
    // Somebody else's turn waits for a person, and the editor's prompt waits behind it.
    let foreign = format!("{BASH}\n%say theirs");
    client
        .send_prompt(&session, &Prompt::text(&foreign))
        .await
        .unwrap();
    let asked = editor.wait_for(is_question).await;
    let own = editor.prompt(&session, REFUSED).await;
    hosted
        .until(&session, |event| {
            event["type"] == "user" && event["message"].to_string().contains("ours")
        })
        .await;
    editor.reply(&asked, option("allow-once")).await;
    let (lines, answer) = editor.until(own).await;
    assert_eq!(answer["result"]["stopReason"], "refusal", "{answer}");
    let told = conversation(&lines);
    let texts: Vec<&str> = told
        .iter()
        .filter(|told| told.0 != "call")
        .map(|told| &*told.2)
        .collect();
    assert_eq!(texts[..3], [&*foreign, "theirs", "ours"], "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_prompt_in_the_middle_of_another_turn_waits_for_its_own() {
    let hosted = Hosted::simulated().await;
    let client = hosted.client();
    let new = NewSession::new(hosted.root.to_str().unwrap());
    let session = client.create_session(&new).await.unwrap().id;
    let foreign = format!("{BASH}\n%say theirs");
    client
        .send_prompt(&session, &Prompt::text(&foreign))
        .await
        .unwrap();
    hosted
        .until(&session, |event| event["type"] == "approval_opened")
        .await;
    // The editor comes when the turn runs already.
    let mut editor = hosted.editor().await;
    let resumed = json!({"sessionId": session, "cwd": hosted.root, "mcpServers": []});
    editor.call("session/resume", resumed).await;
    let asked = editor.wait_for(is_question).await;
    let own = editor.prompt(&session, REFUSED).await;
    hosted
        .until(&session, |event| {
            event["type"] == "user" && event["message"].to_string().contains("ours")
        })
        .await;
    editor.reply(&asked, option("allow-once")).await;
    let (lines, answer) = editor.until(own).await;
    assert_eq!(answer["result"]["stopReason"], "refusal", "{answer}");
    assert!(said(&lines).starts_with("theirsours"), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_host_that_restarts_is_found_again_and_its_turn_is_told_as_lost() {
    let mut hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    editor.turn(&session, "%say before").await;
    let prompt = editor.prompt(&session, "%hang\n%say in the middle").await;
    until_said(&mut editor, "in the middle").await;
    hosted.end().await;
    hosted.begin().await;
    let (_, answer) = editor.until(prompt).await;
    let said_why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(said_why.contains("in the middle of the turn"), "{answer}");
    let (lines, _) = editor.turn(&session, "%say after").await;
    assert_eq!(said(&lines), "after");
    editor.leave().await;
    let mut next = hosted.editor().await;
    let replayed = load(&mut next, &session, &hosted.root).await;
    let prompts = updates(&replayed, "user_message_chunk").len();
    assert_eq!(prompts, 3, "{replayed:#?}");
    next.leave().await;
}

#[tokio::test]
async fn a_question_that_outlives_its_process_and_its_host_is_still_that_of_the_prompt() {
    let mut hosted = Hosted::simulated().await;
    hosted.end().await;
    hosted.deferred = Some("Bash".to_owned());
    hosted.begin().await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&hosted.root).await;
    let prompt = editor.prompt(&session, &format!("{BASH}\n%say done")).await;
    let asked = editor.wait_for(is_question).await;
    hosted.until_results(&session, 1).await;
    hosted.end().await;
    hosted.begin().await;
    editor.reply(&asked, option("allow-once")).await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let told = conversation(&lines);
    let states: Vec<&str> = told.iter().map(|told| &*told.2).collect();
    assert_eq!(states, ["completed", "done"], "{lines:#?}");
    let (lines, _) = editor.turn(&session, "%say next").await;
    assert_eq!(said(&lines), "next");
    editor.leave().await;
}

#[tokio::test]
async fn what_a_host_refuses_is_a_clear_error() {
    let mut hosted = Hosted::simulated().await;
    let mut editor = hosted.editor().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let new = |cwd: &Path| json!({"cwd": cwd, "mcpServers": []});
    let refused = editor.refused("session/new", new(elsewhere.path())).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("cwd"), "{refused}");
    let load = json!({"sessionId": "11111111-1111-4111-8111-111111111111", "cwd": "/x", "mcpServers": []});
    let refused = editor.refused("session/load", load).await;
    assert_eq!(refused["code"], -32002, "{refused}");
    let (session, _) = editor.open(&hosted.root).await;
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    editor.call("session/set_mode", mode("acceptEdits")).await;
    let refused = editor.refused("session/set_mode", mode("default")).await;
    assert!(
        refused.to_string().contains("permission mode default"),
        "{refused}"
    );
    let refused = editor
        .refused("_session/rewind", json!({"sessionId": session, "messageId": "x"}))
        .await;
    assert_eq!(refused["code"], -32601, "{refused}");
    // A session that another program has made, in the mode that was chosen for it.
    let made = hosted
        .client()
        .create_session(&NewSession::new(hosted.root.to_str().unwrap()))
        .await
        .unwrap();
    hosted.client().archive(&made.id).await.unwrap();
    let archived = json!({"sessionId": made.id, "cwd": hosted.root, "mcpServers": []});
    let refused = editor.refused("session/load", archived).await;
    assert!(refused.to_string().contains("archived"), "{refused}");
    // What the editor would add is told, and the session is there.
    let server = json!({"name": "a", "command": "/bin/true", "args": [], "env": []});
    editor
        .call("session/new", json!({"cwd": hosted.root, "mcpServers": [server]}))
        .await;
    editor
        .wait_for(|line| {
            line["params"]["update"]
                .to_string()
                .contains("MCP servers of the editor")
        })
        .await;
    editor.leave().await;

    let mut unknown = Editor::with(Config::new().host(hosted.client_with("outrigger_wrong")));
    unknown.initialize(json!({})).await;
    let refused = unknown.refused("session/new", new(&hosted.root)).await;
    assert_eq!(refused["code"], -32000, "{refused}");
    assert!(
        refused["message"].as_str().unwrap().contains("token"),
        "{refused}"
    );
    unknown.leave().await;

    hosted.end().await;
    let mut away = hosted.editor().await;
    let refused = away.refused("session/new", new(&hosted.root)).await;
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("cannot reach the host"),
        "{refused}"
    );
    away.leave().await;
}

#[tokio::test]
async fn the_real_cli_on_a_host() {
    let rig = Rig::start().await;
    let root = rig.sandbox.project();
    let hosted = Hosted::of(
        rig.config.options.clone(),
        root.clone(),
        tempfile::tempdir().unwrap(),
    )
    .await;
    let mut editor = hosted.editor().await;
    let (session, _) = editor.open(&root).await;
    let prompt = editor
        .prompt(&session, "Begin.\n%say one two\n%+tool Bash {\"command\":\"touch made\",\"description\":\"x\"}\n%say three")
        .await;
    let asked = editor.wait_for(is_question).await;
    editor.reply(&asked, option("allow-once")).await;
    let (live, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(root.join("made").exists());
    let told = conversation(&live);
    let texts: Vec<&str> = told.iter().map(|told| &*told.2).collect();
    assert_eq!(texts, ["one two", "completed", "three"], "{live:#?}");
    editor.leave().await;
    let mut next = hosted.editor().await;
    let replayed = conversation(&load(&mut next, &session, &root).await);
    assert_eq!(replayed[1..], told);
    assert_eq!(replayed[0].0, "user_message_chunk");
    next.leave().await;
    let mut hosted = hosted;
    hosted.end().await;
}
