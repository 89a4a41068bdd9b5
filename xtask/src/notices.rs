//! The licences of what is in a program that is handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::cargo;

/// The name that the file has wherever it is packed.
pub(crate) const FILE: &str = "THIRD-PARTY-NOTICES";

/// How the names of files with licences begin, in capitals.
const NAMES: &[&str] = &[
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let words: Vec<_> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy())
        .collect();
    let (package, target) = match &words[..] {
        [package] => (package, None),
        [package, flag, target] if flag == "--target" => (package, Some(&**target)),
        _ => bail!("`notices` takes a package, and --target with a target of Rust"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    print!("{}", of(&root, package, target)?);
    Ok(ExitCode::SUCCESS)
}

/// What the file says of a package's program for a target, or for this machine.
pub(crate) fn of(root: &Path, package: &str, target: Option<&str>) -> Result<String> {
    let directories = directories(root)?;
    // The texts, each with those to whom it belongs. Many have the same.
    let mut texts: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    let mut list = String::new();
    for (name, version, licence) in linked(root, package, target)? {
        let directory = directories.get(&(name.clone(), version.clone()));
        let directory = directory.with_context(|| format!("cargo does not say where {name} {version} is"))?;
        if directory.starts_with(root) {
            continue;
        }
        let _ = writeln!(list, "{name} {version}: {licence}");
        let mut files = licences(directory)?;
        if files.is_empty() {
            ensure!(
                licence.contains("Apache-2.0"),
                "{name} {version} ({licence}) has no file with its licence in {}",
                directory.display()
            );
            files.push(root.join("LICENSE-APACHE"));
        }
        for file in files {
            let text = String::from_utf8_lossy(
                &fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?,
            )
            .replace("\r\n", "\n");
            let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, whose) = texts.entry(key).or_insert_with(|| (text, BTreeSet::new()));
            whose.insert(format!("{name} {version}"));
        }
    }
    let mut file = format!(
        "These packages are in the program, too, each under its licence. The texts of the licences are behind the list.\n\n{list}\
         the Rust standard library, and what it is built of: MIT OR Apache-2.0; copyright The Rust Project Contributors\n"
    );
    // First those that most have.
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by_key(|(_, whose)| std::cmp::Reverse(whose.len()));
    for (text, whose) in texts {
        let whose: Vec<_> = whose.into_iter().collect();
        let rule = "-".repeat(80);
        let _ = write!(
            file,
            "\n{rule}\nOf {}:\n\n{}\n",
            whose.join(", "),
            text.trim_matches('\n')
        );
    }
    Ok(file)
}

/// The packages whose code is linked into a program: name, version and licence. Macros and build scripts are not in it.
fn linked(root: &Path, package: &str, target: Option<&str>) -> Result<BTreeSet<(String, String, String)>> {
    let mut arguments = vec!["tree", "--package", package];
    arguments.extend(["--edges", "normal,no-proc-macro", "--prefix", "none"]);
    arguments.extend(["--format", "{p}|{l}"]);
    if let Some(target) = target {
        arguments.extend(["--target", target]);
    }
    let told = cargo::output(root, &arguments)?;
    let told = String::from_utf8_lossy(&told);
    let packages = told.lines().filter(|line| !line.is_empty()).map(|line| {
        let of_line = || {
            let (package, licence) = line.split_once('|')?;
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            let licence = licence.trim_end_matches(" (*)");
            Some((name.to_owned(), version.to_owned(), licence.to_owned()))
        };
        of_line().with_context(|| format!("cargo tree says something else than a package: {line}"))
    });
    packages.collect()
}

/// Where each package is, by its name and version.
fn directories(root: &Path) -> Result<BTreeMap<(String, String), PathBuf>> {
    let metadata: Value = serde_json::from_slice(&cargo::output(root, &["metadata", "--format-version=1"])?)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let places = packages.filter_map(|package| {
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        let directory = Path::new(package["manifest_path"].as_str()?).parent()?;
        Some(((name.to_owned(), version.to_owned()), directory.to_owned()))
    });
    Ok(places.collect())
}

/// The files of a package with licences, also those in a directory of that name.
fn licences(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if !NAMES.iter().any(|begin| name.starts_with(begin)) {
            continue;
        }
        if path.is_dir() {
            found.extend(
                fs::read_dir(&path)?
                    .map(|entry| Ok(entry?.path()))
                    .collect::<Result<Vec<_>>>()?,
            );
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
