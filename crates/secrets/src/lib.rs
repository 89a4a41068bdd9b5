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
        let is_quote = |c: char| self.care == Care::Recording && "\"'".contains(c);
        let to = self.end(from, |c| c == '\n' || c == '\r' || is_quote(c));
        self.keep(from, to, 1);
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
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
        let assigned = rest.strip_prefix('=').map(|rest| (rest, true));
        let Some((value, is_assigned)) = assigned.or_else(|| {
            rest.strip_prefix(':')
                .map(|rest| (rest.trim_start_matches(' '), false))
        }) else {
            return;
        };
        let quoted = value.strip_prefix(['"', '\'']);
        let value = quoted.unwrap_or(value);
        let from = self.text.len() - value.len();
        let to = match quoted {
            Some(_) => self.end(from, |c| c == '"' || c == '\'' || c == '\n'),
            None if self.care == Care::Evidence => {
                self.end(from, |c| c.is_whitespace() || "\"'&,;".contains(c))
            }
            None => self.end(from, |c| c.is_whitespace() || "\"'`&,;)}]>\\".contains(c)),
        };
        let value = &self.text[from..to];
        let is_sure = quoted.is_some() || is_assigned;
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let is_long = match self.care {
            Care::Evidence => is_sure,
            Care::Recording => is_sure && value.len() >= 4,
        };
        if !is_long && (is_sure || value.len() < 8 || !has_digit) {
            return;
        }
        // A token followed by `(` or `.name` is code.
        let is_code = quoted.is_none() && value.contains(['(', '[', '{', '$', '<', '.', ':']) && !has_digit;
        let is_plain = is_code || is_switch(value) || value.bytes().all(|byte| byte.is_ascii_digit());
        if self.care == Care::Evidence || !is_plain {
            self.keep(from, to, 4);
        }
    }

    fn key(&mut self, from: usize) {
        let text = self.text;
        let is_inside = text[..from].ends_with(|c: char| c.is_ascii_alphanumeric());
        let to = self.end(from, |c| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        let to = from + text[from..to].trim_end_matches('.').len();
        // Words such as `task-` and `sk-1` are none, and a word of a text that begins so has no digit.
        let is_key = match self.care {
            Care::Evidence => to - from >= 16,
            Care::Recording => to - from >= 20 && text[from..to].bytes().any(|byte| byte.is_ascii_digit()),
        };
        if !is_inside && (is_key || text[from..].starts_with("sk-ant-")) {
            self.ranges.push(from..to);
        }
    }

    fn encoded(&mut self, at: usize) {
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
        let before = self.text[..at].trim_end_matches(is_base64).len();
        self.ranges.push(before..self.end(at, |c| !is_base64(c)));
    }

    /// A block in the form of PEM; without an end it goes on to the end of the text.
    fn private_key(&mut self, from: usize) {
        let text = self.text;
        let Some((name, _)) = text[from + "-----BEGIN ".len()..].split_once("-----") else {
            return;
        };
        if name.ends_with("PRIVATE KEY") {
            let end = text[from..].find("-----END ").map_or(text.len(), |at| {
                let end = from + at + "-----END ".len();
                text[end..].find("-----").map_or(text.len(), |at| end + at + 5)
            });
            self.ranges.push(from..end);
        }
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

    fn end(&self, from: usize, is_end: impl Fn(char) -> bool) -> usize {
        self.text[from..]
            .find(is_end)
            .map_or(self.text.len(), |length| from + length)
    }
}

/// Whether a value is only a yes or no.
pub fn is_switch(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "none" | "null" | "auto"
    )
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
