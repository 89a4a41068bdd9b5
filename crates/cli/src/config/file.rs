//! What is written in a configuration file, and where.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::agent::usage;
use crate::exit::Failure;
use crate::typo::nearest;

/// The key that chooses a profile, and that which holds them.
const CHOICE: &str = "profile";
const PROFILES: &str = "profiles";

/// A place in a file: the line, and the character in it, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl FilePosition {
    /// That of a byte.
    fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or_default();
        let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_begin..].chars().count() + 1,
        }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Something that is wrong in a file.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) at: FilePosition,
    pub(super) message: String,
    /// What was meant, where something is near; the message names it, too.
    pub(super) meant: Option<String>,
}

impl Problem {
    pub(super) fn new(at: FilePosition, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            meant: None,
        }
    }

    /// Fails with the first problem, if there are any.
    pub(super) fn refuse(path: &Path, problems: &[Self]) -> Result<(), Failure> {
        let path = path.display();
        match problems {
            [] => Ok(()),
            [only] => Err(usage(format!("{path}:{}: {}", only.at, only.message))),
            [first, others @ ..] => Err(usage(format!(
                "{path}:{}: {} (`outrigger config check {path}` lists {} more)",
                first.at,
                first.message,
                others.len()
            ))),
        }
    }
}

/// A configuration file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// What is wrong with it whatever flags there are, in the order of the file.
    pub(super) problems: Vec<Problem>,
    /// What holds whatever the profile.
    base: Vec<Setting>,
    profiles: BTreeMap<String, Vec<Setting>>,
    chosen: Option<String>,
}

/// A value of a flag.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) value: Value,
    /// Where the key stands.
    pub(super) at: FilePosition,
    pub(super) value_at: FilePosition,
    /// The profile that the setting stands in.
    pub(super) profile: Option<String>,
}

/// What a flag is set to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Switch(bool),
    Number(String),
    Text(String),
    Texts(Vec<String>),
}

impl Value {
    /// The value as it would be typed behind the flag.
    pub(super) fn words(&self) -> Vec<String> {
        match self {
            Self::Switch(on) => vec![on.to_string()],
            Self::Number(text) | Self::Text(text) => vec![text.clone()],
            Self::Texts(texts) => texts.clone(),
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Self::Switch(on) => json!(on),
            Self::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            Self::Text(text) => json!(text),
            Self::Texts(texts) => json!(texts),
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Switch(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Texts(_) => "a list of strings",
        }
    }
}

/// The value as TOML has it; strings of JSON are strings of TOML, too.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => write!(f, "{on}"),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", json!(text)),
            Self::Texts(texts) => write!(f, "{}", json!(texts)),
        }
    }
}

