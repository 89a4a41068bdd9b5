//! Writes down what upstream has: facts about the published TypeScript SDK and its CLI, without a word of their documentation.
//!
//! The declarations are read by a parser and never run; the CLI is run in a sandbox without a network, to ask for its flags.

mod cli;
mod diff;
mod npm;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use outrigger_claude::{Fetch, pin};
use serde_json::Value;

use self::npm::{Npm, Pinned};
use crate::fetch;

/// The package whose declarations say what the protocol is.
const SDK: &str = "@anthropic-ai/claude-agent-sdk";

/// The compiler whose parser reads them. Another version may write the same facts differently.
const TYPESCRIPT: Pinned = Pinned {
    package: "typescript",
    version: "5.9.3",
    integrity: "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
};

const EXTRACT: &str = include_str!("extract.cjs");

#[derive(Debug, Default)]
struct Arguments {
    version: Option<String>,
    output: Option<PathBuf>,
    no_cli: bool,
}

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let arguments = read(arguments)?;
    let upstream = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upstream");
    let committed = upstream.join("inventory.json");
    let before: Option<Value> = match std::fs::read(&committed) {
        Ok(text) => Some(serde_json::from_slice(&text).with_context(|| format!("{}", committed.display()))?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("{}", committed.display())),
    };

    let npm = Npm::new()?;
    let version = match &arguments.version {
        Some(version) => version.clone(),
        None => npm.newest(SDK)?,
    };
    eprintln!("{SDK}@{version}");
    let integrity = npm.integrity(SDK, &version)?;
    let known = known_integrity(&upstream.join("VERSION"), &version)?;
    if known.as_ref().is_some_and(|known| *known != integrity) {
        bail!(
            "{SDK}@{version} is not what it was when upstream/VERSION was written: its integrity is {integrity}"
        );
    }
    let sdk = npm.unpacked(SDK, &version, &integrity)?;
    let mut facts = declarations(&npm, &sdk)?;
    let package: Value = serde_json::from_slice(&std::fs::read(sdk.join("package.json"))?)?;
    let cli = package["claudeCodeVersion"]
        .as_str()
        .with_context(|| format!("{SDK}@{version} does not say which Claude Code it is for"))?
        .to_owned();

    let flags = if arguments.no_cli {
        before
            .as_ref()
            .map(|before| before["cli"].clone())
            .unwrap_or_default()
    } else {
        let claude = claude(&npm, &cli)?;
        eprintln!("Claude Code {cli}: {}", claude.display());
        cli::facts(&claude, candidates(&sdk, before.as_ref())?)?
    };
    facts["cli"] = flags;

    if let Some(before) = &before {
        diff::print(before, &facts);
    }
    let text = serde_json::to_string_pretty(&facts)? + "\n";
    match &arguments.output {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            eprintln!("wrote {}", file.display());
        }
        None => {
            if arguments.no_cli {
                bail!("without the CLI the inventory is not whole: give --output FILE");
            }
            std::fs::create_dir_all(&upstream)?;
            std::fs::write(&committed, text)?;
            let stamp = format!(
                "sdk {version}\ncli {cli}\nsdk-integrity {integrity}\ntypescript {}\n",
                TYPESCRIPT.version
            );
            std::fs::write(upstream.join("VERSION"), stamp)?;
            eprintln!("wrote upstream/inventory.json and upstream/VERSION");
            eprintln!(
                "next: cargo test -p outrigger-protocol --test it inventory; cargo test -p outrigger --lib upstream"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: Vec<OsString>) -> Result<Arguments> {
    let mut read = Arguments::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let name = argument.to_string_lossy().into_owned();
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("`{name}` needs a value"))
        };
        match name.as_str() {
            "--version" => read.version = Some(npm::sound_version(&value()?.to_string_lossy())?),
            "--output" => read.output = Some(value()?.into()),
            "--no-cli" => read.no_cli = true,
            _ => bail!("`inventory` does not know `{name}`"),
        }
    }
    Ok(read)
}

/// What the declarations say, read by a script of ours with the TypeScript parser.
fn declarations(npm: &Npm, sdk: &Path) -> Result<Value> {
    let typescript = npm.unpacked(TYPESCRIPT.package, TYPESCRIPT.version, TYPESCRIPT.integrity)?;
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("extract.cjs");
    std::fs::write(&script, EXTRACT)?;
    let output = Command::new("node")
        .arg(&script)
        .arg(&typescript)
        .arg(sdk)
        .env_remove("NODE_OPTIONS")
        .current_dir(directory.path())
        .output()
        .context("cannot run node, which reads the declarations")?;
    if !output.status.success() {
        bail!(
            "the declarations of {} cannot be read: {}",
            sdk.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("what extract.cjs wrote is not JSON")
}

/// That version of the CLI: the pinned one by its pin, another as the registry has it.
fn claude(npm: &Npm, version: &str) -> Result<PathBuf> {
    if version == pin().version {
        return fetch::run();
    }
    let fetch = Fetch::new()?;
    let integrity = npm.integrity(fetch.package(), version)?;
    let fetch = fetch.version(version, integrity);
    if let Some(path) = fetch.cached() {
        return Ok(path);
    }
    eprintln!("fetching {}", fetch.notice());
    Ok(fetch.run(|_| ())?)
}

/// Flags that may exist without `--help` telling: those that the SDK's code or ours has as a string, and those that were there
/// before. Whether they exist is then asked of the CLI.
fn candidates(sdk: &Path, before: Option<&Value>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sdk/src");
    let mut open = vec![sdk.to_owned(), ours];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).with_context(|| format!("{}", directory.display()))? {
            let path = entry?.path();
            let is_code = path
                .extension()
                .is_some_and(|extension| extension == "mjs" || extension == "rs");
            if path.is_dir() {
                open.push(path);
            } else if is_code {
                cli::flags_in(&std::fs::read_to_string(&path)?, &mut found);
            }
        }
    }
    let before = before.and_then(|before| before["cli"]["hidden_flags"].as_object());
    found.extend(before.into_iter().flat_map(|flags| flags.keys().cloned()));
    found.sort();
    found.dedup();
    Ok(found)
}

/// The integrity that `VERSION` has for this version of the SDK.
fn known_integrity(file: &Path, version: &str) -> Result<Option<String>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{}", file.display())),
    };
    let line = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    };
    Ok((line("sdk") == Some(version))
        .then(|| line("sdk-integrity").map(str::to_owned))
        .flatten())
}
