//! The resources of MCP servers, and the tools by which the model lists and reads them.

use serde_json::{Value, json};

use super::brain::ToolOutcome;
use super::context::Context;
use super::mcp;
use crate::fields::JsonFields as _;

/// The tools, which are there where a server has resources.
pub(super) const TOOLS: [&str; 3] = [
    "ListMcpResourcesTool",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
];

/// The servers that a call is about: the one that it names, or all that have resources.
fn servers(ctx: &Context, input: &Value) -> Result<Vec<String>, String> {
    let state = ctx.state();
    let Some(named) = input["server"].as_str() else {
        return Ok(mcp::with_resources(&state.servers).map(str::to_owned).collect());
    };
    let all: Vec<&str> = mcp::connected(&state.servers).collect();
    match all.contains(&named) {
        true => Ok(vec![named.to_owned()]),
        false => Err(format!(
            "Server \"{named}\" not found. Available servers: {}",
            all.join(", ")
        )),
    }
}

/// `ListMcpResourcesTool`.
pub(super) async fn list(ctx: &Context, input: &Value) -> ToolOutcome {
    let servers = match servers(ctx, input) {
        Ok(servers) => servers,
        Err(error) => return ToolOutcome::error(error),
    };
    let mut listed = Vec::new();
    for server in servers {
        for resource in mcp::resources(ctx, &server).await {
            let mut line = json!({});
            for key in ["name", "uri", "description", "mimeType"] {
                line.put(key, resource.get(key));
            }
            line["server"] = json!(server);
            listed.push(line);
        }
    }
    let listed = Value::Array(listed);
    ToolOutcome::text(listed.to_string()).with_details(listed)
}

/// `ReadMcpResourceTool`.
pub(super) async fn read(ctx: &Context, input: &Value) -> ToolOutcome {
    let server = match servers(ctx, input) {
        Ok(servers) => servers.into_iter().next().unwrap_or_default(),
        Err(error) => return ToolOutcome::error(error),
    };
    let params = json!({"uri": input["uri"]});
    let result = match mcp::ask(ctx, &server, "resources/read", params).await {
        Ok(result) => result,
        Err(error) => return ToolOutcome::error(error),
    };
    let contents = result["contents"].as_array().into_iter().flatten();
    let contents = contents.map(|content| {
        let mut shown = json!({"uri": content["uri"]});
        shown.put("mimeType", content.get("mimeType"));
        if content["blob"].is_string() {
            let (path, text) = mcp::keep_blob(ctx, &server, content);
            shown["blobSavedTo"] = json!(path);
            shown["text"] = json!(text);
        } else {
            shown["text"] = content["text"].clone();
        }
        shown
    });
    let contents = json!({"contents": contents.collect::<Vec<_>>()});
    ToolOutcome::text(contents.to_string()).with_details(contents)
}
