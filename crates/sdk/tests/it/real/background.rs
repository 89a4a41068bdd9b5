//! Subagents, and work in the background.

use std::sync::{Arc, Mutex};

use outrigger::permissions::{PermissionRequest, PermissionResult};
use outrigger::protocol::outbound::control::BackgroundTasks;
use outrigger::{AmbientEvent, Event, Policy, SessionState, TaskState, Verdict};
use outrigger_sim::api::{ApiRequest, Reply};
use outrigger_sim::script::Step;
use serde_json::json;

use super::flow::{Pipe, ambient_turn, bash, end, events, rest, soon, tool};
use super::rig::{PATIENCE, Rig, turn};

/// A call of the `Agent` tool; in the background unless said otherwise, which is the CLI's default.
fn agent(prompt: &str, foreground: bool) -> String {
    let mut input = json!({"description": "a helper", "prompt": prompt, "subagent_type": "general-purpose"});
    if foreground {
        input["run_in_background"] = json!(false);
    }
    tool("Agent", input)
}

/// The last message of a request, where the CLI reports what has ended in the background.
fn last_message(request: &ApiRequest) -> String {
    request
        .messages()
        .last()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// What the model says when it is told that background work has ended.
fn on_notification(rig: &Rig, says: impl Into<Reply>) {
    let says = says.into();
    rig.api().add_rule(move |request| {
        let told = request.agent_id().is_none() && last_message(request).contains("<task-notification>");
        told.then(|| says.clone())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_in_the_background_wakes_a_turn_that_is_nobodys() {
    let rig = Rig::start().await;
    on_notification(&rig, Reply::say("it has ended"));
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let gate = Pipe::new(&rig.sandbox().project(), "gate");
    let mut ambient = session.ambient();
    let command = json!({"command": "cat gate", "description": "wait", "run_in_background": true});
    let (_, outcome) = turn(&session, &format!("{}\n%say started", tool("Bash", command))).await;
    assert_eq!((outcome.result_text(), outcome.origin()), ("started", None));
    // A shell does not keep the run from ending.
    soon(session.wait_run_end(PATIENCE)).await.unwrap();
    assert_eq!(session.state(), Some(SessionState::Idle));
    let task = session.tasks().running().next().cloned().expect("it runs");
    assert_eq!(
        (task.task_type.as_deref(), task.is_agent()),
        (Some("local_bash"), false)
    );
    assert!(task.is_backgrounded);
    // Meanwhile the session answers.
    assert_eq!(turn(&session, "%say meanwhile").await.0, ["text meanwhile"]);
    gate.write("it is out\n").await;
    let woken = ambient_turn(&mut ambient).await;
    assert_eq!(
        (woken.origin(), woken.result_text()),
        (Some("task-notification"), "it has ended")
    );
    assert!(woken.prompts().is_empty());
    assert_eq!(session.tasks().get(&task.id).unwrap().state, TaskState::Completed);
    assert_eq!(turn(&session, "%say mine").await.0, ["text mine"]);
    assert_eq!(session.usage().results, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_meets_an_ambient_turn_gets_its_own_outcome() {
    let rig = Rig::start().await;
    on_notification(
        &rig,
        Reply::say("noted ")
            .hold("ambient")
            .step(Step::More("all".into())),
    );
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let gate = Pipe::new(&rig.sandbox().project(), "gate");
    let mut ambient = session.ambient();
    let command = json!({"command": "cat gate", "description": "wait", "run_in_background": true});
    turn(&session, &format!("{}\n%say started", tool("Bash", command))).await;
    gate.write("out\n").await;
    rig.api().gate("ambient").reached(1, PATIENCE).await.unwrap();
    let mut mine = session.prompt("%say mine").await.unwrap();
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("ambient").open();
    let (seen, outcome) = rest(&mut mine).await;
    assert_eq!(
        (seen, outcome.prompts()),
        (vec!["text mine".to_owned()], &[mine.id().to_string()][..])
    );
    let woken = ambient_turn(&mut ambient).await;
    assert_eq!((woken.result_text(), woken.prompts().len()), ("noted all", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_in_the_foreground_is_told_apart() {
    let rig = Rig::start().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let asked = Arc::clone(&asked);
        move |request: PermissionRequest| {
            asked.lock().unwrap().push((request.tool_name, request.agent_id));
            async { PermissionResult::allow() }
        }
    };
    let session = rig
        .options()
        .permissions(handler)
        .forward_subagent_text(true)
        .start()
        .await
        .unwrap();
    let inner = format!(
        "%say let me see\n%+{}\n%say the inner report",
        &bash("touch made.txt")[1..]
    );
    let (seen, outcome) = turn(
        &session,
        &format!("{}\n%say the outer answer", agent(&inner, true)),
    )
    .await;
    assert_eq!(
        seen,
        [
            "use Agent",
            "sub text let me see",
            "sub use Bash",
            "sub result ok",
            "sub text the inner report",
            "result ok",
            "text the outer answer"
        ]
    );
    assert_eq!(outcome.result_text(), "the outer answer");
    assert!(rig.sandbox().project().join("made.txt").exists());
    let tasks = session.tasks();
    let task = tasks.iter().next().expect("the agent is a task");
    assert_eq!(
        (&task.state, task.is_backgrounded, task.is_agent()),
        (&TaskState::Completed, false, true)
    );
    assert_eq!(
        asked.lock().unwrap()[..],
        [("Bash".to_owned(), Some(task.id.clone()))]
    );
    assert_eq!((tasks.roots().count(), tasks.running().count()), (1, 0));
}

#[tokio::test]
async fn the_interim_answer_is_not_the_end_of_the_run() {
    let rig = Rig::start().await;
    on_notification(&rig, Reply::say("the final answer"));
    let prompt = format!("{}\n%say I'll wait", agent("%say {{gate:agent}}found it", false));
    let mut query = rig.options().query(prompt).await.unwrap();
    let mut seen = Vec::new();
    soon(async {
        while let Some(event) = query.next().await {
            if let Event::Text(text) = event.unwrap() {
                if text == "I'll wait" {
                    // The turn is as good as over, and the agent still runs.
                    rig.api().gate("agent").reached(1, PATIENCE).await.unwrap();
                    assert_eq!(query.session().tasks().running().count(), 1);
                    rig.api().gate("agent").open();
                }
                seen.push(text);
            }
        }
    })
    .await;
    assert_eq!(seen, ["I'll wait", "the final answer"]);
    let run = soon(query.finish()).await.unwrap();
    assert_eq!((run.follow_ups.len(), run.exit.code), (1, Some(0)));
    let own = run.outcome.cost() + run.follow_ups[0].cost();
    assert!((run.cost() - own).abs() < 1e-9);
    let answer = run.answer().unwrap();
    assert_eq!(
        (answer.text(), answer.outcome().result_text()),
        ("the final answer", "I'll wait")
    );
    assert!((answer.cost() - own).abs() < 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_ends_after_the_last_of_several_agents() {
    let rig = Rig::start().await;
    on_notification(&rig, Reply::say("heard"));
    let session = rig.session().await;
    let mut ambient = session.ambient();
    let prompt = format!(
        "{}\n%+{}\n%say I'll wait",
        agent("%say {{gate:first}}one", false),
        &agent("%say {{gate:second}}two", false)[1..]
    );
    let (_, outcome) = turn(&session, &prompt).await;
    assert_eq!(outcome.result_text(), "I'll wait");
    for gate in ["first", "second"] {
        rig.api().gate(gate).reached(1, PATIENCE).await.unwrap();
    }
    let over = tokio::spawn({
        let session = session.clone();
        async move { session.wait_run_end(PATIENCE).await }
    });
    // The second one reports first.
    let mut order = Vec::new();
    for gate in ["second", "first"] {
        assert!(!over.is_finished());
        rig.api().gate(gate).open();
        let woken = ambient_turn(&mut ambient).await;
        assert_eq!(woken.origin(), Some("task-notification"));
        order.push(last_message(&rig.api().message_requests().pop().unwrap()));
    }
    soon(over).await.unwrap().unwrap();
    assert!(order[0].contains("two") && order[1].contains("one"), "{order:?}");
    assert_eq!(session.tasks().running().count(), 0);
    assert!(
        session
            .tasks()
            .iter()
            .all(|task| task.state == TaskState::Completed && task.is_backgrounded)
    );
    assert_eq!(session.state(), Some(SessionState::Idle));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_agent_can_be_stopped() {
    let rig = Rig::start().await;
    on_notification(&rig, Reply::say("so it was stopped"));
    let session = rig.session().await;
    let mut ambient = session.ambient();
    turn(
        &session,
        &format!("{}\n%say I'll wait", agent("%say {{gate:never}}x", false)),
    )
    .await;
    let task = session.tasks().running().next().cloned().unwrap();
    soon(session.stop_task(&task.id)).await.unwrap();
    assert_eq!(
        ambient_turn(&mut ambient).await.result_text(),
        "so it was stopped"
    );
    assert_eq!(session.tasks().get(&task.id).unwrap().state, TaskState::Stopped);
    soon(session.wait_run_end(PATIENCE)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_command_moves_to_the_background() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let started = Pipe::new(&rig.sandbox().project(), "started");
    let mut ambient = session.ambient();
    let mut running = session
        .prompt(format!(
            "{}\n%say moved",
            bash("echo go > started; tail -f /dev/null")
        ))
        .await
        .unwrap();
    assert_eq!(started.read().await, "go\n");
    // The CLI makes a task of a command once it has run for some seconds.
    soon(async {
        loop {
            if let AmbientEvent::Event(_) | AmbientEvent::TurnEnded(_) = tokio::select! {
                event = ambient.next() => event.expect("the session lives"),
                event = running.next() => AmbientEvent::Event(event.expect("it runs").unwrap()),
            } && session.tasks().running().count() == 1
            {
                return;
            }
        }
    })
    .await;
    soon(session.request(&BackgroundTasks::new())).await.unwrap();
    assert_eq!(end(&mut running).await.result_text(), "moved");
    let task = session.tasks().running().next().cloned().expect("it runs on");
    assert!(task.is_backgrounded, "{task:?}");
    soon(session.stop_task(&task.id)).await.unwrap();
    assert_eq!(session.tasks().running().count(), 0);
    assert_eq!(session.tasks().get(&task.id).unwrap().state, TaskState::Stopped);
}

#[tokio::test]
async fn an_interrupt_ends_agents() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut running = session
        .prompt(format!("{}\n%say never", agent("%say {{gate:inner}}x", true)))
        .await
        .unwrap();
    rig.api().gate("inner").reached(1, PATIENCE).await.unwrap();
    soon(session.interrupt()).await.unwrap();
    assert_eq!(end(&mut running).await.verdict(), &Verdict::Interrupted);
    let states: Vec<_> = session.tasks().iter().map(|task| task.state.clone()).collect();
    assert_eq!(states, [TaskState::Stopped]);
    let (seen, _) = events(&session, "%say next").await;
    assert!(!seen.iter().any(|event| matches!(event, Event::Subagent(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_agents_ask_at_the_same_time() {
    let rig = Rig::start().await;
    // Each question is answered only once both are open.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let askers = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let (both, askers) = (Arc::clone(&both), Arc::clone(&askers));
        move |request: PermissionRequest| {
            askers.lock().unwrap().push(request.agent_id.unwrap_or_default());
            let both = Arc::clone(&both);
            async move {
                both.wait().await;
                PermissionResult::allow()
            }
        }
    };
    let session = rig.options().permissions(handler).start().await.unwrap();
    let prompt = format!(
        "{}\n%+{}\n%say both are back",
        agent(&format!("{}\n%say one", bash("touch one.txt")), true),
        &agent(&format!("{}\n%say two", bash("touch two.txt")), true)[1..]
    );
    let (seen, outcome) = turn(&session, &prompt).await;
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "both are back")
    );
    assert_eq!(
        seen.iter().filter(|event| *event == "sub result ok").count(),
        2,
        "{seen:?}"
    );
    let askers = askers.lock().unwrap().clone();
    assert_eq!(askers.len(), 2);
    assert_ne!(askers[0], askers[1]);
    assert!(
        askers.iter().all(|id| session.tasks().get(id).is_some()),
        "{askers:?}"
    );
}
