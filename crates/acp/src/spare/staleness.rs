//! How to tell that a spare has read what is no longer so.
//!
//! What belongs to a directory is read when a spare is claimed, and the CLI keeps an eye on its own `.claude.json`. The user's settings
//! and what an administrator manages are read at the start alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outrigger::Options;

/// What a session reads at its start, below the CLI's config directory.
const OWN: &[&str] = &[
    "settings.json",
    ".credentials.json",
    "plugins/installed_plugins.json",
    "plugins/known_marketplaces.json",
];

/// The same, where administrators put it.
const MANAGED: &[&str] = &["managed-settings.json", "managed-settings.d"];

/// When a file was changed last, and its size; nothing if it is not there.
type Mark = Option<(Option<SystemTime>, u64)>;

/// The state of the files that a spare has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks(Vec<(PathBuf, Mark)>);

impl Marks {
    /// Looks at the files that a CLI with these options reads.
    pub(super) fn of(options: &Options) -> Self {
        // Without a config directory the start fails, and says why.
        let config = options
            .sessions()
            .map(|sessions| sessions.config_dir().to_owned());
        let own = config
            .iter()
            .flat_map(|config| OWN.iter().map(|file| config.join(file)));
        let managed = MANAGED.iter().map(|file| managed_dir().join(file));
        Self::at(own.chain(managed))
    }

    fn at(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let files = files.into_iter();
        Self(files.map(|file| (file.clone(), mark(&file))).collect())
    }

    /// Whether one of them has changed since.
    pub(super) async fn have_changed(self) -> bool {
        let look = move || self.0.iter().any(|(file, before)| mark(file) != *before);
        tokio::task::spawn_blocking(look).await.unwrap_or(true)
    }
}

fn mark(file: &Path) -> Mark {
    let found = fs::metadata(file).ok()?;
    Some((found.modified().ok(), found.len()))
}

/// Where the CLI looks for what an administrator manages.
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
}
