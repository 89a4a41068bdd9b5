//! Gets the pinned `claude` through the `npm` client and keeps it in a cache.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha512};

use crate::pin::{Package, Platform, pin};

mod error;

pub use error::{FetchError, FetchFailure};

/// Under whose terms the fetched program comes, to be shown before it is fetched.
pub const TERMS: &str = "Claude Code is Anthropic's program and not part of Outrigger. It is not open source: all rights are \
     Anthropic's, and whoever uses it agrees to the terms at \
     https://code.claude.com/docs/en/legal-and-compliance";

/// Names another directory for the cache, in place of `outrigger/claude` in the user's cache directory.
const CACHE_VARIABLE: &str = "OUTRIGGER_CLAUDE_CACHE";

/// The default limit of a download.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How often a running download is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How the names of the directories begin that a fetch works in.
const SCRATCH: &str = ".fetch-";

/// The largest executable that is unpacked when the pin does not know its length.
const LARGEST_EXECUTABLE: u64 = 1 << 30;

/// Finds the pinned `claude` in the cache, or fetches it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Fetch {
    platform: Platform,
    package: Package,
    version: String,
    cache: PathBuf,
    npm: OsString,
    timeout: Duration,
    stop: Arc<AtomicBool>,
}

/// How far [`Fetch::run`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Another process is fetching the same; this one waits for it.
    Waiting,
    /// npm is downloading.
    Downloading {
        /// How many bytes there are so far.
        bytes: u64,
        /// How many there will be, where the pin knows.
        total: Option<u64>,
    },
    /// The download is compared with the pin.
    Verifying,
    /// The executable is taken out of it.
    Unpacking {
        /// How many bytes were written so far.
        bytes: u64,
        /// How many there will be.
        total: u64,
    },
}

/// The pinned `claude`, fetched if necessary, with the default settings. Tests use this, and fail if it is not available.
///
/// # Errors
/// See [`FetchFailure`].
pub async fn executable() -> Result<PathBuf, FetchError> {
    let fetch = Fetch::new()?;
    let failed = fetch.clone();
    let fetched = tokio::task::spawn_blocking(move || fetch.run(|_| ())).await;
    fetched.unwrap_or_else(|_| Err(failed.error(FetchFailure::Panicked)))
}

impl Fetch {
    /// The pinned package for this machine, with the cache in `OUTRIGGER_CLAUDE_CACHE`, else in
    /// `outrigger/claude` below `XDG_CACHE_HOME`, `~/.cache` or, on Windows, `LOCALAPPDATA`.
    ///
    /// # Errors
    /// When there is no package for this platform, or no directory for the cache.
    pub fn new() -> Result<Self, FetchError> {
        let pin = pin();
        let platform = Platform::here();
        let fail = |failure| FetchError {
            version: pin.version.clone(),
            platform: platform.clone(),
            failure: Box::new(failure),
        };
        let package = pin
            .packages
            .get(&platform)
            .ok_or_else(|| fail(FetchFailure::UnsupportedPlatform))?;
        let cache = default_cache().ok_or_else(|| fail(FetchFailure::NoCacheDirectory))?;
        Ok(Self {
            package: package.clone(),
            version: pin.version.clone(),
            cache,
            npm: if cfg!(windows) { "npm.cmd" } else { "npm" }.into(),
            timeout: TIMEOUT,
            stop: Arc::default(),
            platform,
        })
    }

    /// Another version than the pinned one. `integrity` is the checksum that its package for this machine has to have, as npm
    /// writes it.
    pub fn version(mut self, version: impl Into<String>, integrity: impl Into<String>) -> Self {
        self.version = version.into();
        self.package.integrity = integrity.into();
        self.package.tarball_bytes = None;
        self.package.executable_bytes = None;
        self
    }

    /// The name of the package for this machine.
    pub fn package(&self) -> &str {
        &self.package.package
    }

    /// The directory of the cache.
    pub fn directory(&self) -> &Path {
        &self.cache
    }

