//! Finds secrets in text by their form: API keys, tokens, cookies, passwords in addresses, private keys.
//!
//! The evidence in errors and the recordings of tests are redacted by the same rules. They differ in [`Care`]: what evidence hides in
//! vain costs nothing, while a recording has to replay, so that it hides only what is sure to be a secret.

use std::ops::Range;

/// Beginnings of keys and tokens whose form is known. What follows them, up to the end of the word, goes with them.
const KEYS: &[&str] = &[
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "dop_v1_",
    "SG.",
];

/// Those of them that have letters and digits alone.
const PLAIN_KEYS: &[&str] = &[
    "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "AKIA", "ASIA", "npm_", "hf_",
];

/// Headers whose value is a secret.
const HEADERS: &[&str] = &["authorization", "cookie", "x-api-key"];

/// No value that is longer is looked through for what it may be: the values of a text may be parts of each other.
const LONGEST: usize = 1 << 10;

/// What a value of `Authorization` begins with.
const SCHEMES: &[&str] = &["basic ", "bearer ", "digest ", "negotiate ", "token "];

/// Words after which a secret stands behind `=`, `:` or a closing quote and `:`.
const LABELS: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "secret_key",
    "private_key",
    "token",
    "secret",
    "password",
    "passwd",
];

/// The beginning of an API key in base64, at its three alignments.
const ENCODED: &[&str] = &["c2stYW50L", "NrLWFudC", "zay1hbnQt"];

/// How sure it has to be that a text is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// For evidence that people read: what may be a secret is one.
    Evidence,
    /// For recordings that are compared and replayed: short values, code, numbers and placeholders (`{{…}}`) are no secrets.
    Recording,
}

/// The ranges of `text` that look like secrets, in no order. They may overlap.
pub fn find(text: &str, care: Care) -> Vec<Range<usize>> {
    let mut found = SecretScan {
        text,
        care,
        ranges: Vec::new(),
        words: [None; 3],
        encoded: 0..0,
        block: 0..0,
    };
    let lower = text.to_ascii_lowercase();
    for header in HEADERS {
        for (at, _) in lower.match_indices(header) {
            found.header(at + header.len());
        }
    }
    for (at, word) in lower.match_indices("bearer ") {
        found.bearer(at + word.len());
    }
    for label in LABELS {
        for (at, _) in lower.match_indices(label) {
            found.labelled(at + label.len());
        }
    }
    for key in KEYS {
        for (at, _) in text.match_indices(key) {
            found.key(at);
        }
    }
    for key in ENCODED {
        for (at, _) in text.match_indices(key) {
            found.encoded(at);
        }
    }
    for (at, _) in text.match_indices("-----BEGIN ") {
        found.private_key(at);
    }
    for (at, _) in text.match_indices("://") {
        found.address(at + 3);
    }
    found.ranges
}

struct SecretScan<'t> {
    text: &'t str,
    care: Care,
    ranges: Vec<Range<usize>>,
    /// The word of each kind that was scanned last.
    words: [Option<Word>; 3],
    /// The text in base64 that was found last.
    encoded: Range<usize>,
    /// The private key that was found last, without its end mark.
    block: Range<usize>,
}

/// What ends a word.
#[derive(Clone, Copy)]
enum WordKind {
    Header,
    Value,
    Key,
}

/// A part of the text up to the next character that ends a word. What begins inside of it has the same end.
#[derive(Clone, Copy)]
struct Word {
    from: usize,
    end: usize,
    /// The end without the dots there.
    trimmed: usize,
    last_digit: Option<usize>,
    /// The last character that code has behind a name.
    last_mark: Option<usize>,
}

impl Word {
    fn new(text: &str, from: usize, end: usize) -> Self {
        let word = &text[from..end];
        let place = |at: usize| from + at;
        Self {
            from,
            end,
            trimmed: place(word.trim_end_matches('.').len()),
            last_digit: word.rfind(|c: char| c.is_ascii_digit()).map(place),
            last_mark: word.rfind(['(', '[', '{', '$', '<', '.', ':']).map(place),
        }
    }

    fn has_digit(&self, from: usize) -> bool {
        self.last_digit.is_some_and(|at| at >= from)
    }

    fn has_mark(&self, from: usize) -> bool {
        self.last_mark.is_some_and(|at| at >= from)
    }
}

