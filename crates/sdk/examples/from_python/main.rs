//! The examples of the official Python SDK as programs of this one: a module for each file there, under its name.
//!
//! `cargo run -p outrigger --example from_python -- quick_start`, and with `--real` behind it against the installed `claude`.
//! Without a name the program lists them.
//!
//! Two files have no module. `streaming_mode_trio.py` is `streaming_mode.py` on another event loop, and
//! `streaming_mode_ipython.py` is snippets for a notebook; the scenes of both are in [`streaming_mode`].

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod filesystem_agents;
mod hooks;
mod include_partial_messages;
mod max_budget_usd;
mod mcp_calculator;
mod plugin_example;
mod quick_start;
mod session_stores;
mod setting_sources;
mod stderr_callback;
mod streaming_mode;
mod system_prompt;
mod tool_permission_callback;
mod tools_option;

const NAMES: &[&str] = &[
    "agents",
    "filesystem_agents",
    "hooks",
    "include_partial_messages",
    "max_budget_usd",
    "mcp_calculator",
    "plugin_example",
    "quick_start",
    "session_stores",
    "setting_sources",
    "stderr_callback",
    "streaming_mode",
    "system_prompt",
    "tool_permission_callback",
    "tools_option",
];

#[tokio::main]
async fn main() -> support::Result {
    let name = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let stage = support::Stage::open().await?;
    match name.as_deref() {
        Some("agents") => agents::run(&stage).await,
        Some("filesystem_agents") => filesystem_agents::run(&stage).await,
        Some("hooks") => hooks::run(&stage).await,
        Some("include_partial_messages") => include_partial_messages::run(&stage).await,
        Some("max_budget_usd") => max_budget_usd::run(&stage).await,
        Some("mcp_calculator") => mcp_calculator::run(&stage).await,
        Some("plugin_example") => plugin_example::run(&stage).await,
        Some("quick_start") => quick_start::run(&stage).await,
        Some("session_stores") => session_stores::run(&stage).await,
        Some("setting_sources") => setting_sources::run(&stage).await,
        Some("stderr_callback") => stderr_callback::run(&stage).await,
        Some("streaming_mode") => streaming_mode::run(&stage).await,
        Some("system_prompt") => system_prompt::run(&stage).await,
        Some("tool_permission_callback") => tool_permission_callback::run(&stage).await,
        Some("tools_option") => tools_option::run(&stage).await,
        Some(other) => Err(format!("there is no example {other}; there are {}", NAMES.join(", ")).into()),
        None => {
            println!("{}", NAMES.join("\n"));
            Ok(())
        }
    }
}
