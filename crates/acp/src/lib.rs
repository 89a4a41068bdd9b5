//! Claude Code in every editor: an agent for the Agent Client Protocol (ACP), on top of [`outrigger`].
//!
//! ```text
//! editor ⇄ ACP on stdio ⇄ serve ⇄ session (one task each) ⇄ outrigger ⇄ claude
//!                                    │
//!             frames → reduce → events → wire::v1 or wire::v2 → updates
//! ```

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the session that drives it comes next")
)]
mod coalesce;
mod event;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the session that drives it comes next")
)]
mod history;
#[expect(dead_code, reason = "the session that drives it comes next")]
mod reduce;
mod tool;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the session that drives it comes next")
)]
mod wire;
