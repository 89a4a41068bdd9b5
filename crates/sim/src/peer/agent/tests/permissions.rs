//! May a tool be used?

use super::*;

#[tokio::test(start_paused = true)]
async fn perm_allow() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(
        question["request"]["permission_suggestions"],
        json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch a.txt"}], "behavior": "allow",
                "destination": "localSettings"},
            {"type": "addDirectories", "directories": ["/home/user/project"], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ])
    );
    assert_eq!(question["request"]["blocked_path"], "/home/user/project/a.txt");
    hand.answer(
        &question,
        json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
    )
    .await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["num_turns"], &result["result"]),
        (&json!(2), &json!("done"))
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "result/success"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn perm_deny_interrupt() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say must not be reached")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(
        &question,
        json!({"behavior": "deny", "message": "no", "interrupt": true}),
    )
    .await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    assert_eq!(result["num_turns"], 3);
    assert_eq!(result["stop_reason"], "tool_use");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    hand.prompt("%say second turn works").await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "second turn works");
    assert_eq!(result["result_index"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "user",
            "result/error_during_execution",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn deny_and_wrong_answers() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (answer, text) in [
        (json!({"behavior": "deny", "message": "not today"}), "not today"),
        (
            json!({"behavior": "deny"}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"allowed": true}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": null}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {"command": "echo changed"}}),
            "changed",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {}}),
            "(Bash completed with no output)",
        ),
    ] {
        hand.prompt(&format!("{TOUCH}\n%say after")).await;
        let question = hand.until("control_request/can_use_tool").await;
        hand.answer(&question, answer).await;
        let user = hand.until("user").await;
        let content = user["message"]["content"][0]["content"].as_str().unwrap();
        assert!(content.starts_with(text), "{content}");
        assert_eq!(hand.until("result/success").await["result"], "after");
    }
    let (exit, _) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn callbacks_are_shown_whole_inputs_and_what_leaves_the_project() {
    let files = [("src/lib.rs", "fn a() {}\n"), ("/home/user/outside.txt", "out\n")];
    let agent = Agent::builder().files(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let mut hand = Hand::ready(agent).await;
    hand.prompt(concat!(
        "%tool Write {\"file_path\": \"./x/../notes.md\", \"content\": \"x\"}\n",
        "%tool Edit {\"file_path\": \"src/lib.rs\", \"old_string\": \"a\", \"new_string\": \"b\"}\n",
        "%tool Read {\"file_path\": \"../outside.txt\"}\n%tool Read {\"file_path\": \"notes.md\", \"extra\": 1}\n%say done",
    ))
    .await;
    let mut told = Vec::new();
    for expected in [
        json!({"file_path": "/home/user/project/notes.md", "content": "x"}),
        json!({"file_path": "/home/user/project/src/lib.rs", "old_string": "a", "new_string": "b", "replace_all": false}),
        json!({"file_path": "/home/user/outside.txt"}),
    ] {
        let question = hand.until("control_request/can_use_tool").await;
        assert_eq!(question["request"]["input"], expected);
        let answer = if expected["content"] == "x" {
            json!({"behavior": "allow", "updatedInput": question["request"]["input"]})
        } else {
            json!({"behavior": "deny", "message": "no"})
        };
        hand.answer(&question, answer).await;
        told.push(question["request"]["decision_reason_type"].clone());
    }
    assert_eq!(told, [json!(null), json!(null), json!("workingDir")]);
    let result = hand.until("result/success").await;
    let denied: Vec<&Value> = result["permission_denials"].as_array().unwrap().iter().collect();
    assert_eq!(denied.len(), 2);
    assert_eq!(denied[1]["tool_input"]["file_path"], "/home/user/outside.txt");
    // What the assistant message says is what the model wrote, and the tool is told the same.
    let lines = hand.agent.report().lines;
    let has = |text: &str| lines.iter().any(|line| line.json.to_string().contains(text));
    assert!(has("File created successfully at: ./x/../notes.md"));
    assert!(has("An unexpected parameter `extra` was provided"));
}

#[tokio::test(start_paused = true)]
async fn a_variable_is_asked_about_even_where_edits_are_accepted() {
    let mut hand = Hand::ready(Agent::builder().permission_mode("acceptEdits")).await;
    hand.prompt("%tool Bash {\"command\": \"touch a\"}\n%tool Bash {\"command\": \"echo $VAR\"}\n%say done")
        .await;
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(question["request"]["input"]["command"], "echo $VAR");
    hand.answer(&question, json!({"behavior": "deny", "message": "no"}))
        .await;
    hand.until("result/success").await;
}
