//! Plays the scenarios to both CLIs, and keeps what differs for the tests.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::test;

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let is_all = match arguments {
        [] => false,
        [argument] if argument == "--all" => true,
        _ => bail!("`conformance` takes nothing but --all"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the workspace")?;
    let file = root.join("crates/sim/tests/conformance/compared.jsonl");
    let test = [
        "--test",
        "conformance",
        "--",
        "the_simulated_cli_does_as_the_real_one",
        "--exact",
    ];
    let mut variables = vec![("OUTRIGGER_CONFORMANCE_INTO", &file)];
    if is_all {
        variables.push(("OUTRIGGER_CONFORMANCE_ALL", &file));
    }
    test::run_with(test.map(OsString::from).to_vec(), &variables)
}
