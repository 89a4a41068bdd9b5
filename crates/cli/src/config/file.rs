//! What is written in a configuration file, with the lines.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::agent::usage;
use crate::command_line::nearest;
use crate::exit::Failure;

/// The key that chooses a profile, and that which holds them.
const CHOICE: &str = "profile";
const PROFILES: &str = "profiles";

/// A configuration file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
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
    pub(super) line: usize,
    /// The profile that it stands in.
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
    /// As it would be typed behind the flag.
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

/// As TOML has it; strings of JSON are strings of TOML, too.
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
    /// Reads what is written. Whether there are such flags is not looked at.
    ///
    /// # Errors
    /// When it is no TOML, or has a table or a value that no flag can have.
    pub(super) fn read(path: PathBuf, text: &str) -> Result<Self, Failure> {
        let line_at = |at: usize| {
            text.get(..at)
                .map_or(1, |before| before.matches('\n').count() + 1)
        };
        let wrong = |line: usize, message: String| usage(format!("{}:{line}: {message}", path.display()));
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(span.start));
            wrong(line, error.message().to_owned())
        })?;
        let mut file = Self {
            path: path.clone(),
            base: Vec::new(),
            profiles: BTreeMap::new(),
            chosen: None,
        };
        let settings = |table: &DeTable<'_>, profile: Option<&str>| {
            let entries = table.iter().filter(|(key, _)| {
                profile.is_some() || ![CHOICE, PROFILES].contains(&key.get_ref().as_ref())
            });
            let setting = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                let key_text: &std::borrow::Cow<'_, str> = key.get_ref();
                let line = line_at(key.span().start);
                Ok::<_, Failure>(Setting {
                    value: value_of(value.get_ref())
                        .map_err(|what| wrong(line, format!("`{key_text}` cannot be {what}")))?,
                    key: key_text.to_string(),
                    line,
                    profile: profile.map(str::to_owned),
                })
            };
            let mut settings: Vec<Setting> = entries.map(setting).collect::<Result<_, _>>()?;
            settings.sort_by_key(|setting| setting.line);
            Ok::<_, Failure>(settings)
        };
        for (key, value) in table.get_ref() {
            let line = line_at(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                (CHOICE, DeValue::String(name)) => file.chosen = Some(name.to_string()),
                (CHOICE, _) => {
                    return Err(wrong(
                        line,
                        "`profile` is the name of a profile, a string".to_owned(),
                    ));
                }
                (PROFILES, DeValue::Table(profiles)) => {
                    for (name, profile) in profiles {
                        let line = line_at(name.span().start);
                        let DeValue::Table(profile) = profile.get_ref() else {
                            return Err(wrong(
                                line,
                                format!("`profiles.{}` has to be a table", name.get_ref()),
                            ));
                        };
                        let name = name.get_ref().to_string();
                        let settings = settings(profile, Some(&name))?;
                        file.profiles.insert(name, settings);
                    }
                }
                (PROFILES, _) => {
                    return Err(wrong(line, "`profiles` has to be a table of tables".to_owned()));
                }
                _ => {}
            }
        }
        file.base = settings(table.get_ref(), None)?;
        if let Some(name) = &file.chosen
            && !file.profiles.contains_key(name)
        {
            let line = table.get_ref().iter().find(|(key, _)| key.get_ref() == CHOICE);
            let line = line.map_or(1, |(key, _)| line_at(key.span().start));
            return Err(wrong(line, file.unknown(name)));
        }
        Ok(file)
    }

    /// The file with this profile chosen instead of its own choice; an empty name is none.
    pub(super) fn with_profile(mut self, name: Option<String>) -> Result<Self, Failure> {
        if let Some(name) = name {
            self.chosen = Some(name).filter(|name| !name.is_empty());
        }
        if let Some(name) = &self.chosen
            && !self.profiles.contains_key(name)
        {
            return Err(usage(format!("{}: {}", self.path.display(), self.unknown(name))));
        }
        Ok(self)
    }

    fn unknown(&self, name: &str) -> String {
        match nearest(name, self.profiles.keys().map(String::as_str)) {
            Some(near) => format!("there is no profile {name:?}; did you mean {near:?}?"),
            None => format!("there is no profile {name:?}; there are: {}", self.profiles()),
        }
    }

    /// The names of the profiles.
    pub(super) fn profiles(&self) -> String {
        match self.profiles.keys().cloned().collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => "none".to_owned(),
            names => names,
        }
    }

    /// All settings.
    pub(super) fn all(&self) -> impl Iterator<Item = &Setting> {
        self.base.iter().chain(self.profiles.values().flatten())
    }

    /// The settings of each part of the file, which have to agree with each other.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[Setting]> {
        let profiles = self.profiles.values().map(Vec::as_slice);
        std::iter::once(self.base.as_slice()).chain(profiles)
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
