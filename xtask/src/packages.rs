//! Installs what programs in other languages need, by the machine's own package clients, below cargo's target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};

use crate::isolation;

/// Installs what the Python programs need, unless it is there; the interpreter that has it.
pub(crate) fn install_python(source: &Path, place: &Path, options: &[&str]) -> Result<PathBuf> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let wanted = read(&source.join("requirements.txt"))?;
    let environment = place.join("venv");
    let scripts = environment.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let interpreter = scripts.join(if cfg!(windows) { "python.exe" } else { "python" });
    let stamp = place.join("installed");
    if read(&stamp).ok().as_deref() != Some(&wanted) || !interpreter.exists() {
        remove(&environment)?;
        let hint = "this needs python3, 3.11 or newer, with its module `venv` (Debian: python3-venv); PYTHON names another \
                    interpreter";
        install(Command::new(python).args(["-m", "venv"]).arg(&environment), hint)?;
        install(
            Command::new(&interpreter)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(options)
                .arg("--requirement")
                .arg(source.join("requirements.txt")),
            &format!(
                "pip could not install what {}/requirements.txt names",
                source.display()
            ),
        )?;
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(interpreter)
}

/// Copies the TypeScript programs to `place` and installs what they need there, unless it is there.
pub(crate) fn install_typescript(source: &Path, place: &Path) -> Result<()> {
    // The packages that are optional are CLIs for the platforms.
    install_node(source, place, "ci", &["--omit=optional"])
}

/// Copies files to `place` and installs what `package-lock.json` there names, unless it is there.
pub(crate) fn install_node(source: &Path, place: &Path, command: &str, arguments: &[&str]) -> Result<()> {
    let wanted = read(&source.join("package-lock.json"))?;
    let stamp = place.join("installed");
    // A module finds packages beside or above itself, and the tree shall have none.
    for entry in fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_name(), path.is_file()) {
            fs::copy(&path, place.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    if read(&stamp).ok().as_deref() != Some(&wanted) || !place.join("node_modules").exists() {
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        let hint = format!(
            "clients on Node need npm, and what {} names",
            source.join("package-lock.json").display()
        );
        install(
            Command::new(npm)
                .current_dir(place)
                .args([
                    command,
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                    "--loglevel=error",
                ])
                .args(arguments),
            &hint,
        )?;
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(())
}

/// Runs a package client, which may use the network and is set up by its own environment.
pub(crate) fn install(command: &mut Command, hint: &str) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))
        .context(hint.to_owned())?;
    ensure!(
        status.success(),
        "{hint}: {} ended with {status}",
        command.get_program().display()
    );
    Ok(())
}

/// A command that is run off every network but the loopback, where the machine allows it.
pub(crate) fn isolated(program: &Path) -> Result<Command> {
    if let Err(reason) = isolation::probe() {
        eprintln!("warning: the clients run without isolation from the network: {reason}");
        return Ok(Command::new(program));
    }
    let mut command = Command::new(isolation::this()?);
    command.arg("isolated").arg(program);
    Ok(command)
}

/// Copies a directory with all that is in it.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), &to).with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}
