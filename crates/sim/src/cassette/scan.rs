//! Recognizes secrets by their form.

use std::borrow::Cow;

use super::redact::{Hit, SECRET};
use super::strings::{self, Place, Step};

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

/// Words after which a secret stands, up to the end of the line or the quote.
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

/// Ends of secret names, in lower case and without `_` and `-`.
const SECRET_NAMES: &[&str] = &[
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "secretkey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "accesskeyid",
];

/// Keys of the account's data in a sign-in.
const ACCOUNT: &[&str] = &[
    "email",
    "emailaddress",
    "useremail",
    "organization",
    "organizationname",
    "organizationuuid",
    "organizationid",
    "accountuuid",
    "accountid",
    "useruuid",
    "displayname",
    "fullname",
];

fn plain_name(name: &str) -> String {
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|char| char.to_ascii_lowercase()).collect()
}

/// Whether a variable or a key of this name has a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = plain_name(name);
    // Counts of tokens are numbers, and where a token comes from is no token.
    SECRET_NAMES.iter().any(|end| name.ends_with(end)) || name.ends_with("pat") && name.len() > 8
}

/// Whether a value is only a yes or no.
pub(super) fn is_switch(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "none" | "null" | "auto"
    )
}

/// The placeholder of a value because of its key.
pub(super) fn by_key(place: &Place<'_>, key: &str, text: &str) -> Option<&'static str> {
    let name = plain_name(key);
    let in_account = place
        .path
        .iter()
        .any(|step| matches!(step, Step::Key(key) if key == "account" || key == "oauthAccount"));
    if text.is_empty() {
        return None;
    }
    if ACCOUNT.contains(&name.as_str()) && (in_account || name.contains("email") || name.ends_with("uuid")) {
        return Some(if name.contains("email") {
            "{{email}}"
        } else {
            "{{account}}"
        });
    }
    (is_secret_name(key) && text.len() >= 4 && !is_switch(text)).then_some(SECRET)
}

fn secret(from: usize, to: usize) -> Hit {
    Hit {
        from,
        to,
        with: Cow::Borrowed(SECRET),
        is_secret: true,
    }
}

/// Where in a text something stands that looks like a secret, or names a person.
pub(super) fn secrets(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let lower = text.to_ascii_lowercase();
    for header in HEADERS {
        for (at, _) in lower.match_indices(header) {
            let from = skip_spaces(text, at + header.len());
            let to = find(text, from, |c| c == '\n' || c == '"' || c == '\'' || c == '\r');
            keep(&mut hits, text, from, to, 1);
        }
    }
    for (at, word) in lower.match_indices("bearer ") {
        let from = at + word.len();
        let to = find(text, from, |c| !is_token_char(c));
        keep(&mut hits, text, from, to, 8);
    }
    for label in LABELS {
        for (at, _) in lower.match_indices(label) {
            labelled(&mut hits, text, at + label.len());
        }
    }
    for key in KEYS {
        for (from, _) in text.match_indices(key) {
            let inside = text[..from].ends_with(|c: char| c.is_ascii_alphanumeric());
            let to = find(text, from, |c| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
            let to = from + text[from..to].trim_end_matches('.').len();
            // Words such as `task-` and `sk-1` are none, and a word that begins so has no digit.
            let is_key = to - from >= 20 && text[from..to].bytes().any(|byte| byte.is_ascii_digit());
            if !inside && (is_key || text[from..].starts_with("sk-ant-")) {
                hits.push(secret(from, to));
            }
        }
    }
    for key in ENCODED {
        for (found, _) in text.match_indices(key) {
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
            let from = text[..found].rfind(|c| !is_base64(c)).map_or(0, |before| {
                before + text[before..].chars().next().map_or(1, char::len_utf8)
            });
            hits.push(secret(from, find(text, found, |c| !is_base64(c))));
        }
    }
    for (from, _) in text.match_indices("-----BEGIN ") {
        let Some((name, _)) = text[from + 11..].split_once("-----") else {
            continue;
        };
        if name.ends_with("PRIVATE KEY") {
            let end = text[from..].find("-----END ").map_or(text.len(), |at| {
                let end = from + at + 9;
                text[end..].find("-----").map_or(text.len(), |at| end + at + 5)
            });
            hits.push(secret(from, end));
        }
    }
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        let end = find(text, from, |c| c.is_whitespace() || "/?#\"'<>".contains(c));
        if let Some(user) = text[from..end].rfind('@') {
            keep(&mut hits, text, from, from + user, 1);
        }
    }
    emails(&mut hits, text);
    hits
}

/// A value behind a word such as `token`: `token=VALUE`, `"token": "VALUE"`, `token: VALUE1`.
fn labelled(hits: &mut Vec<Hit>, text: &str, at: usize) {
    let rest = &text[at..];
    let quoted_name = rest.strip_prefix(['"', '\'']);
    let rest = quoted_name.unwrap_or(rest);
    let assigned = rest.strip_prefix('=').map(|rest| (rest, true));
    let Some((value, assigned)) = assigned.or_else(|| {
        rest.strip_prefix(':')
            .map(|rest| (rest.trim_start_matches(' '), false))
    }) else {
        return;
    };
    let quote = value.strip_prefix(['"', '\'']);
    let value = quote.unwrap_or(value);
    let from = text.len() - value.len();
    let to = if quote.is_some() {
        find(text, from, |c| c == '"' || c == '\'' || c == '\n')
    } else {
        find(text, from, |c| c.is_whitespace() || "\"'`&,;)}]>\\".contains(c))
    };
    let value = &text[from..to];
    // A token followed by `(` or `.name` is code, not a secret.
    let is_code = quote.is_none()
        && value.contains(['(', '[', '{', '$', '<', '.', ':'])
        && !value.bytes().any(|b| b.is_ascii_digit());
    let counts = if quote.is_some() || assigned {
        value.len() >= 4
    } else {
        value.len() >= 8 && value.bytes().any(|byte| byte.is_ascii_digit())
    };
    if counts && !is_code && !is_switch(value) && !value.chars().all(|c| c.is_ascii_digit()) {
        keep(hits, text, from, to, 4);
    }
}

fn keep(hits: &mut Vec<Hit>, text: &str, from: usize, to: usize, least: usize) {
    if to >= from + least && !text[from..to].starts_with("{{") && !text[from..to].starts_with("Bearer {{") {
        hits.push(secret(from, to));
    }
}

/// Addresses whose domain ends in letters, so that versions and names of packages are none.
fn emails(hits: &mut Vec<Hit>, text: &str) {
    for (at, _) in text.match_indices('@') {
        let is_local = |c: char| c.is_ascii_alphanumeric() || "._%+-".contains(c);
        let from = text[..at].rfind(|c| !is_local(c)).map_or(0, |before| {
            before + text[before..].chars().next().map_or(1, char::len_utf8)
        });
        let to = find(text, at + 1, |c| !(c.is_ascii_alphanumeric() || "-.".contains(c)));
        let domain = text[at + 1..to].trim_end_matches(['.', '-']);
        let top = domain.rsplit_once('.').map(|(_, top)| top);
        let is_top =
            top.is_some_and(|top| top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic()));
        if from < at && is_top {
            hits.push(Hit {
                from,
                to: at + 1 + domain.len(),
                with: Cow::Borrowed("{{email}}"),
                is_secret: true,
            });
        }
    }
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.~+/=".contains(c)
}

fn skip_spaces(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start_matches(' ').len()
}

fn find(text: &str, from: usize, ends: impl Fn(char) -> bool) -> usize {
    text[from..].find(ends).map_or(text.len(), |length| from + length)
}

/// The text with its escapes resolved, and where each of its bytes comes from, one more for the end. Nothing if it has none.
pub(super) fn unescaped(text: &str, outer: Option<&[usize]>) -> Option<(String, Vec<usize>)> {
    if !text.contains('\\') {
        return None;
    }
    let origin = |at: usize| outer.map_or(at, |map| map[at]);
    let mut decoded = String::with_capacity(text.len());
    let mut map = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    let mut any = false;
    while at < text.len() {
        let rest = &text[at..];
        let (char, length) = if rest.starts_with('\\') {
            let (char, length) = strings::escape(rest);
            any |= length > 1;
            (char.unwrap_or(char::REPLACEMENT_CHARACTER), length)
        } else {
            let char = rest.chars().next().unwrap_or_default();
            (char, char.len_utf8())
        };
        decoded.push(char);
        map.resize(decoded.len(), origin(at));
        at += length;
    }
    map.push(origin(text.len()));
    any.then_some((decoded, map))
}
