//! One approval, from the question to what became of the decision: a state machine without a clock and without I/O.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use outrigger::SessionId;
use outrigger::permissions::{Answers, PermissionResult};
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::JsonObject;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Names an approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(Uuid);

impl ApprovalId {
    pub(super) fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// Reads an id as `Display` writes it.
    ///
    /// # Errors
    /// When the text is no UUID.
    pub fn parse(text: &str) -> Result<Self, impl std::error::Error + Send + Sync + 'static> {
        Uuid::parse_str(text).map(Self)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tool call that somebody has to decide.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// The approval's id.
    pub id: ApprovalId,
    /// Grows with each change; a store replaces only the version that was read.
    pub version: u64,
    /// The session whose model called the tool.
    pub session_id: SessionId,
    /// The working directory of the session, from which it can be resumed.
    pub cwd: PathBuf,
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// The input of the call, as it came.
    pub tool_input: RawJson,
    /// When the model called the tool.
    #[serde(with = "millis")]
    pub asked_at: SystemTime,
    /// When nobody may decide any more; never, if it is `None`.
    #[serde(default, with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<SystemTime>,
    /// What has become of it.
    pub state: ApprovalState,
}

/// What has become of an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// Somebody has decided.
    Decided(Decided),
    /// Nobody decided in time. The call is denied when the session goes on.
    Expired,
    /// The session went on without this call: it called another tool, or called this one anew.
    Superseded {
        /// The approval in its place, if the call was made anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ApprovalId>,
    },
}

/// A decision, and who made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// Who decided, as the caller named them.
    pub by: String,
    /// When they did.
    #[serde(with = "millis")]
    pub at: SystemTime,
    /// When the session was told, and carried it out.
    #[serde(default, with = "maybe_millis", skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<SystemTime>,
}

/// What somebody decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The tool runs.
    Allow {
        /// The input in place of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<JsonObject>,
    },
    /// The tool does not run.
    Deny {
        /// What the model reads.
        message: String,
    },
}

impl Decision {
    /// The tool runs as the model called it.
    pub fn allow() -> Self {
        Self::Allow { updated_input: None }
    }

    /// The tool runs with another input.
    pub fn allow_with(input: JsonObject) -> Self {
        Self::Allow {
            updated_input: Some(input),
        }
    }

    /// The questions of a call of `AskUserQuestion` are answered: of [`Approval::answers`]. Without a single answer, the call is
    /// denied.
    pub fn answer(answers: Answers) -> Self {
        match PermissionResult::from(answers) {
            PermissionResult::Allow(allow) => Self::Allow {
                updated_input: allow.updated_input,
            },
            PermissionResult::Deny(deny) => Self::deny(deny.message),
        }
    }

    /// The tool does not run, and the model reads why.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
        }
    }
}

/// Why a decision comes too late.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooLate {
    /// Somebody else was first.
    #[error("{by} decided already, {} s ago", ago.as_secs())]
    #[non_exhaustive]
    Decided {
        /// Who decided.
        by: String,
        /// How long ago.
        ago: Duration,
    },
    /// The time to decide is over.
    #[error("the time to decide is over")]
    Expired,
    /// The session went on without the call.
    #[error("the session went on without this call{}", match by {
        Some(by) => format!("; {by} is in its place"),
        None => String::new(),
    })]
    #[non_exhaustive]
    Superseded {
        /// The approval in its place.
        by: Option<ApprovalId>,
    },
}

/// What a session does with a call that it asks about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallVerdict {
    /// The call waits for a decision.
    Defer,
    /// The session carries the decision out.
    Apply(Decision),
}

impl Approval {
    /// Answers to the model's questions, none of them given yet, for [`Decision::answer`]; `None` if the call is not of
    /// `AskUserQuestion`. [`Answers::questions`] shows what the model asks.
    pub fn answers(&self) -> Option<Answers> {
        let is_question = self.tool_name == "AskUserQuestion";
        is_question.then(|| Answers::to(&self.tool_input)).flatten()
    }

    /// Whether somebody can decide.
    pub fn is_pending(&self) -> bool {
        self.state == ApprovalState::Pending
    }

    /// Whether there is a decision, or the lack of one, that the session was not told.
    pub fn waits_for_session(&self) -> bool {
        match &self.state {
            ApprovalState::Decided(decided) => decided.applied_at.is_none(),
            ApprovalState::Expired => true,
            ApprovalState::Pending | ApprovalState::Superseded { .. } => false,
        }
    }

    /// The approval once its time is over, if that is now.
    pub(super) fn expired(&self, now: SystemTime) -> Option<Self> {
        let is_over = self.expires_at.is_some_and(|at| at <= now);
        (self.is_pending() && is_over).then(|| self.with(ApprovalState::Expired))
    }

    /// The approval with a decision.
    pub(super) fn decided(&self, decision: Decision, by: &str, now: SystemTime) -> Result<Self, TooLate> {
        if self.expired(now).is_some() {
            return Err(TooLate::Expired);
        }
        match &self.state {
            ApprovalState::Pending => Ok(self.with(ApprovalState::Decided(Decided {
                decision,
                by: by.to_owned(),
                at: now,
                applied_at: None,
            }))),
            ApprovalState::Decided(decided) => Err(TooLate::Decided {
                by: decided.by.clone(),
                ago: now.duration_since(decided.at).unwrap_or_default(),
            }),
            ApprovalState::Expired => Err(TooLate::Expired),
            ApprovalState::Superseded { by } => Err(TooLate::Superseded { by: by.clone() }),
        }
    }

