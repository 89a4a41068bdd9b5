//! Redacts recordings: secrets, and names of persons and machines.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex_lite::Regex;

use super::places::{self, Needle, Places};
use super::scan;
use super::strings;

/// The placeholder of a secret of unknown kind.
pub(super) const SECRET: &str = "{{secret}}";

/// Rules that a program adds to the built-in ones.
///
/// The built-in rules redact keys and tokens of known forms, values behind `Authorization:`, `token=` and the like, values of
/// secret-looking names in JSON, values of secret-looking variables of the environment, private keys, passwords in addresses, email
/// addresses, and the account's data of a sign-in. [`Places`] replaces directories and names.
///
/// ```
/// use outrigger_sim::cassette::RedactionRules;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = RedactionRules::new()
///     .literal("Project Nightingale")
///     .pattern("cust_[0-9]+")?
///     .pointer("/response/response/commands")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RedactionRules {
    literals: Vec<(String, String)>,
    patterns: Vec<Regex>,
    pointers: Vec<Vec<String>>,
}

/// A rule that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedactionError {
    /// The regular expression cannot be read.
    #[error("the rule {rule:?} is no regular expression: {why}")]
    Pattern {
        /// The rule.
        rule: String,
        /// Why.
        why: String,
    },
    /// The rule is no JSON pointer.
    #[error("the rule {0:?} is no JSON pointer: it has to begin with `/`, and names a place within frames")]
    Pointer(String),
}

impl RedactionRules {
    /// No rules beyond those that always hold.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rules of both.
    pub fn and(mut self, other: Self) -> Self {
        self.literals.extend(other.literals);
        self.patterns.extend(other.patterns);
        self.pointers.extend(other.pointers);
        self
    }

    /// Takes out the values of those of these variables whose names look like those of secrets.
    pub fn secrets_of<'e>(mut self, env: impl IntoIterator<Item = (&'e str, &'e str)>) -> Self {
        for (name, value) in env {
            if scan::is_secret_name(name) && value.len() >= 4 && !scan::is_switch(value) {
                self = self.secret(name, value);
            }
        }
        self
    }

    /// Takes out what matches this regular expression (the syntax of the crate `regex-lite`).
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn pattern(mut self, pattern: &str) -> Result<Self, RedactionError> {
        let pattern = Regex::new(pattern).map_err(|error| RedactionError::Pattern {
            rule: pattern.to_owned(),
            why: error.to_string(),
        })?;
        self.patterns.push(pattern);
        Ok(self)
    }

    /// Takes out every string at this place of a frame and below, by its JSON pointer; a part `*` stands for any key or index.
    ///
    /// # Errors
    /// When it does not begin with `/`.
    pub fn pointer(mut self, pointer: &str) -> Result<Self, RedactionError> {
        let parts = pointer.strip_prefix('/').filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| RedactionError::Pointer(pointer.to_owned()))?;
        let parts = parts
            .split('/')
            .map(|part| part.replace("~1", "/").replace("~0", "~"));
        self.pointers.push(parts.collect());
        Ok(self)
    }
}

setters! { RedactionRules:
    /// Takes this text out wherever it stands, in any letter case that is written here, and its base64.
    literal(text: impl Into<String>) => literals.push((text.into(), SECRET.to_owned()));
    /// Takes out the value of a variable of this name, as `{{secret:NAME}}`.
    secret(name: &str, value: impl Into<String>) => literals.push((value.into(), format!("{{{{secret:{name}}}}}")));
}

/// A range of a text, and its replacement.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) with: Cow<'static, str>,
    /// Whether the text would show a secret; a place or a name is only different elsewhere.
    pub(super) is_secret: bool,
}

impl Hit {
    /// What was found there.
    pub(super) fn new(from: usize, found: &str, with: impl Into<Cow<'static, str>>, is_secret: bool) -> Self {
        Self {
            from,
            to: from + found.len(),
            with: with.into(),
            is_secret,
        }
    }
}

/// Applies all rules.
#[derive(Clone)]
pub struct Redactor {
    rules: RedactionRules,
    /// What else known secrets look like: base64 at each of its three alignments, percent-encoded.
    disguises: Vec<(String, String)>,
    needles: Vec<Needle>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It has the secrets.
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// A redactor for a session at these places, with these rules beside those that always hold.
    pub fn new(places: &Places, mut rules: RedactionRules) -> Self {
        rules.literals.retain(|(text, _)| !text.is_empty());
        // One may be a part of another.
        rules
            .literals
            .sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut disguises = Vec::new();
        for (text, with) in &rules.literals {
            disguises.extend(disguised(text).into_iter().map(|text| (text, with.clone())));
        }
        Self {
            rules,
            disguises,
            needles: places.needles(),
        }
    }

