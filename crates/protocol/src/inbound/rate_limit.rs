//! `rate_limit_event`: how much of a subscription is left.

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::shared::{count, some_count};

/// `rate_limit_event`: a limit of the subscription changed state. Only with a subscription login.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RateLimitEvent {
    /// The limits.
    pub rate_limit_info: RateLimitInfo,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// Limits of a subscription. Times are in seconds since 1970.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RateLimitInfo {
    /// Whether requests go through.
    pub status: RateLimitStatus,
    /// When the limit starts again.
    #[serde(default, deserialize_with = "some_count")]
    pub resets_at: Option<u64>,
    /// The limit that is closest.
    pub rate_limit_type: Option<RateLimitType>,
    /// The used part of the limit, from 0 to 1.
    pub utilization: Option<f64>,
    /// The limits one by one.
    pub unified_windows: Option<UnifiedWindows>,
    /// Whether requests beyond the subscription go through.
    pub overage_status: Option<RateLimitStatus>,
    /// When that limit starts again.
    #[serde(default, deserialize_with = "some_count")]
    pub overage_resets_at: Option<u64>,
    /// Why there is nothing beyond the subscription.
    pub overage_disabled_reason: Option<OverageDisabledReason>,
    /// Whether usage counts beyond the subscription.
    pub is_using_overage: Option<bool>,
    /// Whether usage beyond the subscription is going on.
    pub overage_in_use: Option<bool>,
    /// Whether usage beyond the subscription is allowed.
    pub overage_enabled: Option<bool>,
    /// The warning level that was passed, 0 to 1.
    pub surpassed_threshold: Option<f64>,
    /// Whether a daily cap is reached.
    pub daily_cap_paused: Option<bool>,
    /// Whether requests go through although the limit is reached.
    pub rate_limit_grace_active: Option<bool>,
    /// This month's usage beyond the subscription.
    pub overage_period_monthly: Option<OveragePeriod>,
    /// The channel's usage beyond the subscription.
    pub overage_period_channel: Option<OveragePeriod>,
    /// Whose limit this is.
    pub limit_scope: Option<LimitScope>,
    /// A limit set for the member.
    pub member_spend_limit: Option<MemberSpendLimit>,
    /// `credits_required` if only credits help.
    pub error_code: Option<String>,
    /// Whether the user can buy credits.
    pub can_user_purchase_credits: Option<bool>,
    /// Whether a means of payment is on file.
    pub has_chargeable_saved_payment_method: Option<bool>,
    /// An offer of credits.
    pub usage_credit_offer: Option<UsageCreditOffer>,
    /// An offer to ask the administrator.
    pub admin_request_offer: Option<AdminRequestOffer>,
}

open_enum! {
    /// Whether requests go through.
    pub enum RateLimitStatus {
        /// Requests are allowed.
        Allowed = "allowed",
        /// Requests are allowed; the limit is close.
        AllowedWarning = "allowed_warning",
        /// Requests are rejected.
        Rejected = "rejected",
    }
}

open_enum! {
    /// A limit of a subscription.
    pub enum RateLimitType {
        /// Five hours.
        FiveHour = "five_hour",
        /// A week.
        SevenDay = "seven_day",
        /// A week, large models.
        SevenDayOpus = "seven_day_opus",
        /// A week, middle models.
        SevenDaySonnet = "seven_day_sonnet",
        /// A week, with usage beyond the subscription.
        SevenDayOverageIncluded = "seven_day_overage_included",
        /// Usage beyond the subscription.
        Overage = "overage",
    }
}

open_enum! {
    /// Why there is no usage beyond the subscription.
    pub enum OverageDisabledReason {
        /// Extra usage was not set up.
        OverageNotProvisioned = "overage_not_provisioned",
        /// The organisation switched extra usage off.
        OrgLevelDisabled = "org_level_disabled",
        /// The organisation switched extra usage off for a time.
        OrgLevelDisabledUntil = "org_level_disabled_until",
        /// No credits left.
        OutOfCredits = "out_of_credits",
        /// Not for this kind of seat.
        SeatTierLevelDisabled = "seat_tier_level_disabled",
        /// Not for this member.
        MemberLevelDisabled = "member_level_disabled",
        /// The limit for this kind of seat is zero.
        SeatTierZeroCreditLimit = "seat_tier_zero_credit_limit",
        /// The limit for the group is zero.
        GroupZeroCreditLimit = "group_zero_credit_limit",
        /// The limit for this member is zero.
        MemberZeroCreditLimit = "member_zero_credit_limit",
        /// The organisation switched extra usage off for this product.
        OrgServiceLevelDisabled = "org_service_level_disabled",
        /// No limits are set.
        NoLimitsConfigured = "no_limits_configured",
        /// The reason could not be fetched.
        FetchError = "fetch_error",
        /// No reason given.
        Unknown = "unknown",
    }
}

open_enum! {
    /// Whose limit it is.
    pub enum LimitScope {
        /// The product's.
        Service = "service",
        /// The channel's.
        Channel = "channel",
        /// The limit of a group.
        GroupPool = "group_pool",
    }
}

/// The limits one by one. Their names are in snake case although their fields are not.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UnifiedWindows {
    /// Five hours.
    pub five_hour: Option<RateLimitWindow>,
    /// A week.
    pub seven_day: Option<RateLimitWindow>,
    /// A week, with usage beyond the subscription.
    pub seven_day_overage_included: Option<RateLimitWindow>,
    /// A week, large models.
    pub seven_day_opus: Option<RateLimitWindow>,
    /// A week, middle models.
    pub seven_day_sonnet: Option<RateLimitWindow>,
    /// Usage beyond the subscription.
    pub overage: Option<RateLimitWindow>,
}

/// One limit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RateLimitWindow {
    /// The used part of the limit, from 0 to 1.
    pub utilization: f64,
    /// When the limit starts anew, in seconds since 1970.
    #[serde(deserialize_with = "count")]
    pub resets_at: u64,
    /// Whether requests go through.
    pub status: Option<RateLimitStatus>,
    /// The warning level that was passed, 0 to 1.
    pub surpassed_threshold: Option<f64>,
}

/// Usage beyond the subscription within a period.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OveragePeriod {
    /// How much is used, 0 to 1.
    pub utilization: f64,
}

/// A limit set for a member.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemberSpendLimit {
    /// `daily`, `weekly` or `monthly`.
    pub period: Option<String>,
}

/// An offer of credits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageCreditOffer {
    /// `pct_off` or `extra_credit`.
    pub kind: String,
    /// Percentage to show.
    pub headline_pct: i64,
    /// For how many days the offer still stands.
    pub days_left: i64,
    /// Text to show.
    pub label: String,
}

/// An offer to ask the administrator for more.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AdminRequestOffer {
    /// `can_ask`, `pending`, `sending` or `sent`.
    pub state: String,
    /// Text to show.
    pub label: String,
    /// Text to show afterwards.
    pub done_label: String,
    /// Whether to ask back first.
    pub confirm: bool,
    /// What to ask.
    pub confirm_prompt: String,
    /// Whether the last attempt failed.
    pub last_file_failed: Option<bool>,
    /// Counts the changes of this offer.
    pub revision: Option<u64>,
}
