//! What `--version` says.

use std::sync::LazyLock;

use outrigger::protocol::TESTED_CLI_VERSIONS;

/// The version, with the commit where it is known.
static SHORT: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("OUTRIGGER_COMMIT") {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
});

/// The same, with the CLI that it is tested with.
static LONG: LazyLock<String> = LazyLock::new(|| {
    let (oldest, newest) = TESTED_CLI_VERSIONS;
    let tested = match oldest == newest {
        true => newest.to_owned(),
        false => format!("{oldest} to {newest}"),
    };
    let from = outrigger::OLDEST_CLI_VERSION;
    format!(
        "{}\ntested with Claude Code {tested}, works from {from} on",
        *SHORT
    )
});

/// For `-V`.
pub(crate) fn short() -> &'static str {
    &SHORT
}

/// For `--version`.
pub(crate) fn long() -> &'static str {
    &LONG
}
