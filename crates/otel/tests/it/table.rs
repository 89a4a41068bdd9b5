//! The names in docs/telemetry.md are those that a collector receives.

use std::collections::{BTreeMap, BTreeSet};

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
    play(&exporter.telemetry().with_content(true)).await;
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
        .filter(|word| !["outrigger_verdict", "outrigger_decision", "outrigger_hook_event"].contains(word))
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
