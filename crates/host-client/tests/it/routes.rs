//! Each route of a host has a method of the client.

use std::collections::BTreeSet;

use outrigger_host_client::HostClient;
use serde_json::Value;

/// A row for each route, with the methods of the client that use it. The compiler knows the methods: a row cannot name one that is gone.
macro_rules! table {
    ($($route:literal => $($method:ident),+;)+) => {{
        $( $( let _ = HostClient::$method; )+ )+
        [$($route),+]
    }};
}

#[test]
fn each_route_has_a_method() {
    let table = table! {
        "GET /healthz" => health;
        "GET /readyz" => ready;
        "GET /metrics" => metrics;
        "GET /openapi.json" => openapi;
        "GET /v1/sessions" => sessions, all_sessions;
        "POST /v1/sessions" => create_session;
        "GET /v1/sessions/{id}" => session;
        "PATCH /v1/sessions/{id}" => set_title, set_model, set_permission_mode;
        "DELETE /v1/sessions/{id}" => delete_session;
        "POST /v1/sessions/{id}/interrupt" => interrupt;
        "POST /v1/sessions/{id}/stop" => stop;
        "POST /v1/sessions/{id}/resume" => resume;
        "POST /v1/sessions/{id}/archive" => archive;
        "POST /v1/sessions/{id}/fork" => fork;
        "POST /v1/sessions/{id}/rewind" => rewind;
        "GET /v1/sessions/{id}/transcript" => transcript;
        "GET /v1/sessions/{id}/diff" => diff;
        "DELETE /v1/sessions/{id}/workspace" => remove_workspace;
        "GET /v1/sessions/{id}/usage" => usage;
        "GET /v1/usage" => usage;
        "GET /v1/audit" => audit;
        "GET /v1/adoptable" => adoptable;
        "POST /v1/adoptions" => adopt;
        "GET /v1/sessions/{id}/events" => events, events_of;
        "POST /v1/sessions/{id}/events" => send, send_prompt;
        "GET /v1/sessions/{id}/events/stream" => stream;
        "GET /v1/stream" => overview;
        "GET /v1/approvals" => approvals, all_approvals;
        "GET /v1/approvals/{id}" => approval;
        "POST /v1/approvals/{id}/decision" => decide;
        "GET /v1/tokens" => tokens;
        "POST /v1/tokens" => issue_token;
        "DELETE /v1/tokens/{id}" => revoke_token;
        "POST /v1/tokens/exchange" => exchange_code;
        "GET /v1/webhooks" => webhooks;
        "POST /v1/webhooks" => add_webhook;
        "DELETE /v1/webhooks/{id}" => remove_webhook;
        "POST /v1/webhooks/{id}/enable" => enable_webhook;
        "GET /v1/schedules" => schedules;
        "POST /v1/schedules" => add_schedule;
        "DELETE /v1/schedules/{id}" => remove_schedule;
    };
    // A page for people.
    let not_for_programs = ["GET /welcome"];
    let has: BTreeSet<String> = table
        .into_iter()
        .chain(not_for_programs)
        .map(str::to_owned)
        .collect();

    let document: Value =
        serde_json::from_str(include_str!("../../../host-http/schema/openapi.json")).unwrap();
    let mut served = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            served.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let missing: Vec<_> = served.difference(&has).collect();
    let gone: Vec<_> = has.difference(&served).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "routes without a method of the client: {missing:#?}; rows without a route: {gone:#?}"
    );
}
