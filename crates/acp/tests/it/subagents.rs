//! Subagents as sessions of their own, for editors with the capability `subagents`: with the simulated CLI, and with the real one.

use std::path::Path;
use std::sync::{Arc, Mutex};

use outrigger::testing::Simulated;
use serde_json::{Value, json};

use crate::editor::{Editor, PATIENCE};
use crate::real::Rig;

/// An editor that allows each call, and the sessions that asked it.
pub(crate) struct Allowing {
    pub(crate) editor: Editor,
    asked: Arc<Mutex<Vec<Value>>>,
}

async fn allowing(mut editor: Editor) -> Allowing {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    editor.answer = Box::new(move |request| {
        seen.lock().unwrap().push(request["params"]["sessionId"].clone());
        Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}}))
    });
    editor.initialize(json!({"subagents": {}})).await;
    Allowing { editor, asked }
}

/// The call of an agent that waits until there is a file with its name.
pub(crate) fn waiting_agent(name: &str, in_background: bool) -> String {
    agent(name, in_background, &waiting(name))
}

pub(crate) fn waiting(name: &str) -> String {
    let wait = json!({"command": format!("touch {name}.began; while [ ! -e {name} ]; do sleep 0.05; done"), "description": "Wait"});
    format!("%tool Bash {wait}\n%say {name} is done")
}

pub(crate) fn agent(name: &str, in_background: bool, prompt: &str) -> String {
    let input = json!({
        "description": name, "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": in_background,
    });
    format!("%tool Agent {input}")
}

/// The association of a subagent with this title.
fn announced(line: &Value, title: &str) -> Option<String> {
    let update = &line["params"]["update"];
    let is_it = update["sessionUpdate"] == "subagent_update" && update["title"] == title;
    update["sessionId"].as_str().filter(|_| is_it).map(str::to_owned)
}

/// The state that a line reports of a subagent.
fn state<'a>(line: &'a Value, child: &str) -> Option<&'a Value> {
    let update = &line["params"]["update"];
    let is_it = update["sessionUpdate"] == "subagent_update" && update["sessionId"] == child;
    update.get("state").filter(|_| is_it)
}

fn is_idle(line: &Value, child: &str, reason: &str) -> bool {
    state(line, child).is_some_and(|state| state["state"] == "idle" && state["stopReason"] == reason)
}

