//! Serves one session of a scripted agent, to try clients with: `cargo run -p outrigger-host-http --example scripted_host`.
//!
//! It prints a line of JSON with the address and a token, and serves until its stdin ends.

#[allow(unreachable_pub, reason = "the tests share it")]
mod scripted;

use std::io::Write as _;

use outrigger_host_http::{Front, Scope, Tokens};
use scripted::ScriptedHost;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = Tokens::default();
    let (token, _) = tokens.issue("example", [Scope::Read, Scope::Send, Scope::Approve], None)?;
    let (reader, _) = tokens.issue("example-reader", [Scope::Read], None)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let line = serde_json::json!({
        "url": format!("http://{}", listener.local_addr()?),
        "token": token.reveal(),
        "reader": reader.reveal(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    let ended = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    Front::new(ScriptedHost::default(), tokens)
        .serve(listener, ended)
        .await?;
    Ok(())
}
