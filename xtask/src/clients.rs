//! Runs clients that we did not write: the official SDKs against the simulated CLI, clients of the Agent Client Protocol
//! against our agent, which drives the real CLI, and the official browser client against the HTTP front of a host.
//!
//! What they are asked to do is in `clients/`; the clients themselves are installed below cargo's target directory, by the
//! machine's own package clients. The programs then run with an empty home, a key that is none, and no network but the
//! loopback, and report each scenario as a line of JSON.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use outrigger_claude::Sandbox;
use serde::Deserialize;
use serde_json::Value;

use crate::packages::{
    copy_tree, install, install_node, install_python, install_typescript, isolated, read, remove,
};
use crate::{cargo, fetch, kit};

/// What every SDK must be able to do against the simulated CLI.
const PROMISED: &[&str] = &[
    "one-shot",
    "multi-turn",
    "permission-allow",
    "permission-deny",
    "permission-updated-input",
    "permission-suggestions",
    "hook-pre-tool-use-deny",
    "hook-pre-tool-use-allow",
    "hook-post-tool-use",
    "hook-user-prompt-submit",
    "mcp-call",
    "mcp-error",
    "interrupt",
    "interrupt-tool",
    "set-model",
    "set-permission-mode",
    "resume",
    "continue-session",
    "fork-session",
    "structured-output",
    "partial-messages",
    "script-file",
];

/// What clients of the Agent Client Protocol must be able to do with our agent and the real CLI.
const PROMISED_OF_ACP: &[&str] = &[
    "turn",
    "turn-in-progress",
    "turn-bash",
    "thinking",
    "long-text",
    "tool-failure",
    "cancel-text",
    "cancel-tool",
    "cancel-permission",
    "cancel-idle",
    "prompts-queue",
    "api-error",
    "usage",
    "permission-reject",
    "permission-for-the-session",
    "mode-accept-edits",
    "mode-unknown",
    "plan-approved",
    "question-as-form",
    "question-as-options",
    "prompts-refused",
    "prompt-with-files",
    "background-command",
    "subagent",
    "background-agent",
    "sessions-load",
    "sessions-resume",
    "sessions-list",
    "sessions-two",
    "sessions-close",
    "sessions-unknown",
    "sessions-fork",
    "rewind",
    "cleared",
    "unsaved-text",
    "commands-listed-once",
    "config-options",
    "initialize-starts-nothing-slow",
    "registry",
    "cli-dies-idle",
    "cli-dies-in-a-turn",
    "end-of-input",
    "killed",
    "servers-stdio",
    "servers-http",
    "servers-sse",
    "servers-named-badly",
    "servers-change",
    "servers-ask",
    "small-turn",
    "small-carries-on",
    "acpx-turn",
    "acpx-deny",
    "acpx-cancel",
    "rust-turn",
    "rust-draft",
];

/// What the official browser client must be able to do with the HTTP front of a host.
const PROMISED_OF_HOST: &[&str] = &[
    "prompt",
    "permission-allow",
    "permission-deny",
    "question",
    "commands",
    "interrupt",
    "decided-elsewhere",
    "late-reader",
    "reconnect",
    "read-only",
    "schemathesis",
];

/// One of the programs in `clients/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Python,
    TypeScript,
    Acp,
    Host,
}

/// What a program says of a scenario.
#[derive(Debug, Deserialize)]
struct ClientReport {
    scenario: String,
    ok: bool,
    ms: u64,
    why: Option<String>,
    log: Option<String>,
}

