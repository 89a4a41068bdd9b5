//! Where the executable is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The executable's name.
const NAME: &str = "outrigger-sim-faulty";

/// The sources of the stand-in. An executable of another build would silently test something else.
const SOURCES: &[&str] = &[
    include_str!("frames.rs"),
    include_str!("faulty_play.rs"),
    include_str!("program.rs"),
    include_str!("script.rs"),
    include_str!("faulty_step.rs"),
    include_str!("../../matcher.rs"),
    include_str!("../agent/payload.rs"),
    include_str!("../../inject/grandchild.rs"),
];

/// Why there is no stand-in.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no {NAME} of this build: {0}; build it with `cargo build -p outrigger-sim --bins`")]
pub struct Missing(String);

/// A number that identifies the build of the stand-in.
pub fn fingerprint() -> String {
    // FNV-1a: it need not resist anybody.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in SOURCES.iter().flat_map(|source| source.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// The stand-in, of the same build as the caller: beside the running program, where cargo puts it when it builds a workspace.
/// If it is missing, or of another build, cargo builds it.
///
/// The first call may take as long as a build takes; its result is kept.
///
/// # Errors
/// When the stand-in is missing and can't be built.
pub fn executable() -> Result<&'static Path, Missing> {
    static FOUND: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    match FOUND.get_or_init(find) {
        Ok(path) => Ok(path),
        Err(error) => Err(error.clone()),
    }
}

fn find() -> Result<PathBuf, Missing> {
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let program = std::env::current_exe().map_err(|error| Missing(error.to_string()))?;
    // A test program is in `deps` below the directory of the executables.
    let beside = program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(&file));
    if let Some(found) = beside.into_iter().find(|path| is_ours(path)) {
        return Ok(found);
    }
    build()
}

fn is_ours(path: &Path) -> bool {
    let said = Command::new(path).arg("--fingerprint").output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == fingerprint())
}

fn build() -> Result<PathBuf, Missing> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--offline",
            "--quiet",
            "--message-format=json",
            "--bin",
            NAME,
        ])
        .args([
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()
        .map_err(|error| Missing(format!("cargo does not start: {error}")))?;
    if !built.status.success() {
        return Err(Missing(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    let said = String::from_utf8_lossy(&built.stdout);
    let mut executables = said.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    executables
        .find(|path| is_ours(path))
        .ok_or_else(|| Missing("cargo built another one".to_owned()))
}