impl File {
    /// Reads what is written, and notes what is wrong with it: what is no TOML, and tables and values that no flag can have. Whether
    /// there are such flags is not looked at.
    pub(super) fn read(path: PathBuf, text: &str) -> Self {
        let mut file = Self {
            path,
            problems: Vec::new(),
            base: Vec::new(),
            profiles: BTreeMap::new(),
            chosen: None,
        };
        let place = |at: usize| FilePosition::of(text, at);
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            // What could be read all the same may not be what was meant.
            let problems = errors.iter().map(|error| {
                let at = error.span().map_or(0, |span| span.start);
                Problem::new(place(at), error.message())
            });
            file.problems.extend(problems);
            return file;
        }
        let mut chosen_at = None;
        for (key, value) in table.get_ref() {
            let at = place(value.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                (CHOICE, DeValue::String(name)) => {
                    file.chosen = Some(name.to_string());
                    chosen_at = Some(at);
                }
                (CHOICE, _) => {
                    let message = "`profile` is the name of a profile, a string";
                    file.problems.push(Problem::new(at, message));
                }
                (PROFILES, DeValue::Table(profiles)) => {
                    for (name, profile) in profiles {
                        let DeValue::Table(table) = profile.get_ref() else {
                            let message = format!("`profiles.{}` has to be a table", name.get_ref());
                            file.problems
                                .push(Problem::new(place(profile.span().start), message));
                            continue;
                        };
                        let settings = table.iter().filter_map(|(key, value)| {
                            let profile = Some(name.get_ref().as_ref());
                            setting(&place, key, value, profile, &mut file.problems)
                        });
                        let settings = in_order(settings.collect());
                        file.profiles.insert(name.get_ref().to_string(), settings);
                    }
                }
                (PROFILES, _) => {
                    let message = "`profiles` has to be a table of tables";
                    file.problems.push(Problem::new(at, message));
                }
                _ => file
                    .base
                    .extend(setting(&place, key, value, None, &mut file.problems)),
            }
        }
        file.base = in_order(std::mem::take(&mut file.base));
        if let (Some(at), Some(name)) = (chosen_at, &file.chosen)
            && !file.profiles.contains_key(name)
        {
            let (message, meant) = file.unknown(name);
            file.problems.push(Problem { at, message, meant });
        }
        file.problems.sort_by_key(|problem| problem.at);
        file
    }

    /// The file with this profile chosen instead of its own choice; an empty name is none.
    pub(super) fn with_profile(mut self, name: Option<String>) -> Result<Self, Failure> {
        if let Some(name) = name {
            self.chosen = Some(name).filter(|name| !name.is_empty());
        }
        if let Some(name) = &self.chosen
            && !self.profiles.contains_key(name)
        {
            let (message, _) = self.unknown(name);
            return Err(usage(format!("{}: {message}", self.path.display())));
        }
        Ok(self)
    }

    /// What to say of a profile that is not there, and which one was meant.
    fn unknown(&self, name: &str) -> (String, Option<String>) {
        let near = nearest(name, self.names());
        let message = match near {
            Some(near) => format!("there is no profile {name:?}; did you mean {near:?}?"),
            None => format!("there is no profile {name:?}; there are: {}", self.profiles()),
        };
        (message, near.map(str::to_owned))
    }

    /// The profile that is used.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// The names of the profiles.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The same, to be shown.
    pub(super) fn profiles(&self) -> String {
        match self.names().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => "none".to_owned(),
            names => names,
        }
    }

    /// The settings of the file and of its profiles.
    pub(super) fn all(&self) -> impl Iterator<Item = &Setting> {
        self.base.iter().chain(self.profiles.values().flatten())
    }

    /// The settings of each part of the file, which have to agree with each other, with the name of its profile.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Option<&str>, &[Setting])> {
        let profiles = self.profiles.iter();
        let profiles = profiles.map(|(name, settings)| (Some(name.as_str()), settings.as_slice()));
        std::iter::once((None, self.base.as_slice())).chain(profiles)
    }

    /// The settings of the chosen profile, and behind them those that hold whatever the profile.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Setting> {
        let chosen = self.chosen.as_ref().and_then(|name| self.profiles.get(name));
        chosen.into_iter().flatten().chain(&self.base)
    }

    /// The settings that hold.
    pub(super) fn holding(&self) -> Vec<&Setting> {
        let mut holding: Vec<&Setting> = Vec::new();
        for setting in self.layers() {
            if setting.key == super::GROWS || holding.iter().all(|other| other.key != setting.key) {
                holding.push(setting);
            }
        }
        holding
    }
}

/// A key with its value, unless no flag can have that.
fn setting(
    place: &dyn Fn(usize) -> FilePosition,
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    profile: Option<&str>,
    problems: &mut Vec<Problem>,
) -> Option<Setting> {
    let value_at = place(value.span().start);
    match value_of(value.get_ref()) {
        Ok(value) => Some(Setting {
            key: key.get_ref().to_string(),
            value,
            at: place(key.span().start),
            value_at,
            profile: profile.map(str::to_owned),
        }),
        Err(what) => {
            let message = format!("`{}` cannot be {what}", key.get_ref());
            problems.push(Problem::new(value_at, message));
            None
        }
    }
}

fn in_order(mut settings: Vec<Setting>) -> Vec<Setting> {
    settings.sort_by_key(|setting| setting.at);
    settings
}

/// What a value of TOML is for a flag.
///
/// # Errors
/// With what it is, where no flag can have it.
fn value_of(value: &DeValue<'_>) -> Result<Value, &'static str> {
    match value {
        DeValue::Boolean(on) => Ok(Value::Switch(*on)),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Ok(Value::Number(number.to_string())),
            Err(_) => Err("a number of that size"),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Number(number.to_string())),
            _ => Err("a number of that size"),
        },
        DeValue::String(text) => Ok(Value::Text(text.to_string())),
        DeValue::Array(items) => {
            let text = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                _ => Err("a list of anything but strings"),
            };
            items.iter().map(text).collect::<Result<_, _>>().map(Value::Texts)
        }
        DeValue::Datetime(_) => Err("a date"),
        DeValue::Table(_) => Err("a table"),
    }
}
