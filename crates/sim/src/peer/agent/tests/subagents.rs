//! Agents that the agent starts.

use super::*;

const SUB: &str = "%say thinking aloud\\n%+tool Bash {\\\"command\\\":\\\"touch sub.txt\\\",\\\"description\\\":\\\"touch in sub\\\"}\\n%say sub result text";

fn agent_call(more: &str) -> String {
    format!(
        "%tool Agent {{\"description\": \"sub task\", \"prompt\": \"{SUB}\", \"subagent_type\": \"general-purpose\"{more}}}"
    )
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let prompt = format!(
        "{}\n%say parent done",
        agent_call(", \"run_in_background\": false")
    );
    hand.prompt(&prompt).await;
    let call = hand.until("assistant").await;
    let tool_use_id = call["message"]["content"][0]["id"].clone();
    let started = hand.next().await;
    assert_eq!(started["subtype"], "task_started");
    assert_eq!(started["is_backgrounded"], false);
    let id = started["task_id"].clone();
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(question["request"]["agent_id"], id);
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let done = hand.until("user").await;
    assert_eq!(done["parent_tool_use_id"], tool_use_id);
    assert_eq!(done["agent_id"], id);
    assert_eq!(done["subagent_type"], "general-purpose");
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!("parent done"), &json!(2))
    );
    assert_eq!(result["subagent_stats"]["completed"], 1);
    assert_eq!(result["subagent_stats"]["by_type"], json!({"general-purpose": 1}));
    assert_eq!(dollars(&result["total_cost_usd"]), 0.00056);
    let report = hand.agent.report();
    let handed_back = report
        .sent()
        .filter(|line| line["type"] == "user")
        .last()
        .unwrap();
    assert_eq!(handed_back["parent_tool_use_id"], Value::Null);
    assert_eq!(handed_back["tool_use_result"]["toolsUsed"], json!(["Bash"]));
    assert!(handed_back.to_string().contains("sub result text"));
    let (_, kinds) = hand.end().await;
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "system/task_started",
            "user",
            "system/task_progress",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "system/task_updated",
            "system/task_notification",
            "user",
            "assistant",
            "result/success"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn its_text_is_shown_on_demand() {
    let builder = Agent::builder()
        .forward_subagent_text(true)
        .permission_mode("acceptEdits");
    let mut hand = Hand::ready(builder).await;
    let prompt = format!(
        "{}\n%say parent done",
        agent_call(", \"run_in_background\": false")
    );
    hand.prompt(&prompt).await;
    hand.until("result/success").await;
    let report = hand.agent.report();
    let of_agent = report
        .sent()
        .filter(|line| line["type"] == "assistant" && line["agent_id"].is_string());
    let blocks: Vec<_> = of_agent
        .map(|line| line["message"]["content"][0]["type"].clone())
        .collect();
    assert_eq!(blocks, ["text", "tool_use", "text"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_background_and_woken() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let prompt = format!(
        "{}\n%say parent done while agent runs\n%say after notification",
        agent_call("")
    );
    hand.prompt(&prompt.replace("%say thinking", "%delay 500\\n%say thinking"))
        .await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "parent done while agent runs");
    assert_eq!(result["subagent_stats"]["started_in_background"], 1);
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let notification = hand.until("system/task_notification").await;
    assert_eq!(notification["summary"], "sub result text");
    assert_eq!(notification["summary_is_report"], true);
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "after notification");
    assert_eq!(result["origin"]["kind"], "task-notification");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "system/background_tasks_changed",
            "system/task_started",
            "user",
            "assistant",
            "result/success",
            "assistant",
            "assistant",
            "system/task_progress",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "system/init",
            "assistant",
            "result/success"
        ]
    );
}

const SLOW: &str =
    "%slow 100 chunk=4\\n%say word word word word word word word word word word word word word word word";

