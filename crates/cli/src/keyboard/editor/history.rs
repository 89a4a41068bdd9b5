//! What was typed before: in a file of the user's, which nobody else reads.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use reedline::{FileBackedHistory, History};

/// How many prompts are kept.
const KEPT: usize = 1000;

/// The history, which is kept with this program's state: below `XDG_STATE_HOME`, or else `.local/state` in the home directory. Where
/// it can't be kept, it lasts as long as the conversation.
pub(super) fn open_history() -> Box<dyn History> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state = set("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".local/state")));
    let kept = state.and_then(|state| {
        let file = state.join("outrigger").join("history");
        prepare(&file).ok()?;
        FileBackedHistory::with_file(KEPT, file).ok()
    });
    Box::new(kept.unwrap_or_default())
}

/// Makes the file, for its owner alone.
fn prepare(file: &Path) -> io::Result<File> {
    if let Some(directory) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let opened = File::options()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fs::set_permissions(file, Permissions::from_mode(0o600))?;
    Ok(opened)
}
