//! Budgets, with simulated CLIs.

use outrigger::Verdict;
use outrigger::testing::Simulated;
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};

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
