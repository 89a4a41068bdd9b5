//! The names in docs/telemetry.md are those that a collector receives.

use std::collections::{BTreeMap, BTreeSet};

use outrigger::testing::Simulated;
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
use outrigger_fleet::supervise::{IdStore, SavedConversation, Supervised, Supervision};
use outrigger_sim::peer::Signal;

use crate::collector::Collector;
use crate::turns::play;

const PAGE: &str = include_str!("../../../../docs/telemetry.md");
const DASHBOARD: &str = include_str!("../../../../docs/telemetry/dashboard.json");

type Names = BTreeMap<String, BTreeSet<String>>;

fn code(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The table under a heading: the name in the first column, the attributes in the last one.
fn table(heading: &str) -> Names {
    let (_, rest) = PAGE.split_once(&format!("\n## {heading}\n")).unwrap();
    let rows = rest
        .split("\n## ")
        .next()
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        (code(cells[0]).pop_first().unwrap(), code(cells.last().unwrap()))
    })
    .collect()
}

#[tokio::test]
async fn the_page_has_the_names_that_a_collector_receives() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let telemetry = exporter.telemetry().with_content(true);
    play(&telemetry).await;
    let gate = Gate::new(GateLimits::default());
    telemetry.gate("account", &gate);
    drop(gate.enter(Visitor::new("one")).await);
    gate.close_for(std::time::Duration::from_secs(1000));
    let nobody = Visitor::new("one").patience(std::time::Duration::ZERO);
    gate.enter(nobody).await.unwrap_err();
    telemetry.budget("tenant", &Budget::new("tenant", Cap::none()));
    let cli = Simulated::agent(|agent| agent);
    let helper = Supervised::new("helper", cli.options(), Supervision::new(), NoIds);
    telemetry.supervised("helper", &helper);
    let supervision = Supervision::new().watch(telemetry.watch());
    let watched = Supervised::new("watched", cli.options(), supervision, NoIds);
    watched.turn("%say one").await.unwrap();
    watched.close().await.unwrap();
    drop(watched);
    exporter.shutdown().await.unwrap();
    let received = collector.received();

    let mut spans = Names::new();
    for (_, span) in &received.spans {
        let (kind, of) = span.name.split_once(' ').unwrap_or((&span.name, ""));
        let name = match kind {
            "chat" => "chat {model}".to_owned(),
            "execute_tool" | "permission" => format!("{kind} {{tool}}"),
            "hook" => "hook {event}".to_owned(),
            _ => format!("{kind} {of}").trim().to_owned(),
        };
        let keys = span.attributes.iter().map(|attribute| attribute.key.clone());
        spans.entry(name).or_default().extend(keys);
    }
    // No tool fails in these turns.
    let (mut metrics, failed) = (received.metrics.clone(), "error.type".to_owned());
    spans
        .get_mut("execute_tool {tool}")
        .unwrap()
        .insert(failed.clone());
    metrics
        .get_mut("gen_ai.execute_tool.duration")
        .unwrap()
        .insert(failed);
    assert_eq!(spans, table("Spans"));
    assert_eq!(metrics, table("Metrics"));
    assert_eq!(received.logs, table("Logs"));
}

/// Keeps no ids.
#[derive(Debug)]
struct NoIds;

impl IdStore for NoIds {
    fn load(&self, _: &str) -> std::io::Result<Option<SavedConversation>> {
        Ok(None)
    }

    fn save(&self, _: &str, _: &SavedConversation) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_sessions_share_is_measured_by_its_name() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let telemetry = exporter.telemetry();
    let mut limits = GateLimits::default();
    limits.max_running = 1;
    let gate = Gate::new(limits);
    telemetry.gate("account", &Gate::new(GateLimits::default()));
    telemetry.gate("account", &gate);
    let pass = gate.enter(Visitor::new("one")).await.unwrap();
    let full = Visitor::new("late").patience(std::time::Duration::ZERO);
    gate.enter(full).await.unwrap_err();
    let second = tokio::spawn({
        let gate = gate.clone();
        async move { gate.enter(Visitor::new("two")).await }
    });
    while gate.state().waiting == 0 {
        tokio::task::yield_now().await;
    }
    gate.close_for(std::time::Duration::from_secs(1000));

    let budget = Budget::new("tenant", Cap::none());
    telemetry.budget("tenant", &budget);
    budget.charge(Amount {
        usd: Usd::from_cents(150),
        tokens: 70,
    });
    let reservation = budget.reserve(Amount {
        usd: Usd::from_cents(25),
        tokens: 30,
    });
    let reservation = reservation.unwrap();

    let cli = Simulated::agent(|agent| agent);
    let delay = std::time::Duration::from_millis(1);
    let supervision = Supervision::new().delays(delay, delay);
    let helper = Supervised::new("helper", cli.options(), supervision, NoIds);
    telemetry.supervised("helper", &helper);
    helper.turn("%say one").await.unwrap();
    cli.started()[0].signal(Signal::Kill);
    helper.turn("%say two").await.unwrap();

    exporter.shutdown().await.unwrap();
    let received = collector.received();
    let value = |name: &str| received.gauges[name].clone();
    let one = |name: &str, of: &str| {
        let [(attribute, number)] = &value(name)[..] else {
            panic!("{name}: {:?}", value(name))
        };
        assert_eq!(attribute, of, "{name}");
        *number
    };
    assert_eq!(one("outrigger.gate.running", "account"), 1.0);
    assert_eq!(one("outrigger.gate.waiting", "account"), 1.0);
    // Two got in or gave up, and one still waits.
    assert_eq!(received.counts["outrigger.gate.wait"], 2);
    let closed = one("outrigger.gate.closed", "account");
    assert!((900.0..=1000.0).contains(&closed), "{closed}");
    assert_eq!(one("outrigger.budget.spent", "tenant"), 1.5);
    assert_eq!(one("outrigger.budget.reserved", "tenant"), 0.25);
    assert_eq!(one("outrigger.budget.tokens.spent", "tenant"), 70.0);
    assert_eq!(one("outrigger.budget.tokens.reserved", "tenant"), 30.0);
    assert_eq!(one("outrigger.supervised.running", "helper"), 1.0);
    assert_eq!(one("outrigger.supervised.deaths", "helper"), 1.0);
    assert_eq!(one("outrigger.supervised.rotations", "helper"), 0.0);
    reservation.release();
    second.abort();
    drop(pass);
}

/// Prometheus writes dots as underscores, and adds the unit and `_total`.
#[test]
fn the_dashboard_asks_for_metrics_of_the_page() {
    let _: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let known: Vec<String> = table("Metrics")
        .keys()
        .map(|name| name.replace('.', "_"))
        .collect();
    let asked: BTreeSet<&str> = DASHBOARD
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| {
            word.starts_with("outrigger_")
                || word.starts_with("gen_ai_client")
                || word.starts_with("gen_ai_invoke")
                || word.starts_with("gen_ai_execute")
        })
        .filter(|word| {
            ![
                "outrigger_verdict",
                "outrigger_decision",
                "outrigger_hook_event",
                "outrigger_gate",
                "outrigger_budget",
                "outrigger_supervised",
            ]
            .contains(word)
        })
        .collect();
    assert!(asked.len() > 8, "{asked:?}");
    for metric in asked {
        assert!(
            known.iter().any(|name| metric.starts_with(name.as_str())),
            "{metric}"
        );
    }
    for name in known {
        assert!(DASHBOARD.contains(&name), "the dashboard does not show {name}");
    }
}