impl SecretScan<'_> {
    /// Keeps a range of at least `least` bytes; of any length for evidence.
    fn keep(&mut self, from: usize, to: usize, least: usize) {
        let recorded = &self.text[from..to];
        let is_secret = match self.care {
            Care::Evidence => from < to,
            Care::Recording => {
                recorded.len() >= least && !recorded.starts_with("{{") && !recorded.starts_with("Bearer {{")
            }
        };
        if is_secret {
            self.ranges.push(from..to);
        }
    }

    /// A value behind the name of a header: `Authorization: VALUE`, `"Authorization": ["VALUE"]`, `["Authorization", "VALUE"]`.
    fn header(&mut self, at: usize) {
        let Some(given) = self.given(at) else { return };
        let is_sure = given.by == Separator::Colon;
        match given.quote {
            // To the end of the line, with what else is quoted there.
            Some(_) if self.care == Care::Evidence && !given.is_quoted_name => {
                self.line(given.start, is_sure)
            }
            Some(quote) => self.quoted(&given, quote, |value| is_header_value(value, is_sure)),
            None if given.is_quoted_name => {}
            None => self.line(given.start, is_sure),
        }
    }

    /// A value of a header without quotes.
    fn line(&mut self, from: usize, is_sure: bool) {
        let care = self.care;
        let is_quote = |c: char| care == Care::Recording && "\"'".contains(c);
        let is_end = |c: char| c == '\n' || c == '\r' || is_quote(c);
        let to = self.word(WordKind::Header, from, is_end).end;
        let value = &self.text[from..to];
        if care == Care::Evidence || is_header_value(value, is_sure) && (is_sure || scheme(value).is_some()) {
            self.keep(from, to, 1);
        }
    }

    /// A value in quotes, and those that follow it in its list.
    fn quoted(&mut self, given: &Given, quote: (usize, char), is_secret: impl Fn(&str) -> bool) {
        let (mut from, (mut escapes, mut quote)) = (given.from, quote);
        loop {
            let to = self.closing_quote(from, escapes, quote);
            if self.care == Care::Evidence || is_secret(&self.text[from..to]) {
                self.keep(from, to, 1);
            }
            let behind = self.text[to..].trim_start_matches('\\');
            let next = behind.strip_prefix(quote).filter(|_| given.is_list);
            let next = next.and_then(|rest| skip_blanks(rest).strip_prefix(','));
            let Some((more, mark, rest)) = next.and_then(|rest| opening_quote(skip_blanks(rest))) else {
                return;
            };
            (from, escapes, quote) = (self.text.len() - rest.len(), more, mark);
        }
    }

    /// What is given to the name that ends at `at`.
    fn given(&self, at: usize) -> Option<Given> {
        let rest = &self.text[at..];
        let quoted_name = opening_quote(rest);
        let is_quoted_name = quoted_name.is_some();
        let rest = quoted_name.map_or(rest, |(_, _, rest)| rest);
        let spaced = rest.trim_start_matches(' ');
        let (by, rest) = if let Some(rest) = rest.strip_prefix(':') {
            (Separator::Colon, rest.trim_start_matches(' '))
        } else if let Some(rest) = spaced.strip_prefix(':').filter(|_| is_quoted_name) {
            (Separator::Colon, rest.trim_start_matches(' '))
        } else if let Some(rest) = spaced.strip_prefix("=>").filter(|_| is_quoted_name) {
            (Separator::Comma, skip_blanks(rest))
        } else if let Some(rest) = spaced
            .strip_prefix('=')
            .filter(|rest| !rest.starts_with(['=', '>']))
        {
            let is_tight = spaced.len() == self.text.len() - at && !rest.starts_with(' ');
            let by = if is_tight {
                Separator::Equals
            } else {
                Separator::SpacedEquals
            };
            (by, rest.trim_start_matches(' '))
        } else {
            let rest = spaced.strip_prefix(',').filter(|_| is_quoted_name)?;
            (Separator::Comma, skip_blanks(rest))
        };
        let listed = rest.strip_prefix('[').map(skip_blanks);
        let listed = listed.filter(|rest| is_quoted_name && opening_quote(rest).is_some());
        let value = listed.unwrap_or(rest);
        let quoted = opening_quote(value);
        if by == Separator::Comma && quoted.is_none() {
            return None;
        }
        let unquoted = quoted.map_or(value, |(_, _, value)| value);
        Some(Given {
            by,
            is_quoted_name,
            is_list: listed.is_some(),
            quote: quoted.map(|(escapes, quote, _)| (escapes, quote)),
            start: self.text.len() - value.len(),
            from: self.text.len() - unquoted.len(),
        })
    }

    fn bearer(&mut self, from: usize) {
        let to = match self.care {
            Care::Evidence => self.end(from, |c| c.is_whitespace() || "\"'&,;".contains(c)),
            Care::Recording => self.end(from, |c| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c))),
        };
        self.keep(from, to, 8);
    }

    /// A value behind a word such as `token`: `token=VALUE`, `"token": "VALUE"`, `token: VALUE1`, `["token", "VALUE1"]`.
    fn labelled(&mut self, at: usize) {
        let Some(given) = self.given(at) else { return };
        if let Some(quote) = given.quote {
            let is_known = matches!(given.by, Separator::Colon | Separator::Equals);
            return self.quoted(&given, quote, |value| is_value(value, is_known));
        }
        let from = given.from;
        let ends = match self.care {
            Care::Evidence => "\"'&,;",
            Care::Recording => "\"'`&,;)}]>\\",
        };
        let word = self.word(WordKind::Value, from, |c| c.is_whitespace() || ends.contains(c));
        let to = word.end;
        let value = &self.text[from..to];
        let is_assigned = given.by == Separator::Equals;
        let has_digit = word.has_digit(from);
        if !is_assigned && (value.len() < 8 || !has_digit) {
            return;
        }
        // A token followed by `(` or `.name` is code.
        let is_code = || {
            word.has_mark(from) && !has_digit
                || value.len() <= LONGEST
                    && (word.has_mark(from) && is_code(value) || !is_assigned && is_name(value))
        };
        if self.care == Care::Evidence || !is_code() && is_value(value, true) {
            self.keep(from, to, 4);
        }
    }

    fn key(&mut self, from: usize) {
        let text = self.text;
        let is_inside =
            text[..from].ends_with(|c: char| c.is_ascii_alphanumeric()) && !ends_with_escape(&text[..from]);
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
        let word = self.word(WordKind::Key, from, is_end);
        let to = word.trimmed.max(from);
        // Words such as `task-` and `sk-1` are none, and a word of a text that begins so has no digit. Variables such as
        // `npm_package_engines_node18` have more words.
        let plain = PLAIN_KEYS.iter().find(|key| text[from..].starts_with(**key));
        let is_whole = |key: &&str| self.end(from + key.len(), |c| !c.is_ascii_alphanumeric()) - from >= 20;
        let is_key = match self.care {
            Care::Evidence => to - from >= 16,
            Care::Recording => to - from >= 20 && word.has_digit(from) && plain.is_none_or(is_whole),
        };
        if !is_inside && (is_key || text[from..].starts_with("sk-ant-")) {
            self.ranges.push(from..to);
        }
    }

    fn encoded(&mut self, at: usize) {
        if self.encoded.contains(&at) {
            return;
        }
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
        let before = self.text[..at].trim_end_matches(is_base64).len();
        self.encoded = before..self.end(at, |c| !is_base64(c));
        self.ranges.push(self.encoded.clone());
    }

    /// A block in the form of PEM; without an end it goes on to the end of the text.
    fn private_key(&mut self, from: usize) {
        let text = self.text;
        let Some((name, _)) = text[from + "-----BEGIN ".len()..].split_once("-----") else {
            return;
        };
        // Inside of the last one it has the same end.
        if !name.ends_with("PRIVATE KEY") || self.block.contains(&from) {
            return;
        }
        let mark = text[from..].find("-----END ").map(|at| from + at);
        let end = mark.map_or(text.len(), |mark| {
            let end = mark + "-----END ".len();
            text[end..].find("-----").map_or(text.len(), |at| end + at + 5)
        });
        self.block = from..mark.unwrap_or(text.len());
        self.ranges.push(from..end);
    }

    /// The user and the password in an address.
    fn address(&mut self, from: usize) {
        let is_end = |c: char| c.is_whitespace() || "/?#\"'".contains(c);
        let is_mark = |c: char| self.care == Care::Recording && "<>".contains(c);
        let end = self.end(from, |c| is_end(c) || is_mark(c));
        if let Some(user) = self.text[from..end].rfind('@') {
            self.keep(from, from + user, 1);
        }
    }

    /// Where the quoted value ends that begins at `from`, behind a quote with so many backslashes in front.
    fn closing_quote(&self, from: usize, escapes: usize, quote: char) -> usize {
        let is_quote = |c: char| c == quote || self.care == Care::Recording && "\"'".contains(c);
        let mut at = from;
        loop {
            at = self.end(at, |c| c == '\n' || is_quote(c));
            let before = backslashes(&self.text[from..at]);
            // Each string of JSON within a string doubles the backslashes. More of them than in front of the opening quote stand for
            // backslashes, or for a quote of the value.
            let closes = before % (2 * (escapes + 1)) == escapes;
            if self.text[at..].starts_with(is_quote) && !closes && before > escapes {
                at += 1;
                continue;
            }
            return at - before.min(escapes);
        }
    }

    /// The word from here on. It is scanned once, whatever is found in it.
    fn word(&mut self, kind: WordKind, from: usize, is_end: impl Fn(char) -> bool) -> Word {
        if let Some(word) = self.words[kind as usize]
            && (word.from..=word.end).contains(&from)
        {
            return word;
        }
        let word = Word::new(self.text, from, self.end(from, is_end));
        self.words[kind as usize] = Some(word);
        word
    }

    fn end(&self, from: usize, is_end: impl Fn(char) -> bool) -> usize {
        self.text[from..]
            .find(is_end)
            .map_or(self.text.len(), |length| from + length)
    }
}

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Colon,
    Equals,
    /// With spaces around it, as in code.
    SpacedEquals,
    /// Of a list that has the name and the value, or an arrow.
    Comma,
}

