//! One source's text, down to what the CLI takes of it.

use std::io::ErrorKind;
use std::path::Path;

use outrigger_protocol::RawJson;
use outrigger_protocol::settings::Settings;
use outrigger_protocol::shared::JsonObject;
use serde_json::Value;

use super::accepted::{self, Author};
use super::{SettingsProblem, value};
use crate::regular_file;

/// Settings while they are put together.
pub(super) type SettingsObject = serde_json::Map<String, Value>;

/// More than this is no settings file.
const MOST_BYTES: u64 = 16 << 20;

/// A file was there and could not be taken.
pub(super) struct Refused;

/// Reads a file, and takes of it what the CLI would. `None` if there is none, or nothing in it.
pub(super) fn read(
    path: &Path,
    author: Author,
    problems: &mut Vec<SettingsProblem>,
) -> Result<Option<SettingsObject>, Refused> {
    let Some(object) = parse(path, problems)? else {
        return Ok(None);
    };
    let place = path.display().to_string();
    match accepted::fit(object, author) {
        Ok((taken, notes)) => {
            problems.extend(notes.into_iter().map(|problem| SettingsProblem {
                place: place.clone(),
                problem,
            }));
            Ok(Some(taken))
        }
        Err(problem) => {
            problems.push(SettingsProblem { place, problem });
            Err(Refused)
        }
    }
}

/// Reads a file as it is.
pub(super) fn parse(
    path: &Path,
    problems: &mut Vec<SettingsProblem>,
) -> Result<Option<SettingsObject>, Refused> {
    let place = path.display().to_string();
    let mut refuse = |problem: String| {
        problems.push(SettingsProblem {
            place: place.clone(),
            problem,
        });
        Err(Refused)
    };
    // The CLI takes no devices, FIFOs and sockets, either.
    let text = match regular_file::read(path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return refuse(format!(
                "is longer than {} MiB, so nothing of it counts",
                MOST_BYTES >> 20
            ));
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return refuse(format!("cannot be read: {error}")),
    };
    let text = String::from_utf8_lossy(&text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let parsed = RawJson::from_text(text).and_then(|raw| value(&raw));
    match parsed {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => refuse("is no JSON object, so nothing of it counts".to_owned()),
        Err(error) => refuse(format!("is no JSON, so nothing of it counts: {error}")),
    }
}

/// Settings that a program gives. What does not fit is left out, and told.
pub(super) fn read_given_settings(
    settings: &JsonObject,
    place: &str,
    author: Author,
    problems: &mut Vec<SettingsProblem>,
) -> SettingsObject {
    let mut tell = |problem| {
        problems.push(SettingsProblem {
            place: place.to_owned(),
            problem,
        })
    };
    let Ok(Value::Object(object)) = value(settings) else {
        tell("they are no JSON that can be read, so nothing of them counts".to_owned());
        return SettingsObject::new();
    };
    match accepted::fit(object, author) {
        Ok((taken, notes)) => {
            notes.into_iter().for_each(tell);
            taken
        }
        Err(problem) => {
            tell(problem);
            SettingsObject::new()
        }
    }
}

/// The typed form; what has no field is in `extra`.
pub(super) fn typed(object: &SettingsObject) -> Settings {
    RawJson::encode(object)
        .and_then(|raw| raw.read())
        .unwrap_or_default()
}
