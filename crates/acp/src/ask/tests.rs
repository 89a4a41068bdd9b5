//! Which answers are valid.

use super::*;

fn options() -> Vec<acp::PermissionOption> {
    ["allow-once", "reject"]
        .map(|id| acp::PermissionOption::new(id, id, acp::PermissionOptionKind::AllowOnce))
        .to_vec()
}

fn answer(outcome: serde_json::Value) -> Chosen {
    let response = serde_json::json!({ "outcome": outcome });
    let response = serde_json::from_value(response).expect("an answer of the protocol");
    chosen(&response, &options())
}

#[test]
fn only_what_was_offered_can_be_chosen() {
    let select = |id: &str| answer(serde_json::json!({"outcome": "selected", "optionId": id}));
    assert_eq!(select("reject"), Chosen::Option("reject".into()));
    assert!(matches!(select("allow-always"), Chosen::Failed(_)));
    assert!(matches!(select(""), Chosen::Failed(_)));
    assert_eq!(
        answer(serde_json::json!({"outcome": "cancelled"})),
        Chosen::Cancelled
    );
}
