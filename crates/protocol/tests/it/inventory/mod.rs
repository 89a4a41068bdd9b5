//! Holds the types against what upstream declares, as `cargo xtask inventory` wrote it down, and against recordings.
//!
//! Each difference has to be explained: what is declared and has no type in `upstream/untyped.toml`, what has a type and is not
//! declared in `upstream/wire_only.toml`. An explanation of what is no longer so fails, too. What was recorded and has no type
//! fails `recordings.rs`. No network, no node.
//!
//! The types are not asked for their fields. They are given values with everything that is declared, and what they write back is
//! compared: so what does not fit, and what only looks as if it were read, shows too.

mod compare;
mod lists;
mod schema;
mod sets;

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::check::with_every_field;
use outrigger_protocol::drift::{self, DriftKind};
use outrigger_protocol::inbound::{InboundRequest, Message, SystemMessage};
use outrigger_protocol::outbound::{OutboundLine, OutboundRequest, check_answer, check_reply};
use outrigger_protocol::settings::Settings;
use outrigger_protocol::shared::{HookEvent, HookInput};
use outrigger_protocol::tools::{BUILTIN_TOOL_NAMES, ToolInput, ToolOutput};
use outrigger_protocol::{Frame, RawJson};
use serde_json::{Value, json};

use self::compare::{missing, paths};
use self::lists::List;
use self::schema::{Inventory, Sets, TEXT};

/// The differences found, each with a remark for whoever reads of it.
#[derive(Debug, Default)]
struct Found {
    untyped: BTreeMap<String, String>,
    wire_only: BTreeMap<String, String>,
    /// For each open set of strings, by its Rust name, what upstream lists where it is used.
    sets: BTreeMap<&'static str, BTreeSet<String>>,
}

/// How a value is read and written again with every field. `None` if there is no type for it.
type Rewrite<'a> = &'a dyn Fn(&Value) -> Option<Result<Value, String>>;

impl Found {
    /// Compares one kind: `place` says where in the inventory, `types` are its declared types.
    fn kind(
        &mut self,
        inventory: &Inventory,
        section: &str,
        place: &str,
        types: &[&str],
        rewrite: Rewrite<'_>,
    ) {
        let (mut declared, mut typed) = (BTreeSet::new(), BTreeSet::new());
        for name in types {
            for sample in inventory.samples(section, name) {
                let (again, drifts) = drift::watch(|| rewrite(&sample));
                let Some(again) = again else {
                    self.untyped.insert(place.to_owned(), (*name).to_owned());
                    return;
                };
                // The samples' own string is in no set.
                for drift in drifts.into_iter().filter(|drift| drift.tag != TEXT) {
                    let fact = match drift.kind {
                        DriftKind::UnknownValue => format!("values {} {}", drift.place, drift.tag),
                        DriftKind::UnknownTag => format!("{place} has {} {}", drift.place, drift.tag),
                        _ => format!("{place} misfits {} {}", drift.place, drift.tag),
                    };
                    self.untyped.entry(fact).or_insert_with(|| drift.to_string());
                }
                match again {
                    Ok(again) => {
                        for path in missing(&sample, &again) {
                            self.untyped.insert(format!("{place} {path}"), (*name).to_owned());
                        }
                        paths(&sample, &sample, &mut declared);
                        paths(&again, &sample, &mut typed);
                    }
                    Err(error) => {
                        self.untyped
                            .insert(format!("{place} misfits"), format!("{name}: {error} in {sample}"));
                    }
                }
            }
            let mut sets = Sets::default();
            for probe in inventory.probes(section, name, &mut sets) {
                let (_, drifts) = drift::watch(|| rewrite(&probe));
                for drift in drifts
                    .iter()
                    .filter(|drift| drift.kind == DriftKind::UnknownValue)
                {
                    if let Some(members) = sets.get(&drift.tag) {
                        self.sets
                            .entry(drift.place)
                            .or_default()
                            .extend(members.iter().cloned());
                    }
                }
            }
        }
        for path in typed.difference(&declared) {
            self.wire_only.insert(format!("{place} {path}"), types.join(", "));
        }
    }

    /// What has a type here and is not declared at all.
    fn undeclared<'a>(
        &mut self,
        section: &str,
        typed: impl IntoIterator<Item = &'a str>,
        declared: &BTreeSet<String>,
    ) {
        for name in typed.into_iter().filter(|name| !declared.contains(*name)) {
            self.wire_only.insert(format!("{section} {name}"), String::new());
        }
    }
}

fn written<T: serde::Serialize>(value: &T) -> Result<Value, String> {
    with_every_field(|| serde_json::to_value(value)).map_err(|error| error.to_string())
}

fn raw(value: &Value) -> RawJson {
    RawJson::from_text(value.to_string()).unwrap()
}

