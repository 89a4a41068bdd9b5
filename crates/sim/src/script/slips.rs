//! Names in a script that are slips of names which the protocol knows.
//!
//! Other names that it does not know may be those of a later CLI, of an agent or of a server, and are right.

use outrigger_protocol::inbound::{InboundRequest, RateLimitStatus, RateLimitType, StopReason};
use outrigger_protocol::outbound::OutboundRequest;
use outrigger_protocol::shared::{ContentBlock, PermissionUpdate, ReportedPermissionMode};
use outrigger_protocol::tools::{BUILTIN_TOOL_NAMES, LEGACY_TOOL_NAME_ALIASES};
use serde_json::{Map, Value};

use super::Script;
use super::check::{PlaceOf, each_step};
use super::error::Mistake;
use super::step::{ApiError, Ask, Step, Wait};
use crate::near::misspelt;

impl Script {
    /// The names in it that are misspelt.
    pub(super) fn slips(&self, place: &PlaceOf<'_>, found: &mut Vec<Mistake>) {
        if let Some(mode) = &self.permission_mode {
            let slip = misspelt("permission mode", mode, ReportedPermissionMode::KNOWN);
            found.extend(slip.map(|what| (place(&["permission_mode"]), what)));
        }
        let mut tools = BUILTIN_TOOL_NAMES.to_vec();
        tools.extend(LEGACY_TOOL_NAME_ALIASES.map(|(name, _)| name));
        for (n, name) in self.tools.iter().flatten().enumerate() {
            let slip = misspelt("tool", name, &tools);
            found.extend(slip.map(|what| (place(&["tools", &n.to_string()]), what)));
        }
        // Names may be slips of those, too.
        tools.extend(self.tools.iter().flatten().map(String::as_str));
        for rule in &self.prompts {
            let has_tool = rule.value.has_tool.iter();
            let slip = has_tool.filter_map(|name| misspelt("tool", name, &tools));
            found.extend(slip.map(|what| (rule.at, what)));
            each_step(&rule.value.steps, &mut |at, step| {
                found.extend(slip_in(step, &tools).map(|what| (at, what)));
            });
        }
        for called in &self.expect.tools {
            let slip = misspelt("tool", &called.value.tool, &tools);
            found.extend(slip.map(|what| (called.at, what)));
        }
        for subtype in self.expect.requests.keys() {
            let slip = not_of_client(subtype);
            found.extend(slip.map(|what| (place(&["expect", "requests", subtype]), what)));
        }
    }
}

fn slip_in(step: &Step, tools: &[&str]) -> Option<String> {
    let tool = |name: &str| misspelt("tool", name, tools);
    match step {
        Step::Call(call) => tool(&call.tool),
        Step::Parallel(calls) => calls.iter().find_map(|call| tool(&call.tool)),
        Step::Ask(Ask::Permission(asked)) => {
            let known = PermissionUpdate::KNOWN;
            let mut updates = asked.suggestions.iter().filter_map(|update| text(update, "type"));
            tool(&asked.tool).or_else(|| updates.find_map(|kind| misspelt("permission update", kind, known)))
        }
        Step::Ask(Ask::Request(request)) => {
            let known = [InboundRequest::KNOWN, OutboundRequest::KNOWN].concat();
            misspelt("control request", text(request, "subtype")?, &known)
        }
        Step::Block(block) => misspelt("content block", text(block, "type")?, ContentBlock::KNOWN),
        Step::ErrorEvent(kind) | Step::ApiError(ApiError { kind: Some(kind), .. }) => {
            let statuses = [400, 401, 402, 403, 404, 413, 429, 500, 503, 504];
            let known = statuses.map(|status| ApiError::usual(status).0);
            misspelt("type of an error", kind, &known).or_else(|| {
                let whole = format!("{kind}_error");
                let slip = || format!("unknown type of an error `{kind}`, did you mean `{whole}`?");
                known.contains(&&*whole).then(slip)
            })
        }
        Step::StopReason(reason) => misspelt("stop reason", reason, StopReason::KNOWN),
        Step::RateLimit(limit) => misspelt("status", &limit.status, RateLimitStatus::KNOWN)
            .or_else(|| misspelt("limit", &limit.limit, RateLimitType::KNOWN)),
        Step::Wait(Wait::Request(subtype)) => not_of_client(subtype),
        Step::Assert(assert) => assert.requests.keys().find_map(|subtype| not_of_client(subtype)),
        _ => None,
    }
}

fn text<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    map.get(name).and_then(Value::as_str)
}

/// Of a control request that no client sends.
fn not_of_client(subtype: &str) -> Option<String> {
    let known = OutboundRequest::KNOWN;
    if InboundRequest::KNOWN.contains(&subtype) && !known.contains(&subtype) {
        return Some(format!(
            "the CLI sends the control request `{subtype}`: here goes one that the client sends"
        ));
    }
    misspelt("control request", subtype, known)
}