    /// The approval once its session has gone on without it; `None` if nothing changes.
    pub(super) fn superseded(&self, by: Option<ApprovalId>) -> Option<Self> {
        let is_open = self.is_pending() || self.waits_for_session();
        is_open.then(|| self.with(ApprovalState::Superseded { by }))
    }

    /// The session asks about its call, of this input: what it does, and what becomes of the approval. `None` if the approval is not for
    /// this call any more, so that another has to be made.
    pub(super) fn on_request(&self, input: &RawJson, now: SystemTime) -> Option<(CallVerdict, Option<Self>)> {
        if checksum(input) != checksum(&self.tool_input) {
            return None;
        }
        if let Some(expired) = self.expired(now) {
            let (verdict, _) = expired.on_request(input, now)?;
            return Some((
                verdict,
                Some(expired.with(ApprovalState::Superseded { by: None })),
            ));
        }
        match &self.state {
            ApprovalState::Pending => Some((CallVerdict::Defer, None)),
            ApprovalState::Expired => {
                let denied = Decision::deny("Nobody decided about this call in time.");
                Some((
                    CallVerdict::Apply(denied),
                    Some(self.with(ApprovalState::Superseded { by: None })),
                ))
            }
            ApprovalState::Decided(decided) if decided.applied_at.is_none() => {
                let applied = Decided {
                    applied_at: Some(now),
                    ..decided.clone()
                };
                Some((
                    CallVerdict::Apply(decided.decision.clone()),
                    Some(self.with(ApprovalState::Decided(applied))),
                ))
            }
            // It may have been carried out.
            ApprovalState::Decided(_) | ApprovalState::Superseded { .. } => None,
        }
    }

    fn with(&self, state: ApprovalState) -> Self {
        Self {
            version: self.version + 1,
            state,
            ..self.clone()
        }
    }
}

/// The checksum of an input's text: a decision is for this input alone.
fn checksum(input: &RawJson) -> [u8; 32] {
    Sha256::digest(input.get()).into()
}

mod millis {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, SystemTime};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis())
            .unwrap_or(u64::MAX)
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        let since = Duration::from_millis(u64::deserialize(deserializer)?);
        let time = SystemTime::UNIX_EPOCH.checked_add(since);
        time.ok_or_else(|| serde::de::Error::custom("the time is beyond what this system knows"))
    }
}

mod maybe_millis {
    use super::{Deserialize, Deserializer, Serialize, Serializer, SystemTime, millis};

    #[derive(Serialize, Deserialize)]
    struct Millis(#[serde(with = "millis")] SystemTime);

    pub(super) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Millis).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        Ok(Option::<Millis>::deserialize(deserializer)?.map(|Millis(time)| time))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn input(text: &str) -> RawJson {
        serde_json::from_str(text).unwrap()
    }

    fn pending(expires_at: Option<SystemTime>) -> Approval {
        Approval {
            id: ApprovalId::new(),
            version: 0,
            session_id: SessionId::new("00000000-0000-4000-8000-000000000001").unwrap(),
            cwd: "/p".into(),
            tool_use_id: "t".to_owned(),
            tool_name: "Bash".to_owned(),
            tool_input: input("{\"command\":\"ls\"}"),
            asked_at: SystemTime::UNIX_EPOCH,
            expires_at,
            state: ApprovalState::Pending,
        }
    }

    #[derive(Debug, Clone)]
    enum ApprovalAction {
        Decide(bool),
        Ask { same: bool },
        Supersede,
        Wait,
    }

    fn happens() -> impl Strategy<Value = ApprovalAction> {
        prop_oneof![
            any::<bool>().prop_map(ApprovalAction::Decide),
            any::<bool>().prop_map(|same| ApprovalAction::Ask { same }),
            Just(ApprovalAction::Supersede),
            Just(ApprovalAction::Wait),
        ]
    }

    proptest! {
        #[test]
        fn one_decision_counts_and_is_applied_once_to_its_own_input(
            expires in proptest::option::of(0_u64..20), script in proptest::collection::vec(happens(), 0..20),
        ) {
            let at = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
            let mut approval = pending(expires.map(at));
            let (mut first, mut applied, mut now) = (None, 0, 0);
            for step in script {
                let before = approval.clone();
                match step {
                    ApprovalAction::Decide(allow) => {
                        let decision = if allow { Decision::allow() } else { Decision::deny("no") };
                        if let Ok(next) = approval.decided(decision.clone(), "me", at(now)) {
                            prop_assert!(first.is_none() && expires.is_none_or(|expires| now < expires));
                            first = Some(decision);
                            approval = next;
                        }
                    }
                    ApprovalAction::Ask { same } => {
                        let asked = if same { approval.tool_input.clone() } else { input("{\"command\":\"rm\"}") };
                        match approval.on_request(&asked, at(now)) {
                            Some((CallVerdict::Apply(decision), Some(next))) => {
                                prop_assert!(same);
                                applied += 1;
                                match &first {
                                    Some(first) => prop_assert_eq!(&decision, first),
                                    None => prop_assert!(matches!(decision, Decision::Deny { .. }), "nothing is allowed by nobody"),
                                }
                                approval = next;
                            }
                            Some((CallVerdict::Defer, None)) => prop_assert!(same && approval.is_pending()),
                            None => {}
                            other => prop_assert!(false, "{other:?}"),
                        }
                    }
                    ApprovalAction::Supersede => if let Some(next) = approval.superseded(None) { approval = next },
                    ApprovalAction::Wait => now += 3,
                }
                prop_assert!(applied <= 1);
                prop_assert!(approval.version >= before.version);
                // What is written is read.
                let again: Approval = serde_json::from_str(&serde_json::to_string(&approval).unwrap()).unwrap();
                prop_assert_eq!(again.state, approval.state.clone());
            }
        }
    }
}
