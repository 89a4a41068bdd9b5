//! How a client reaches its host: the address, whose certificates count, and the token, which belongs to one host.

use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use outrigger_host_client::{ClientBuilder, HostClient, Token};
use tempfile::NamedTempFile;

use super::{PATIENCE, failure};
use crate::agent::usage;
use crate::config;
use crate::exit::{Failure, Status};
use crate::text_file;

/// How long a token may be, so that a full disk is found before there is one.
const ROOM: usize = 1024;

/// Which host.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HostArgs {
    /// The address of the host, such as `https://agents.example.com`. Without TLS only addresses of this machine are taken.
    #[arg(long, value_name = "URL", env = "OUTRIGGER_HOST", help_heading = "Host")]
    pub(crate) host: Option<String>,
    /// The file with the token.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Host")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: Trust,
}

/// Whose certificates count.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Trust {
    /// Certificates (PEM) of authorities to trust beside those of the system, such as one of your company.
    #[arg(
        long,
        value_name = "FILE",
        env = "OUTRIGGER_HOST_CA",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Host"
    )]
    pub(crate) ca: Option<PathBuf>,
}

impl Trust {
    /// A client of the host at this address, as far as it is known.
    ///
    /// # Errors
    /// When the file of certificates cannot be used.
    pub(crate) fn builder(&self, host: &str) -> Result<ClientBuilder, Failure> {
        let builder = HostClient::builder(host).patience(PATIENCE);
        let Some(path) = self.ca.as_ref().filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(builder);
        };
        let named = || format!("the certificates of --ca {}", path.display());
        let unusable = |error: anyhow::Error| Failure::new(Status::Usage, error.context(named()));
        let pem = text_file::bytes(path).map_err(|error| unusable(error.into()))?;
        builder.authorities(&pem).map_err(|error| unusable(error.into()))
    }
}

impl HostArgs {
    /// The client of this host.
    ///
    /// # Errors
    /// When no host is named, or there is no token for it.
    pub(crate) fn client(&self) -> Result<HostClient, Failure> {
        let Some(host) = self.host.as_deref().filter(|host| !host.trim().is_empty()) else {
            return Err(usage(
                "no host is named: give --host URL, or set OUTRIGGER_HOST".to_owned(),
            ));
        };
        let builder = self.trust.builder(host)?;
        let origin = builder.origin().map_err(failure)?;
        builder.token(self.token(&origin)?).build().map_err(failure)
    }

    fn token(&self, origin: &str) -> Result<Token, Failure> {
        if let Some(path) = &self.token_file {
            return read_token(path);
        }
        if let Some(token) = std::env::var_os("OUTRIGGER_TOKEN").filter(|token| !token.is_empty()) {
            let token = token
                .into_string()
                .map_err(|_| usage("OUTRIGGER_TOKEN is not text".to_owned()))?;
            return Token::new(&token).map_err(|error| usage(format!("OUTRIGGER_TOKEN: {error}")));
        }
        match token_file_of(origin).filter(|path| path.exists()) {
            Some(path) => read_token(&path),
            None => Err(usage(format!(
                "there is no token for {origin}: `outrigger host login` keeps the one that a link gives; or set OUTRIGGER_TOKEN, or name a file by --token-file"
            ))),
        }
    }
}

fn read_token(path: &Path) -> Result<Token, Failure> {
    let text = read_private(path)
        .with_context(|| format!("the token file {}", path.display()))
        .map_err(|error| Failure::new(Status::Usage, error))?;
    Token::new(&text).map_err(|error| usage(format!("the token file {}: {error}", path.display())))
}

/// Where the token is kept that the host of this origin issued. `None` without a directory for configuration.
pub(crate) fn token_file_of(origin: &str) -> Option<PathBuf> {
    Some(config::directory()?.join("tokens").join(file_name(origin)))
}

/// The name of a file for an origin. Two origins never have the same: each character that a name may not have is spelled out.
fn file_name(origin: &str) -> String {
    let mut name = String::new();
    for (number, part) in origin.splitn(2, "://").enumerate() {
        if number > 0 {
            name.push('_');
        }
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' => name.push(byte.into()),
                _ => name.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    name
}

/// Where a token will be kept: a file that nobody else can read, with room for the token, beside the place of the file. It is made before the host is
/// asked for the token, which it issues once.
pub(crate) struct TokenFile {
    draft: NamedTempFile,
    path: PathBuf,
}

impl TokenFile {
    /// # Errors
    /// When the file cannot be made, or its place is taken by a directory.
    pub(crate) fn new(path: PathBuf) -> io::Result<Self> {
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut draft = NamedTempFile::new_in(directory)?;
        draft.write_all(&[b'\n'; ROOM])?;
        Ok(Self { draft, path })
    }

    pub(crate) fn keep(mut self, token: &str) -> io::Result<PathBuf> {
        self.draft.rewind()?;
        writeln!(self.draft, "{token}")?;
        let length = self.draft.stream_position()?;
        self.draft.as_file().set_len(length)?;
        self.draft.persist(&self.path).map_err(|error| error.error)?;
        Ok(self.path)
    }
}

/// Reads a file that nobody else can read.
fn read_private(path: &Path) -> io::Result<String> {
    use std::io::Read as _;

    let file = std::fs::File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = file.metadata()?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(io::Error::other(format!(
                "others may read or change it (mode {:03o}); `chmod 600` makes it private, and the token may be known to others by now",
                mode & 0o777
            )));
        }
    }
    let mut text = String::new();
    file.take(64 * 1024).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        std::fs::write(&path, "t0\n").unwrap();
        for (mode, is_private) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_private(&path).is_ok(), is_private, "{mode:o}");
        }
    }

    #[test]
    fn each_origin_has_a_file_of_its_own() {
        let names = [
            ("https://agents.example.com:443", "https_agents.example.com%3A443"),
            ("http://agents.example.com:443", "http_agents.example.com%3A443"),
            ("http://[::1]:7070", "http_%5B%3A%3A1%5D%3A7070"),
            ("https://a_b:1", "https_a%5Fb%3A1"),
            ("https://../x:1", "https_..%2Fx%3A1"),
        ];
        for (origin, name) in names {
            assert_eq!(file_name(origin), name);
        }
    }
}
