//! Packs our programs for whoever installs neither Rust nor Node: an archive for a platform, and its checksum.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cargo::cargo;
use crate::notices;

/// The packages whose programs are packed, the programs, and what their users read first.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("outrigger-acp", "outrigger-acp", "packages/acp/README.md"),
    ("outrigger-cli", "outrigger", "README.md"),
];

/// What the command line asks for.
struct Wanted {
    profile: String,
    target: Option<String>,
    out: Option<PathBuf>,
}

impl Wanted {
    fn read(arguments: &[OsString]) -> Result<Self> {
        let mut wanted = Self {
            profile: "dist".to_owned(),
            target: None,
            out: None,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .with_context(|| format!("{} needs a value", argument.display()))
            };
            match argument.to_str() {
                Some("--profile") => wanted.profile = value()?.to_string_lossy().into_owned(),
                Some("--target") => wanted.target = Some(value()?.to_string_lossy().into_owned()),
                Some("--out") => wanted.out = Some(value()?.into()),
                _ => bail!(
                    "`archive` takes --profile, --target and --out, not {}",
                    argument.display()
                ),
            }
        }
        Ok(wanted)
    }
}

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let wanted = Wanted::read(arguments)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = match &wanted.target {
        Some(target) => target.clone(),
        None => host()?,
    };
    let out = wanted.out.clone().unwrap_or_else(|| root.join("target/archives"));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    for (package, program, readme) in PROGRAMS {
        let (version, executable) = build(&root, package, program, &wanted)?;
        let name = format!("{package}-{version}-{target}");
        let path = out.join(format!("{name}.tgz"));
        let notices = notices::of(&root, package, Some(&target))?;
        pack(&root, &name, &executable, readme, &notices, &path)?;
        let sum = checksum(&path)?;
        let line = format!("{sum}  {name}.tgz\n");
        fs::write(out.join(format!("{name}.tgz.sha256")), line)
            .with_context(|| format!("cannot write the checksum of {}", path.display()))?;
        println!("{sum}  {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The target that cargo builds for if nothing is said.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host
        .context("rustc does not say for which target it is")?
        .to_owned())
}

/// Builds a program; its version, and where it is.
fn build(root: &Path, package: &str, program: &str, wanted: &Wanted) -> Result<(String, PathBuf)> {
    let mut command = cargo();
    command
        .current_dir(root)
        .args(["build", "--locked", "--package", package, "--bin", program])
        .args(["--profile", &wanted.profile])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    if let Some(target) = &wanted.target {
        command.args(["--target", target]);
    }
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "{package} could not be built");
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if message["target"]["name"] == program
            && let Some(executable) = message["executable"].as_str()
        {
            let id = message["package_id"].as_str().unwrap_or_default();
            let version = id.rsplit(['#', '@']).next().unwrap_or_default();
            return Ok((version.to_owned(), executable.into()));
        }
    }
    bail!("cargo named no executable {program}")
}

/// Writes the archive: a directory of its name with the program, what to read first, and the licences, ours and those of others.
fn pack(root: &Path, name: &str, executable: &Path, readme: &str, notices: &str, path: &Path) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    // The same files make the same archive.
    archive.mode(tar::HeaderMode::Deterministic);
    let program = executable.file_name().context("the program has no name")?;
    archive
        .append_path_with_name(executable, Path::new(name).join(program))
        .with_context(|| format!("cannot pack {}", executable.display()))?;
    for (from, file) in [
        (readme, "README.md"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("CHANGELOG.md", "CHANGELOG.md"),
    ] {
        archive
            .append_path_with_name(root.join(from), Path::new(name).join(file))
            .with_context(|| format!("cannot pack {from}"))?;
    }
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(u64::try_from(notices.len())?);
    archive
        .append_data(
            &mut header,
            Path::new(name).join(notices::FILE),
            notices.as_bytes(),
        )
        .context("cannot pack the licences of others")?;
    let written = archive.into_inner().and_then(GzEncoder::finish);
    let mut file = written.with_context(|| format!("cannot write {}", path.display()))?;
    file.flush()
        .with_context(|| format!("cannot write {}", path.display()))
}

fn checksum(path: &Path) -> Result<String> {
    let packed = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(packed)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_binstall_finds_what_is_packed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for (package, program, _) in PROGRAMS {
            let directory = package.strip_prefix("outrigger-").expect("it is one of ours");
            let manifest = fs::read_to_string(root.join(directory).join("Cargo.toml")).expect("it is there");
            for line in [
                "pkg-url = \"{ repo }/releases/download/v{ version }/{ name }-{ version }-{ target }.tgz\""
                    .to_owned(),
                "pkg-fmt = \"tgz\"".to_owned(),
                "bin-dir = \"{ name }-{ version }-{ target }/{ bin }{ binary-ext }\"".to_owned(),
                format!("name = \"{program}\""),
            ] {
                assert!(manifest.lines().any(|found| found == line), "{package}: {line}");
            }
        }
    }

    #[test]
    fn the_licences_of_all_that_is_linked_in_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()
            .expect("it is there");
        for (package, ..) in PROGRAMS {
            let notices = notices::of(&root, package, None).expect("each package has its licence");
            let (list, texts) = notices.split_once("\n-----").expect("texts behind the list");
            for line in list.lines().filter(|line| line.contains(": ")) {
                let name = line.split(": ").next().expect("a name");
                let whose = |line: &&str| line.starts_with("Of ") && line.contains(name);
                let of_std = name.starts_with("the Rust standard library");
                assert!(
                    of_std || texts.lines().any(|line| whose(&line)),
                    "{package}: {name}"
                );
            }
            let names = |name: &str| list.lines().any(|line| line.starts_with(&format!("{name} ")));
            assert!(names("serde_json") && names("tokio"), "{package}: {list}");
            // What only builds or tests it is not in it; what is ours has the licences beside the file.
            for other in ["proptest", "serde_derive", "insta", "outrigger"] {
                assert!(!names(other), "{package}: {other}");
            }
            assert!(texts.contains("Permission is hereby granted"), "{package}");
        }
    }

    #[test]
    fn an_archive_has_the_program_in_a_directory_of_its_name() {
        let place = tempfile::tempdir().expect("a directory");
        let program = place.path().join("outrigger-acp");
        fs::write(&program, "a program").expect("it is written");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = place.path().join("a.tgz");
        pack(
            &root,
            "outrigger-acp-0.0.0-here",
            &program,
            "packages/acp/README.md",
            "the licences of others",
            &path,
        )
        .expect("it is packed");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(
            File::open(&path).expect("it is there"),
        ));
        let names: Vec<_> = archive
            .entries()
            .expect("entries")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .path()
                    .expect("a path")
                    .display()
                    .to_string()
            })
            .collect();
        let files = [
            "outrigger-acp",
            "README.md",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "CHANGELOG.md",
            "THIRD-PARTY-NOTICES",
        ];
        assert_eq!(
            names,
            files.map(|file| format!("outrigger-acp-0.0.0-here/{file}"))
        );
        let first = checksum(&path).expect("a checksum");
        pack(
            &root,
            "outrigger-acp-0.0.0-here",
            &program,
            "packages/acp/README.md",
            "the licences of others",
            &path,
        )
        .expect("it is packed");
        assert_eq!(
            checksum(&path).expect("a checksum"),
            first,
            "the same files make the same archive"
        );
    }
}
