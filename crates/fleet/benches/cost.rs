//! What the gate and a budget add to a turn, and to a turn with a permission round trip.
//!
//! `cargo bench -p outrigger-fleet --bench cost [-- TURNS]` runs turns with a simulated CLI in this process, 1000 of each kind unless
//! said otherwise, with and without in turn. Printed are the medians in microseconds, and what is added in percent. The simulated CLI
//! answers at once: beside a real one, whose turns take milliseconds at least, the same microseconds are a smaller part.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(clippy::unwrap_used, reason = "its only input is what it has set up itself")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger::Session;
use outrigger::permissions::PermissionDecision;
use outrigger::testing::Simulated;
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use outrigger_fleet::gate::{Gate, Limits, Visitor};

const KINDS: [(&str, &str); 2] = [
    ("a turn", "%say done"),
    (
        "a turn with a permission round trip",
        "%tool Bash {\"command\":\"touch x\",\"description\":\"try\"}\n%say done",
    ),
];

async fn plain(session: &Session, prompt: &str) -> Duration {
    let began = Instant::now();
    let outcome = session.prompt(prompt).await.unwrap().outcome().await.unwrap();
    assert!(outcome.is_success());
    began.elapsed()
}

async fn guarded(session: &Session, prompt: &str, gate: &Gate, budget: &Budget) -> Duration {
    let began = Instant::now();
    let reservation = budget.reserve(Amount::usd(Usd::from_cents(50))).unwrap();
    let pass = gate.enter(Visitor::new("bench").model("opus")).await.unwrap();
    let turn = session.prompt(prompt).await.unwrap();
    let mut turn = GuardedTurn::new(turn).pass(pass).reservation(reservation);
    let outcome = turn.outcome().await.unwrap();
    assert!(outcome.is_success());
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        // `cargo bench` adds a flag of its own.
        let turns = std::env::args()
            .skip(1)
            .find_map(|one| one.parse().ok())
            .unwrap_or(1000);
        let mut limits = Limits::default();
        limits.max_running = 8;
        limits.by_model.insert("opus".to_owned(), 8);
        let gate = Gate::new(limits);
        let cap = || Cap::usd(Usd::from_dollars(1e6).unwrap()).per_day();
        let budget = Budget::new("tenant", cap()).child("project", cap());
        println!("| {turns} times, microseconds | plain | with gate and budget | added |");
        println!("|---|---|---|---|");
        for (kind, prompt) in KINDS {
            let cli = Simulated::agent(|agent| agent);
            let asked = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&asked);
            let session = cli
                .options()
                .can_use_tool(move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    async { PermissionDecision::allow() }
                })
                .start()
                .await
                .unwrap();
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for _ in 0..turns {
                without.push(plain(&session, prompt).await);
                with.push(guarded(&session, prompt, &gate, &budget).await);
            }
            session.close().await.unwrap();
            let asks = if prompt.contains("%tool") { 2 * turns } else { 0 };
            assert_eq!(asked.load(Ordering::Relaxed), asks);
            let (without, with) = (median(without), median(with));
            let added = (with / without - 1.0) * 100.0;
            println!("| {kind} | {without:.0} | {with:.0} | {added:.1} % |");
        }
    });
}
