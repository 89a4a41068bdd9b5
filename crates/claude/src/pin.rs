//! Which `claude` this workspace is tested with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::{env, fmt};

use serde::Deserialize;

/// The pinned version and its packages, as `claude-cli.json` of this crate has them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pin {
    /// The version of Claude Code.
    pub version: String,
    /// The package for each platform.
    pub packages: BTreeMap<Platform, Package>,
}

/// One platform's package.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Package {
    /// The name of the package in the npm registry.
    pub package: String,
    /// The tarball's checksum as npm writes it: `sha512-` and base64.
    pub integrity: String,
    /// Where the executable is in the tarball.
    pub executable: String,
    /// The tarball's length in bytes, where somebody has looked.
    #[serde(default)]
    pub tarball_bytes: Option<u64>,
    /// The executable's length in bytes, where somebody has looked.
    #[serde(default)]
    pub executable_bytes: Option<u64>,
}

/// A platform by the name that npm's packages have for it, such as `linux-x64-musl`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Platform(String);

/// The pin that this build was made with.
#[expect(
    clippy::expect_used,
    reason = "the file is part of the build, and a test reads it"
)]
pub fn pin() -> &'static Pin {
    static PIN: LazyLock<Pin> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../claude-cli.json")).expect("claude-cli.json is well-formed")
    });
    &PIN
}

impl Platform {
    /// The platform of this machine. There need not be a package for it.
    pub fn here() -> Self {
        let os = match env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let arch = match env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let libc = if os == "linux" && only_musl(env::consts::ARCH) {
            "-musl"
        } else {
            ""
        };
        Self(format!("{os}-{arch}{libc}"))
    }

    /// The platform's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the machine has musl's loader and not glibc's. How this program was linked does not matter: a static musl build runs
/// everywhere.
fn only_musl(arch: &str) -> bool {
    let glibc = match arch {
        "x86_64" => "/lib64/ld-linux-x86-64.so.2",
        _ => "/lib/ld-linux-aarch64.so.1",
    };
    !Path::new(glibc).exists() && Path::new(&format!("/lib/ld-musl-{arch}.so.1")).exists()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn the_pin_is_complete() {
        let pin = pin();
        assert!(
            pin.version.split('.').all(|part| part.parse::<u32>().is_ok()),
            "{}",
            pin.version
        );
        for (platform, package) in &pin.packages {
            assert_eq!(package.package, format!("@anthropic-ai/claude-code-{platform}"));
            let sum = package.integrity.strip_prefix("sha512-").expect("npm's form");
            assert_eq!(STANDARD.decode(sum).expect("base64").len(), 64);
        }
        assert_eq!(pin.packages.len(), 8);
    }
}
