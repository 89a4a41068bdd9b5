//! Recognizes secrets by their form.

use std::ops::Range;

use outrigger_secrets::Care;
pub(super) use outrigger_secrets::is_switch;

use super::redact::{Hit, SECRET};
use super::strings::{self, PathStep, StringPlace};
use crate::word_list::WordList;

/// Ends of secret names, in lower case and without `_` and `-`.
const SECRET_NAMES: WordList = WordList(
    "apikey token secret password passwd secretkey accesskey privatekey authorization cookie credential credentials \
     passphrase accesskeyid",
);

/// Keys of the account's data in a sign-in.
const ACCOUNT: WordList = WordList(
    "email emailaddress useremail organization organizationname organizationuuid organizationid accountuuid \
     accountid useruuid displayname fullname",
);

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

/// The placeholder of a value because of its place.
pub(super) fn by_place(place: &StringPlace<'_>, text: &str) -> Option<&'static str> {
    if place.is_key {
        return None;
    }
    let by_name = || {
        place
            .name
            .is_some_and(|name| outrigger_secrets::is_given(name, text))
    };
    let by_key = place.key().and_then(|key| by_key(place, key, text));
    by_key.or_else(|| by_name().then_some(SECRET))
}

/// The placeholder of a value because of its key.
fn by_key(place: &StringPlace<'_>, key: &str, text: &str) -> Option<&'static str> {
    let name = plain_name(key);
    let in_account = place
        .path
        .iter()
        .any(|step| matches!(step, PathStep::Key(key) if key == "account" || key == "oauthAccount"));
    if text.is_empty() {
        return None;
    }
    if ACCOUNT.has(&name) && (in_account || name.contains("email") || name.ends_with("uuid")) {
        return Some(if name.contains("email") {
            "{{email}}"
        } else {
            "{{account}}"
        });
    }
    (is_secret_name(key) && text.len() >= 4 && !is_switch(text)).then_some(SECRET)
}

/// Where in a text something stands that looks like a secret, or names a person.
pub(super) fn secrets(text: &str) -> Vec<Hit> {
    let secret = |range: Range<usize>| Hit::new(range.start, &text[range], SECRET, true);
    let found = outrigger_secrets::find(text, Care::Recording);
    let mut hits: Vec<Hit> = found.into_iter().map(secret).collect();
    emails(&mut hits, text);
    hits
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
            let address = &text[from..at + 1 + domain.len()];
            hits.push(Hit::new(from, address, "{{email}}", true));
        }
    }
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
