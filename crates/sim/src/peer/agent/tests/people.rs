//! Questions and plans, tools that search, and hooks behind tools.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_through_its_permission() {
    const QUESTION: &str = "%tool AskUserQuestion {\"questions\": [{\"question\": \"Which colour?\", \"header\": \"Colour\", \"multiSelect\": false, \"options\": [{\"label\": \"Red\", \"description\": \"warm\"}, {\"label\": \"Blue\", \"description\": \"cold\"}]}]}\n%say done";
    for answered in [true, false] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.prompt(QUESTION).await;
        let question = hand.until("control_request/can_use_tool").await;
        assert_eq!(question["request"]["requires_user_interaction"], true);
        let mut input = question["request"]["input"].clone();
        if answered {
            input["answers"] = json!({"Which colour?": "Blue"});
        }
        hand.answer(&question, json!({"behavior": "allow", "updatedInput": input}))
            .await;
        let told = hand.until("user").await["message"]["content"][0]["content"].clone();
        assert_eq!(
            told,
            if answered {
                "Your questions have been answered: \"Which colour?\"=\"Blue\". You can now continue with these answers in \
                 mind."
            } else {
                "The user did not answer the questions."
            }
        );
        hand.end().await;
    }
    // Without anybody to ask there is no such tool.
    let mut hand = Hand::ready(Agent::builder().permission_prompts(false)).await;
    hand.prompt(QUESTION).await;
    let init = hand.until("system/init").await;
    assert!(
        !init["tools"]
            .as_array()
            .unwrap()
            .contains(&json!("AskUserQuestion"))
    );
    let told = hand.until("user").await.to_string();
    assert!(told.contains("No such tool available: AskUserQuestion"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_written_and_approved() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(
        "%tool EnterPlanMode {}\n%tool Write {\"file_path\": \"/home/user/.claude/plans/fox.md\", \"content\": \"1. do \
         it\"}\n%tool ExitPlanMode {\"plan\": \"dropped\"}\n%say done",
    )
    .await;
    assert_eq!(hand.until("system/status").await["permissionMode"], "plan");
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(
        question["request"]["input"],
        json!({"plan": "1. do it", "planFilePath": "/home/user/.claude/plans/fox.md"})
    );
    hand.answer(&question, json!({"behavior": "allow"})).await;
    assert_eq!(hand.until("system/status").await["permissionMode"], "default");
    let told = hand.until("user").await.to_string();
    assert!(told.contains("User has approved your plan."), "{told}");
    hand.until("result/success").await;
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn plans_are_kept_in_the_configuration_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plans/fox.md");
    let input = json!({"file_path": path, "content": "1. do it"});
    let mut hand = Hand::ready(Agent::builder().config_dir(directory.path())).await;
    hand.prompt(&format!(
        "%tool EnterPlanMode {{}}\n%tool Write {input}\n%tool ExitPlanMode {{}}\n%say done"
    ))
    .await;
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(question["request"]["tool_name"], "ExitPlanMode");
    assert_eq!(question["request"]["input"]["planFilePath"], json!(path));
    hand.answer(&question, json!({"behavior": "allow"})).await;
    hand.until("result/success").await;
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_behind_tools_and_behind_failures() {
    let mut hand = Hand::new(Agent::builder());
    let on = |id: &str| json!([{"hookCallbackIds": [id]}]);
    hand.request(
        json!({"subtype": "initialize", "hooks": {"PostToolBatch": on("b"), "StopFailure": on("f")}}),
    )
    .await;
    hand.prompt("%tool Bash {\"command\": \"echo 1\"}\n%+tool Bash {\"command\": \"echo 2\"}\n%error 400 n=9 msg=bad\n%say x").await;
    let batch = hand.until("control_request/hook_callback").await;
    assert_eq!(
        batch["request"]["input"]["tool_calls"].as_array().unwrap().len(),
        2
    );
    assert_eq!(batch["request"]["input"]["tool_calls"][1]["tool_response"], "2");
    hand.answer(&batch, json!({})).await;
    let failure = hand.until("control_request/hook_callback").await;
    assert_eq!(failure["request"]["input"]["hook_event_name"], "StopFailure");
    assert_eq!(
        failure["request"]["input"]["last_assistant_message"],
        "API Error: 400 bad"
    );
    hand.answer(&failure, json!({})).await;
    assert_eq!(hand.until("result/success").await["is_error"], true);
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn agents_in_the_background_are_waited_for_so_long() {
    let mut hand = Hand::ready(Agent::builder().background_wait(Duration::from_secs(3))).await;
    hand.prompt("%tool Agent {\"description\": \"d\", \"prompt\": \"%hang\\n%say x\"}\n%say done")
        .await;
    hand.until("result/success").await;
    let began = tokio::time::Instant::now();
    let mut stderr = std::mem::replace(&mut hand.stderr, BufReader::new(tokio::io::duplex(1).0).lines());
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert!(
        (3..4).contains(&began.elapsed().as_secs()),
        "{:?}",
        began.elapsed()
    );
    assert!(
        stderr
            .next_line()
            .await
            .unwrap()
            .unwrap()
            .contains("stopped after 3s")
    );
    let last = &kinds[kinds.len() - 4..];
    assert_eq!(
        last,
        [
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "user"
        ]
    );
}
