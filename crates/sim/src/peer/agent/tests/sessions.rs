//! Sessions on disk.

use std::path::{Path, PathBuf};

use super::*;

const ID: &str = "11111111-2222-4333-8444-555555555555";

fn kept_in(directory: &Path) -> Builder {
    Agent::builder().config_dir(directory)
}

fn file(directory: &Path, id: &str) -> PathBuf {
    directory
        .join("projects/-home-user-project")
        .join(format!("{id}.jsonl"))
}

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The conversation's records, whose parents must be a chain.
fn conversation(path: &Path) -> Vec<Value> {
    let mut records = records(path);
    records.retain(|record| record["uuid"].is_string());
    let mut parent = Value::Null;
    for record in &records {
        assert_eq!(record["parentUuid"], parent, "{record}");
        parent = record["uuid"].clone();
    }
    records
}

/// Runs one prompt and gives the result, and the kinds of all lines.
async fn one(builder: Builder, prompt: &str) -> (Value, Vec<String>) {
    let mut hand = Hand::ready(builder).await;
    hand.prompt(prompt).await;
    let result = hand.until("result/success").await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    (result, kinds)
}

/// The history that the brain gets to see, and whether it was resumed, request by request.
type Seen = Arc<std::sync::Mutex<Vec<(usize, bool)>>>;

