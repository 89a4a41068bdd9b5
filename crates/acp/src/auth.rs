//! Signing out. Signing in is done in a terminal, by the CLI itself: see [`capabilities`](crate::capabilities).

use std::process::Stdio;
use std::time::Duration;

use agent_client_protocol::Error;
use outrigger::Options;
use outrigger::env::Surroundings;
use outrigger::options::Host;
use tokio::process::Command;

use crate::error;

/// How long the CLI may take to sign out.
const PATIENCE: Duration = Duration::from_secs(30);

/// Signs the user out, by the CLI (`auth logout`).
pub(crate) async fn logout(options: &Options) -> Result<(), Error> {
    let launch = options.launch(&Surroundings::of_this_process(), Host::default());
    let launch = launch.map_err(error::internal)?;
    let mut command = Command::new(&launch.program);
    command
        .args(["auth", "logout"])
        .env_clear()
        .envs(&launch.env)
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .map_err(|_| {
            error::internal("the CLI did not sign out in time; try `claude auth logout` in a terminal")
        })?
        .map_err(|error| error::internal(format!("the CLI could not be started to sign out: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(error::internal(format!(
        "the CLI could not sign out ({}): {}",
        output.status,
        said.trim()
    )))
}