/// A value behind its name.
struct Given {
    by: Separator,
    is_quoted_name: bool,
    /// Whether the value is the first one of a list.
    is_list: bool,
    /// The quote in front of it, and the number of backslashes before that.
    quote: Option<(usize, char)>,
    /// Where the value begins, with its quote.
    start: usize,
    /// Where the value begins.
    from: usize,
}

/// Whether a recording must not show this value of a header. If it is not sure that it is one, it has to look like one.
fn is_header_value(value: &str, is_sure: bool) -> bool {
    match scheme(value) {
        // What a program fills in is no secret.
        Some(rest) => rest.len() >= if is_sure { 1 } else { 4 } && !rest.starts_with(['$', '{', '<']),
        None => {
            is_sure || is_value(value, false) || (8..=LONGEST).contains(&value.len()) && value.contains('=')
        }
    }
}

/// What follows the scheme in a value of `Authorization`.
fn scheme(value: &str) -> Option<&str> {
    let is_scheme = |scheme: &&&str| {
        let start = value.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let scheme = SCHEMES.iter().find(is_scheme)?;
    Some(value[scheme.len()..].trim_start_matches(' '))
}

/// Whether a recording must not show this value. If it is not sure that it is one, it has to look like one.
fn is_value(value: &str, is_sure: bool) -> bool {
    if is_switch(value) || value.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let has = |is_one: fn(char) -> bool| value.contains(is_one);
    let is_mixed =
        || has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic()) && !has(char::is_whitespace);
    value.len() >= 4 && (is_sure || (8..=LONGEST).contains(&value.len()) && is_mixed() && !is_name(value))
}

