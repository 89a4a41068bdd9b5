//! Budgets, with simulated CLIs.

use std::time::Duration;

use outrigger::Verdict;
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Steps};
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use serde_json::{Value, json};
use uuid::Uuid;

fn cents(cents: u32) -> Amount {
    Amount::usd(Usd::from_cents(cents))
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_charged_with_what_the_cli_reports() {
    let tenant = Budget::new("tenant", Cap::usd(Usd::from_cents(100)));
    let project = tenant.child("project", Cap::none().and_tokens(1_000_000).per_day());
    let cli = Simulated::agent(|agent| agent);
    let session = cli.options().start().await.unwrap();

    let reservation = project.reserve(cents(60)).unwrap();
    let refused = project.reserve(cents(60)).unwrap_err();
    assert_eq!(refused.budget, ["tenant"]);
    assert_eq!(
        refused.to_string(),
        "the budget \"tenant\" is exhausted: of $1.0000, $0.0000 are spent and $0.6000 reserved, and $0.6000 are needed"
    );
    let turn = session.prompt("%usage in=1000 out=200\n%say done").await.unwrap();
    let mut turn = GuardedTurn::new(turn).reservation(reservation);
    let outcome = turn.outcome().await.unwrap();

    let charged = Amount::from(outcome.usage());
    assert!(charged.usd > Usd::ZERO && charged.tokens >= 1200, "{charged}");
    assert_eq!((tenant.spent(), project.spent()), (charged, charged));
    assert_eq!(
        (tenant.reserved(), project.reserved()),
        (Amount::default(), Amount::default())
    );
    assert_eq!(project.left().tokens, Some(1_000_000 - charged.tokens));

    // The next process goes on from the ledger.
    let rows = tenant.ledger();
    assert_eq!(rows.len(), 2);
    // As other programs read it.
    let row = &rows[1];
    let expected = serde_json::json!({
        "budget": ["tenant", "project"],
        "day": row.day.days_since_epoch(),
        "usd": (charged.usd.dollars() * 1e9).round() as u64,
        "tokens": charged.tokens,
        "turns": 1,
    });
    assert_eq!(serde_json::to_value(row).unwrap(), expected);
    let next = Budget::new("tenant", Cap::usd(charged.usd));
    assert_eq!(next.restore(rows), []);
    assert_eq!(next.spent(), charged);
    next.child("project", Cap::none())
        .reserve(Amount::default())
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_exceeds_the_cap_is_interrupted() {
    let budget = Budget::new("session", Cap::none().and_tokens(5000));
    let cli = Simulated::agent(|agent| agent);
    let session = cli.options().start().await.unwrap();
    let call = "%usage in=2000 out=10\n%tool TodoWrite {\"todos\": []}\n";
    let turn = session.prompt(call.repeat(20)).await.unwrap();
    let reservation = budget.reserve(Amount::default()).unwrap();
    let mut turn = GuardedTurn::new(turn).reservation(reservation);
    let outcome = turn.outcome().await.unwrap();
    assert_eq!(*outcome.verdict(), Verdict::Interrupted);
    assert_eq!(turn.exhausted().unwrap().budget, ["session"]);
    // The third request exceeded the cap; one more may have begun before the interrupt came.
    let spent = budget.spent().tokens;
    assert!((6030..=8040).contains(&spent), "{spent}");
    budget.reserve(Amount::default()).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_writes_more_than_the_cap_is_interrupted() {
    let budget = Budget::new("session", Cap::tokens(5000));
    let cli = Simulated::agent(|agent| agent);
    let session = cli.options().start().await.unwrap();
    let todos = json!({"todos": [{"content": "x".repeat(8000), "status": "pending", "activeForm": "x"}]});
    let call = format!("%usage in=10 out=2000\n%tool TodoWrite {todos}\n");
    let turn = session.prompt(call.repeat(20)).await.unwrap();
    let reservation = budget.reserve(Amount::default()).unwrap();
    let mut turn = GuardedTurn::new(turn).reservation(reservation);
    let outcome = turn.outcome().await.unwrap();
    assert_eq!(*outcome.verdict(), Verdict::Interrupted);
    let spent = budget.spent().tokens;
    assert!((6030..=8040).contains(&spent), "{spent}");
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_request_is_estimated_from_all_that_it_wrote() {
    let said = |message: &str, parent: Option<&str>, output: u64, block: Value| {
        json!({
            "type": "assistant", "parent_tool_use_id": parent, "session_id": "00000000-0000-4000-8000-000000000001", "uuid": Uuid::new_v4(),
            "message": {"id": message, "type": "message", "role": "assistant", "model": "m", "content": [block],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": output}},
        })
    };
    let text = || json!({"type": "text", "text": "t".repeat(400)});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Agent", "input": {"prompt": "p".repeat(387)}});
    let cli = Simulated::steps(move || {
        Steps::new()
            .initialize()
            .expect(Match::prompt("spend"))
            .send(said(
                "a",
                None,
                1,
                json!({"type": "thinking", "thinking": "t".repeat(400), "signature": ""}),
            ))
            .send(said("a", None, 1, text()))
            .send(said("a", None, 1, call("toolu_1")))
            .send(said("b", Some("toolu_1"), 1, text()))
            .send(said("a", None, 1, call("toolu_2")))
            .send(said("b", Some("toolu_1"), 1, call("toolu_3")))
            .send(said("c", None, 1, call("toolu_4")))
            // A later block knows more.
            .send(said("c", None, 700, call("toolu_5")))
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("spend").await.unwrap();
    let mut reservation = Budget::new("b", Cap::none()).reserve(Amount::default()).unwrap();
    let mut seen = Vec::new();
    // The turn goes on, and nothing more comes.
    let patience = Duration::from_secs(1);
    while let Ok(Some(Ok(event))) = tokio::time::timeout(patience, turn.next()).await {
        let before = reservation.amount().tokens;
        reservation.observe(&event).unwrap();
        seen.extend(Some(reservation.amount().tokens - before).filter(|more| *more > 0));
    }
    // Two blocks before the first call, and the text of the subagent before the second one, whose request has not called anything yet.
    assert_eq!(seen, [310, 200, 110, 110, 600]);
    reservation.release();
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_is_charged_and_what_is_released_is_not() {
    let budget = Budget::new("b", Cap::usd(Usd::from_cents(10)));
    budget.reserve(cents(4)).unwrap().release();
    assert_eq!(
        (budget.spent(), budget.reserved()),
        (Amount::default(), Amount::default())
    );
    drop(budget.reserve(cents(4)).unwrap());
    assert_eq!((budget.spent(), budget.reserved()), (cents(4), Amount::default()));
    assert_eq!(budget.left().usd, Some(Usd::from_cents(6)));
}
