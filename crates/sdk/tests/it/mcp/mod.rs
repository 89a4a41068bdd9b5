//! MCP servers in this program, against a CLI that the tests play, with a paused clock.

mod ahead;
pub(crate) mod cli;
mod raw;
mod rules;
mod tools;
mod waiting;

use outrigger::mcp::{SdkMcpServer, Tool};
use serde::Deserialize;

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[derive(Deserialize, schemars::JsonSchema)]
struct Word {
    /// What to say back.
    word: String,
}

fn echo() -> Tool {
    Tool::new("echo", "Says it back", async |input: Word, _| input.word)
}

fn parrot() -> SdkMcpServer {
    SdkMcpServer::new("parrot").tool(echo())
}