/// The text that the model says in a session.
fn said_in(lines: &[Value], session: &str) -> String {
    let of = lines.iter().filter(|line| line["params"]["sessionId"] == session);
    let updates = of.map(|line| &line["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect()
}

/// Each child is announced in its parent before anything of it, and nothing of it is in another session.
fn laws(lines: &[Value], root: &str) {
    let mut known = vec![root.to_owned()];
    for line in lines {
        let params = &line["params"];
        let Some(session) = params["sessionId"].as_str() else {
            continue;
        };
        assert!(
            known.iter().any(|known| known == session),
            "{session} is not announced: {line}"
        );
        assert!(!line.to_string().contains("parentToolUseId"), "{line}");
        assert!(
            !line.to_string().contains("agentId: "),
            "what is for the model is shown: {line}"
        );
        let update = &params["update"];
        if update["sessionUpdate"] == "subagent_update" {
            let child = update["sessionId"].as_str().expect("an id").to_owned();
            if !known.contains(&child) {
                assert!(
                    update.get("state").is_none(),
                    "the announcement comes first: {line}"
                );
                known.push(child);
            }
        }
    }
}

impl Allowing {
    /// A turn that starts agents in the background, with its lines up to the question of the last one.
    async fn start(&mut self, session: &str, text: &str, names: &[&str]) -> (Vec<Value>, Vec<String>) {
        let (mut lines, answer) = self.editor.turn(session, text).await;
        assert_eq!(answer["stopReason"], "end_turn", "{answer:#}");
        self.more(&mut lines, |lines| asks(lines) == names.len()).await;
        let ids = names.iter().map(|name| {
            let id = lines.iter().find_map(|line| announced(line, name));
            id.unwrap_or_else(|| panic!("{name} is not announced: {lines:#?}"))
        });
        let ids = ids.collect();
        (lines, ids)
    }

    /// Reads lines until all of them are as wanted.
    async fn more(&mut self, lines: &mut Vec<Value>, is_enough: impl Fn(&[Value]) -> bool) {
        while !is_enough(lines) {
            let next = tokio::time::timeout(PATIENCE / 2, self.editor.next()).await;
            let next = next.unwrap_or_else(|_| panic!("nothing comes behind {lines:#?}"));
            lines.push(next.expect("the agent is there"));
        }
    }

    async fn cancel(&mut self, session: &str) {
        self.editor
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

/// The number of permission requests.
fn asks(lines: &[Value]) -> usize {
    lines
        .iter()
        .filter(|line| line["method"] == "session/request_permission")
        .count()
}

/// Two agents at once, which outlive their turn: one is cancelled, the other one ends by itself.
pub(crate) async fn two_at_once(editor: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    let text = format!(
        "{}\n{}\n%say both run",
        waiting_agent("one", true),
        waiting_agent("two", true)
    );
    let (mut lines, ids) = on.start(&session, &text, &["one", "two"]).await;
    let [one, two] = ids.as_slice() else {
        panic!("{ids:?}")
    };
    assert_ne!(one, two);
    // The questions of both are theirs, and the prompts that they got.
    let mut asked = on.asked();
    asked.sort_by_key(Value::to_string);
    let mut expected = vec![json!(one), json!(two)];
    expected.sort_by_key(Value::to_string);
    assert_eq!(asked, expected);
    for child in [one, two] {
        let first = lines
            .iter()
            .map(|line| &line["params"])
            .find(|params| params["sessionId"] == child.as_str())
            .expect("it does something");
        assert_eq!(first["update"]["sessionUpdate"], "session_message", "{first:#}");
        assert_eq!(first["update"]["senderSessionId"], session.as_str(), "{first:#}");
    }

    on.cancel(one).await;
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, one, "cancelled"))
    })
    .await;
    assert!(
        !lines
            .iter()
            .any(|line| state(line, two).is_some_and(|state| state["state"] == "idle"))
    );
    std::fs::write(cwd.join("two"), "").unwrap();
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, two, "end_turn"))
    })
    .await;
    assert_eq!(said_in(&lines, two), "two is done", "{lines:#?}");
    let states = lines.iter().filter_map(|line| state(line, two));
    let states: Vec<&Value> = states.map(|state| &state["state"]).collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle"]);
    assert_eq!(said_in(&lines, one), "");
    laws(&lines, &session);
    // All calls of the cancelled one have ended before it.
    let end = lines.iter().position(|line| is_idle(line, one, "cancelled"));
    let open = lines.iter().take(end.expect("it ended")).filter(|line| {
        let params = &line["params"];
        params["sessionId"] == one.as_str()
            && params["update"]["sessionUpdate"] == "tool_call_update"
            && params["update"]["status"] == "failed"
    });
    assert_eq!(open.count(), 1, "{lines:#?}");

    let prompt = on.editor.prompt(&session, "%say and on").await;
    let (_, answer) = on.editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    for method in ["session/prompt", "session/set_mode", "session/close"] {
        let params = json!({"sessionId": two, "prompt": [{"type": "text", "text": "no"}], "modeId": "plan"});
        let refused = on.editor.refused(method, params).await;
        assert!(
            matches!(refused["code"].as_i64(), Some(-32602 | -32002)),
            "{refused:#}"
        );
    }
    on.editor.leave().await;
}

/// A cancel of the session reaches the agents, whether a turn runs or not.
pub(crate) async fn all_are_cancelled(editor: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    // A turn runs.
    let text = format!("{}\n%hang\n%say waiting", waiting_agent("never", true));
    let prompt = on.editor.prompt(&session, &text).await;
    let mut lines = Vec::new();
    on.more(&mut lines, |lines| {
        asks(lines) == 1 && !said_in(lines, &session).is_empty()
    })
    .await;
    let child = lines
        .iter()
        .find_map(|line| announced(line, "never"))
        .expect("a child");
    on.cancel(&session).await;
    on.more(&mut lines, |lines| {
        let is_answered = lines
            .iter()
            .any(|line| line["id"] == prompt && line["result"]["stopReason"] == "cancelled");
        is_answered && lines.iter().any(|line| is_idle(line, &child, "cancelled"))
    })
    .await;
    laws(&lines, &session);
    // None runs.
    let text = format!("{}\n%say it runs", waiting_agent("neither", true));
    let (mut lines, ids) = on.start(&session, &text, &["neither"]).await;
    on.cancel(&session).await;
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, &ids[0], "cancelled"))
    })
    .await;
    laws(&lines, &session);
    on.editor.leave().await;
}