/// Whether a recording must not show this value, which stands behind this name in a list.
pub fn is_given(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if HEADERS.iter().any(|header| name.ends_with(header)) {
        is_header_value(value, false)
    } else {
        LABELS.iter().any(|label| name.ends_with(label)) && is_value(value, false)
    }
}

/// Whether this is code that says where a value comes from: `sha256(x)`, `$TOKEN_2`, `self.auth2.token`, `Vec<u8`.
fn is_code(value: &str) -> bool {
    let is_start = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_rest = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if let Some(variable) = value.strip_prefix(['$', '{', '<']) {
        let name = variable.trim_start_matches(['{', '(']);
        return is_start(name) && (value.starts_with('<') || is_rest(name));
    }
    let parts = |text: &str| {
        text.replace("::", ".")
            .split('.')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    match value.find(['(', '[', '{', '<']) {
        Some(at) => {
            let path = parts(value[..at].trim_end_matches('!'));
            path.iter().all(|part| is_start(part) && is_rest(part))
        }
        None => parts(value).iter().all(|part| is_word(part)),
    }
}

/// Whether a word of code has few digits at its end alone, if any.
fn is_word(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_letters = letters
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    !letters.is_empty() && is_letters && word.len() - letters.len() <= 3
}

/// Whether this is the name of a type or a variable, for all its digits: `Uint8Array`, `uint64_t`, `oauth2_token`.
fn is_name(text: &str) -> bool {
    let is_snake = text.contains('_') && text.split('_').all(|part| part.is_empty() || is_word(part));
    let is_camel = || {
        let mut before = '\0';
        let mut humps = 0;
        for c in text.chars() {
            // A digit ends a hump.
            if !c.is_ascii_alphanumeric() || before.is_ascii_digit() && c.is_ascii_lowercase() {
                return false;
            }
            humps += usize::from(c.is_ascii_uppercase() && !before.is_ascii_uppercase());
            before = c;
        }
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && humps >= 2
            && digits <= 5
            && humps + digits <= text.len() / 2
            && !before.is_ascii_digit()
    };
    is_snake || is_camel()
}

/// What follows blanks, and line ends as JSON writes them within a string.
fn skip_blanks(text: &str) -> &str {
    let mut rest = text;
    loop {
        let next = rest.trim_start();
        let escape = next.trim_start_matches('\\');
        match escape.strip_prefix(['n', 'r', 't']) {
            Some(behind) if escape.len() < next.len() => rest = behind,
            _ => return next,
        }
    }
}

/// A quote at the beginning, escaped if it is within a string of JSON: the number of backslashes, the quote, and what follows.
fn opening_quote(text: &str) -> Option<(usize, char, &str)> {
    let quoted = text.trim_start_matches('\\');
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some((text.len() - quoted.len(), quote, &quoted[1..]))
}

/// How many backslashes stand at the end.
fn backslashes(text: &str) -> usize {
    text.len() - text.trim_end_matches('\\').len()
}

/// Whether the text ends with an escape of JSON such as `\n`, and not with a letter of a word.
fn ends_with_escape(text: &str) -> bool {
    let is_escape = |length: usize, is_letter: fn(char) -> bool| {
        let (before, escape) = text.split_at_checked(text.len().saturating_sub(length))?;
        let is_one = escape.starts_with(is_letter) && backslashes(before) % 2 == 1;
        let is_rest = escape.chars().skip(1).all(|c| c.is_ascii_hexdigit());
        (is_one && is_rest).then_some(())
    };
    is_escape(1, |c| "nrtbf".contains(c)).is_some() || is_escape(5, |c| c == 'u').is_some()
}

/// Whether a value is only a yes or no.
pub fn is_switch(value: &str) -> bool {
    let switches = ["true", "false", "none", "null", "auto"];
    switches.iter().any(|switch| value.eq_ignore_ascii_case(switch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str, care: Care) -> String {
        let mut shown = text.to_owned();
        let mut ranges = find(text, care);
        ranges.sort_unstable_by_key(|range| std::cmp::Reverse((range.start, range.end)));
        let mut done = usize::MAX;
        for range in ranges {
            if range.end <= done {
                done = range.start;
                shown.replace_range(range, "*");
            }
        }
        shown
    }

    #[test]
    fn both_hide_what_is_sure_to_be_a_secret() {
        for (text, expected) in [
            (
                r#"{"access_token": "abcd", "n": 1}"#,
                r#"{"access_token": "*", "n": 1}"#,
            ),
            ("password=hunter22;", "password=*;"),
            ("npm_0123456789abcdefghij rest", "* rest"),
            ("https://user:pass@host/x", "https://*@host/x"),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
                "a * b",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII", "*"),
            ("basic c2stYW50LWFwaTAz==, and", "basic *, and"),
            ("sk-ant-x.", "*."),
            // Texts within JSON.
            (
                r#""user\nsk-ant-1\tnpm_0\u000ask-ant-2""#,
                r#""user\n*\tnpm_0\u000a*""#,
            ),
            (r#""\\nsk-ant-1 \\\nsk-ant-2""#, r#""\\nsk-ant-1 \\\n*""#),
            (
                r#"{"json":"{\"password\":\"hunt\\\"er2\\\\\",\"n\":1}"}"#,
                r#"{"json":"{\"password\":\"*\",\"n\":1}"}"#,
            ),
            (
                r#"{\\\"api_key\\\": \\\"abcd\\\"}"#,
                r#"{\\\"api_key\\\": \\\"*\\\"}"#,
            ),
            (r#"{"secret":"a\"b\\","n":1}"#, r#"{"secret":"*","n":1}"#),
            // Headers in the forms in which programs print them.
            (r#"["Authorization", "Basic dTpw"]"#, r#"["Authorization", "*"]"#),
            (
                r#"{"rawHeaders":["Host","a","X-Api-Key","abcd1234"]}"#,
                r#"{"rawHeaders":["Host","a","X-Api-Key","*"]}"#,
            ),
            (
                r#"{"text":"[\"Cookie\",\n \"id=abcdefg\"]"}"#,
                r#"{"text":"[\"Cookie\",\n \"*\"]"}"#,
            ),
            (
                r#"{"Authorization": ["Basic dTpw"], "n": 1}"#,
                r#"{"Authorization": ["*"], "n": 1}"#,
            ),
            (
                r#"{"set-cookie":["a=1", "b=2"],"n":["c"]}"#,
                r#"{"set-cookie":["*", "*"],"n":["c"]}"#,
            ),
            (
                r#"{"Authorization" : "Basic dTpw"}"#,
                r#"{"Authorization" : "*"}"#,
            ),
            ("'Authorization' => 'Basic dTpw',", "'Authorization' => '*',"),
            (r#"['--api-token', 'abcd1234']"#, r#"['--api-token', '*']"#),
            ("Authorization = Basic dTpw", "Authorization = *"),
            ("secret_access_key = wJalrXUtn1EMI", "secret_access_key = *"),
        ] {
            for care in [Care::Evidence, Care::Recording] {
                assert_eq!(hidden(text, care), expected, "{care:?}");
            }
        }
    }

    #[test]
    fn only_evidence_hides_what_may_be_one() {
        for (text, expected) in [
            ("token=abc", "token=*"),
            ("token=session.token", "token=*"),
            ("bearer abcdef, and", "bearer *, and"),
            ("ghp_abcdefghijklmnop", "*"),
            (r#"cookie: a="b"; c"#, "cookie: *"),
        ] {
            assert_eq!(hidden(text, Care::Evidence), expected);
            assert_ne!(hidden(text, Care::Recording), expected);
        }
    }

    /// With a scan for each match one of these takes many minutes.
    #[test]
    fn a_word_that_repeats_what_a_secret_begins_with_is_scanned_once() {
        let many = |part: &str| part.repeat((1 << 19) / part.len());
        for text in [
            many("eyJ"),
            many("AKIA"),
            many("-sk-ant-"),
            many("-npm_") + &many("."),
            many("token="),
            many("token:"),
            many("cookie:"),
            many("c2stYW50L"),
            many("-----BEGIN PRIVATE KEY-----"),
            many("token='"),
            many("https://"),
            many("bearer "),
            many("\"cookie\",\""),
            many("\"cookie\":[\"a\", \""),
            many("\"token\" = "),
        ] {
            for care in [Care::Evidence, Care::Recording] {
                assert!(find(&text, care).len() <= text.len());
            }
        }
    }

    #[test]
    fn what_begins_in_a_word_that_is_none_may_be_a_secret() {
        for (text, expected) in [
            ("token:token:token=abc", "token:token:token=*"),
            ("xeyJ-sk-0123456789abcdef0123", "xeyJ-*"),
        ] {
            assert_eq!(hidden(text, Care::Evidence), expected);
        }
        let text = "-----BEGIN PRIVATE KEY-----\nA\n-----END -----BEGIN PRIVATE KEY-----\nB";
        let found = find(text, Care::Evidence);
        assert!(found.iter().any(|range| range.end == text.len()), "{found:?}");
    }

    #[test]
    fn words_stay() {
        for text in [
            "task-1 and sk-1, https://host/path@2, --token, token: abc",
            "the token of a session; secret santa",
            "-----BEGIN CERTIFICATE-----",
        ] {
            for care in [Care::Evidence, Care::Recording] {
                assert_eq!(hidden(text, care), text, "{care:?}");
            }
        }
        // Code, with digits in it. Evidence need not know code.
        for text in [
            "token=sha256(key)",
            "token=base64.b64encode(data)",
            "login(token=auth2.token)",
            "password=$DB_PASSWORD_2",
            "password=${DB_PASSWORD_2}",
            "token: Uint8Array,",
            "private_key: X509Certificate",
            "secret: std::option::Option<u64>",
            "token: oauth2_token",
            "npm_package_engines_node18",
            r#"headers: ["Authorization", "X-Request-Id"], required: ["token", "password"]"#,
            r#"if token == "abcd1234" {"#,
            r#"let authorization = headers2.get("authorization");"#,
            r#"curl -H "Authorization: Bearer $TOKEN""#,
            r#""Authorization": "Bearer " + token2"#,
        ] {
            assert_eq!(hidden(text, Care::Recording), text);
        }
        // What looks a bit like code and is a secret.
        for (text, shown) in [
            ("password=Tr0ub4dor&3", "password=*&3"),
            ("password=pa$$w0rd1", "password=*"),
            ("token=v1.3f9ad0c1.77", "token=*"),
            ("token: hunter2222", "token: *"),
        ] {
            assert_eq!(hidden(text, Care::Recording), shown);
        }
    }
}