/// Which scenarios of which clients are to be run; all that there are where nothing is named.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    clients: Vec<Client>,
    /// The simulated CLI as its users install it: a wheel and npm packages.
    kit: bool,
    scenarios: Vec<String>,
}

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let choice = Choice::read(&arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let this = env::current_exe().context("cannot tell where this program is")?;
    let target = this
        .ancestors()
        .nth(2)
        .context("cargo's target directory has no parent")?;
    let mut failed = 0;
    if choice.kit {
        let clients = kit::Clients {
            build,
            drive: drive_installed_agent,
        };
        failed += kit::run(&root, target, &choice.scenarios, clients)?;
    }
    if choice.clients.is_empty() {
        return Ok(ended(failed));
    }
    let programs = build(&root)?;
    let program = |name: &str| {
        programs
            .get(name)
            .with_context(|| format!("cargo named no executable {name}"))
    };
    for client in choice.clients {
        let place = target.join("clients").join(client.name());
        let source = root.join("clients").join(client.name());
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let mut command = match client {
            Client::Python => python(&source, &place)?,
            Client::TypeScript => typescript(&source, &place)?,
            Client::Acp => acp(&source, &place)?,
            Client::Host => host(&root, &source, &place, program("simulated_host")?)?,
        };
        match client {
            Client::Python | Client::TypeScript => {
                command.env("OUTRIGGER", program("outrigger")?);
                command.env("OUTRIGGER_SIM", program("outrigger-sim")?);
                command.env("OUTRIGGER_SCRIPTS", root.join("clients").join("scripts"));
            }
            Client::Acp => {
                command.env("OUTRIGGER", program("outrigger")?);
                command.env("ACP_AGENT", serde_json::to_string(&[program("outrigger-acp")?])?);
                command.env("CLAUDE_CODE_EXECUTABLE", fetch::run()?);
            }
            Client::Host => {}
        }
        failed += play(client, command, &place, &choice.scenarios)?;
    }
    Ok(ended(failed))
}

fn ended(failed: usize) -> ExitCode {
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Client {
    /// As its directory is called.
    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::Acp => "acp",
            Self::Host => "host",
        }
    }
}

impl Choice {
    fn read(arguments: &[OsString]) -> Result<Self> {
        let mut choice = Self::default();
        for argument in arguments {
            match argument.to_str() {
                Some("python") => choice.clients.push(Client::Python),
                Some("typescript") => choice.clients.push(Client::TypeScript),
                Some("kit") => choice.kit = true,
                Some("acp") => choice.clients.push(Client::Acp),
                Some("host") => choice.clients.push(Client::Host),
                Some(name) if !name.starts_with('-') => choice.scenarios.push(name.to_owned()),
                _ => bail!(
                    "`clients` takes `python`, `typescript`, `acp`, `host`, `kit` and names of scenarios, not {}",
                    argument.display()
                ),
            }
        }
        if choice.clients.is_empty() && !choice.kit {
            choice.clients = vec![Client::Python, Client::TypeScript, Client::Acp, Client::Host];
            choice.kit = true;
        }
        Ok(choice)
    }
}

/// Builds our programs and examples; where each is, by its name.
pub(crate) fn build(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    cargo::executables(root, cargo::PROGRAMS)
}

/// The command that runs the Python program, once its packages are there.
fn python(source: &Path, place: &Path) -> Result<Command> {
    let mut command = isolated(&install_python(source, place, &[])?)?;
    // Without files of its own in the tree.
    command.arg("-B").arg(source.join("main.py"));
    Ok(command)
}

/// The command that runs the TypeScript program, once its packages are there.
fn typescript(source: &Path, place: &Path) -> Result<Command> {
    install_typescript(source, place)?;
    let mut command = isolated(Path::new("node"))?;
    command.arg(place.join("main.mjs"));
    Ok(command)
}

/// Runs the scenarios of a client that we did not write against the agent as its users install it, with the CLI that came along; and
/// the scenario that asks what the registry of agents asks.
fn drive_installed_agent(root: &Path, target: &Path, outrigger: &Path, agent: &Path) -> Result<()> {
    let place = target.join("clients").join("acp");
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let mut command = acp(&root.join("clients").join("acp"), &place)?;
    command.env("OUTRIGGER", outrigger);
    command.env("ACP_AGENT", serde_json::to_string(&[agent])?);
    let scenarios = ["registry", "acpx-turn", "acpx-cancel", "end-of-input"].map(str::to_owned);
    let failed = play(Client::Acp, command, &place, &scenarios)?;
    ensure!(failed == 0, "{failed} scenarios failed");
    Ok(())
}

