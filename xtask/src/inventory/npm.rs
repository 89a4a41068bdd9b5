//! Packages through the `npm` client, checked and kept, so that a version that was had once needs no network again.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha512};

/// The largest package that is unpacked, in bytes.
const LARGEST_PACKAGE: u64 = 512 << 20;

/// A package of which the version and the checksum are known beforehand.
pub(super) struct Pinned {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) integrity: &'static str,
}

/// The client, and where its packages are kept.
#[derive(Debug)]
pub(super) struct Npm {
    cache: PathBuf,
}

impl Npm {
    pub(super) fn new() -> Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let base = set("XDG_CACHE_HOME")
            .or_else(|| set("LOCALAPPDATA"))
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))
            .context("there is no directory for a cache: set XDG_CACHE_HOME")?;
        let cache = base.join("outrigger").join("npm");
        fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
        Ok(Self { cache })
    }

    /// The newest published version.
    pub(super) fn newest(&self, package: &str) -> Result<String> {
        let version = self
            .view(package, "version")
            .context("cannot ask for the newest version; without a network name one by --version")?;
        sound_version(&version)
    }

    /// The checksum that the registry has for a version, or that it had when it was asked before.
    pub(super) fn integrity(&self, package: &str, version: &str) -> Result<String> {
        let kept = self.directory(package, version).join("integrity");
        if let Ok(integrity) = fs::read_to_string(&kept) {
            return Ok(integrity.trim().to_owned());
        }
        let integrity = self.view(&format!("{package}@{version}"), "dist.integrity")?;
        if !integrity.starts_with("sha512-") {
            bail!("the registry has no SHA-512 for {package}@{version}, but `{integrity}`");
        }
        fs::create_dir_all(self.directory(package, version))?;
        fs::write(&kept, &integrity)?;
        Ok(integrity)
    }

    /// The directory with the package's files.
    pub(super) fn unpacked(&self, package: &str, version: &str, integrity: &str) -> Result<PathBuf> {
        let directory = self.directory(package, version);
        fs::create_dir_all(&directory)?;
        let tarball = directory.join("package.tgz");
        if !tarball.exists() {
            let scratch = tempfile::tempdir_in(&directory)?;
            let specifier = format!("{package}@{version}");
            npm(&[
                "pack".as_ref(),
                "--silent".as_ref(),
                "--ignore-scripts".as_ref(),
                specifier.as_ref(),
                "--pack-destination".as_ref(),
                scratch.path().as_os_str(),
            ])?;
            let packed = fs::read_dir(scratch.path())?
                .next()
                .with_context(|| format!("npm packed nothing for {specifier}"))??;
            fs::rename(packed.path(), &tarball)?;
        }
        let bytes = fs::read(&tarball)?;
        let found = format!("sha512-{}", STANDARD.encode(Sha512::digest(&bytes)));
        if found != integrity {
            fs::remove_file(&tarball)?;
            bail!("{package}@{version} has the integrity {found} in place of {integrity}; it was removed");
        }
        // Unpacked each time from what was checked: nobody can have changed it since.
        let unpacked = directory.join("unpacked");
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked)?;
        }
        fs::create_dir(&unpacked)?;
        let mut archive = tar::Archive::new(GzDecoder::new(&bytes[..]));
        let mut left = LARGEST_PACKAGE;
        for entry in archive.entries()? {
            let mut entry = entry?;
            left = left
                .checked_sub(entry.size())
                .with_context(|| format!("{package}@{version} is too large"))?;
            if entry.header().entry_type().is_file() {
                entry.unpack_in(&unpacked)?;
            }
        }
        Ok(unpacked.join("package"))
    }

    fn view(&self, specifier: &str, field: &str) -> Result<String> {
        let output = npm(&["view".as_ref(), specifier.as_ref(), field.as_ref()])?;
        let text = output.trim();
        if text.is_empty() {
            bail!("npm knows no {specifier}");
        }
        Ok(text.to_owned())
    }

    fn directory(&self, package: &str, version: &str) -> PathBuf {
        self.cache.join(package.replace('/', "+")).join(version)
    }
}

/// A version as it may become part of a path.
pub(super) fn sound_version(version: &str) -> Result<String> {
    let is_sound = version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
    if !is_sound {
        bail!("`{version}` is no version");
    }
    Ok(version.to_owned())
}

/// Runs the client with the user's own configuration, which says where the registry is.
fn npm(arguments: &[&OsStr]) -> Result<String> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let output = Command::new(program)
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!(
            "npm {}: {}",
            arguments.join(" ".as_ref()).to_string_lossy(),
            tail(&String::from_utf8_lossy(&output.stderr))
        );
    }
    String::from_utf8(output.stdout).context("npm wrote something that is no text")
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_no_path() {
        assert!(sound_version("0.3.330").is_ok());
        assert!(sound_version("1.0.0-beta.1+x").is_ok());
        for bad in ["", "../x", "latest", "1/2", "1 2"] {
            assert!(sound_version(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_changed_in_the_cache_is_noticed_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let npm = Npm {
            cache: directory.path().to_owned(),
        };
        let place = npm.directory("@a/b", "1.0.0");
        assert_eq!(place, directory.path().join("@a+b").join("1.0.0"));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("package.tgz"), b"changed").unwrap();
        let error = npm.unpacked("@a/b", "1.0.0", "sha512-other").unwrap_err();
        assert!(error.to_string().contains("integrity"), "{error}");
        assert!(!place.join("package.tgz").exists());
    }
}
