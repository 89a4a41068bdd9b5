//! What we answer to the requests of the CLI.
//!
//! Tool permissions are answered with [`PermissionResult`], hooks with [`HookOutput`](crate::shared::HookOutput); the rest is here.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::RawJson;
use crate::shared::closed_enum::closed_enum;
use crate::shared::{AnyHookOutput, JsonObject, PermissionResult};
use crate::walk::string_at;

/// The answer to `mcp_message`. Notifications need one too; anything will do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct McpMessageAnswer {
    /// The JSON-RPC answer of the server.
    pub mcp_response: RawJson,
}

/// The answer to `elicitation`: what a person says to a question of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ElicitationResult {
    /// The user answers.
    Accept {
        /// What they filled in, as the question's schema wants it; nothing for a page.
        #[serde(skip_serializing_if = "crate::whole::unset")]
        content: Option<JsonObject>,
    },
    /// The user declines.
    Decline,
    /// The user closes the question without an answer.
    Cancel,
}

impl<'de> Deserialize<'de> for ElicitationResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Accepted {
            content: Option<JsonObject>,
        }
        use serde::de::Error;
        let raw = RawJson::deserialize(deserializer)?;
        match string_at(raw.get(), "action").as_deref() {
            Some("accept") => {
                let accepted: Accepted = raw.read().map_err(Error::custom)?;
                Ok(Self::Accept {
                    content: accepted.content,
                })
            }
            Some("decline") => Ok(Self::Decline),
            Some("cancel") => Ok(Self::Cancel),
            Some(other) => Err(Error::unknown_variant(other, &["accept", "decline", "cancel"])),
            None => Err(Error::missing_field("action")),
        }
    }
}

/// The answer to `request_user_dialog`.
///
/// Only for kinds that `initialize` declared. Who was asked for another kind must not answer, not even with `Cancelled`: it would
/// take the dialog away from those who can show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum UserDialogResult {
    /// The user completed the dialog.
    Completed {
        /// The result of the dialog, as its kind demands.
        result: RawJson,
    },
    /// The user closed the dialog.
    Cancelled,
}

impl<'de> Deserialize<'de> for UserDialogResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Completed {
            result: RawJson,
        }
        use serde::de::Error;
        let raw = RawJson::deserialize(deserializer)?;
        match string_at(raw.get(), "behavior").as_deref() {
            Some("completed") => {
                let completed: Completed = raw.read().map_err(Error::custom)?;
                Ok(Self::Completed {
                    result: completed.result,
                })
            }
            Some("cancelled") => Ok(Self::Cancelled),
            Some(other) => Err(Error::unknown_variant(other, &["completed", "cancelled"])),
            None => Err(Error::missing_field("behavior")),
        }
    }
}

/// The answer to `oauth_token_refresh`: a fresh token of the sign-in.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthTokenAnswer {
    /// The token; `None` if there is none.
    pub access_token: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<NoTokenReason>,
}

impl std::fmt::Debug for OauthTokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OauthTokenAnswer")
            .field("access_token", &self.access_token.as_ref().map(|_| "…"))
            .field("reason", &self.reason)
            .finish()
    }
}

closed_enum! {
    /// Why there is no token.
    #[non_exhaustive]
    pub enum NoTokenReason {
        /// Nobody is signed in.
        SignedOut = "signed_out",
        /// Somebody else is signed in.
        IdentityChanged = "identity_changed",
        /// The failure is transient.
        Transient = "transient",
        /// The token could not be renewed.
        RefreshFailed = "refresh_failed",
    }
}

/// The answer to `host_auth_token_refresh`: a fresh credential of the host.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostAuthTokenAnswer {
    /// The credential; `None` if there is none.
    pub auth_token: Option<String>,
    /// Whether the token is the one that the CLI has.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub material_unchanged: Option<bool>,
}

impl std::fmt::Debug for HostAuthTokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostAuthTokenAnswer")
            .field("auth_token", &self.auth_token.as_ref().map(|_| "…"))
            .field("material_unchanged", &self.material_unchanged)
            .finish()
    }
}

/// The answer to `remote_control_work_secret`: the secret of the session on claude.ai.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct WorkSecretAnswer {
    /// The secret; `None` if there is none yet.
    pub work_secret: Option<String>,
}

impl std::fmt::Debug for WorkSecretAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkSecretAnswer")
            .field("work_secret", &self.work_secret.as_ref().map(|_| "…"))
            .finish()
    }
}

/// Reads our answer to a request of the CLI of that subtype and writes it again, each field of its type included. `None` for a subtype
/// that this build has no answer for.
///
/// An answer that the CLI would not understand is an error.
// Only callers compile it: most programs do not judge recordings.
#[inline]
pub fn check_answer(subtype: &str, payload: &RawJson) -> Option<Result<RawJson, serde_json::Error>> {
    fn check<T: DeserializeOwned + Serialize>(payload: &RawJson) -> Result<RawJson, serde_json::Error> {
        let answer: T = payload.read()?;
        crate::whole::write(|| RawJson::encode(&answer))
    }
    Some(match subtype {
        "can_use_tool" => check::<PermissionResult>(payload),
        "hook_callback" => check::<AnyHookOutput>(payload),
        "mcp_message" => check::<McpMessageAnswer>(payload),
        "elicitation" => check::<ElicitationResult>(payload),
        "request_user_dialog" => check::<UserDialogResult>(payload),
        "oauth_token_refresh" => check::<OauthTokenAnswer>(payload),
        "host_auth_token_refresh" => check::<HostAuthTokenAnswer>(payload),
        "remote_control_work_secret" => check::<WorkSecretAnswer>(payload),
        _ => return None,
    })
}