/// A frame of the CLI.
fn from_cli(value: &Value) -> Option<Result<Value, String>> {
    let frame = Frame::from_line(value.to_string().into_bytes()).remove(0);
    let message = match frame.decode() {
        Ok(message) => message,
        Err(misfit) => return Some(Err(misfit.reason)),
    };
    match &message {
        Message::Unknown(_) => return None,
        Message::System(system) if matches!(**system, SystemMessage::Unknown(_)) => return None,
        _ => {}
    }
    let mut body = message.to_body().unwrap().to_value().unwrap();
    body["type"] = value["type"].clone();
    Some(Ok(body))
}

/// A frame of ours.
fn to_cli(value: &Value) -> Option<Result<Value, String>> {
    Some(
        raw(value)
            .decode::<OutboundLine>()
            .map_err(|error| error.to_string())
            .and_then(|line| written(&line)),
    )
}

/// The name of a tool by that of its declarations, where that is not known as one.
fn tool_name(declared: &str) -> &str {
    match declared {
        "Mcp" => "mcp__server__tool",
        other => other,
    }
}

fn compare_all(inventory: &Inventory) -> Found {
    let mut found = Found::default();
    let mut declared = BTreeMap::<&str, BTreeSet<String>>::new();
    let mut note = |section: &'static str, name: &str| {
        declared.entry(section).or_default().insert(name.to_owned());
    };

    // One type for all results, so the declarations of all are one kind.
    let mut kinds = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (kind, types) in inventory.section("messages") {
        let (of, _) = kind.split_once('/').unwrap_or((kind, ""));
        note("messages", kind);
        note("messages", of);
        kinds
            .entry(if of == "system" { kind } else { of })
            .or_default()
            .extend(types);
    }
    // The payloads of these have sections of their own.
    for envelope in ["control_request", "control_response"] {
        assert!(kinds.remove(envelope).is_some(), "{envelope}");
    }
    for (kind, types) in kinds {
        let types: Vec<&str> = types.into_iter().collect();
        found.kind(inventory, "types", &format!("messages {kind}"), &types, &from_cli);
        // What a program writes is declared as what comes back.
        if kind == "user" {
            found.kind(
                inventory,
                "types",
                "messages user (ours)",
                &["SDKUserMessage"],
                &to_cli,
            );
        }
    }
    for (subtype, types) in inventory.section("control_requests") {
        note("control_requests", subtype);
        let place = format!("control_requests {subtype}");
        let wrapped =
            |request: &Value| json!({"type": "control_request", "request_id": "1", "request": request});
        let unwrapped = |frame: Value| frame["request"].clone();
        let mut is_typed = false;
        if InboundRequest::KNOWN.contains(&subtype) {
            is_typed = true;
            found.kind(inventory, "types", &place, &types, &|value| {
                Some(from_cli(&wrapped(value))?.map(unwrapped))
            });
        }
        if OutboundRequest::KNOWN.contains(&subtype) {
            let place = if is_typed {
                format!("{place} (ours)")
            } else {
                place.clone()
            };
            is_typed = true;
            found.kind(inventory, "types", &place, &types, &|value| {
                Some(to_cli(&wrapped(value))?.map(unwrapped))
            });
        }
        if !is_typed {
            found.untyped.insert(place, types.join(", "));
        }
    }
    for (subtype, types) in inventory.section("control_responses") {
        let place = format!("control_responses {subtype}");
        found.kind(inventory, "types", &place, &types, &|value| {
            Some(
                check_reply(subtype, &raw(value))?
                    .map(|again| again.to_value().unwrap())
                    .map_err(|it| it.to_string()),
            )
        });
    }
    // These are not named after their requests.
    for (subtype, name, list) in [
        ("mcp_set_servers", "McpSetServersResult", None),
        ("rewind_files", "RewindFilesResult", None),
        ("mcp_status", "McpServerStatus", Some("mcpServers")),
        ("list_models", "ModelInfo", Some("models")),
    ] {
        found.kind(
            inventory,
            "types",
            &format!("control_responses {subtype}"),
            &[name],
            &|value| {
                let reply = match list {
                    Some(list) => json!({list: [value]}),
                    None => value.clone(),
                };
                let again = check_reply(subtype, &raw(&reply))?.map(|again| again.to_value().unwrap());
                Some(again.map_err(|it| it.to_string()).map(|again| match list {
                    Some(list) => again[list][0].clone(),
                    None => again,
                }))
            },
        );
    }
    found.kind(inventory, "types", "settings", &["Settings"], &|value| {
        Some(
            raw(value)
                .decode::<Settings>()
                .map_err(|error| error.to_string())
                .and_then(|settings| written(&settings)),
        )
    });
    for (place, subtype, name) in [
        ("permission_result", "can_use_tool", "PermissionResult"),
        ("user_dialog_result", "request_user_dialog", "UserDialogResult"),
        ("hook_output", "hook_callback", "HookJSONOutput"),
        ("elicitation_result", "elicitation", "ElicitationResult"),
    ] {
        found.kind(
            inventory,
            "types",
            &format!("answers {place}"),
            &[name],
            &|value| {
                Some(
                    check_answer(subtype, &raw(value))?
                        .map(|again| again.to_value().unwrap())
                        .map_err(|it| it.to_string()),
                )
            },
        );
    }
    for (event, types) in inventory.section("hook_inputs") {
        note("hook_inputs", event);
        found.kind(
            inventory,
            "types",
            &format!("hook_inputs {event}"),
            &types,
            &|value| {
                let input: HookInput = raw(value).decode().ok()?;
                match input {
                    HookInput::Unknown(_) => None,
                    input => Some(written(&input)),
                }
            },
        );
    }
    for (tool, types) in inventory.section("tool_inputs") {
        found.kind(
            inventory,
            "tool_types",
            &format!("tool_inputs {tool}"),
            &types,
            &|value| match ToolInput::read(tool_name(tool), &raw(value)) {
                ToolInput::Unknown(_) => None,
                input => Some(written(&input)),
            },
        );
    }
    for (tool, types) in inventory.section("tool_outputs") {
        found.kind(
            inventory,
            "tool_types",
            &format!("tool_outputs {tool}"),
            &types,
            &|value| match ToolOutput::read(tool_name(tool), &raw(value)) {
                ToolOutput::Unknown(_) => None,
                output => Some(written(&output)),
            },
        );
    }

    let known = Message::KNOWN.iter().copied();
    found.undeclared("messages", known, &declared["messages"]);
    let known: Vec<String> = SystemMessage::KNOWN
        .iter()
        .map(|subtype| format!("system/{subtype}"))
        .collect();
    found.undeclared(
        "messages",
        known.iter().map(String::as_str),
        &declared["messages"],
    );
    let known = InboundRequest::KNOWN
        .iter()
        .chain(OutboundRequest::KNOWN)
        .copied();
    found.undeclared("control_requests", known, &declared["control_requests"]);
    found.undeclared(
        "hook_inputs",
        HookInput::KNOWN.iter().copied(),
        &declared["hook_inputs"],
    );
    let events: BTreeSet<String> = inventory
        .constant("HOOK_EVENTS")
        .into_iter()
        .map(str::to_owned)
        .collect();
    found.undeclared("hook_events", HookEvent::KNOWN.iter().copied(), &events);
    for event in events
        .iter()
        .filter(|event| !HookEvent::KNOWN.contains(&event.as_str()))
    {
        found
            .untyped
            .insert(format!("hook_events {event}"), String::new());
    }

    let tools: BTreeSet<String> = inventory
        .constant("BUILTIN_TOOL_NAMES")
        .into_iter()
        .map(str::to_owned)
        .collect();
    found.undeclared("tools", BUILTIN_TOOL_NAMES, &tools);
    for tool in tools
        .iter()
        .filter(|tool| !BUILTIN_TOOL_NAMES.contains(&tool.as_str()))
    {
        found.untyped.insert(format!("tools {tool}"), String::new());
    }

    let known = sets::in_our_source();
    for (place, members) in &found.sets {
        let ours = known
            .get(*place)
            .unwrap_or_else(|| panic!("no `open_enum!` in the source for {place}"));
        for value in ours.iter().filter(|value| !members.contains(*value)) {
            found
                .wire_only
                .insert(format!("values {place} {value}"), String::new());
        }
    }
    found
}

#[test]
fn every_difference_from_upstream_is_explained() {
    let inventory = Inventory::read();
    let found = compare_all(&inventory);
    let misfits = found
        .untyped
        .keys()
        .filter_map(|fact| Some(fact.split_once(" misfits")?.0));
    let unclear: Vec<&str> = misfits
        .chain(found.wire_only.keys().map(String::as_str))
        .collect();
    let untyped = List::read("untyped.toml").wrong(
        "untyped.toml",
        &found.untyped,
        &unclear,
        "upstream declares what has no type here. Add it to the types, or list it with a reason in upstream/untyped.toml:",
    );
    let wire_only = List::read("wire_only.toml").wrong(
        "wire_only.toml",
        &found.wire_only,
        &unclear,
        "what has a type here is not declared upstream. Either upstream took it away, or it was only ever on the wire; list it \
         with a reason in upstream/wire_only.toml:",
    );
    assert!(
        untyped.is_empty() && wire_only.is_empty(),
        "\n{untyped}\n{wire_only}\nupstream/inventory.json is what `cargo xtask inventory` wrote down; do not edit it. \
         CONTRIBUTING.md says what to do when upstream moves."
    );
}