/// The command that runs the program for clients of a host, once the official browser client and schemathesis are there.
fn host(root: &Path, source: &Path, place: &Path, simulated: &Path) -> Result<Command> {
    // Its package is that of the TypeScript SDK.
    install_typescript(&root.join("clients").join("typescript"), place)?;
    let program = place.join("browser.mjs");
    fs::copy(source.join("browser.mjs"), &program)
        .with_context(|| format!("cannot copy {}", source.display()))?;
    let python = place.join("python");
    fs::create_dir_all(&python).with_context(|| format!("cannot create {}", python.display()))?;
    let python = install_python(source, &python, &[])?;
    let mut command = isolated(Path::new("node"))?;
    command.env("SCHEMATHESIS", python.with_file_name("schemathesis"));
    command.env("SIMULATED_HOST", simulated);
    command.arg(program);
    Ok(command)
}

/// The command that runs the program for clients of the Agent Client Protocol, once they are there.
fn acp(source: &Path, place: &Path) -> Result<Command> {
    let python = install_python(source, place, &[])?;
    let runtime = install_runtime(source, place)?;
    let packages = place.join("node").join("node_modules");
    let mut command = isolated(&python)?;
    command.env("ACPX_NODE", runtime);
    command.env("ACPX", packages.join("acpx").join("dist").join("cli.js"));
    for (variable, client) in [
        ("ACP_RUST_CLIENT", "yolo_one_shot_client"),
        ("ACP_RUST_DRAFT_CLIENT", "v2_one_shot_client"),
    ] {
        command.env(variable, rust_client(place, client)?);
    }
    // The plugins of editors, which are in no package registry, and the editors that load them.
    for name in ["CODECOMPANION", "NVIM", "VIMRUNTIME", "ACP_EL", "EMACS"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command.arg("-B").arg(source.join("main.py"));
    Ok(command)
}

/// Installs the clients that run on Node, unless they are there, and a Node that is new enough for them; where that is.
pub(crate) fn install_runtime(source: &Path, place: &Path) -> Result<PathBuf> {
    let node = place.join("node");
    fs::create_dir_all(&node).with_context(|| format!("cannot create {}", node.display()))?;
    // Not `ci`, which wants the packages of all platforms in the lock file, and those that the registry lacks, too.
    install_node(&source.join("node"), &node, "install", &[])?;
    let packages = node.join("node_modules");
    // What comes as a package where there is one for this machine; elsewhere the machine's own has to be new enough.
    let runtime = ["x64", "arm64"]
        .map(|machine| packages.join(format!("node-linux-{machine}/bin/node")))
        .into_iter()
        .find(|node| node.exists());
    Ok(runtime.unwrap_or_else(|| "node".into()))
}

/// Builds a client that comes as an example with the crate of the protocol; where it is.
fn rust_client(place: &Path, client: &str) -> Result<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let metadata = cargo::output(root, &["metadata", "--format-version=1"])?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let package = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "agent-client-protocol")
        .context("the workspace does not use agent-client-protocol")?;
    let source = package["manifest_path"]
        .as_str()
        .and_then(|path| Path::new(path).parent())
        .context("agent-client-protocol has no manifest")?;
    // What the registry unpacked is nobody's to build in.
    let copy = place.join("rust");
    let version = package["version"].as_str().unwrap_or_default();
    let stamp = place.join("rust-version");
    if read(&stamp).ok().as_deref() != Some(version) {
        remove(&copy)?;
        copy_tree(source, &copy)?;
        // Below cargo's target directory it would be taken for a member of this workspace.
        let manifest = copy.join("Cargo.toml");
        let alone = format!("{}\n[workspace]\n", read(&manifest)?);
        fs::write(&manifest, alone).with_context(|| format!("cannot write {}", manifest.display()))?;
        fs::write(&stamp, version).with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    let target = place.join("rust-target");
    install(
        cargo::cargo()
            .current_dir(&copy)
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .args(["build", "--locked", "--features=process,unstable_protocol_v2"])
            .args(["--example", client])
            .arg("--target-dir")
            .arg(&target),
        "the example of agent-client-protocol could not be built",
    )?;
    Ok(target.join("debug").join("examples").join(client))
}

