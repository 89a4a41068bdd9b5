//! Tells the program which commit it is built from, for `--version`: in a clone, in a package that cargo made of one, or as
//! `OUTRIGGER_COMMIT` says. It knows none elsewhere.

#![allow(clippy::print_stdout, reason = "this is how cargo is told")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Without a line such as this cargo would run it for every change of every file.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OUTRIGGER_COMMIT");
    let Some(package) = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else {
        return;
    };
    let given = env::var("OUTRIGGER_COMMIT").ok();
    let commit = given.or_else(|| packaged(&package)).or_else(|| cloned(&package));
    if let Some(commit) = commit.as_deref().and_then(short) {
        println!("cargo::rustc-env=OUTRIGGER_COMMIT={commit}");
    }
}

/// The beginning of a commit's id; `None` if the text is none.
fn short(commit: &str) -> Option<&str> {
    let commit = commit.trim();
    let is_id = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| commit.get(..9).unwrap_or(commit))
}

/// What cargo noted when it made a package.
fn packaged(package: &Path) -> Option<String> {
    let path = package.join(".cargo_vcs_info.json");
    let text = fs::read_to_string(&path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(str::to_owned)
}

/// The commit that is checked out. A copy of this package within a clone of something else has none.
fn cloned(package: &Path) -> Option<String> {
    let root = PathBuf::from(git(package, &["rev-parse", "--show-toplevel"])?);
    let workspace = package.join("../..");
    if root.canonicalize().ok()? != workspace.canonicalize().ok()? {
        return None;
    }
    // Each commit and each checkout is noted there. A path that is missing would have cargo run this every time.
    for name in ["logs/HEAD", "HEAD"] {
        let path = package.join(git(package, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
            break;
        }
    }
    git(package, &["rev-parse", "HEAD"])
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        // A hook of git that builds this may have them set.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
