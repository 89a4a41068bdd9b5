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

/// Words after which a secret stands, up to the end of the line.
const HEADERS: &[&str] = &["authorization:", "cookie:", "x-api-key:"];

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

    fn header(&mut self, at: usize) {
        let from = self.text.len() - self.text[at..].trim_start_matches(' ').len();
        let care = self.care;
        let is_quote = |c: char| care == Care::Recording && "\"'".contains(c);
        let is_end = |c: char| c == '\n' || c == '\r' || is_quote(c);
        let word = self.word(WordKind::Header, from, is_end);
        self.keep(from, word.end, 1);
    }

    fn bearer(&mut self, from: usize) {
        let to = match self.care {
            Care::Evidence => self.end(from, |c| c.is_whitespace() || "\"'&,;".contains(c)),
            Care::Recording => self.end(from, |c| !(c.is_ascii_alphanumeric() || "-_.~+/=".contains(c))),
        };
        self.keep(from, to, 8);
    }

    /// A value behind a word such as `token`: `token=VALUE`, `"token": "VALUE"`, `token: VALUE1`.
    fn labelled(&mut self, at: usize) {
        let rest = &self.text[at..];
        let rest = opening_quote(rest).map_or(rest, |(_, _, rest)| rest);
        let assigned = rest.strip_prefix('=').map(|rest| (rest, true));
        let Some((value, is_assigned)) = assigned.or_else(|| {
            rest.strip_prefix(':')
                .map(|rest| (rest.trim_start_matches(' '), false))
        }) else {
            return;
        };
        let quoted = opening_quote(value);
        let value = quoted.map_or(value, |(_, _, value)| value);
        let from = self.text.len() - value.len();
        let ends = match self.care {
            Care::Evidence => "\"'&,;",
            Care::Recording => "\"'`&,;)}]>\\",
        };
        let word = match quoted {
            Some((escapes, quote, _)) => Word::new(self.text, from, self.closing_quote(from, escapes, quote)),
            None => self.word(WordKind::Value, from, |c| c.is_whitespace() || ends.contains(c)),
        };
        let to = word.end;
        let value = &self.text[from..to];
        let is_sure = quoted.is_some() || is_assigned;
        let has_digit = word.has_digit(from);
        let is_long = match self.care {
            Care::Evidence => is_sure,
            Care::Recording => is_sure && value.len() >= 4,
        };
        if !is_long && (is_sure || value.len() < 8 || !has_digit) {
            return;
        }
        // A token followed by `(` or `.name` is code.
        let is_code = quoted.is_none() && word.has_mark(from) && !has_digit;
        let is_plain = is_code || is_switch(value) || value.bytes().all(|byte| byte.is_ascii_digit());
        if self.care == Care::Evidence || !is_plain {
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
        // Words such as `task-` and `sk-1` are none, and a word of a text that begins so has no digit.
        let is_key = match self.care {
            Care::Evidence => to - from >= 16,
            Care::Recording => to - from >= 20 && word.has_digit(from),
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
    }
}
