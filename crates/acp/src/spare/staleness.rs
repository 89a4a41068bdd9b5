//! Whether a spare is stale: the files that it read have changed.
//!
//! A spare reads the files of a directory when it is claimed, and the CLI watches its own `.claude.json`. It reads the user's settings
//! and the managed settings only at its start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outrigger::Options;

/// The files that a session reads at its start, below the CLI's config directory.
const OWN: &[&str] = &[
    "settings.json",
    ".credentials.json",
    "plugins/installed_plugins.json",
    "plugins/known_marketplaces.json",
];

/// The same below the directory of managed settings.
const MANAGED: &[&str] = &["managed-settings.json", "managed-settings.d"];

/// The time of the last change and the size of a file; `None` if it does not exist.
type Mark = Option<(Option<SystemTime>, u64)>;

/// The marks of the files that a spare has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks(Vec<(PathBuf, Mark)>);

impl Marks {
    /// The marks of the files that a CLI with these options reads.
    pub(super) fn of(options: &Options) -> Self {
        // Without a config directory the start fails with the reason.
        let config = options
            .sessions()
            .map(|sessions| sessions.config_dir().to_owned());
        let own = config
            .iter()
            .flat_map(|config| OWN.iter().map(|file| config.join(file)));
        let managed = MANAGED.iter().map(|file| managed_dir().join(file));
        Self::at(own.chain(managed))
    }

    /// A directory counts with its files: it does not change itself when one of them is written to.
    fn at(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut marks = Vec::new();
        for file in files {
            marks.push((file.clone(), mark(&file)));
            for inside in fs::read_dir(&file).into_iter().flatten().flatten() {
                marks.push((inside.path(), mark(&inside.path())));
            }
        }
        Self(marks)
    }

    pub(super) async fn have_changed(self) -> bool {
        let look = move || self.0.iter().any(|(file, before)| mark(file) != *before);
        tokio::task::spawn_blocking(look).await.unwrap_or(true)
    }
}

fn mark(file: &Path) -> Mark {
    let found = fs::metadata(file).ok()?;
    Some((found.modified().ok(), found.len()))
}

/// The directory of managed settings.
fn managed_dir() -> &'static Path {
    Path::new(if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else if cfg!(windows) {
        r"C:\Program Files\ClaudeCode"
    } else {
        "/etc/claude-code"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_goes_or_changes_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        let marks = || Marks::at([file.clone()]);
        let before = marks();
        assert!(!before.clone().have_changed().await);
        fs::write(&file, "{}").unwrap();
        assert!(before.have_changed().await);
        let before = marks();
        assert!(!before.clone().have_changed().await);
        fs::write(&file, r#"{"model":"opus"}"#).unwrap();
        assert!(before.have_changed().await);
        let before = marks();
        fs::remove_file(&file).unwrap();
        assert!(before.have_changed().await);
    }

    #[tokio::test]
    async fn a_file_of_a_directory_is_seen_to_change() {
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (home.path().join("10-one.json"), home.path().join("20-two.json"));
        fs::write(&one, "{}").unwrap();
        let marks = || Marks::at([home.path().to_owned()]);
        let before = marks();
        assert!(!before.clone().have_changed().await);
        fs::write(&one, r#"{"model":"opus"}"#).unwrap();
        assert!(before.have_changed().await);
        let before = marks();
        fs::write(&two, "{}").unwrap();
        assert!(before.have_changed().await);
        let before = marks();
        fs::remove_file(&one).unwrap();
        assert!(before.have_changed().await);
    }
}
