//! The list of tests that were left out: a line for each, so that many processes can add to it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use crate::{LIST, Missing, REQUIRED};

/// A test that was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Why: what is missing, and how to get it.
    pub why: String,
    /// The program that it is a test of, without the hash in its name.
    pub program: String,
    /// Its name.
    pub test: String,
}

/// Says that the test that runs on this thread is left out.
///
/// # Panics
/// When nothing may be missing, by [`REQUIRED`].
#[expect(clippy::panic, reason = "a test fails by panicking")]
#[track_caller]
pub fn leave_out(missing: &Missing) {
    if !missing.is_refused && std::env::var_os(REQUIRED).is_some_and(|value| value == "1") {
        panic!("{missing}; {REQUIRED} is set, so nothing may be missing");
    }
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    let left = LeftOut {
        why: missing.to_string(),
        program: program
            .rsplit_once('-')
            .map_or(&*program, |(name, _)| name)
            .to_owned(),
        // On one thread, tests have no names.
        test: std::thread::current().name().unwrap_or("?").to_owned(),
    };
    let listed = std::env::var_os(LIST).is_some_and(|path| left.add(Path::new(&path)).is_ok());
    if !listed {
        // Not `eprintln`, which is shown only of tests that fail.
        let _ = writeln!(
            io::stderr(),
            "left out: {} {}: {}",
            left.program,
            left.test,
            left.why
        );
    }
}

impl LeftOut {
    fn add(&self, list: &Path) -> io::Result<()> {
        let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        let line = format!(
            "{}\t{}\t{}\n",
            plain(&self.why),
            plain(&self.program),
            plain(&self.test)
        );
        // A line that is added in one write is whole.
        File::options()
            .append(true)
            .create(true)
            .open(list)?
            .write_all(line.as_bytes())
    }
}

/// What is listed in a file, in the order of the reasons; nothing if there is no file.
///
/// # Errors
/// When it cannot be read.
pub fn read(list: &Path) -> io::Result<Vec<LeftOut>> {
    let text = match fs::read_to_string(list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let mut all: Vec<LeftOut> = text
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t').map(str::to_owned);
            let (why, program, test) = (parts.next()?, parts.next()?, parts.next()?);
            Some(LeftOut { why, program, test })
        })
        .collect();
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_read() {
        let place = tempfile::tempdir().unwrap();
        let list = place.path().join("list");
        assert_eq!(read(&list).unwrap(), []);
        let left = |test: &str| LeftOut {
            why: "no\nserver".to_owned(),
            program: "redis".to_owned(),
            test: test.to_owned(),
        };
        left("b").add(&list).unwrap();
        left("a").add(&list).unwrap();
        let plain = |test: &str| LeftOut {
            why: "no server".to_owned(),
            ..left(test)
        };
        assert_eq!(read(&list).unwrap(), [plain("a"), plain("b")]);
    }
}
