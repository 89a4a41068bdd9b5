//! Has libFuzzer look for inputs that break a law; see the package `outrigger-fuzz`.
//!
//! Builds with the stable compiler: coverage is a pass of LLVM, which needs no unstable option. Address sanitizers do, and
//! would find little in code without `unsafe`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::cargo::cargo;

/// The laws, each a binary `fuzz-NAME`.
const TARGETS: &[&str] = &["codec", "core", "host", "session"];

/// What makes a build tell libFuzzer which code an input reached, and what it compared.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// Inputs longer than this tell nothing new and are slow.
const MAX_LENGTH: usize = 2048;

struct FuzzPlan {
    targets: Vec<&'static str>,
    seconds: u64,
    /// What the search draws its mutations from; another each time when it is not given.
    seed: Option<u32>,
    /// Instead of searching: makes the committed corpus of what was found, as small as it can be with the same coverage.
    minimize: bool,
}

impl FuzzPlan {
    fn read(arguments: Vec<OsString>) -> Result<Self> {
        let mut plan = Self {
            targets: Vec::new(),
            seconds: 60,
            seed: None,
            minimize: false,
        };
        let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument.into_owned(), None),
            };
            let mut number = || {
                value
                    .clone()
                    .or_else(|| Some(arguments.next()?.into_owned()))
                    .unwrap_or_default()
            };
            match name.as_str() {
                "--seconds" => {
                    let seconds = number();
                    plan.seconds = seconds
                        .parse()
                        .with_context(|| format!("--seconds {seconds:?}"))?;
                }
                "--seed" => {
                    let seed = number();
                    plan.seed = Some(seed.parse().with_context(|| format!("--seed {seed:?}"))?);
                }
                "--minimize" => plan.minimize = true,
                _ => {
                    let known = TARGETS.iter().find(|target| **target == name);
                    plan.targets
                        .push(known.with_context(|| format!("{name:?} is none of {TARGETS:?}"))?);
                }
            }
        }
        if plan.targets.is_empty() {
            plan.targets = TARGETS.to_vec();
        }
        Ok(plan)
    }
}

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let plan = FuzzPlan::read(arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let host = host()?;
    check_compiler()?;
    let output = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    build(&root, &host)?;
    for target in plan.targets {
        let name = format!("fuzz-{target}{}", std::env::consts::EXE_SUFFIX);
        let program = output.join(&host).join("fuzz").join(name);
        // New findings stay out of the tree until somebody minimizes them.
        let found = output.join("fuzz-corpus").join(target);
        let committed = root.join("fuzz").join("corpus").join(target);
        let crashes = root.join("fuzz").join("crashes").join(target);
        for directory in [&found, &committed, &crashes] {
            std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        let mut command = Command::new(&program);
        command
            .arg(format!("-max_len={MAX_LENGTH}"))
            .arg(format!(
                "-artifact_prefix={}{}",
                crashes.display(),
                std::path::MAIN_SEPARATOR
            ))
            // An input that takes ten seconds hangs; the slowest here takes some milliseconds.
            .args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
        if plan.minimize {
            let smaller = output.join("fuzz-corpus").join(format!("{target}-smaller"));
            let _ = std::fs::remove_dir_all(&smaller);
            std::fs::create_dir_all(&smaller)?;
            command.arg("-merge=1").args([&smaller, &committed, &found]);
            finish(&mut command, target)?;
            std::fs::remove_dir_all(&committed)?;
            std::fs::rename(&smaller, &committed)?;
        } else {
            if let Some(seed) = plan.seed {
                command.arg(format!("-seed={seed}"));
            }
            command
                .arg(format!("-max_total_time={}", plan.seconds))
                .args([&found, &committed]);
            finish(&mut command, target)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn finish(command: &mut Command, target: &str) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!(
            "the target {target} ended with {status}: the input is in fuzz/crashes/{target}, and `cargo test --package outrigger-fuzz` fails by it from now on"
        );
    }
    Ok(())
}

/// libFuzzer itself is C++ and is compiled with the programs.
fn check_compiler() -> Result<()> {
    let named = std::env::var_os("CXX");
    let usual = if cfg!(target_os = "linux") { "g++" } else { "c++" };
    let compiler = named.unwrap_or_else(|| usual.into());
    let found = Command::new(&compiler).arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        bail!(
            "a C++ compiler is needed to build libFuzzer, and `{}` does not run: install one (Debian: g++), or name it by CXX",
            compiler.to_string_lossy()
        );
    }
    Ok(())
}

/// The triple that the compiler builds for by itself. Named, so that build scripts and macros are built without coverage.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not tell its host")
}

fn build(root: &Path, host: &str) -> Result<()> {
    let status = cargo()
        .current_dir(root)
        .args([
            "build",
            "--locked",
            "--package",
            "outrigger-fuzz",
            "--features",
            "libfuzzer",
        ])
        // One by one: other programs of the package have no use for coverage, and nothing to link it with.
        .args(
            TARGETS
                .iter()
                .flat_map(|target| ["--bin".to_owned(), format!("fuzz-{target}")]),
        )
        .args(["--profile", "fuzz", "--target", host])
        .env("RUSTFLAGS", COVERAGE)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the programs could not be built");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<FuzzPlan> {
        FuzzPlan::read(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn targets_and_seconds_are_read() {
        let all = plan("").unwrap();
        assert_eq!(
            (all.targets.as_slice(), all.seconds, all.minimize),
            (TARGETS, 60, false)
        );
        let one = plan("codec --seconds 5").unwrap();
        assert_eq!((one.targets.as_slice(), one.seconds), (&["codec"][..], 5));
        assert_eq!(plan("--seconds=7 --minimize").unwrap().seconds, 7);
        for wrong in ["nothing", "--seconds", "--seconds many"] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
