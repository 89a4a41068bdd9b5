//! What a person says about a call.

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{
    PermissionAllow, PermissionDecisionClassification, PermissionDeny, PermissionUpdate,
};
use tokio::sync::Mutex;

use super::layers::{DecidedBy, Foreseen};
use super::rules::Rules;
use super::{PermissionDecision, PermissionHandler, PermissionRequest};
use crate::peer::BoxFuture;

/// What a person says who was asked about a call; the answer of a callback that asks one.
///
/// The CLI is told that a person decided, and whether for good (`decisionClassification`).
///
/// ```
/// use outrigger::permissions::{PermissionRequest, PersonReply, Policy, chain, one_at_a_time};
///
/// # async fn show(text: &str) -> String { text.to_owned() }
/// let person = |request: PermissionRequest| async move {
///     // The program's own window, terminal or chat.
///     match show(request.title.as_deref().unwrap_or(&request.tool_name)).await.as_str() {
///         "yes" => PersonReply::Once,
///         "always" => PersonReply::always(&request),
///         words => PersonReply::no(words),
///     }
/// };
/// let handler = chain().layer("rules", Policy::ask_all()).last("person", one_at_a_time(person));
/// # let _ = handler;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PersonReply {
    /// Yes, this once.
    Once,
    /// Yes, and these changes so that it need not be asked again. [`always`](Self::always) makes it of what the CLI suggests.
    Always(Vec<PermissionUpdate>),
    /// No; the model reads the words.
    No(String),
    /// No, and the turn ends.
    Stop,
}

impl PersonReply {
    /// Yes, with the rules that the CLI suggests so that it need not be asked again. If it suggests no rules, with the rest: for an
    /// edit the mode `acceptEdits`, which allows all edits in the working directories. If it suggests nothing, or lets nothing be
    /// allowed for good ([`suppress_always_allow_rule`](PermissionRequest::suppress_always_allow_rule)), this once.
    ///
    /// Beside the rule for a command such as `touch a` the CLI also suggests `acceptEdits` and another working directory. Whoever wants
    /// all of that passes [`suggestions`](PermissionRequest::suggestions) to [`Always`](Self::Always).
    pub fn always(request: &PermissionRequest) -> Self {
        if request.suppress_always_allow_rule || request.suggestions.is_empty() {
            return Self::Once;
        }
        let is_rule = |update: &&PermissionUpdate| matches!(update, PermissionUpdate::AddRules(_));
        let rules: Vec<PermissionUpdate> = request.suggestions.iter().filter(is_rule).cloned().collect();
        match rules.is_empty() {
            true => Self::Always(request.suggestions.clone()),
            false => Self::Always(rules),
        }
    }

    /// No, with words for the model. Without any, it is told that a person refused.
    pub fn no(words: impl Into<String>) -> Self {
        Self::No(words.into())
    }
}

impl From<PersonReply> for PermissionDecision {
    fn from(reply: PersonReply) -> Self {
        let allow = PermissionAllow::default();
        let deny = |words: &str| {
            let words = if words.trim().is_empty() {
                "the user denied this call"
            } else {
                words
            };
            PermissionDeny::new(words).decision_classification(PermissionDecisionClassification::UserReject)
        };
        match reply {
            PersonReply::Once => allow
                .decision_classification(PermissionDecisionClassification::UserTemporary)
                .into(),
            PersonReply::Always(updates) => allow
                .updated_permissions(updates)
                .decision_classification(PermissionDecisionClassification::UserPermanent)
                .into(),
            PersonReply::No(words) => deny(&words).into(),
            PersonReply::Stop => deny("").interrupt().into(),
        }
    }
}

/// Asks a handler one question at a time, the others in the order in which they came. Parallel subagents ask at once, and a
/// person has one screen.
///
/// # Cancel safety
/// A question that the CLI withdraws is dropped, and makes room for the next.
pub fn one_at_a_time(handler: impl PermissionHandler) -> impl PermissionHandler {
    struct One<H>(H, Mutex<()>);
    impl<H: PermissionHandler> PermissionHandler for One<H> {
        fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
            Box::pin(async {
                let _turn = self.1.lock().await;
                self.0.decide(request).await
            })
        }

        fn decide_and_tell<'a>(
            &'a self,
            request: PermissionRequest,
        ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
            Box::pin(async {
                let _turn = self.1.lock().await;
                self.0.decide_and_tell(request).await
            })
        }

        fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
            self.0.foresee(tool, input)
        }

        fn rules(&self) -> Rules {
            self.0.rules()
        }

        fn answers_questions(&self) -> bool {
            self.0.answers_questions()
        }
    }
    One(handler, Mutex::default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use outrigger_protocol::Frame;
    use serde_json::{Value, json};
    use tokio::sync::Semaphore;

    use super::*;

    fn request(more: Value) -> PermissionRequest {
        let mut line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
            "tool_name": "Bash", "input": {"command": "x"}, "tool_use_id": "t"}});
        let fields = line["request"].as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
    }

    fn said(reply: PersonReply) -> Value {
        match PermissionDecision::from(reply) {
            PermissionDecision::Allow(allow) => serde_json::to_value(allow).unwrap(),
            PermissionDecision::Deny(deny) => serde_json::to_value(deny).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_cli_hears_that_a_person_decided() {
        let suggestions = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        let suggested = request(json!({ "permission_suggestions": suggestions }));
        let once = json!({"decisionClassification": "user_temporary"});
        assert_eq!(said(PersonReply::Once), once);
        assert_eq!(
            said(PersonReply::always(&suggested)),
            json!({"decisionClassification": "user_permanent", "updatedPermissions": suggestions})
        );
        assert_eq!(said(PersonReply::always(&request(json!({})))), once);
        let suppressed = json!({"permission_suggestions": suggestions, "suppress_always_allow_rule": true});
        assert_eq!(said(PersonReply::always(&request(suppressed))), once);
        assert_eq!(
            said(PersonReply::no("use b")),
            json!({"message": "use b", "decisionClassification": "user_reject"})
        );
        assert_eq!(said(PersonReply::Stop)["interrupt"], true);
        assert_eq!(said(PersonReply::no(" "))["message"], "the user denied this call");
    }

    /// The CLI's suggestions for `touch a b`.
    #[test]
    fn always_is_no_more_than_rules() {
        let rules = json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch a *"}],
            "behavior": "allow", "destination": "localSettings"});
        let suggested = request(json!({"permission_suggestions": [
            rules,
            {"type": "addDirectories", "directories": ["/project"], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ]}));
        assert_eq!(
            said(PersonReply::always(&suggested))["updatedPermissions"],
            json!([rules])
        );
    }

    #[test]
    fn one_question_at_a_time() {
        let open = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&open);
        let handler = one_at_a_time(move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                PersonReply::Once
            }
        });
        let mut first = handler.decide(request(json!({})));
        let mut second = handler.decide(request(json!({})));
        let mut third = handler.decide(request(json!({})));
        for waiting in [&mut first, &mut second, &mut third] {
            assert!(waiting.now_or_never().is_none());
        }
        // One that is withdrawn makes room.
        drop(first);
        open.add_permits(1);
        assert!((&mut third).now_or_never().is_none(), "the second is before it");
        assert!(second.now_or_never().unwrap().is_allow());
        open.add_permits(1);
        assert!(third.now_or_never().unwrap().is_allow());
    }
}
