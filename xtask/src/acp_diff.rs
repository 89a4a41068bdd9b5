//! Plays the same turns to our agent and to the one on Node that editors know, and compares what they tell.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use outrigger_claude::Sandbox;

use crate::{clients, fetch, packages};

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    if let Some(argument) = arguments.first() {
        bail!("`acp-diff` takes nothing, and not {}", argument.display());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let programs = clients::build(&root)?;
    let program = |name: &str| {
        programs
            .get(name)
            .with_context(|| format!("cargo named no executable {name}"))
    };
    let outrigger = program("outrigger")?;
    let target = outrigger
        .ancestors()
        .nth(2)
        .context("cargo's target directory has no parent")?;
    let place = target.join("clients").join("acp");
    let source = root.join("clients").join("acp");
    let python = packages::install_python(&source, &place, &[])?;
    let node = clients::install_runtime(&source, &place)?;
    let other = place.join("adapter");
    std::fs::create_dir_all(&other).with_context(|| format!("cannot create {}", other.display()))?;
    // What is optional is a Claude Code of its own; both agents are to drive the same.
    packages::install_node(&source.join("adapter"), &other, "ci", &["--omit=optional"])?;
    let package = other.join("node_modules/@agentclientprotocol/claude-agent-acp");
    let theirs = [node.as_path(), &package.join("dist").join("index.js")].map(Path::to_owned);
    let ours = [program("outrigger-acp")?];

    let sandbox = Sandbox::new().context("cannot create a temporary directory")?;
    let mut command: Command = packages::isolated(&python)?;
    let status = command
        // Without files of its own in the tree.
        .arg("-B")
        .arg(source.join("compare.py"))
        .args([serde_json::to_string(&theirs)?, serde_json::to_string(&ours)?])
        .current_dir(sandbox.project())
        .env_clear()
        // Nothing listens there: whoever wanted to talk to the API could not.
        .envs(sandbox.env("http://127.0.0.1:9"))
        .env("ACP_AGENT", serde_json::to_string(&ours)?)
        .env("CLAUDE_CODE_EXECUTABLE", fetch::run()?)
        .env("OUTRIGGER", outrigger)
        .envs([("PYTHONWARNINGS", "ignore"), ("NODE_NO_WARNINGS", "1")])
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", python.display()))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
