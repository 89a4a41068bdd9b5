//! Approvals that outlive processes.

use std::error::Error as _;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger::permissions::{PlanReply, QuestionReply};
use outrigger::protocol::shared::{JsonObject, PermissionMode};
use outrigger::testing::{RealCli, Simulated};
use outrigger::{Options, SessionId, Verdict};
use outrigger_fleet::approvals::{
    Approval, ApprovalFiles, ApprovalId, ApprovalState, ApprovalStore, ApprovalStoreError, Approvals,
    CarryOutError, DecideError, Decision, MemoryApprovals, TooLate,
};
use serde_json::json;

const CALL: &str = "%tool Write {\"file_path\": \"made.txt\", \"content\": \"model\"}\n%say done";

/// A session whose call waits, and whose process has ended.
async fn deferred(approvals: &Approvals, options: Options, call: &str) -> Approval {
    let session = approvals.ask_in(options).start().await.unwrap();
    let outcome = session.prompt(call).await.unwrap().outcome().await.unwrap();
    assert_eq!(*outcome.verdict(), Verdict::Deferred);
    let pending = approvals.pending().await.unwrap();
    let call = outcome.deferred().unwrap();
    let approval = pending
        .into_iter()
        .find(|approval| approval.tool_use_id == call.id);
    session.close().await.unwrap();
    approval.expect("it is stored before the turn has ended")
}

#[tokio::test]
async fn any_process_decides_and_any_process_carries_it_out() {
    let place = tempfile::tempdir().unwrap();
    let approvals =
        || Approvals::new(ApprovalFiles::new(place.path().join("approvals"))).matcher("Write|Bash");
    for decision in [
        Decision::allow(),
        Decision::allow_with(
            JsonObject::encode(&json!({"file_path": "made.txt", "content": "person"})).unwrap(),
        ),
        Decision::deny("not today"),
    ] {
        let real = RealCli::directives().await.unwrap();
        let made = real.sandbox().project().join("made.txt");
        let approval = deferred(&approvals(), real.options(), CALL).await;
        assert_eq!((&*approval.tool_name, approval.is_pending()), ("Write", true));
        assert!(!made.exists());

        // Nothing can be carried out before somebody has decided.
        let early = approvals()
            .carry_out(real.options(), &approval)
            .await
            .unwrap_err();
        assert!(matches!(early, CarryOutError::NothingToDo(_)), "{early}");
        approvals()
            .decide(&approval.id, decision.clone(), "Ada")
            .await
            .unwrap();
        let late = approvals()
            .decide(&approval.id, Decision::allow(), "Bob")
            .await
            .unwrap_err();
        assert!(late.to_string().starts_with("Ada decided already"), "{late}");
        let waiting = approvals().waiting().await.unwrap();
        assert_eq!(waiting.len(), 1);

        let carried = approvals().carry_out(real.options(), &waiting[0]).await.unwrap();
        assert!(carried.outcome.is_success(), "{:?}", carried.outcome);
        let expected = match &decision {
            Decision::Allow { updated_input: None } => Some("model"),
            Decision::Allow { .. } => Some("person"),
            Decision::Deny { .. } => None,
        };
        assert_eq!(std::fs::read_to_string(&made).ok().as_deref(), expected);
        // The session goes on, and a second time there is nothing to carry out.
        assert!(
            carried
                .session
                .prompt("%say more")
                .await
                .unwrap()
                .outcome()
                .await
                .unwrap()
                .is_success()
        );
        carried.session.close().await.unwrap();
        let again = approvals()
            .carry_out(real.options(), &approval)
            .await
            .unwrap_err();
        assert!(matches!(again, CarryOutError::NothingToDo(_)), "{again}");
        assert!(
            approvals().pending().await.unwrap().is_empty()
                && approvals().waiting().await.unwrap().is_empty()
        );
    }
}

