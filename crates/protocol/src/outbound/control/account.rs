//! The account and signing in.

use serde::{Deserialize, Serialize};

use super::request;
use crate::RawJson;
use crate::open_enum;

/// The account in use.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AccountInfo {
    /// The email address of the account.
    pub email: Option<String>,
    /// The account's organization.
    pub organization: Option<String>,
    /// The account's plan.
    pub subscription_type: Option<String>,
    /// Where the sign-in comes from; `none` without one.
    pub token_source: Option<String>,
    /// Where the API key comes from.
    pub api_key_source: Option<String>,
    /// Who serves the model.
    pub api_provider: Option<ApiProvider>,
}

open_enum! {
    /// Who serves the model.
    pub enum ApiProvider {
        /// Anthropic.
        FirstParty = "firstParty",
        /// Amazon Bedrock.
        Bedrock = "bedrock",
        /// Google Vertex AI.
        Vertex = "vertex",
        /// Microsoft Foundry.
        Foundry = "foundry",
        /// Anthropic on AWS.
        AnthropicAws = "anthropicAws",
        /// Anthropic on Google Cloud.
        AnthropicGoogleCloud = "anthropicGoogleCloud",
        /// Mantle.
        Mantle = "mantle",
        /// A gateway of the organization.
        Gateway = "gateway",
    }
}

request! {
    /// Begins a sign-in to the account.
    pub struct ClaudeAuthenticate {
        optional {
            /// Signs in with claude.ai (the default) or with the console.
            login_with_claude_ai: "loginWithClaudeAi" => bool,
            /// Creates a profile of the console.
            console_profile: "consoleProfile" => bool,
        }
    }
}

/// How to continue the sign-in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClaudeAuthenticateReply {
    /// The page that shows a code to copy, for `claude_oauth_callback`.
    pub manual_url: Option<String>,
    /// The page that returns to the CLI by itself.
    pub automatic_url: Option<String>,
    /// Whether the sign-in creates a profile of the console.
    pub console_profile: Option<bool>,
}

request! {
    /// Ends the sign-in with a code.
    pub struct ClaudeOauthCallback {
        required {
            /// The code that the page showed.
            authorization_code: "authorizationCode" => String,
            /// The `state` that the page named.
            state: "state" => String,
        }
    }
}

request! {
    /// Waits for the sign-in to end.
    pub struct ClaudeOauthWaitForCompletion {}
}

/// The account, after the sign-in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClaudeOauthReply {
    /// The account.
    pub account: AccountInfo,
    /// Present if the sign-in is only for a part of the session.
    pub hybrid_sign_in: Option<RawJson>,
}
