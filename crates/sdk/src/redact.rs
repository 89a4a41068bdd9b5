//! Removes secrets from output of the CLI before it becomes evidence.

use std::ops::Range;

use outrigger_secrets::Care;

/// The text in place of a secret.
const MARK: &str = "[redacted]";

/// A key or token that was cut off is looked for this far into the text.
const LONGEST_KEY: usize = 4096;

/// `text` without the given secrets, and without what looks like a key, a token, a cookie or a password in an address.
///
/// `cut`: the text is the end of a longer one, so that it may begin in the middle of a secret.
pub(crate) fn redacted(mut text: String, secrets: &[String], cut: bool) -> String {
    let mut secrets: Vec<&str> = secrets
        .iter()
        .map(String::as_str)
        .filter(|secret| secret.len() >= 4)
        .collect();
    // One may be a part of another.
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in &secrets {
        text = text.replace(secret, MARK);
        // As it looks inside a JSON string, which is how the CLI shows payloads.
        let escaped = serde_json::to_string(secret).unwrap_or_default();
        if let Some(escaped) = escaped
            .strip_prefix('"')
            .and_then(|escaped| escaped.strip_suffix('"'))
            && escaped != *secret
        {
            text = text.replace(escaped, MARK);
        }
    }
    if cut {
        let rest = secrets
            .iter()
            .filter_map(|secret| end_at_start(&text, secret))
            .max();
        let word = text
            .find(char::is_whitespace)
            .unwrap_or(text.len())
            .min(LONGEST_KEY);
        let end = ceil_boundary(&text, rest.unwrap_or(0).max(word));
        text.replace_range(..end, "…");
    }
    let hidden = outrigger_secrets::find(&text, Care::Evidence);
    hide(text, hidden)
}

/// Puts the mark over each range; those that overlap become one.
fn hide(text: String, mut ranges: Vec<Range<usize>>) -> String {
    ranges.retain(|range| text[range.clone()].trim() != MARK);
    if ranges.is_empty() {
        return text;
    }
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for Range { start: from, end: to } in ranges {
        if to <= done {
            continue;
        }
        if from >= done {
            shown.push_str(&text[done..from]);
            shown.push_str(MARK);
        }
        done = to;
    }
    shown.push_str(&text[done..]);
    shown
}

/// How long the end of `secret` is with which `text` begins; at least four bytes, for less shows nothing.
fn end_at_start(text: &str, secret: &str) -> Option<usize> {
    (1..secret.len().saturating_sub(3))
        .filter_map(|from| secret.get(from..))
        .find(|end| text.starts_with(end))
        .map(str::len)
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        redacted(text.to_owned(), &[], false)
    }

    #[test]
    fn secrets_do_not_reach_the_evidence() {
        let said = "key hunter22 and sk-ant-api03-AbC_1, again sk-ant-x";
        assert_eq!(
            redacted(said.into(), &["hunter22".into(), String::new()], false),
            "key [redacted] and [redacted], again [redacted]"
        );
    }

    #[test]
    fn a_secret_within_another_does_not_leave_the_rest_of_it() {
        let secrets = ["hunter22".to_owned(), "hunter22-and-more".to_owned()];
        assert_eq!(
            redacted("is hunter22-and-more".into(), &secrets, false),
            "is [redacted]"
        );
    }

    #[test]
    fn a_secret_is_known_in_json() {
        let secrets = ["two\nlines \"quoted\"".to_owned()];
        assert_eq!(
            redacted(r#"{"key":"two\nlines \"quoted\""}"#.into(), &secrets, false),
            r#"{"key":"[redacted]"}"#
        );
    }

    #[test]
    fn keys_tokens_cookies_and_passwords() {
        for (said, shown) in [
            ("token sk-ant-oat01-abc_DEF-1 used", "token [redacted] used"),
            (
                "Authorization: Bearer abc.def\nnext",
                "Authorization: [redacted]\nnext",
            ),
            (
                "sent bearer abcdef, and so on",
                "sent bearer [redacted], and so on",
            ),
            ("Set-Cookie: session=1; id=2\nx", "Set-Cookie: [redacted]\nx"),
            ("x-api-key: abc", "x-api-key: [redacted]"),
            ("ANTHROPIC_API_KEY=abc def", "ANTHROPIC_API_KEY=[redacted] def"),
            (
                r#"{"access_token":"abc","n":1}"#,
                r#"{"access_token":"[redacted]","n":1}"#,
            ),
            (
                "https://user:pass@host/x?token=abc&y=1",
                "https://[redacted]@host/x?token=[redacted]&y=1",
            ),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "jwt [redacted]"),
            ("ghp_0123456789abcdef", "[redacted]"),
            (r#""refresh_token": "abc""#, r#""refresh_token": "[redacted]""#),
            ("npm_0123456789abcdefghij", "[redacted]"),
            (
                "key -----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----",
                "key [redacted]",
            ),
        ] {
            assert_eq!(plain(said), shown, "{said}");
        }
    }

    #[test]
    fn plain_words_stay() {
        for said in [
            "task-1 and sk-1 and https://host/path@2",
            "error: unknown option '--token'",
            "No conversation found with session ID: 00000000-0000-4000-8000-000000000000",
            "eyJ",
        ] {
            assert_eq!(plain(said), said);
        }
    }

    #[test]
    fn what_the_tail_begins_in_the_middle_of_is_not_shown() {
        let secrets = ["a secret of words".to_owned()];
        assert_eq!(
            redacted("ret of words, and on".into(), &secrets, true),
            "…, and on"
        );
        assert_eq!(redacted("api03-AbCdEf and on".into(), &[], true), "… and on");
        // A line without an end is not thrown away for it.
        let long = "x".repeat(3 * LONGEST_KEY);
        assert_eq!(redacted(long, &[], true).len(), "…".len() + 2 * LONGEST_KEY);
        assert_eq!(
            redacted("é".repeat(LONGEST_KEY), &[], true).chars().count(),
            1 + LONGEST_KEY / 2
        );
    }
}
