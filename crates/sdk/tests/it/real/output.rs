//! What a turn must produce, and what limits it.

use std::sync::{Arc, Mutex};

use outrigger::permissions::{PermissionHandler, PermissionRequest, PermissionResult, PermissionUpdate};
use outrigger::protocol::shared::{JsonObject, OutputFormat};
use outrigger::{Cause, Options, Verdict};
use serde_json::{Value, json};

use super::flow::{bash, end, rest, soon, tool};
use super::rig::{Rig, turn};

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Point {
    x: i32,
    y: i32,
}

fn structured(input: Value) -> String {
    tool("StructuredOutput", input)
}

fn wants_point(options: Options) -> Options {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                        "required": ["x", "y"], "additionalProperties": false});
    options.output_format(OutputFormat::JsonSchema {
        schema: JsonObject::encode(&schema).unwrap(),
    })
}

#[tokio::test]
async fn an_answer_of_a_type() {
    let rig = Rig::start().await;
    let answer = soon(
        rig.options()
            .query_as::<Point>(structured(json!({"x": 1, "y": -2}))),
    )
    .await
    .unwrap();
    assert_eq!(answer.value(), &Point { x: 1, y: -2 });
    assert!(answer.cost() > 0.0 && answer.other_outcomes().is_empty());
    assert_eq!(answer.outcome().verdict(), &Verdict::Completed);
}

#[tokio::test]
async fn an_answer_in_prose_is_repaired() {
    let rig = Rig::start().await;
    // The CLI reminds the model once; then the session asks again.
    let script = format!(
        "%say somewhere\n%say over there\n{}",
        structured(json!({"x": 3, "y": 4}))
    );
    let answer = soon(rig.options().query_as::<Point>(script)).await.unwrap();
    assert_eq!(answer.value(), &Point { x: 3, y: 4 });
    // The answer that did not fit was paid for, too.
    let parts = answer.outcome().cost() + answer.other_outcomes()[0].cost();
    assert!((answer.cost() - parts).abs() < 1e-9 && answer.cost() > answer.outcome().cost());
    let last = rig.api().message_requests().pop().unwrap();
    assert!(
        last.last_user_text().unwrap().contains("structured output"),
        "{:?}",
        last.last_user_text()
    );
}

#[tokio::test]
async fn an_answer_that_stays_prose_is_an_error_with_the_text() {
    let rig = Rig::start().await;
    let script = "%say one\n%say two\n%say three\n%say four";
    let error = soon(rig.options().query_as::<Point>(script)).await.unwrap_err();
    assert_eq!(error.raw_output(), Some("four"), "{error}");
    assert_eq!(error.cause(), Some(Cause::NoStructuredOutput), "{error}");
}

/// A session whose turns answer with a type, as often as wanted.
#[tokio::test]
async fn turns_of_a_session_that_answer_with_a_type() {
    let rig = Rig::start().await;
    let session = rig.options().output_as::<Point>().start().await.unwrap();
    for (x, y) in [(1, 2), (3, 4)] {
        let mut turn = session.prompt(structured(json!({"x": x, "y": y}))).await.unwrap();
        let answer = soon(turn.answer_as::<Point>()).await.unwrap();
        assert_eq!(answer.value(), &Point { x, y });
        assert!(answer.cost() > 0.0);
        assert_eq!(
            soon(turn.outcome()).await.unwrap().output::<Point>().unwrap(),
            Point { x, y }
        );
    }
    let mut turn = session.prompt("%say somewhere\n%say over there").await.unwrap();
    let error = soon(turn.answer_as::<Point>()).await.unwrap_err();
    assert_eq!(error.raw_output(), Some("over there"), "{error}");
    assert_eq!(error.outcome().unwrap().cause(), Some(Cause::NoStructuredOutput));
}

/// What `schemars` makes names the draft it follows, for which the CLI has no schema.
#[tokio::test]
async fn a_schema_may_name_its_draft() {
    let rig = Rig::start().await;
    let schema = JsonObject::encode(&schemars::schema_for!(Point)).unwrap();
    assert!(schema.as_raw().get().contains("$schema"));
    let options = rig.options().output_format(OutputFormat::JsonSchema { schema });
    let session = options.start().await.unwrap();
    let (_, outcome) = turn(&session, &structured(json!({"x": 1, "y": 2}))).await;
    assert_eq!(outcome.output::<Point>().unwrap(), Point { x: 1, y: 2 });
}

#[tokio::test]
async fn verdicts_on_structured_output() {
    let rig = Rig::start().await;
    let session = wants_point(rig.options()).start().await.unwrap();
    let (_, outcome) = turn(&session, &structured(json!({"x": 1, "y": 2}))).await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    assert_eq!(
        outcome.structured_output().unwrap().to_value().unwrap(),
        json!({"x": 1, "y": 2})
    );

    let (_, outcome) = turn(&session, "%say no\n%say still no").await;
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Failed(Cause::NoStructuredOutput), "still no")
    );
    assert!(!outcome.is_success());

    let bad = vec![structured(json!({"x": "one"})); 6].join("\n");
    let (seen, outcome) = turn(&session, &bad).await;
    assert_eq!(
        outcome.verdict(),
        &Verdict::Failed(Cause::StructuredOutput),
        "{seen:?}"
    );
    assert!(outcome.structured_output().is_none());
}

