//! What decides about tool calls of a session: the operator's code, then people.

use std::sync::Arc;

use outrigger::permissions::rules::Rules;
use outrigger::permissions::{
    self, Layer, Opinion, PermissionDecision, PermissionHandler, PermissionRequest,
};

use tokio::sync::mpsc;

use crate::log::BoxFuture;
use crate::policy::HostPolicy;

/// The handler of a session. If the operator's code decides first, the handler sends the ids of the requests that are for people.
pub(crate) fn of(policy: &HostPolicy, for_people: mpsc::Sender<String>) -> impl PermissionHandler + use<> {
    let first = First(policy.decides_first.clone());
    let for_people = first.0.is_some().then_some(for_people);
    permissions::chain()
        .layer("policy", first)
        .last("people", Inbox(for_people))
}

/// Leaves every question to the inbox.
struct Inbox(Option<mpsc::Sender<String>>);

impl PermissionHandler for Inbox {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            if let Some(for_people) = &self.0 {
                // An owner that is gone has superseded the question.
                drop(for_people.send(request.id().to_string()).await);
            }
            PermissionDecision::Parked
        })
    }

    fn answers_questions(&self) -> bool {
        true
    }
}

/// The operator's own code, if there is any.
struct First(Option<Arc<dyn Layer>>);

impl Layer for First {
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)> {
        match &self.0 {
            Some(layer) => layer.consider(request),
            None => Box::pin(async { (Opinion::Pass, None) }),
        }
    }

    fn rules(&self) -> Rules {
        self.0.as_ref().map(|layer| layer.rules()).unwrap_or_default()
    }

    fn only_has_rules(&self) -> bool {
        self.0.as_ref().is_none_or(|layer| layer.only_has_rules())
    }
}