    /// A line of a session, a frame or not, redacted; nothing if nothing is to be changed.
    pub fn line(&self, line: &str) -> Option<String> {
        let is_json = line.trim_start().starts_with(['{', '[', '"']);
        if is_json && outrigger_protocol::RawJson::from_text(line).is_ok() {
            return strings::rewrite(line, |place, text| self.string(place, text));
        }
        self.text(line)
    }

    /// A text, redacted; nothing if nothing is to be changed.
    pub fn text(&self, text: &str) -> Option<String> {
        apply(text, self.hits(text), &[]).map(|parts| parts.concat())
    }

    /// The parts of a text that came in pieces, redacted as one. `context` is what came before them and is written already.
    pub(super) fn parts(&self, context: &str, parts: &[&str]) -> Option<Vec<String>> {
        let mut text = context.to_owned();
        let mut cuts = Vec::new();
        for part in parts {
            cuts.push(text.len());
            text.push_str(part);
        }
        let mut hits = self.hits(&text);
        // Written text is final: only the rest of a secret can be hidden.
        hits.retain(|hit| hit.to > context.len());
        for hit in &mut hits {
            hit.from = hit.from.max(context.len());
        }
        let mut applied = apply(&text, hits, &cuts)?;
        applied.remove(0);
        Some(applied)
    }

    pub(super) fn string(&self, place: &strings::StringPlace<'_>, text: &str) -> Option<String> {
        if !place.is_key {
            if self.rules.pointers.iter().any(|pointer| place.is_in(pointer)) {
                return (text != SECRET).then(|| SECRET.to_owned());
            }
            if let Some(with) = scan::by_place(place, text) {
                // A recording of a replay is not redacted twice.
                return (!text.starts_with("{{")).then(|| with.to_owned());
            }
        }
        self.text(text)
    }

    /// The kinds of secrets that are in a text although it should have been redacted.
    pub fn leaks(&self, text: &str) -> Vec<String> {
        let hits = merged(self.hits(text)).into_iter();
        hits.filter(|hit| hit.is_secret && text[hit.from..hit.to] != *hit.with)
            .map(|hit| format!("{} of {} bytes", hit.with, hit.to - hit.from))
            .collect()
    }

    /// The same for each string of a line, be it a frame or not.
    pub(super) fn leaks_of_line(&self, line: &str) -> Vec<String> {
        if outrigger_protocol::RawJson::from_text(line).is_err() {
            return self.leaks(line);
        }
        let mut leaks = Vec::new();
        strings::rewrite(line, |place, text| {
            if scan::by_place(place, text).is_some() && !text.starts_with("{{") {
                leaks.push(format!("the value of {}", place.key().unwrap_or_default()));
            } else {
                leaks.extend(self.leaks(text));
            }
            None
        });
        leaks
    }

    fn hits(&self, text: &str) -> Vec<Hit> {
        let mut hits = self.plain_hits(text);
        hits.extend(look_alikes(text));
        // Strings within strings, as tools show JSON, are unescaped. Three levels are enough
        // for what a model and its tools make of each other's output.
        let mut view = scan::unescaped(text, None);
        for _ in 0..3 {
            let Some((decoded, map)) = view else { break };
            hits.extend(
                self.plain_hits(&decoded)
                    .into_iter()
                    .filter(|hit| hit.is_secret)
                    .map(|hit| Hit {
                        from: map[hit.from],
                        to: map[hit.to],
                        ..hit
                    }),
            );
            view = scan::unescaped(&decoded, Some(&map));
        }
        hits
    }

    fn plain_hits(&self, text: &str) -> Vec<Hit> {
        let mut hits = scan::secrets(text);
        for (secret, with) in self.rules.literals.iter().chain(&self.disguises) {
            let found = text.match_indices(secret.as_str());
            hits.extend(found.map(|(from, found)| Hit::new(from, found, with.clone(), true)));
        }
        for pattern in &self.rules.patterns {
            let found = pattern.find_iter(text);
            hits.extend(found.map(|found| Hit::new(found.start(), found.as_str(), SECRET, true)));
        }
        for needle in &self.needles {
            let with = format!("{{{{{}}}}}", needle.name);
            let found = text.match_indices(needle.text.as_str());
            let found = found.map(|(from, found)| Hit::new(from, found, with.clone(), false));
            hits.extend(found.filter(|hit| is_apart(text, hit, needle)));
        }
        hits
    }
}

