//! Which models a managed list of denied models blocks.

use serde::Serialize;

/// What [`match_denied_models`] says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeniedModelsMatch {
    /// For each model that was asked about, in order: whether an entry blocks it.
    pub denied: Vec<bool>,
    /// What somebody who wrote an entry may not expect of it.
    pub warnings: Vec<String>,
}

/// Says which of `models` the entries of a `deniedModels` list block, as `matchDeniedModels` of the TypeScript SDK does;
/// `denied_models` is [`ResolvedSettings::effective`](super::ResolvedSettings::effective)`.denied_models`.
///
/// A family (`opus`, `sonnet`, `haiku`, `fable`) blocks all models that have it as a word of their names. A versioned id
/// (`claude-opus-4-1`, `opus-4`) blocks that version in every spelling, snapshot and context size, and a major version its minor
/// ones. Anything else blocks the model of exactly that name.
///
/// **This is not what the CLI enforces, so grant nothing by it**: it compares names. `true` means that the CLI refuses the model
/// too; `false` promises nothing, because the CLI also looks at what an alias or a name of one's own stands for.
pub fn match_denied_models<M: AsRef<str>, D: AsRef<str>>(
    models: &[M],
    denied_models: &[D],
) -> DeniedModelsMatch {
    let mut warnings = Vec::new();
    let mut note = |warning: String| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    let entries: Vec<ModelEntry> = denied_models
        .iter()
        .filter_map(|entry| ModelEntry::read(entry.as_ref(), &mut note))
        .collect();
    let denied = models
        .iter()
        .map(|model| {
            let name = plain(model.as_ref());
            !name.is_empty() && entries.iter().any(|entry| entry.blocks(&name))
        })
        .collect();
    DeniedModelsMatch { denied, warnings }
}

const FAMILIES: &[&str] = &["opus", "sonnet", "haiku", "fable"];

/// Names whose model changes from release to release.
const FLOATING: &[&str] = &["best", "default", "opusplan"];

/// Endings of an id that are no part of its version.
const IGNORED_WORDS: &[&str] = &["latest", "fast"];

enum ModelEntry {
    Family(String),
    /// An id up to its version, as in `claude-opus-4-1`.
    Version(String),
    Exact(String),
}

impl ModelEntry {
    fn read(written: &str, note: &mut impl FnMut(String)) -> Option<Self> {
        let name = plain(written);
        if name.is_empty() {
            note("an empty entry is ignored".to_owned());
            return None;
        }
        if FLOATING.contains(&name.as_str()) {
            note(format!(
                "{written:?} is ignored: which model it names changes; name the model"
            ));
            return None;
        }
        let tagged = written.trim().len() != name.len();
        let any_size = "; what stands in brackets is ignored, so it blocks every context size";
        if FAMILIES.contains(&name.as_str()) {
            if tagged {
                note(format!("{written:?} blocks all models of the family{any_size}"));
            }
            return Some(Self::Family(name));
        }
        let mut id = tail(&name).to_owned();
        if FAMILIES
            .iter()
            .any(|family| id.strip_prefix(family).is_some_and(|rest| rest.starts_with('-')))
        {
            id.insert_str(0, "claude-");
        }
        let Some(version) = version(&id) else {
            note(format!(
                "{written:?} blocks only the model of exactly this name, and not its other spellings"
            ));
            return Some(Self::Exact(name));
        };
        let rest = &id[version.len()..];
        if rest.is_empty() || is_ignored(rest) {
            if !rest.is_empty() {
                note(format!(
                    "{written:?} blocks {version} in every spelling and snapshot; {rest:?} is ignored"
                ));
            }
            if tagged {
                note(format!("{written:?} blocks {version}{any_size}"));
            }
            return Some(Self::Version(version.to_owned()));
        }
        if rest.starts_with('-') {
            // A model of one's own that was made of this version.
            return Some(Self::Version(id));
        }
        note(format!(
            "{written:?} blocks only the model of exactly this name, and not its other spellings"
        ));
        Some(Self::Exact(name))
    }

    fn blocks(&self, model: &str) -> bool {
        let begins = |version: &str| {
            tail(model)
                .strip_prefix(version)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@']))
        };
        match self {
            Self::Exact(name) => model == name,
            Self::Family(family) => model
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| word == family),
            Self::Version(version) => {
                // `claude-opus-4` was the name of 4.0 before there were others.
                let bare = version.strip_suffix("-0").and_then(|bare| {
                    let rest = tail(model).strip_prefix(bare)?;
                    Some(rest.is_empty() || is_ignored(rest))
                });
                begins(version) || bare.unwrap_or(false)
            }
        }
    }
}

/// Lower case, without space around and without a tag such as `[1m]`.
fn plain(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    match name.strip_suffix(']').and_then(|open| open.rsplit_once('[')) {
        Some((name, _)) => name.trim_end().to_owned(),
        None => name,
    }
}

/// Without what providers write before an id: `us.anthropic.`, `anthropic/`, the path of a profile.
fn tail(name: &str) -> &str {
    let name = name.rsplit_once('/').map_or(name, |(_, tail)| tail);
    name.rsplit_once("anthropic.").map_or(name, |(_, tail)| tail)
}

/// The beginning of an id up to its version: `claude-opus-4-1`, `claude-3-5-sonnet`.
fn version(id: &str) -> Option<&str> {
    let words = id.strip_prefix("claude-")?;
    // Of `4:thinking` or `4@20250514` only the number is a part of the version.
    let mut ends = Vec::new();
    let mut at = id.len() - words.len();
    for word in words.split('-') {
        let length = word.find([':', '@', '.']).unwrap_or(word.len());
        ends.push((&word[..length], at + length, length == word.len()));
        at += word.len() + 1;
    }
    let is_number =
        |word: &str| (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let end = match &ends[..] {
        // The point of `4.1` makes it another name.
        [(name, ..), (major, end, whole), ..]
            if is_name(name) && is_number(major) && !whole && id[*end..].starts_with('.') =>
        {
            return None;
        }
        [(name, _, true), (major, _, true), (minor, end, _), ..]
            if is_name(name) && is_number(major) && is_number(minor) =>
        {
            *end
        }
        [(name, _, true), (major, end, _), ..] if is_name(name) && is_number(major) => *end,
        [(major, _, true), (minor, _, true), (name, end, _), ..]
            if is_number(major) && is_number(minor) && is_name(name) =>
        {
            *end
        }
        [(major, _, true), (name, end, _), ..] if is_number(major) && is_name(name) => *end,
        _ => return None,
    };
    Some(&id[..end])
}

/// Whether an ending is a date, a revision or the like.
fn is_ignored(rest: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    rest.split_inclusive(['-', '@']).skip(1).all(|word| {
        let word = word.trim_end_matches(['-', '@']);
        let revision = word
            .strip_prefix('v')
            .is_some_and(|number| digits(number.split_once(':').map_or(number, |(major, _)| major)));
        revision || digits(word) && word.len() == 8 || IGNORED_WORDS.contains(&word)
    }) && rest.starts_with(['-', '@'])
}