    /// Uses this directory as the cache.
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = directory.into();
        self
    }

    /// Uses this program as the npm client.
    pub fn npm(mut self, program: impl Into<OsString>) -> Self {
        self.npm = program.into();
        self
    }

    /// Sets how long the fetch may take, waiting for another process included; by default 15 minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives up once `stop` is true, which is looked at several times a second.
    pub fn stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Where the executable is, or will be.
    pub fn path(&self) -> PathBuf {
        let name = if cfg!(windows) { "claude.exe" } else { "claude" };
        self.place().join(name)
    }

    /// The executable, if the cache has it already.
    pub fn cached(&self) -> Option<PathBuf> {
        let path = self.path();
        let length = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?.len();
        // The file was checked when it was written; another length means that it was changed since.
        (self.package.executable_bytes.unwrap_or(length) == length).then_some(path)
    }

    /// What will be fetched, from where to where and under whose terms, in a few lines for a person to read.
    pub fn notice(&self) -> String {
        let size = self
            .package
            .tarball_bytes
            .map(|bytes| format!(", {} MB", bytes / 1_000_000));
        format!(
            "{}@{} (Claude Code{}) from your npm registry, to be kept in {}\n{TERMS}",
            self.package.package,
            self.version,
            size.unwrap_or_default(),
            self.place().display(),
        )
    }

    /// The executable: from the cache, or fetched, checked and put there. Blocks; `progress` is called on this thread, several
    /// times a second while npm downloads.
    ///
    /// Several processes may do this at once: one fetches and the others wait for it. Nothing of a failed attempt
    /// is kept; what a killed process left behind is removed by the next one that fetches.
    ///
    /// # Errors
    /// See [`FetchFailure`].
    pub fn run(&self, progress: impl FnMut(Progress)) -> Result<PathBuf, FetchError> {
        match self.cached() {
            Some(path) => Ok(path),
            None => self.fetch(progress).map_err(|failure| self.error(failure)),
        }
    }

    fn fetch(&self, mut progress: impl FnMut(Progress)) -> Result<PathBuf, FetchFailure> {
        let until = Instant::now() + self.timeout;
        let directory = self.place();
        fs::create_dir_all(&directory).map_err(failed("create", &directory))?;
        let lock = directory.join(".lock");
        let _lock = self.lock(&lock, until, &mut progress)?;
        if let Some(path) = self.cached() {
            return Ok(path);
        }
        remove_abandoned(&directory);
        // Beside its destination, so that it can be moved there in one step.
        let scratch = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&directory);
        let scratch = scratch.map_err(failed("create a directory in", &directory))?;
        let tarball = self.download(scratch.path(), until, &mut progress)?;
        progress(Progress::Verifying);
        self.verify(&tarball)?;
        let unpacked = self.unpack(&tarball, scratch.path(), &mut progress)?;
        let path = self.path();
        fs::rename(&unpacked, &path).map_err(failed("move the executable to", &path))?;
        Ok(path)
    }

    /// Holds the lock until the file is dropped.
    fn lock(
        &self,
        path: &Path,
        until: Instant,
        progress: &mut impl FnMut(Progress),
    ) -> Result<File, FetchFailure> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        let file = file.map_err(failed("open", path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    self.go_on()?;
                    progress(Progress::Waiting);
                    thread::sleep(POLL);
                }
                Err(fs::TryLockError::WouldBlock) => return Err(FetchFailure::TimedOut(self.timeout)),
                Err(fs::TryLockError::Error(cause)) => return Err(failed("lock", path)(cause)),
            }
        }
    }

    /// Has npm download the package, and returns the tarball.
    fn download(
        &self,
        scratch: &Path,
        until: Instant,
        progress: &mut impl FnMut(Progress),
    ) -> Result<PathBuf, FetchFailure> {
        let (packed, cache, log) = (scratch.join("packed"), scratch.join("npm"), scratch.join("log"));
        fs::create_dir(&packed).map_err(failed("create", &packed))?;
        let output = File::create(&log).map_err(failed("create", &log))?;
        let also = output.try_clone().map_err(failed("open", &log))?;
        // The user's own configuration has the registry and its proxy. The cache is temporary: it shows the progress of
        // the download, and the package is needed only once.
        let specifier = format!("{}@{}", self.package.package, self.version);
        let mut command = Command::new(&self.npm);
        command
            .args([
                "pack",
                "--silent",
                "--ignore-scripts",
                &specifier,
                "--pack-destination",
            ])
            .arg(&packed)
            .arg("--cache")
            .arg(&cache)
            .current_dir(scratch)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(also);
        let child = command.spawn().map_err(|cause| match cause.kind() {
            // The second where a part of its path is a file.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FetchFailure::NpmMissing {
                npm: self.npm.clone(),
            },
            _ => failed("run", Path::new(&self.npm))(cause),
        })?;
        let mut child = Reaped(child);
        let status = loop {
            if let Some(status) = child
                .0
                .try_wait()
                .map_err(failed("wait for", Path::new(&self.npm)))?
            {
                break status;
            }
            if Instant::now() >= until {
                return Err(FetchFailure::TimedOut(self.timeout));
            }
            self.go_on()?;
            let total = self.package.tarball_bytes;
            let bytes = length_below(&cache).min(total.unwrap_or(u64::MAX));
            progress(Progress::Downloading { bytes, total });
            thread::sleep(POLL);
        };
        let tarball = fs::read_dir(&packed)
            .map_err(failed("read", &packed))?
            .filter_map(Result::ok)
            .next();
        match tarball {
            Some(tarball) if status.success() => Ok(tarball.path()),
            _ => Err(FetchFailure::NpmFailed {
                command: format!("npm pack {specifier}"),
                status: status.to_string(),
                said: tail(&log),
            }),
        }
    }

    fn verify(&self, tarball: &Path) -> Result<(), FetchFailure> {
        let mut file = File::open(tarball).map_err(failed("open", tarball))?;
        let mut sum = Sha512::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer).map_err(failed("read", tarball))? {
                0 => break,
                length => sum.update(&buffer[..length]),
            }
        }
        let found = format!("sha512-{}", STANDARD.encode(sum.finalize()));
        if found == self.package.integrity {
            return Ok(());
        }
        Err(FetchFailure::IntegrityMismatch {
            package: format!("{}@{}", self.package.package, self.version),
            expected: self.package.integrity.clone(),
            found,
        })
    }

    /// Takes the executable out of the tarball, and nothing else.
    fn unpack(
        &self,
        tarball: &Path,
        scratch: &Path,
        progress: &mut impl FnMut(Progress),
    ) -> Result<PathBuf, FetchFailure> {
        let wanted = Path::new(&self.package.executable);
        let file = File::open(tarball).map_err(failed("open", tarball))?;
        let mut archive = tar::Archive::new(GzDecoder::new(io::BufReader::new(file)));
        let unreadable = failed("read", tarball);
        for entry in archive.entries().map_err(&unreadable)? {
            let mut entry = entry.map_err(&unreadable)?;
            if !entry.header().entry_type().is_file() || entry.path().map_err(&unreadable)? != wanted {
                continue;
            }
            let total = entry.size();
            if total != self.package.executable_bytes.unwrap_or(total) || total > LARGEST_EXECUTABLE {
                break;
            }
            let path = scratch.join("executable");
            let unwritable = failed("write", &path);
            let mut target = File::create(&path).map_err(&unwritable)?;
            let mut buffer = vec![0; 1 << 20];
            let mut bytes = 0;
            loop {
                self.go_on()?;
                progress(Progress::Unpacking { bytes, total });
                match entry.read(&mut buffer).map_err(&unreadable)? {
                    0 => break,
                    length => {
                        target.write_all(&buffer[..length]).map_err(&unwritable)?;
                        bytes += length as u64;
                    }
                }
            }
            if bytes != total {
                break;
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                target
                    .set_permissions(fs::Permissions::from_mode(0o755))
                    .map_err(&unwritable)?;
            }
            target.sync_all().map_err(&unwritable)?;
            drop(unwritable);
            return Ok(path);
        }
        Err(FetchFailure::NoExecutable(self.package.executable.clone()))
    }

    fn go_on(&self) -> Result<(), FetchFailure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(FetchFailure::Stopped);
        }
        Ok(())
    }

    fn place(&self) -> PathBuf {
        self.cache.join(&self.version).join(self.platform.as_str())
    }

    fn error(&self, failure: FetchFailure) -> FetchError {
        FetchError {
            version: self.version.clone(),
            platform: self.platform.clone(),
            failure: Box::new(failure),
        }
    }
}

/// Ends npm when the fetch is given up.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both fail for a process that has ended, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn default_cache() -> Option<PathBuf> {
    let variable = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(cache) = variable(CACHE_VARIABLE) {
        return Some(cache);
    }
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))
    };
    Some(base?.join("outrigger").join("claude"))
}

/// Removes what killed fetches left behind. Whoever holds the lock is the only one who fetches.
fn remove_abandoned(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(SCRATCH.as_bytes())
        {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The bytes in all files below a directory that is being written to.
fn length_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let lengths = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => length_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    lengths.sum()
}

/// The end of what npm wrote.
fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(2000)..])
        .trim()
        .to_owned();
    if text.is_empty() {
        "it said nothing".to_owned()
    } else {
        text
    }
}

fn failed<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FetchFailure + 'a {
    move |cause| FetchFailure::Io {
        what,
        path: path.to_owned(),
        cause,
    }
}

#[cfg(test)]
mod tests;