#[tokio::test]
async fn the_limit_of_turns_is_per_prompt() {
    let rig = Rig::start().await;
    let session = rig.options().max_turns(1_u64).start().await.unwrap();
    let (seen, outcome) = turn(&session, "%tool Bash {\"command\":\"echo hi\"}\n%say never").await;
    assert_eq!(outcome.verdict(), &Verdict::Failed(Cause::MaxTurns));
    assert!(!seen.iter().any(|event| event.starts_with("text")), "{seen:?}");
    assert!(outcome.errors()[0].contains('1'), "{:?}", outcome.errors());
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
}

#[tokio::test]
async fn a_spent_budget_stays_spent() {
    let rig = Rig::start().await;
    let session = rig.options().max_budget_usd(0.01).start().await.unwrap();
    let (_, outcome) = turn(
        &session,
        "%usage in=1000000 out=100000\n%tool Bash {\"command\":\"echo hi\"}\n%say never",
    )
    .await;
    assert_eq!(outcome.verdict(), &Verdict::Failed(Cause::Budget));
    assert!(outcome.cost() > 0.01);
    let (seen, outcome) = turn(&session, "%say never").await;
    assert_eq!(
        (seen.len(), outcome.verdict(), outcome.cost()),
        (0, &Verdict::Failed(Cause::Budget), 0.0)
    );
    assert_eq!(rig.api().message_requests().len(), 1);
}

/// Runs `touch asked.txt` with this handler, and returns the events, the outcome, and what the handler was asked.
async fn asked(rig: &Rig, handler: impl PermissionHandler) -> (Vec<String>, outrigger::Outcome) {
    let session = rig.options().permissions(handler).start().await.unwrap();
    let mut running = session
        .prompt(format!("{}\n%say {{{{last}}}}", bash("touch asked.txt")))
        .await
        .unwrap();
    rest(&mut running).await
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_a_permission_question() {
    let rig = Rig::start().await;
    let there = |name: &str| rig.sandbox().project().join(name).exists();

    let (_, outcome) = asked(&rig, |_| async { PermissionResult::deny("not on a Sunday") }).await;
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "not on a Sunday")
    );
    assert!(!there("asked.txt"));

    let interrupting = |_| async {
        let mut deny = PermissionResult::deny("stop it");
        if let PermissionResult::Deny(deny) = &mut deny {
            deny.interrupt = Some(true);
        }
        deny
    };
    let (seen, outcome) = asked(&rig, interrupting).await;
    assert_eq!(outcome.verdict(), &Verdict::Interrupted);
    assert_eq!(seen, ["use Bash", "result error"]);
    assert!(!there("asked.txt"));

    let (seen, _) = asked(&rig, |_| async { PermissionResult::allow() }).await;
    assert_eq!(seen[..2], ["use Bash", "result ok"]);
    assert!(there("asked.txt"));

    let changing = |request: PermissionRequest| async move {
        assert_eq!(request.input.to_value().unwrap()["command"], "touch asked.txt");
        let mut allow = PermissionResult::allow();
        if let PermissionResult::Allow(allow) = &mut allow {
            allow.updated_input = Some(JsonObject::encode(&json!({"command": "touch changed.txt"})).unwrap());
        }
        allow
    };
    asked(&rig, changing).await;
    assert!(there("changed.txt"));
}

#[tokio::test]
async fn a_suggestion_that_is_given_back_spares_the_next_question() {
    let rig = Rig::start().await;
    let questions = Arc::new(Mutex::new(0));
    let handler = {
        let questions = Arc::clone(&questions);
        move |request: PermissionRequest| {
            *questions.lock().unwrap() += 1;
            let mut allow = PermissionResult::allow();
            if let PermissionResult::Allow(allow) = &mut allow {
                // The one that holds for this session only.
                let lasting =
                    |update: &PermissionUpdate| serde_json::to_value(update).unwrap()["type"] == "setMode";
                allow.updated_permissions = Some(request.suggestions.into_iter().filter(lasting).collect());
            }
            async { allow }
        }
    };
    let session = rig.options().permissions(handler).start().await.unwrap();
    let mut running = session
        .prompt(format!(
            "{}\n{}\n%say done",
            bash("touch one.txt"),
            bash("touch two.txt")
        ))
        .await
        .unwrap();
    assert_eq!(end(&mut running).await.result_text(), "done");
    assert!(rig.sandbox().project().join("two.txt").exists());
    assert_eq!(*questions.lock().unwrap(), 1);
}
