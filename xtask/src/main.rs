//! Everyday commands of the workspace: `cargo xtask COMMAND`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for a terminal"
)]

mod acp_diff;
mod archive;
mod build_cost;
mod cargo;
mod cli_matrix;
mod clients;
mod conformance;
mod fetch;
mod fuzz;
mod guards;
mod inventory;
mod isolation;
mod kit;
mod layers;
mod notices;
mod packages;
mod policy_diff;
mod report;
mod sessions;
mod set_up;
mod size;
mod soak;
mod sweep;
mod test;
mod types;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--fail-fast] [ARGS…]
                       runs the tests, ARGS as for `cargo test`: does what `set-up` does, if need be, and then keeps the tests
                       off every network but the loopback where the machine allows it; runs all programs, whichever fail,
                       and lists at the end what failed and which tests lacked a server
  fetch                fetches the pinned Claude Code and prints where it is
  acp-diff             plays the same turns to our agent of the Agent Client Protocol and to the TypeScript one, and fails where
                       they differ and clients/acp/differences.json does not say why; needs what `clients` needs
  archive [--profile P] [--target T] [--out DIR]
                       builds `outrigger` and `outrigger-acp` and packs each for its platform, as `cargo binstall` expects it,
                       with a checksum; by default in the profile `dist`, for this machine, to target/archives
  build-cost [--crates] [PROGRAM…]
                       builds a program of ten lines, cold, with this SDK, with async-nats and with rmcp, in debug and in
                       release, and prints what each cost; --crates also names the crates that cost most
  cli-matrix [VERSION…]
                       fetches a dozen versions of Claude Code, or these, tries with each what is promised of it, and prints a
                       table; needs npm and node
  clients [python] [typescript] [kit] [acp] [SCENARIO…]
                       runs the official SDKs against the simulated CLI, builds and tries its packages for Python and Node
                       (kit), and runs clients of the Agent Client Protocol; needs python3 and npm, which install what clients/
                       and packages/ name below the target directory
  conformance [--all]  plays the scenarios of `crates/sim/tests/conformance` to the real Claude Code and to the simulated one, and fails
                       where they differ without a reason: those that are new, and those in which the simulator does something
                       else than when they were last compared, or all; keeps what differs, so that tests need not play all to both
  fuzz [TARGET…] [--seconds N] [--minimize]
                       searches for inputs that break a law of the codec, of a session or of a host, 60 s each; or makes the committed
                       corpus of what was found, as small as it can be
  guards [TRAP…]       takes guards out of a copy of the SDK, one at a time, and sees the test of their trap fail
  inventory [--version V] [--output FILE] [--no-cli]
                       writes down what the published TypeScript SDK (the newest, or V) and its Claude Code have: kinds, fields,
                       sets of strings, options, flags; into upstream/, or into FILE, and prints what changed
  layers [CRATE…]      prints which top-level modules of a crate (a folder of crates/) use which, the lowest first, and the circles
                       among them
  notices PACKAGE [--target T]
                       prints the licences of what is linked into a package's program, as archives and npm packages have them
  policy-diff [--seed N] [--rounds N]
                       gives random rules and calls to the real Claude Code as its own rules and as those of a policy, and
                       fails where they do not come to the same; 50 rounds, from another seed each time
  sessions-diff        compares what the official SDKs and this workspace read of the same sessions, of the real Claude Code and
                       by chance; needs what `clients` needs
  set-up               brings what the tests need and a network has: cargo's packages, the pinned Claude Code, and below the
                       target directory the servers that this machine has not (needs python3 with venv)
  size                 prints how many lines each crate has: code, comments, docs, tests; and the longest files
  soak [--turns N] [--bytes N]
                       runs sessions of many turns (10,000) and of many bytes (1GiB), in memory and against a simulated CLI,
                       and fails when memory does not stay flat
  soak acp [--sessions N] [--turns N] [--release]
                       runs a day's worth of turns (3000 in 30 sessions) through the ACP agent's program, with the simulated CLI,
                       and fails when its memory or its open files do not stay flat (Linux)
  types [--check]      writes the types that only say what upstream declares, from upstream/inventory.json and the names and docs in
                       upstream/tools, settings, hooks and requests; --check fails if they are not what it writes
  isolated CMD [ARGS…] runs a command off every network but the loopback (Linux)
";

fn main() -> ExitCode {
    if let Some(done) = build_cost::in_place_of_rustc().or_else(cargo::in_its_place) {
        return ended(done);
    }
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let done = match command.to_str() {
        Some("test") => test::run(arguments.collect()),
        Some("fetch") => fetch::run().map(|path| {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }),
        Some("acp-diff") => acp_diff::run(&arguments.collect::<Vec<_>>()),
        Some("archive") => archive::run(&arguments.collect::<Vec<_>>()),
        Some("build-cost") => build_cost::run(&arguments.collect::<Vec<_>>()),
        Some("cli-matrix") => cli_matrix::run(arguments.collect()),
        Some("clients") => clients::run(arguments.collect()),
        Some("conformance") => conformance::run(&arguments.collect::<Vec<_>>()),
        Some("fuzz") => fuzz::run(arguments.collect()),
        Some("guards") => guards::run(arguments.collect()),
        Some("inventory") => inventory::run(arguments.collect()),
        Some("layers") => layers::run(&arguments.collect::<Vec<_>>()),
        Some("notices") => notices::run(&arguments.collect::<Vec<_>>()),
        Some("policy-diff") => policy_diff::run(&arguments.collect::<Vec<_>>()),
        Some("sessions-diff") => sessions::run(&arguments.collect::<Vec<_>>()),
        Some("set-up") => set_up::run(true).map(|()| ExitCode::SUCCESS),
        Some("size") => size::run(),
        Some("soak") => soak::run(arguments.collect()),
        Some("types") => types::run(&arguments.collect::<Vec<_>>()),
        Some("isolated") => isolation::run(arguments.collect()),
        Some("sweep") => sweep::run(&arguments.collect::<Vec<_>>()),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprint!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    ended(done)
}

fn ended(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
