//! The agent of the demo where there is no CLI: simulated, with real tools.

use outrigger::Options;
use outrigger::testing::Simulated;
use outrigger_sim::claude::Sandbox;

/// Options that reach a simulated agent. It does what the directives in the prompts say.
pub(crate) fn options(sandbox: &Sandbox) -> Options {
    let home = sandbox.home().to_string_lossy().into_owned();
    let cli = Simulated::agent(move |agent| {
        agent
            .sdk_reads_session_state()
            .partial_messages(true)
            .real_tools(true)
            .home(&home)
    });
    cli.options().cwd(sandbox.project())
}