fn slow_agent(background: bool) -> String {
    format!(
        "%tool Agent {{\"description\": \"sub task\", \"prompt\": \"{SLOW}\", \"run_in_background\": {background}}}\n\
         %slow 100 chunk=4\n%say parent parent parent parent parent parent parent parent parent parent parent"
    )
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_them() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&slow_agent(false)).await;
    hand.until("user").await;
    tokio::time::sleep(Duration::from_millis(350)).await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    assert_eq!(result["subagent_stats"]["killed"]["user"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(
        kinds[4..],
        [
            "control_response/success",
            "system/task_updated",
            "system/task_notification",
            "user",
            "user",
            "result/error_during_execution"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_spares_the_background_on_demand() {
    for spared in [false, true] {
        let mut hand = Hand::new(Agent::builder());
        hand.request(json!({"subtype": "initialize", "perTaskStopAffordance": spared}))
            .await;
        hand.prompt(&slow_agent(true)).await;
        hand.until("user").await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        hand.request(json!({"subtype": "interrupt"})).await;
        hand.until("result/error_during_execution").await;
        if spared {
            hand.until("result/success").await;
        }
        let (_, kinds) = hand.end().await;
        let killed = kinds.iter().position(|kind| kind == "system/task_notification");
        let ended = kinds
            .iter()
            .position(|kind| kind == "result/error_during_execution");
        assert_eq!(killed < ended, !spared, "{kinds:?}");
        assert_eq!(
            kinds.iter().filter(|kind| *kind == "result/success").count(),
            usize::from(spared)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_of_the_host() {
    let mut hand = Hand::new(Agent::builder().permission_mode("acceptEdits"));
    let runner =
        json!({"description": "Runs things", "prompt": "You run.", "tools": ["Read"], "model": "haiku"});
    hand.request(json!({"subtype": "initialize", "agents": {"runner": runner}}))
        .await;
    let answer = hand.next().await;
    let agents = answer["response"]["response"]["agents"].as_array().unwrap();
    let names: Vec<_> = agents
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    let expected = [
        "claude",
        "Explore",
        "general-purpose",
        "Plan",
        "runner",
        "statusline-setup",
    ];
    assert_eq!(names, expected);
    let call = |kind: &str| agent_call(", \"run_in_background\": false").replace("general-purpose", kind);
    hand.prompt(&format!("{}\n{}\n%say done", call("runner"), call("nobody")))
        .await;
    let init = hand.next().await;
    assert!(init["agents"].as_array().unwrap().contains(&json!("runner")));
    let result = hand.until("result/success").await;
    assert!(result["modelUsage"]["claude-haiku-5-5"].is_object());
    let report = hand.agent.report();
    let users: Vec<String> = report
        .sent()
        .filter(|line| line["type"] == "user")
        .map(Value::to_string)
        .collect();
    assert!(
        users
            .iter()
            .any(|line| line.contains("No such tool available: Bash")),
        "{users:?}"
    );
    assert!(
        users
            .iter()
            .any(|line| line.contains("Agent type 'nobody' not found")),
        "{users:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_them() {
    let mut hand = Hand::new(Agent::builder().permission_mode("acceptEdits"));
    let on = |id: &str| json!([{"hookCallbackIds": [id]}]);
    let hooks = json!({"SubagentStart": on("start"), "SubagentStop": on("stop"), "PreToolUse": on("tool")});
    hand.request(json!({"subtype": "initialize", "hooks": hooks}))
        .await;
    hand.prompt(&format!(
        "{}\n%say done",
        agent_call(", \"run_in_background\": false")
    ))
    .await;
    let mut events = Vec::new();
    for _ in 0..4 {
        let request = hand.until("control_request/hook_callback").await;
        let input = &request["request"]["input"];
        events.push((input["hook_event_name"].clone(), input["agent_type"].clone()));
        if input["hook_event_name"] == "SubagentStop" {
            assert_eq!(input["last_assistant_message"], "sub result text");
            assert!(
                input["agent_transcript_path"]
                    .as_str()
                    .unwrap()
                    .contains("/subagents/agent-a")
            );
        }
        hand.answer(&request, json!({})).await;
    }
    hand.until("result/success").await;
    let kind = json!("general-purpose");
    assert_eq!(
        events,
        [
            (json!("PreToolUse"), Value::Null),
            (json!("SubagentStart"), kind.clone()),
            (json!("PreToolUse"), kind.clone()),
            (json!("SubagentStop"), kind),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn they_have_files_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let id = "11111111-2222-4333-8444-555555555555";
    let builder = Agent::builder()
        .config_dir(home.path())
        .session_id(id)
        .session_mirror(true)
        .permission_mode("acceptEdits");
    let mut hand = Hand::ready(builder).await;
    hand.prompt(&format!(
        "{}\n%say done",
        agent_call(", \"run_in_background\": false")
    ))
    .await;
    let started = hand.until("system/task_started").await;
    hand.until("result/success").await;
    let agent = started["task_id"].as_str().unwrap();
    let beside = home
        .path()
        .join("projects/-home-user-project")
        .join(id)
        .join("subagents");
    let text = std::fs::read_to_string(beside.join(format!("agent-{agent}.jsonl"))).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 5, "prompt, text, call, result, text");
    assert!(
        records
            .iter()
            .all(|record| record["isSidechain"] == true && record["agentId"] == agent)
    );
    let meta = std::fs::read_to_string(beside.join(format!("agent-{agent}.meta.json"))).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(
        (&meta["toolUseId"], &meta["finished"]),
        (&started["tool_use_id"], &json!(true))
    );
    // A host that mirrors the session is told both: it cannot read the second file.
    let path = json!(beside.join(format!("agent-{agent}.jsonl")));
    let report = hand.agent.report();
    let mirrored = report.sent().filter(|line| line["filePath"] == path);
    let told = mirrored.flat_map(|line| line["entries"].as_array().unwrap());
    let (metadata, told): (Vec<&Value>, Vec<&Value>) =
        told.partition(|entry| entry["type"] == "agent_metadata");
    assert_eq!(told, records.iter().collect::<Vec<_>>());
    let [begun, ended] = metadata[..] else {
        panic!("it begins and ends: {metadata:?}")
    };
    assert_eq!(begun["toolUseId"], started["tool_use_id"]);
    assert!(begun.get("finished").is_none());
    let mut expected = json!({"type": "agent_metadata"});
    expected
        .as_object_mut()
        .unwrap()
        .extend(meta.as_object().unwrap().clone());
    assert_eq!(*ended, expected);
}

#[tokio::test(start_paused = true)]
async fn what_the_model_reads_of_them() {
    let mut hand = Hand::new(Agent::builder().permission_mode("acceptEdits"));
    let agents = json!({"short": {"description": "Looks", "prompt": "Look.", "maxTurns": 1}});
    hand.request(json!({"subtype": "initialize", "agents": agents}))
        .await;
    let call = |kind: &str, prompt: &str| {
        let input = json!({
            "description": "look", "prompt": prompt, "subagent_type": kind, "run_in_background": false,
        });
        format!("%tool Agent {input}\n")
    };
    let touch = "%+tool Bash {\"command\": \"touch a\"}\n%say end";
    hand.prompt(&format!(
        "{}{}{}{}%say done",
        call("short", &format!("%say one\n{touch}")),
        call("short", &touch.replace("%+", "%")),
        call("general-purpose", &touch.replace("%+", "%")),
        call(
            "general-purpose",
            "%tool Bash {\"command\": \"touch a\"}\n%tool Write {\"file_path\": \"b\", \"content\": \"\"}\n%say end"
        ),
    ))
    .await;
    hand.until("result/success").await;
    let report = hand.agent.report();
    let details = report.sent().map(|line| &line["tool_use_result"]);
    let read: Vec<String> = details
        .filter_map(|details| {
            let texts = details["content"].as_array()?.iter();
            let starts = texts.filter_map(|block| block["text"].as_str()?.split(['\n', ':']).next());
            Some(starts.collect::<Vec<_>>().join(", "))
        })
        .collect();
    // Each tool is named once.
    let tools = |names| format!("<tools-used-before-summary>{names}</tools-used-before-summary>");
    assert_eq!(
        read,
        [
            format!("{}, NOTE, one", tools("Bash")),
            "NOTE".to_owned(),
            "end".to_owned(),
            format!("{}, end", tools("Write")),
        ]
    );
    let notes = report
        .sent()
        .filter(|line| line["subtype"] == "task_notification");
    let summaries: Vec<&str> = notes.filter_map(|line| line["summary"].as_str()).collect();
    assert!(summaries[0].ends_with("\n\none"), "{summaries:?}");
    assert!(summaries[1].contains("1-turn limit"), "{summaries:?}");
}

#[tokio::test(start_paused = true)]
async fn one_in_the_background_says_nothing_before_its_launch_is_reported() {
    // A hook that takes too long does not hold it.
    for (patience, waits) in [(50, true), (1_000, false)] {
        let mut hand = Hand::new(Agent::builder());
        let hooks = json!({"PostToolUse": [{"hookCallbackIds": ["behind"]}]});
        hand.request(json!({"subtype": "initialize", "hooks": hooks}))
            .await;
        hand.prompt(&format!("{}\n%say done", agent_call(""))).await;
        let behind = hand.until("control_request/hook_callback").await;
        tokio::time::sleep(Duration::from_millis(patience)).await;
        hand.answer(&behind, json!({})).await;
        hand.until("result/success").await;
        let report = hand.agent.report();
        let launched = report
            .sent()
            .position(|line| line["tool_use_result"]["isAsync"] == true);
        let said = report
            .sent()
            .position(|line| line["type"] == "assistant" && line["agent_id"].is_string());
        assert_eq!(
            said.is_none_or(|said| launched < Some(said)),
            waits,
            "{launched:?} {said:?}"
        );
    }
}
