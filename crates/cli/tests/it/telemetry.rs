//! `--otel`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};

use crate::rig::{Ran, Rig};

/// The bodies that a collector received, by signal. Texts in protobuf are as they are.
type Received = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

async fn collector() -> (String, Received) {
    let received = Received::default();
    let take = async |State(received): State<Received>, Path(signal): Path<String>, body: Bytes| {
        received.lock().unwrap().entry(signal).or_default().extend(body);
    };
    let app = Router::new()
        .route("/v1/{signal}", axum::routing::post(take))
        .with_state(Arc::clone(&received));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

async fn run(rig: &Rig, url: &str, args: &[&str]) -> Ran {
    let args: Vec<&str> = ["--no-ask"].iter().chain(args).copied().collect();
    let mut command = rig.std_command("run", &args);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
    rig.run_to_end(command).await
}

fn has(received: &Received, signal: &str, text: &str) -> bool {
    let received = received.lock().unwrap();
    let body = received.get(signal).map_or(&[][..], Vec::as_slice);
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn a_run_sends_its_trace_and_no_content_unless_that_is_asked_for() {
    let rig = Rig::start().await;
    let prompt = "%tool Bash {\"command\":\"echo purple\"}\n%say The colour is green.";
    for (flags, has_content) in [
        (&[][..], None),
        (&["--otel"][..], Some(false)),
        (&["--otel", "--otel-content"][..], Some(true)),
    ] {
        let (url, received) = collector().await;
        let ran = run(&rig, &url, &[flags, &[prompt]].concat()).await;
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(0), "The colour is green.\n"),
            "{ran:?}"
        );
        let Some(has_content) = has_content else {
            assert!(received.lock().unwrap().is_empty(), "nobody asked for telemetry");
            continue;
        };
        for (signal, text) in [
            ("traces", "invoke_agent Claude Code"),
            ("traces", "execute_tool Bash"),
            ("metrics", "gen_ai.client.token.usage"),
            ("logs", "outrigger.turn.ended"),
        ] {
            assert!(has(&received, signal, text), "{flags:?}: no {text} in {signal}");
        }
        for signal in ["traces", "metrics", "logs"] {
            for content in ["purple", "colour is green"] {
                assert!(
                    has_content && signal == "traces" || !has(&received, signal, content),
                    "{flags:?}: {content} in {signal}"
                );
            }
        }
        assert_eq!(has(&received, "traces", "colour is green"), has_content);
    }
}

#[tokio::test]
async fn a_collector_that_is_away_changes_no_answer() {
    let rig = Rig::start().await;
    // Nobody listens on a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = run(&rig, &url, &["--otel", "%say Hello"]).await;
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "Hello\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("the telemetry")
            && ran.stderr.contains(&url)
            && !ran.stderr.contains("InternalFailure"),
        "{ran:?}"
    );
}