/// Whether a place or a name is one there, and not a part of another.
fn is_apart(text: &str, hit: &Hit, needle: &Needle) -> bool {
    let goes_on = |char: Option<char>| char.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut rest = text[hit.to..].chars();
    let behind = rest.next();
    // A sentence may end behind a place; `/tmp.old` is another one.
    let has_extension = needle.is_path() && !needle.anywhere && behind == Some('.') && goes_on(rest.next());
    let ends = !goes_on(behind) && !has_extension && (behind != Some('-') || needle.name == "cwd_slug");
    let begins = || {
        if needle.is_path() {
            return !places::is_amid_path(text, hit.from);
        }
        let mut before = text[..hit.from].chars().rev();
        // `\\nname` begins a line, as that looks within a string.
        !goes_on(before.next()) || before.next() == Some('\\')
    };
    ends && (needle.anywhere || begins())
}

/// Other encodings of a secret, as far as its beginning and end are known.
fn disguised(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    if secret.len() >= 8 {
        for shift in 0..3 {
            let mut bytes = vec![0; shift];
            bytes.extend_from_slice(secret.as_bytes());
            for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                // Characters that share bits with the text around the secret are unknown.
                let from = [0, 2, 3][shift];
                let to = bytes.len() * 8 / 6;
                forms.extend(text.get(from..to).map(str::to_owned));
            }
        }
    }
    let mut percent = String::new();
    for byte in secret.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                percent.push(char::from(byte))
            }
            _ => percent.push_str(&format!("%{byte:02X}")),
        }
    }
    if percent != secret {
        forms.push(percent);
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// A text that looks like a placeholder gets a mark, so that it is restored.
fn look_alikes(text: &str) -> Vec<Hit> {
    let starts = text.match_indices("{{");
    let hits = starts.filter_map(|(from, _)| {
        let name = text[from + 2..].split_once("}}")?.0;
        let with = format!("{{{{{}{name}}}}}", places::LITERAL);
        places::is_placeholder(name).then(|| Hit::new(from, &text[from..from + 4 + name.len()], with, false))
    });
    hits.collect()
}

/// Replaces the hits, and cuts the text at `cuts`. `None` if nothing changes.
///
/// Overlapping hits are replaced as one, named after the first or longest; a place never hides a secret.
/// The replacement of a hit is in the part in which the hit begins.
fn apply(text: &str, mut hits: Vec<Hit>, cuts: &[usize]) -> Option<Vec<String>> {
    hits.retain(|hit| hit.from < hit.to && text[hit.from..hit.to] != *hit.with);
    if hits.is_empty() {
        return None;
    }
    let mut parts = vec![String::with_capacity(text.len())];
    let mut cuts = cuts.iter().copied().peekable();
    let mut at = 0;
    let mut copy = |parts: &mut Vec<String>, from: usize, to: usize, shown: bool| {
        let mut from = from;
        while let Some(cut) = cuts.next_if(|cut| *cut <= to) {
            if shown && let Some(part) = parts.last_mut() {
                part.push_str(&text[from..cut]);
            }
            from = cut;
            parts.push(String::new());
        }
        if shown && let Some(part) = parts.last_mut() {
            part.push_str(&text[from..to]);
        }
    };
    for hit in merged(hits) {
        copy(&mut parts, at, hit.from, true);
        if let Some(part) = parts.last_mut() {
            part.push_str(&hit.with);
        }
        copy(&mut parts, hit.from, hit.to, false);
        at = hit.to;
    }
    copy(&mut parts, at, text.len(), true);
    Some(parts)
}

/// Hits that do not overlap, in order.
fn merged(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.from, std::cmp::Reverse((hit.is_secret, hit.to))));
    let mut merged: Vec<Hit> = Vec::new();
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.from < last.to => {
                // A secret that is known by its name is called so.
                if hit.is_secret && (!last.is_secret || last.with == SECRET) {
                    last.with = hit.with;
                }
                if hit.is_secret || last.is_secret {
                    // Of a path that a secret reaches into, nothing remains that could be recognized.
                    last.is_secret = true;
                    last.to = last.to.max(hit.to);
                }
            }
            _ => merged.push(hit),
        }
    }
    merged
}