fn asked(builder: Builder) -> (Builder, Seen) {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let brain = move |ask: &ModelRequest| {
        log.lock().unwrap().push((ask.history, ask.resumed));
        Reply::say("ok")
    };
    (builder.brain(brain), seen)
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_where_the_cli_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(kept_in(home.path()).session_id(ID)).await;
    let path = file(home.path(), ID);
    assert!(!path.exists(), "there is nothing to keep yet");
    hand.prompt_with(&format!("{TOUCH}\n%say done"), uuid(1)).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let tool_result = hand.until("user").await;
    let answer = hand.until("assistant").await;
    hand.until("result/success").await;
    let conversation = conversation(&path);
    let kinds: Vec<_> = conversation
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["user", "assistant", "user", "assistant"]);
    assert_eq!(conversation[0]["uuid"], uuid(1)["uuid"]);
    assert_eq!(conversation[0]["cwd"], "/home/user/project");
    assert_eq!(conversation[2]["uuid"], tool_result["uuid"]);
    assert_eq!(conversation[2]["toolUseResult"], tool_result["tool_use_result"]);
    assert_eq!(
        conversation[2]["sourceToolAssistantUUID"],
        conversation[1]["uuid"]
    );
    assert_eq!(conversation[3]["uuid"], answer["uuid"]);
    assert_eq!(conversation[3]["message"]["stop_reason"], "end_turn");
    assert!(conversation.iter().all(|record| record["sessionId"] == ID));
    hand.end().await;
    let records = records(&path);
    let last = records.last().unwrap();
    assert_eq!(
        (&last["type"], dollars(&last["totalCostUSD"])),
        (&json!("cost-state"), 0.00028)
    );
    let tip = records
        .iter()
        .rfind(|record| record["type"] == "last-prompt")
        .unwrap();
    assert_eq!(tip["leafUuid"], answer["uuid"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_unless_asked_for() {
    let home = tempfile::tempdir().unwrap();
    one(kept_in(home.path()).session_persistence(false), "%say one").await;
    assert!(std::fs::read_dir(home.path()).unwrap().next().is_none());
    // One that was never asked anything leaves nothing either.
    let hand = Hand::ready(kept_in(home.path())).await;
    hand.end().await;
    assert!(std::fs::read_dir(home.path()).unwrap().next().is_none());
}

#[tokio::test(start_paused = true)]
async fn resume_goes_on_in_the_same_file() {
    let home = tempfile::tempdir().unwrap();
    let (first, _) = one(kept_in(home.path()).session_id(ID), "%say one").await;
    assert_eq!(dollars(&first["total_cost_usd"]), 0.00014);
    let (builder, seen) = asked(kept_in(home.path()).seed(7).resume(ID));
    let (second, kinds) = one(builder, "two").await;
    assert_eq!(
        kinds,
        ["system/init", "assistant", "result/success"],
        "history is not shown"
    );
    assert_eq!(second["session_id"], ID);
    assert_eq!(
        dollars(&second["total_cost_usd"]),
        0.00028,
        "what it cost before counts"
    );
    assert_eq!(*seen.lock().unwrap(), [(2, true)]);
    assert_eq!(conversation(&file(home.path(), ID)).len(), 4);
    // It is found from another directory too, and stays where it is.
    one(
        kept_in(home.path()).seed(8).cwd("/elsewhere").resume(ID),
        "%say three",
    )
    .await;
    assert_eq!(conversation(&file(home.path(), ID)).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_the_past_is_not_answered_again() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(kept_in(home.path()).session_id(ID)).await;
    hand.prompt_with("%say one", uuid(1)).await;
    hand.until("result/success").await;
    hand.end().await;
    let mut hand = Hand::ready(kept_in(home.path()).seed(7).resume(ID)).await;
    hand.prompt_with("%say one", uuid(1)).await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(
        (exit, kinds),
        (Exit::Code(0), vec!["command_lifecycle/completed".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn continue_takes_the_last_one_or_begins_anew() {
    let home = tempfile::tempdir().unwrap();
    let (first, _) = one(kept_in(home.path()).seed(3).continue_latest(), "%say one").await;
    let id = first["session_id"].as_str().unwrap();
    assert_ne!(id, ID);
    let (again, _) = one(kept_in(home.path()).seed(4).continue_latest(), "%say two").await;
    assert_eq!(again["session_id"], id);
    assert_eq!(conversation(&file(home.path(), id)).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_fork_leaves_the_original_alone() {
    let home = tempfile::tempdir().unwrap();
    one(kept_in(home.path()).session_id(ID), "%say one").await;
    let before = std::fs::read(file(home.path(), ID)).unwrap();
    let (builder, seen) = asked(kept_in(home.path()).seed(9).resume(ID).fork_session(true));
    let (forked, _) = one(builder, "two").await;
    let id = forked["session_id"].as_str().unwrap();
    assert_ne!(id, ID);
    assert_eq!(*seen.lock().unwrap(), [(2, true)]);
    let copy = conversation(&file(home.path(), id));
    assert_eq!(copy.len(), 4);
    assert!(copy.iter().all(|record| record["sessionId"] == id));
    assert_eq!(std::fs::read(file(home.path(), ID)).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn resume_at_an_answer_leaves_the_rest_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(kept_in(home.path()).session_id(ID)).await;
    hand.prompt("%say one").await;
    let answer = hand.until("assistant").await;
    hand.until("result/success").await;
    hand.prompt_with("%say two", uuid(2)).await;
    hand.until("result/success").await;
    hand.end().await;
    let at = answer["uuid"].as_str().unwrap();
    let (builder, seen) = asked(kept_in(home.path()).seed(5).resume(ID).resume_session_at(at));
    one(builder, "other").await;
    assert_eq!(*seen.lock().unwrap(), [(2, true)]);
    let records = records(&file(home.path(), ID));
    let children = records.iter().filter(|record| record["parentUuid"] == at).count();
    assert_eq!(children, 2, "both branches are in the file");
    // The next one goes on with the new branch.
    let (builder, seen) = asked(kept_in(home.path()).seed(6).resume(ID));
    one(builder, "more").await;
    assert_eq!(*seen.lock().unwrap(), [(4, true)]);
    // At a prompt its answer is left behind.
    let prompt = uuid(2)["uuid"].as_str().unwrap().to_owned();
    let (builder, seen) = asked(kept_in(home.path()).seed(7).resume(ID).resume_session_at(prompt));
    one(builder, "again").await;
    assert_eq!(*seen.lock().unwrap(), [(3, true)]);
    let nowhere = "00000000-0000-4000-8000-00000000ffff";
    let hand = Hand::new(kept_in(home.path()).resume(ID).resume_session_at(nowhere));
    let why = format!("No message found with message.uuid of: {nowhere}");
    refused(hand, &why, true).await;
}

#[tokio::test(start_paused = true)]
async fn resume_drops_the_declared_turn_alone() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(kept_in(home.path()).session_id(ID)).await;
    let (mut answers, mut prompts) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let prompt = uuid(number);
        hand.prompt_with(&format!("{TOUCH}\n%say done"), prompt.clone())
            .await;
        let question = hand.until("control_request/can_use_tool").await;
        hand.answer(&question, json!({"behavior": "allow"})).await;
        hand.until("user").await;
        let answer = hand.until("assistant").await;
        hand.until("result/success").await;
        answers.push(answer["uuid"].as_str().unwrap().to_owned());
        prompts.push(prompt["uuid"].as_str().unwrap().to_owned());
    }
    hand.end().await;
    let resumed = |answer: &str, turn: &str| {
        let builder = kept_in(home.path()).seed(5).resume(ID);
        builder.resume_session_at(answer).resume_drops_turn(turn)
    };
    let unknown = "00000000-0000-4000-8000-00000000ffff";
    for (answer, turn, why) in [
        (
            0,
            unknown,
            format!(
                "range does not start with the declared turn prompt; first discarded entry 1 [type=user, uuid={}]",
                prompts[1]
            ),
        ),
        (
            0,
            &prompts[1],
            format!(
                "range contains a user entry not attributable to the declared turn; entry 5 [type=user, uuid={}]",
                prompts[2]
            ),
        ),
        (2, "nope", "declared turn id is not a UUID: nope".to_owned()),
    ] {
        let answer = &answers[answer];
        let text = format!(
            "Resume rejected by --resume-drops-turn: resuming at {answer} would discard entries not attributable to turn \
             {turn}: {why}"
        );
        refused(Hand::new(resumed(answer, turn)), &text, true).await;
    }
    // Nothing is dropped here, and one turn there.
    for (answer, turn) in [(2, unknown), (1, &prompts[2])] {
        let hand = Hand::ready(resumed(&answers[answer], turn)).await;
        assert_eq!(hand.end().await.0, Exit::Code(0));
    }
}

async fn refused(mut hand: Hand, text: &str, told: bool) {
    assert_eq!(hand.stderr.next_line().await.unwrap().unwrap(), text);
    if told {
        let result = hand.next().await;
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!(result["errors"], json!([text]));
        assert_eq!(result["num_turns"], 0);
    }
    assert_eq!(hand.stdout.next_line().await.unwrap(), None);
    assert_eq!(hand.agent.exit().await, Exit::Code(1));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    one(kept_in(home.path()).session_id(ID), "%say one").await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let text = format!("No conversation found with session ID: {unknown}");
    refused(Hand::new(kept_in(home.path()).resume(unknown)), &text, true).await;
    refused(Hand::new(Agent::builder().resume(unknown)), &text, true).await;
    let needs = "Error: --resume requires a valid session ID or session title when used with --print. Usage: claude -p \
                 --resume <session-id|title>";
    refused(Hand::new(kept_in(home.path()).resume_without_id()), needs, true).await;
    let text =
        format!("{needs}. Provided value \"nope\" is not a UUID and does not match any session title.");
    refused(Hand::new(kept_in(home.path()).resume("nope")), &text, true).await;
    let text = format!("Error: Session ID {ID} is already in use.");
    refused(Hand::new(kept_in(home.path()).session_id(ID)), &text, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_found_by_its_title() {
    let home = tempfile::tempdir().unwrap();
    one(kept_in(home.path()).session_id(ID), "%say one").await;
    let entitle = |id: &str, title: &str| {
        let name = format!("{id}.jsonl");
        let projects = std::fs::read_dir(home.path().join("projects")).unwrap();
        let mut files = projects.map(|project| project.unwrap().path().join(&name));
        let path = files.find(|path| path.exists()).unwrap();
        let record = json!({"type": "custom-title", "customTitle": title, "sessionId": id});
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{text}{record}\n")).unwrap();
    };
    entitle(ID, "Fix the login");
    let (result, _) = one(kept_in(home.path()).resume(" fix THE login "), "%say two").await;
    assert_eq!(result["session_id"], ID);

    let other = "00000000-0000-4000-8000-000000000001";
    one(kept_in(home.path()).session_id(other), "%say one").await;
    entitle(other, "fix the login");
    let mut hand = Hand::new(kept_in(home.path()).resume("fix the login"));
    let result = hand.next().await;
    let text = result["errors"][0].as_str().unwrap();
    assert!(
        text.starts_with("Error: --resume \"fix the login\" matches 2 sessions."),
        "{text}"
    );
    assert!(text.contains(ID) && text.contains(other), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_host_can_have_a_copy() {
    let home = tempfile::tempdir().unwrap();
    let mut hand = Hand::ready(kept_in(home.path()).session_id(ID).session_mirror(true)).await;
    hand.prompt("%tool Bash {\"command\": \"echo 1\"}\n%say done")
        .await;
    hand.until("result/success").await;
    let report = hand.agent.report();
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "transcript_mirror",
            "user",
            "assistant",
            "transcript_mirror",
            "result/success",
            "transcript_mirror"
        ]
    );
    let path = file(home.path(), ID);
    let kept = records(&path);
    let mirrors = report.sent().filter(|line| line["type"] == "transcript_mirror");
    let mut told = Vec::new();
    for mirror in mirrors {
        assert_eq!(mirror["filePath"], json!(path));
        told.extend(mirror["entries"].as_array().unwrap().clone());
    }
    assert_eq!(told, kept[..told.len()]);
    assert_eq!(kept.len(), told.len() + 1, "the cost comes at the end");
}

#[tokio::test(start_paused = true)]
async fn ids_do_not_repeat_after_a_resume() {
    let home = tempfile::tempdir().unwrap();
    let prompt = format!("{TOUCH}\n%say done");
    let run = async |builder: Builder| {
        let mut hand = Hand::ready(builder).await;
        hand.prompt(&prompt).await;
        let question = hand.until("control_request/can_use_tool").await;
        hand.answer(&question, json!({"behavior": "allow"})).await;
        let result = hand.until("result/success").await;
        hand.end().await;
        result["session_id"].as_str().unwrap().to_owned()
    };
    let first = run(kept_in(home.path())).await;
    let path = file(home.path(), &first);
    let tip = |number: usize| {
        records(&path)
            .into_iter()
            .filter(|record| record["type"] == "assistant")
            .nth(number)
    };
    let answer = tip(0).unwrap()["uuid"].as_str().unwrap().to_owned();
    // From its end, and from a place before that.
    run(kept_in(home.path()).resume(&first)).await;
    run(kept_in(home.path()).resume(&first).resume_session_at(answer)).await;
    let fork = run(kept_in(home.path()).resume(&first).fork_session(true)).await;
    assert_ne!(fork, first);
    let mut seen = std::collections::BTreeSet::new();
    for record in records(&path) {
        let blocks = record["message"]["content"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for id in blocks.iter().map(|block| &block["id"]).chain([&record["uuid"]]) {
            if let Some(id) = id.as_str() {
                assert!(seen.insert(id.to_owned()), "{id} is there twice");
            }
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
}