/// An agent that the turn waits for is cancelled: the turn goes on.
async fn the_turn_goes_on(editor: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    let text = format!("{}\n%say without it", waiting_agent("slow", false));
    let prompt = on.editor.prompt(&session, &text).await;
    let mut lines = Vec::new();
    on.more(&mut lines, |lines| asks(lines) == 1).await;
    let child = lines
        .iter()
        .find_map(|line| announced(line, "slow"))
        .expect("a child");
    on.cancel(&child).await;
    on.more(&mut lines, |lines| {
        lines
            .iter()
            .any(|line| line["id"] == prompt && line.get("method").is_none())
    })
    .await;
    let answer = lines.last().expect("an answer");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert!(
        lines.iter().any(|line| is_idle(line, &child, "cancelled")),
        "{lines:#?}"
    );
    assert_eq!(said_in(&lines, &session), "without it");
    laws(&lines, &session);
    on.editor.leave().await;
}

/// An agent in the background that has started another one: both are cancelled.
async fn those_below_are_cancelled(editor: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    let inner = waiting_agent("inner", true);
    let text = format!(
        "{}\n%say it runs",
        agent("outer", true, &format!("{inner}\n{}", waiting("outer")))
    );
    let (mut lines, ids) = on.start(&session, &text, &["outer", "inner"]).await;
    let [outer, inner] = ids.as_slice() else {
        panic!("{ids:?}")
    };
    let parent = lines
        .iter()
        .find(|line| announced(line, "inner").is_some())
        .map(|line| line["params"]["sessionId"].clone());
    assert_eq!(parent, Some(json!(outer)));
    on.cancel(outer).await;
    on.more(&mut lines, |lines| {
        [outer, inner]
            .iter()
            .all(|child| lines.iter().any(|line| is_idle(line, child, "cancelled")))
    })
    .await;
    laws(&lines, &session);
    on.editor.leave().await;
}

/// What was seen of an agent is seen again when the session is loaded, in the same session.
async fn a_replay_tells_the_same(editor: Editor, again: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    std::fs::write(cwd.join("one"), "").unwrap();
    let (live, _) = on
        .editor
        .turn(&session, &format!("{}\n%say done", waiting_agent("one", false)))
        .await;
    laws(&live, &session);
    on.editor.leave().await;

    let mut on = allowing(again).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = on.editor.ask("session/load", load).await;
    let (lines, _) = on.editor.until(id).await;
    laws(&lines, &session);
    let child = |lines: &[Value]| {
        lines
            .iter()
            .find_map(|line| announced(line, "one"))
            .expect("a child")
    };
    let one = child(&live);
    assert_eq!(child(&lines), one);
    let of_child = |lines: &[Value]| -> Vec<Value> {
        let of = lines
            .iter()
            .filter(|line| line["params"]["sessionId"] == one.as_str());
        let updates = of.map(|line| &line["params"]["update"]);
        let updates = updates.filter(|update| {
            matches!(
                update["sessionUpdate"].as_str(),
                Some("session_message" | "tool_call" | "agent_message_chunk")
            )
        });
        let known =
            updates.map(|update| json!([update["sessionUpdate"], update["toolCallId"], update["content"]]));
        known
            .filter(|update| update[0] != "tool_call" || update[1].is_string())
            .collect()
    };
    assert_eq!(of_child(&lines).len(), 3, "{lines:#?}");
    assert_eq!(of_child(&lines)[0], of_child(&live)[0]);
    assert_eq!(of_child(&lines)[2], of_child(&live)[2]);
    // Nothing says that it works, or could be cancelled.
    let update = lines
        .iter()
        .find(|line| announced(line, "one").is_some())
        .expect("a child");
    let update = &update["params"]["update"];
    assert_eq!(
        (update.get("state"), &update["capabilities"]),
        (None, &json!({})),
        "{update:#}"
    );
    on.editor.leave().await;
}

