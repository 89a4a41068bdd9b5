//! Files that last: also over a loss of power, and with several who write at once.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Makes a directory, and those above it that are missing, and has their names written to disk. On Unix it gets this mode.
pub(crate) fn make_dir(directory: &Path, mode: u32) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let directory = std::path::absolute(directory)?;
    let there = directory.ancestors().find(|above| above.is_dir());
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.create(&directory)?;
    let made = directory.ancestors().skip(1);
    for above in made.take_while(|above| there.is_some_and(|there| above.starts_with(there))) {
        sync_dir(above)?;
    }
    Ok(())
}

/// Puts a file in place of the one of this name, whole or not at all. On Unix it gets this mode.
pub(crate) fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    // Nobody else has a draft of this name.
    let draft = path.with_file_name(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        #[cfg(not(unix))]
        let _ = mode;
        let mut file = options.open(&draft)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    if let Err(error) = write() {
        // It may never have been there.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    sync_dir_of(path)
}

/// Locks a file, unless another process has it for longer than this: it may be stopped.
pub(crate) fn lock(file: &File, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                let what = format!("another process has had the lock for {patience:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Has the name of a file written to disk.
pub(crate) fn sync_dir_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if directory.as_os_str().is_empty() => sync_dir(Path::new(".")),
        Some(directory) => sync_dir(directory),
        None => Ok(()),
    }
}

fn sync_dir(directory: &Path) -> io::Result<()> {
    #[cfg(test)]
    SYNCED.with_borrow_mut(|synced| synced.push(directory.to_owned()));
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
thread_local! {
    /// The directories that this thread had written to disk.
    pub(crate) static SYNCED: std::cell::RefCell<Vec<std::path::PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_lock_that_somebody_keeps_is_an_error_in_the_end() {
        let place = tempfile::tempdir().unwrap();
        let [kept, wanted] = [(); 2].map(|()| File::create(place.path().join("lock")).unwrap());
        lock(&kept, Duration::ZERO).unwrap();
        let error = lock(&wanted, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(kept);
        lock(&wanted, Duration::ZERO).unwrap();
    }

    #[test]
    fn the_names_of_what_is_made_are_on_disk() {
        let place = tempfile::tempdir().unwrap();
        let (above, directory) = (place.path().join("a"), place.path().join("a/b"));
        SYNCED.take();
        make_dir(&directory, 0o700).unwrap();
        assert_eq!(SYNCED.take(), [above, place.path().to_owned()]);
        make_dir(&directory, 0o700).unwrap();
        assert!(SYNCED.take().is_empty(), "nothing was made");
        replace(&directory.join("x"), b"1", 0o600).unwrap();
        assert_eq!(SYNCED.take(), [directory]);
    }

    /// Each reader sees what one of the writers wrote, and nothing is left of their drafts.
    #[test]
    fn writers_at_once_damage_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.session");
        let texts = [vec![b'a'; 1 << 16], vec![b'b'; 10]];
        replace(&path, &texts[0], 0o600).unwrap();
        std::thread::scope(|scope| {
            let writers = texts.each_ref().map(|text| {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| replace(path, text, 0o600).unwrap()))
            });
            while writers.iter().any(|writer| !writer.is_finished()) {
                let read = fs::read(&path).unwrap();
                assert!(texts.contains(&read), "{} bytes", read.len());
            }
        });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        // What cannot be put in its place leaves nothing behind, either.
        let taken = place.path().join("directory");
        fs::create_dir(&taken).unwrap();
        replace(&taken, b"1", 0o600).unwrap_err();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
