//! Serves a host of simulated CLIs, to try clients with: `cargo run -p outrigger-host-http --example simulated_host`.
//!
//! It prints a line of JSON with the address, the directory for sessions, and two tokens. It serves until its stdin ends. A prompt says what the
//! CLI does, such as `%say hello`; see `docs/testing.md`.

use std::io::Write as _;

use outrigger::testing::Simulated;
use outrigger_host::log::SqliteLog;
use outrigger_host::{HostPolicy, SessionHost};
use outrigger_host_http::{Front, Scope, Tokens};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let cli = Simulated::agent(|agent| agent.directives());
    let mut policy = HostPolicy::new(cli.options().await_initialize(true), [place.path()]);
    // A simulated CLI in memory has no lease, and no version that the SDK could ask for.
    policy.lease = false;
    policy.deferred = Some("Bash".to_owned());
    let host = SessionHost::open(policy, SqliteLog::open(place.path().join("host.db"))?).await?;
    let tokens = Tokens::open(host.event_log()).await?;
    let (token, _) = tokens.issue("example", Scope::ALL, None).await?;
    let (reader, _) = tokens.issue("example-reader", [Scope::Read], None).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let line = serde_json::json!({
        "url": format!("http://{}", listener.local_addr()?),
        "cwd": place.path(),
        "token": token.reveal(),
        "reader": reader.reveal(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    let ended = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    Front::new(host.clone(), tokens).serve(listener, ended).await?;
    host.shutdown().await;
    Ok(())
}