/// Runs a program and prints its scenarios; how many failed.
fn play(client: Client, mut command: Command, place: &Path, scenarios: &[String]) -> Result<usize> {
    let sandbox = Sandbox::new().context("cannot create a temporary directory")?;
    let logs = place.join("logs");
    remove(&logs)?;
    let paths: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.unwrap_or_default().to_owned()))
        .collect();
    let mut child = command
        .args(scenarios)
        .current_dir(sandbox.project())
        .env_clear()
        // Nothing listens there: whoever wanted to talk to the API could not.
        .envs(sandbox.env("http://127.0.0.1:9"))
        .envs(paths)
        // The SDKs warn of options that are meant so.
        .envs([("PYTHONWARNINGS", "ignore"), ("NODE_NO_WARNINGS", "1")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let stdout = child.stdout.take().context("the program has no stdout")?;
    let mut results = BTreeMap::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("the program writes something that is no text")?;
        let Ok(report) = serde_json::from_str::<ClientReport>(&line) else {
            println!("{line}");
            continue;
        };
        println!("{:<10}  {report}", client.name());
        if let Some(log) = &report.log {
            fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
            let path = logs.join(format!("{}.jsonl", report.scenario));
            fs::write(&path, log).with_context(|| format!("cannot write {}", path.display()))?;
            println!("            what went through is in {}", path.display());
        }
        results.insert(report.scenario, report.ok);
    }
    let status = child.wait().context("cannot wait for the program")?;
    let promised = match client {
        Client::Python | Client::TypeScript => PROMISED,
        Client::Acp => PROMISED_OF_ACP,
        Client::Host => PROMISED_OF_HOST,
    };
    let expected = if scenarios.is_empty() {
        promised.iter().map(|name| (*name).to_owned()).collect()
    } else {
        scenarios.to_vec()
    };
    let missing: Vec<_> = expected
        .into_iter()
        .filter(|name| !results.contains_key(name))
        .collect();
    for name in &missing {
        println!("{:<10}  FAIL  {name}: it was not run", client.name());
    }
    let passed = results.values().filter(|ok| **ok).count();
    let failed = results.len() - passed + missing.len();
    println!("{}: {passed} passed, {failed} failed", client.name());
    ensure!(
        status.success() == (failed == 0),
        "the program of {} ended with {status}",
        client.name()
    );
    Ok(failed)
}

impl std::fmt::Display for ClientReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.ok { "ok" } else { "FAIL" };
        write!(f, "{verdict:<4}  {:<28} {:>6} ms", self.scenario, self.ms)?;
        let why = self.why.iter().flat_map(|why| why.lines());
        why.into_iter()
            .try_for_each(|line| write!(f, "\n            {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_scenarios_can_be_chosen() {
        let read =
            |line: &str| Choice::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        let all = vec![Client::Python, Client::TypeScript, Client::Acp, Client::Host];
        assert_eq!(read("").unwrap().clients, all);
        assert!(read("").unwrap().kit);
        let choice = read("kit").unwrap();
        assert!(choice.kit && choice.clients.is_empty());
        assert!(!read("python").unwrap().kit);
        let choice = read("resume typescript one-shot").unwrap();
        assert_eq!(choice.clients, [Client::TypeScript]);
        assert_eq!(read("host reconnect").unwrap().clients, [Client::Host]);
        assert_eq!(choice.scenarios, ["resume", "one-shot"]);
        assert!(read("--all").is_err());
    }

    #[test]
    fn a_report_names_what_failed_and_why() {
        let line = r#"{"scenario": "resume", "ok": false, "ms": 7, "why": "this\nand that"}"#;
        let report: ClientReport = serde_json::from_str(line).unwrap();
        assert_eq!(
            report.to_string(),
            "FAIL  resume                            7 ms\n            this\n            and that"
        );
    }
}
