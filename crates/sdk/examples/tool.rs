//! Tools made of async functions, which share state with this program: no process, no port.
//!
//! `cargo run --example tool`, and with `-- --real` against the installed `claude`.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use std::sync::{Arc, Mutex, PoisonError};

use outrigger::mcp::{SdkMcpServer, Tool};

/// What the scripted model does.
const SCRIPT: &str = r#"%tool mcp__shopping__add {"item": "bread", "count": 2}
%tool mcp__shopping__add {"item": "cheese", "count": 0}
%tool mcp__shopping__list {}
%say On the list: {{last}}"#;

/// The input of `add`. Its schema, with these comments, is what the model sees.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// What to buy.
    item: String,
    /// How many of it.
    count: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

type List = Mutex<Vec<String>>;

#[tokio::main]
async fn main() -> support::Result {
    let list = Arc::new(List::default());
    let add = Tool::with_state(
        "add",
        "Puts something on the shopping list",
        Arc::clone(&list),
        |list: Arc<List>, input: Add, _| async move {
            if input.count == 0 {
                return Err("the count must be at least 1");
            }
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            list.push(format!("{} {}", input.count, input.item));
            Ok(format!("{} things are on the list", list.len()))
        },
    );
    let show = Tool::with_state(
        "list",
        "The shopping list",
        Arc::clone(&list),
        |list: Arc<List>, _: Nothing, _| async move {
            list.lock().unwrap_or_else(PoisonError::into_inner).join(", ")
        },
    )
    .read_only();

    let stage = support::Stage::open().await?;
    let server = SdkMcpServer::new("shopping").tool(add).tool(show);
    let agent = stage.agent().sdk_mcp_server("shopping", server);
    let session = agent.allowed_tools(["mcp__shopping"]).start().await?;
    let prompt = stage.prompt(
        "Put two loaves of bread on the shopping list, and read it to me.",
        SCRIPT,
    );
    support::show(&session, prompt).await?;
    session.close().await?;

    let list = list.lock().unwrap_or_else(PoisonError::into_inner);
    println!("program: the list is {list:?}");
    Ok(())
}
