//! Appends a record to a transcript that another process may be writing to.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::error::{Error, Result};
use crate::file;

/// Appends a record as a line of its own, in one write.
///
/// The file has to exist and to have content; `false` means that it does not, and nothing was created. If the last line
/// has no end, because its writer died or is in the middle of it, the record begins with a line break: it must not become part of
/// a torn line. The CLI does the same. A writer in the middle of a long line finishes it all the same, and
/// leaves a blank line, which readers skip.
///
/// Like the CLI, this does not sync the file to disk.
pub(crate) fn append(path: &Path, record: &str) -> Result<bool> {
    debug_assert!(!record.contains('\n'), "a record is one line");
    // With `O_APPEND`, every write goes to the current end of the file, whoever else writes.
    let mut file = match file::open_with(OpenOptions::new().read(true).append(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    append_to(&mut file, record).map_err(Error::io("write to", path))
}

fn append_to(file: &mut File, record: &str) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut line = String::with_capacity(record.len() + 2);
    if last_byte(file)? != b'\n' {
        line.push('\n');
    }
    line.push_str(record);
    line.push('\n');
    write_whole(file, line.as_bytes())?;
    Ok(true)
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last[0])
}

/// Writes in one call, which does not interleave with other appends. A short write (disk full) is an error: a retry
/// could interleave with another writer, and the next append starts on a fresh line.
fn write_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    loop {
        return match file.write(bytes) {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_record_is_a_line_of_its_own_and_nothing_is_created() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.jsonl");
        assert!(!append(&path, "{}").unwrap());
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(!append(&path, "{}").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"");
        fs::write(&path, "{\"torn").unwrap();
        assert!(append(&path, "{}").unwrap());
        assert!(append(&path, "{\"a\":1}").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"torn\n{}\n{\"a\":1}\n");
    }

    const PATH: &str = "OUTRIGGER_TEST_APPEND_PATH";
    const EACH: usize = 200;

    /// Appends long and short records, so that a write in two parts would show.
    fn append_all(path: &Path, writer: usize) {
        for nth in 0..EACH {
            let filler = "x".repeat((nth * 97) % 20_000);
            append(path, &format!(r#"{{"w":{writer},"n":{nth},"f":"{filler}"}}"#)).unwrap();
        }
    }

    /// Whether all of these writers' records are there, each whole and in order.
    fn assert_all(path: &Path, writers: usize) {
        let text = fs::read_to_string(path).unwrap();
        let mut next = vec![0; writers];
        for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let writer = usize::try_from(value["w"].as_u64().unwrap()).unwrap();
            assert_eq!(value["n"], next[writer]);
            next[writer] += 1;
        }
        assert_eq!(next, vec![EACH; writers]);
    }

    /// What the processes of the next test run.
    #[test]
    fn appending_process() {
        if let Some((path, writer)) = std::env::var(PATH)
            .ok()
            .as_deref()
            .and_then(|set| set.rsplit_once('#'))
        {
            append_all(Path::new(path), writer.parse().unwrap());
        }
    }

    #[test]
    fn threads_and_processes_that_append_lose_and_mix_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.jsonl");
        fs::write(&path, "{}\n").unwrap();
        let process = |writer: usize| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "write::append::tests::appending_process"])
                .env(PATH, format!("{}#{writer}", path.display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        };
        let processes = [process(0), process(1)];
        std::thread::scope(|scope| {
            for writer in 2..4 {
                let path = &path;
                scope.spawn(move || append_all(path, writer));
            }
        });
        for mut process in processes {
            assert!(process.wait().unwrap().success());
        }
        assert_all(&path, 4);
    }
}