#[tokio::test]
async fn a_session_that_is_resumed_and_closed_keeps_its_call_open() {
    let approvals = Approvals::new(MemoryApprovals::new());
    let real = RealCli::directives().await.unwrap();
    let approval = deferred(&approvals, real.options(), CALL).await;
    for _ in 0..2 {
        let resumed = approvals.resume(real.options(), &approval.session_id);
        let session = resumed.await.unwrap().asked().await.unwrap();
        session.close().await.unwrap();
        assert!(approvals.get(&approval.id).await.unwrap().unwrap().is_pending());
    }
    approvals
        .decide(&approval.id, Decision::allow(), "Ada")
        .await
        .unwrap();
    // To resume the session is to carry it out.
    let resumed = approvals.resume(real.options(), &approval.session_id);
    let resumed = resumed.await.unwrap();
    let mut ambient = resumed.session().ambient();
    let session = resumed.asked().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let outrigger::AmbientEvent::TurnEnded(outcome) = ambient.next().await.unwrap() {
                return outcome;
            }
        }
    });
    assert_eq!(ended.await.expect("it asks about its call").result_text(), "done");
    assert!(real.sandbox().project().join("made.txt").exists());
    session.close().await.unwrap();
    // Nothing is open any more, so nothing is waited for.
    let resumed = approvals.resume(real.options(), &approval.session_id);
    let session = resumed.await.unwrap().asked().await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_question_waits_for_its_answers() {
    let question = json!({"questions": [{"question": "Which roof?", "header": "Roof", "multiSelect": false, "options": [
        {"label": "Slate", "description": "heavy"}, {"label": "Thatch", "description": "light"}]}]});
    let call = format!("%tool AskUserQuestion {question}\n%say {{{{last}}}}");
    let declined = |real: &RealCli| {
        let options = real.options();
        options.questions(async |_| QuestionReply::Declined("nobody is here".to_owned()))
    };
    let answers = |approval: &Approval| {
        let answers = approval.answers().unwrap();
        assert_eq!(answers.questions()[0].question, "Which roof?");
        answers
    };
    for (number, expected) in [
        "\"Which roof?\"=\"Thatch\"",
        "not now",
        // Allowed, and not answered: the callback is asked.
        "nobody is here",
        "did not answer",
    ]
    .into_iter()
    .enumerate()
    {
        let real = RealCli::directives().await.unwrap();
        let approvals = Approvals::new(MemoryApprovals::new());
        let approval = deferred(&approvals, declined(&real), &call).await;
        let decision = match number {
            0 => Decision::answer(answers(&approval).choose(0, [1]).unwrap()),
            1 => Decision::deny("not now"),
            2 => Decision::allow(),
            _ => Decision::answer(answers(&approval)),
        };
        approvals.decide(&approval.id, decision, "Ada").await.unwrap();
        let carried = approvals.carry_out(declined(&real), &approval).await.unwrap();
        let said = carried.outcome.result_text();
        assert!(said.contains(expected), "{expected}: {said}");
        carried.session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_plan_is_denied_or_approved_by_the_decision_alone() {
    let call = "%tool ExitPlanMode {}\n%say {{last}}";
    let planning = |real: &RealCli| real.options().permission_mode(PermissionMode::Plan);
    let asking =
        |real: &RealCli| planning(real).plans(async |_| PlanReply::KeepPlanning("was asked".to_owned()));
    for (decision, has_callback, expected, mode) in [
        (
            Decision::deny("smaller steps"),
            true,
            "smaller steps",
            PermissionMode::Plan,
        ),
        (Decision::allow(), false, "approved", PermissionMode::Default),
        (Decision::allow(), true, "approved", PermissionMode::Default),
    ] {
        let real = RealCli::directives().await.unwrap();
        let options = || match has_callback {
            true => asking(&real),
            false => planning(&real),
        };
        let approvals = Approvals::new(MemoryApprovals::new());
        let approval = deferred(&approvals, options(), call).await;
        assert_eq!(approval.tool_name, "ExitPlanMode");
        assert!(approval.answers().is_none());
        approvals.decide(&approval.id, decision, "Ada").await.unwrap();
        let carried = approvals.carry_out(options(), &approval).await.unwrap();
        let said = carried.outcome.result_text().to_lowercase();
        assert!(said.contains(expected), "{expected}: {said}");
        carried
            .session
            .prompt("%say next")
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap();
        assert_eq!(carried.session.init().unwrap().permission_mode, mode);
        carried.session.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_decided_in_time_is_denied() {
    let cli = Simulated::agent(|agent| agent);
    let approvals = Approvals::new(MemoryApprovals::new()).expires_after(Duration::ZERO);
    // The options with which it begins do for what follows, too.
    let options = || cli.options().session_id("00000000-0000-4000-8000-000000000001");
    let session = approvals.ask_in(options()).start().await.unwrap();
    let outcome = session.prompt(CALL).await.unwrap().outcome().await.unwrap();
    assert_eq!(*outcome.verdict(), Verdict::Deferred);
    session.close().await.unwrap();
    assert!(approvals.pending().await.unwrap().is_empty());
    let [approval] = &approvals.waiting().await.unwrap()[..] else {
        panic!("one waits")
    };
    assert_eq!(approval.state, ApprovalState::Expired);
    let late = approvals
        .decide(&approval.id, Decision::allow(), "Ada")
        .await
        .unwrap_err();
    assert!(matches!(late, DecideError::TooLate(TooLate::Expired)), "{late}");
    let carried = approvals.carry_out(options(), approval).await.unwrap();
    let denied = cli.report().unwrap();
    assert!(
        denied
            .received()
            .any(|frame| frame.to_string().contains("in time")),
        "the model reads why"
    );
    assert!(carried.outcome.is_success());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_goes_on_without_a_call_supersedes_it() {
    let cli = Simulated::agent(|agent| agent);
    let approvals = Approvals::new(MemoryApprovals::new());
    let first = deferred(&approvals, cli.options(), CALL).await;
    // Another prompt, and another call.
    let options = approvals
        .ask_in(cli.options())
        .resume(first.session_id.to_string());
    let session = options.start().await.unwrap();
    let mut ambient = session.ambient();
    while !matches!(
        ambient.next().await.unwrap(),
        outrigger::AmbientEvent::TurnEnded(_)
    ) {}
    let other = "%tool Write {\"file_path\": \"other.txt\", \"content\": \"x\"}";
    drop(session.prompt(other).await.unwrap().outcome().await.unwrap());
    let pending = approvals.pending().await.unwrap();
    assert_eq!(pending.len(), 1);
    assert_ne!(pending[0].id, first.id);
    let late = approvals
        .decide(&first.id, Decision::allow(), "Ada")
        .await
        .unwrap_err();
    assert!(
        matches!(late, DecideError::TooLate(TooLate::Superseded { by: None, .. })),
        "{late}"
    );
    approvals.supersede(&first.session_id).await.unwrap();
    assert!(approvals.pending().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_asks_nothing_is_not_waited_for() {
    let cli = Simulated::agent(|agent| agent);
    let approvals = Approvals::new(MemoryApprovals::new());
    let approval = deferred(&approvals, cli.options(), CALL).await;
    approvals
        .decide(&approval.id, Decision::allow(), "Ada")
        .await
        .unwrap();
    // Somebody who knows nothing of approvals goes on with the session: the call is closed.
    let elsewhere = cli.options().resume(approval.session_id.to_string());
    let session = elsewhere.start().await.unwrap();
    drop(
        session
            .prompt("%say hello")
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap(),
    );
    session.close().await.unwrap();

    let error = approvals.carry_out(cli.options(), &approval).await.unwrap_err();
    assert!(matches!(error, CarryOutError::NotAsked(_)), "{error}");
    assert!(
        approvals.waiting().await.unwrap().is_empty(),
        "nobody tries again"
    );
}

/// A store that fails when it is to write.
#[derive(Debug)]
struct Broken;

impl ApprovalStore for Broken {
    fn add<'a>(&'a self, _: &'a Approval) -> BoxFuture<'a, Result<(), ApprovalStoreError>> {
        Box::pin(async { Err("the disk is full".into()) })
    }
    fn get<'a>(&'a self, _: &'a ApprovalId) -> BoxFuture<'a, Result<Option<Approval>, ApprovalStoreError>> {
        Box::pin(async { Ok(None) })
    }
    fn list<'a>(
        &'a self,
        _: Option<&'a SessionId>,
    ) -> BoxFuture<'a, Result<Vec<Approval>, ApprovalStoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn replace<'a>(&'a self, _: &'a Approval) -> BoxFuture<'a, Result<bool, ApprovalStoreError>> {
        Box::pin(async { Err("the disk is full".into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_denies() {
    let cli = Simulated::agent(|agent| agent.real_tools(true));
    let approvals = Approvals::new(Broken);
    let session = approvals.ask_in(cli.options()).start().await.unwrap();
    let outcome = session.prompt(CALL).await.unwrap().outcome().await.unwrap();
    assert_eq!(*outcome.verdict(), Verdict::Completed);
    let seen = cli.report().unwrap();
    assert!(
        seen.received()
            .any(|frame| frame.to_string().contains("Nobody can be asked"))
    );
    let unknown = ApprovalId::parse("00000000-0000-4000-8000-000000000001").unwrap();
    let error = approvals
        .decide(&unknown, Decision::allow(), "Ada")
        .await
        .unwrap_err();
    assert!(matches!(error, DecideError::Unknown(_)) && error.source().is_none());
}

#[tokio::test]
async fn of_many_who_decide_at_once_one_does() {
    let place = tempfile::tempdir().unwrap();
    let cli = Simulated::agent(|agent| agent);
    let files = ApprovalFiles::new(place.path().join("a/b"));
    let approval = deferred(&Approvals::new(files.clone()), cli.options(), CALL).await;
    let deciders = (0..20).map(|number| {
        let (approvals, id) = (Approvals::new(files.clone()), approval.id.clone());
        tokio::spawn(async move {
            approvals
                .decide(&id, Decision::allow(), &format!("person {number}"))
                .await
        })
    });
    let mut decided = Vec::new();
    for decider in deciders.collect::<Vec<_>>() {
        decided.extend(decider.await.unwrap().ok());
    }
    assert_eq!(decided.len(), 1);
    #[cfg(unix)]
    for (path, expected) in [
        ("a".to_owned(), 0o700),
        ("a/b".to_owned(), 0o700),
        (format!("a/b/{}.json", approval.id), 0o600),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let about = std::fs::metadata(place.path().join(&path)).unwrap();
        let mode = about.permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{path}: only this user reads and decides");
    }
    files.forget(&approval.id).await.unwrap();
    assert!(files.get(&approval.id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_plan_that_was_changed_meanwhile_is_asked_about_anew() {
    let real = RealCli::directives().await.unwrap();
    let approvals = Approvals::new(MemoryApprovals::new()).matcher("ExitPlanMode");
    let options = || real.options().permission_mode(PermissionMode::Plan);
    let session = approvals.ask_in(options()).start().await.unwrap();
    let mut think = session.prompt("%say thinking").await.unwrap();
    think.outcome().await.unwrap();
    // The CLI tells the model where the plan belongs.
    let said = real.api().message_requests().last().unwrap().messages().to_vec();
    let text = serde_json::to_string(&said).unwrap();
    let from = text.find("/plans/").expect("the CLI names the plan's file");
    let before = |c: char| c.is_whitespace() || "\"`(".contains(c);
    let begin = text[..from].rfind(before).unwrap() + 1;
    let end = from + text[from..].find(".md").unwrap() + 3;
    let file = &text[begin..end];
    let write = json!({"file_path": file, "content": "# Plan\nOne thing.\n"});
    let script = format!("%tool Write {write}\n%tool ExitPlanMode {{}}\n%say {{{{last}}}}");
    let mut turn = session.prompt(script).await.unwrap();
    assert_eq!(*turn.outcome().await.unwrap().verdict(), Verdict::Deferred);
    session.close().await.unwrap();

    let first = approvals.pending().await.unwrap().pop().unwrap();
    assert!(first.tool_input.get().contains("One thing."), "{first:?}");
    std::fs::write(file, "# Plan\nAnother thing.\n").unwrap();
    approvals
        .decide(&first.id, Decision::allow(), "Ada")
        .await
        .unwrap();
    let carried = approvals.carry_out(options(), &first).await.unwrap();
    assert_eq!(
        carried.outcome.result_text(),
        "",
        "nothing was decided about this plan"
    );
    carried.session.close().await.unwrap();

    let second = approvals.pending().await.unwrap().pop().unwrap();
    assert!(second.tool_input.get().contains("Another thing."), "{second:?}");
    let first = approvals.get(&first.id).await.unwrap().unwrap();
    assert_eq!(
        first.state,
        ApprovalState::Superseded {
            by: Some(second.id.clone())
        }
    );
    approvals
        .decide(&second.id, Decision::allow(), "Ada")
        .await
        .unwrap();
    let carried = approvals.carry_out(options(), &second).await.unwrap();
    let said = carried.outcome.result_text().to_lowercase();
    assert!(said.contains("approved"), "{said}");
    carried.session.close().await.unwrap();
}
