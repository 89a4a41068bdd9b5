//! Why there is an error in place of an answer: in `assistant`, in `system/api_retry`, and for hooks.

use crate::open_enum;

open_enum! {
    /// Why there is an error in place of an answer.
    pub enum AssistantError {
        /// The credentials were refused.
        AuthenticationFailed = "authentication_failed",
        /// The organisation does not allow this login.
        OauthOrgNotAllowed = "oauth_org_not_allowed",
        /// The account is suspended.
        AccountOnHold = "account_on_hold",
        /// The account has to be verified.
        VerificationRequired = "verification_required",
        /// No credit, or another matter of money.
        BillingError = "billing_error",
        /// Too many requests, or a usage limit.
        RateLimit = "rate_limit",
        /// The API is overloaded.
        Overloaded = "overloaded",
        /// The API refused the request as wrong.
        InvalidRequest = "invalid_request",
        /// There is no such model.
        ModelNotFound = "model_not_found",
        /// The API failed.
        ServerError = "server_error",
        /// Anything else.
        Unknown = "unknown",
        /// The answer grew too long.
        MaxOutputTokens = "max_output_tokens",
        /// The credentials of a cloud provider do not work.
        CloudCredentialError = "cloud_credential_error",
    }
}