/// An agent that has ended is sent a message: it works again, in its session, also when the session was loaded meanwhile.
async fn it_works_again(editor: Editor, again: Editor, cwd: &Path) {
    let mut on = allowing(editor).await;
    let (session, _) = on.editor.open(cwd).await;
    std::fs::write(cwd.join("one"), "").unwrap();
    let text = format!("{}\n%say it runs", waiting_agent("one", true));
    let (mut lines, ids) = on.start(&session, &text, &["one"]).await;
    let one = &ids[0];
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, one, "end_turn"))
    })
    .await;
    let (_, agent) = one.rsplit_once('.').expect("an id");
    let send = |message: &str| {
        let input = json!({"to": agent, "summary": "go on", "message": format!("%say {message}")});
        format!("%tool SendMessage {input}\n%say sent")
    };
    let (mut lines, _) = on.editor.turn(&session, &send("once more")).await;
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, one, "end_turn"))
    })
    .await;
    assert_eq!(said_in(&lines, one), "once more", "{lines:#?}");
    on.editor.leave().await;

    let mut on = allowing(again).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = on.editor.ask("session/load", load).await;
    let (mut all, _) = on.editor.until(id).await;
    let (mut lines, _) = on.editor.turn(&session, &send("after all")).await;
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, one, "end_turn"))
    })
    .await;
    assert_eq!(said_in(&lines, one), "after all", "{lines:#?}");
    let announced = lines
        .iter()
        .find(|line| announced(line, "one").as_ref() == Some(one));
    let update = &announced.expect("it is announced again")["params"]["update"];
    assert_eq!(update["capabilities"], json!({"cancel": {}}), "{update:#}");
    all.extend(lines);
    laws(&all, &session);
    on.editor.leave().await;
}

fn simulated() -> (Simulated, Editor, tempfile::TempDir) {
    let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
    let editor = Editor::of(&cli);
    (cli, editor, tempfile::tempdir().unwrap())
}

macro_rules! simulated {
    ($($name:ident: $scenario:ident;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let (_cli, editor, home) = simulated();
            $scenario(editor, home.path()).await;
        }
    )+};
}

macro_rules! real {
    ($($name:ident: $scenario:ident;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let rig = Rig::start().await;
            $scenario(rig.editor(), &rig.sandbox.project()).await;
        }
    )+};
}

simulated! {
    each_has_a_session_and_a_cancel_of_its_own: two_at_once;
    a_cancel_of_the_session_reaches_all: all_are_cancelled;
}

// The simulated CLI neither stops an agent that a turn waits for, nor one that belongs to an agent which was stopped.
real! {
    each_has_a_session_and_a_cancel_with_the_real_cli: two_at_once;
    a_cancel_of_the_session_reaches_all_with_the_real_cli: all_are_cancelled;
    a_turn_goes_on_without_one_with_the_real_cli: the_turn_goes_on;
    a_cancel_reaches_those_below_with_the_real_cli: those_below_are_cancelled;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_one_is_told_again_with_the_real_cli() {
    let rig = Rig::start().await;
    a_replay_tells_the_same(rig.editor(), rig.editor(), &rig.sandbox.project()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_works_again_keeps_its_session_with_the_real_cli() {
    let rig = Rig::start().await;
    it_works_again(rig.editor(), rig.editor(), &rig.sandbox.project()).await;
}

/// For the CLI that is pinned, a member of a team is an agent in the background that has a name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_a_team_is_a_session_with_the_real_cli() {
    let mut rig = Rig::start().await;
    let options = rig.config.options.clone();
    rig.config.options = options.env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1");
    let mut on = allowing(rig.editor()).await;
    let (session, _) = on.editor.open(&rig.sandbox.project()).await;
    let mate = json!({
        "description": "Help", "prompt": waiting("mate"), "subagent_type": "general-purpose", "name": "mate",
        "team_name": "crew", "run_in_background": true,
    });
    let text = format!("%tool Agent {mate}\n%say it runs");
    let (mut lines, ids) = on.start(&session, &text, &["Help"]).await;
    on.cancel(&ids[0]).await;
    on.more(&mut lines, |lines| {
        lines.iter().any(|line| is_idle(line, &ids[0], "cancelled"))
    })
    .await;
    laws(&lines, &session);
    on.editor.leave().await;
}

#[tokio::test]
async fn an_editor_that_does_not_ask_for_them_gets_none() {
    let (_cli, mut editor, home) = simulated();
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(home.path()).await;
    std::fs::write(home.path().join("one"), "").unwrap();
    let (lines, _) = editor
        .turn(&session, &format!("{}\n%say done", waiting_agent("one", false)))
        .await;
    for line in &lines {
        assert_eq!(line["params"]["sessionId"], session.as_str(), "{line}");
        let kind = &line["params"]["update"]["sessionUpdate"];
        assert!(kind != "subagent_update" && kind != "session_message", "{line}");
    }
    assert!(
        lines
            .iter()
            .any(|line| line.to_string().contains("parentToolUseId")),
        "{lines:#?}"
    );
    editor.leave().await;
}
