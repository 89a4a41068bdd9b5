//! Gives random rules and calls to the real CLI as its own rules and as those of a policy, and compares what runs.
//!
//! The rounds are in `crates/sdk/tests/it/real/policy/diff.rs`, where a run of the tests plays a few with a fixed seed.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};

use crate::test;

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    // Another place to search in each time, unless one is chosen.
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut rounds = 50;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let chosen = match argument.to_str() {
            Some("--seed") => &mut seed,
            Some("--rounds") => &mut rounds,
            _ => bail!("`policy-diff` takes `--seed N` and `--rounds N`, not {argument:?}"),
        };
        let number = arguments.next().and_then(|number| number.to_str()?.parse().ok());
        *chosen = number.with_context(|| format!("{} needs a number", argument.display()))?;
    }
    println!("{rounds} rounds from --seed {seed}");
    let chosen = [
        "--locked",
        "--package=outrigger",
        "--test=it",
        "--",
        "--nocapture",
        "real::policy::diff::",
    ];
    test::run_with(
        chosen.map(OsString::from).to_vec(),
        &[
            ("OUTRIGGER_POLICY_SEED", &seed.to_string().into()),
            ("OUTRIGGER_POLICY_ROUNDS", &rounds.to_string().into()),
        ],
    )
}
