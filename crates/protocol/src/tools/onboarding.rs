//! `ShowOnboardingRolePicker` and `OfferChromeSetup`.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/onboarding.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `ShowOnboardingRolePicker`: nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShowOnboardingRolePickerInput {}

/// Output of `ShowOnboardingRolePicker`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShowOnboardingRolePickerOutput {
    /// The role that was picked.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub role: Option<String>,
    /// Whether the user closed the picker.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub dismissed: Option<bool>,
}

/// Input of `OfferChromeSetup`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OfferChromeSetupInput {
    /// What the browser is needed for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
}

/// Output of `OfferChromeSetup`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OfferChromeSetupOutput {
    /// What came of the offer.
    pub outcome: ChromeSetupOutcome,
}

crate::open_enum! {
    /// What came of offering to connect the browser.
    pub enum ChromeSetupOutcome {
        /// The browser is connected.
        Connected = "connected",
        /// The user does not want to now.
        NotNow = "not_now",
        /// Nothing was tried yet.
        NoAttemptYet = "no_attempt_yet",
    }
}
