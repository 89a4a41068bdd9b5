//! Content for spans: redacted, and cut.

use outrigger_secrets::Care;

/// A longer text is cut.
const MAX: usize = 16 * 1024;

/// How much of a secret behind the cut is looked at, if it begins before the cut.
const MARGIN: usize = 4 * 1024;

/// The text without secrets, and not too long.
pub(crate) fn redacted(text: &str) -> String {
    // The session waits for this: what is not shown is not searched.
    let looked_at = &text[..boundary(text, MAX + MARGIN)];
    let end = boundary(text, MAX);
    let mut ranges = outrigger_secrets::find(looked_at, Care::Evidence);
    ranges.retain(|range| range.start < end);
    ranges.sort_by_key(|range| range.start);
    let mut shown = String::with_capacity(end);
    let mut at = 0;
    for range in ranges {
        if let Some(before) = text.get(at..range.start) {
            shown.push_str(before);
            shown.push_str("[redacted]");
        }
        at = at.max(range.end);
    }
    shown.push_str(text.get(at..end).unwrap_or_default());
    // What stands for a short secret is longer.
    if end < text.len() || shown.len() > MAX {
        shown.truncate(boundary(&shown, MAX));
        shown.push('…');
    }
    shown
}

/// The end of the last character that ends before or at `at`.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let key = format!("sk-ant-api03-{}", "aB3".repeat(20));
        let shown = redacted(&format!("first {key} then é {key}"));
        assert!(!shown.contains("aB3aB3"), "{shown}");
        assert!(shown.starts_with("first ") && shown.contains("then é"), "{shown}");
        let long = redacted(&"é".repeat(MAX));
        assert!(long.len() <= MAX + '…'.len_utf8() && long.ends_with('…'));
    }

    #[test]
    fn a_text_is_searched_only_as_far_as_it_is_shown() {
        let key = format!("sk-ant-api03-{}", "aB3".repeat(20));
        let shown = redacted(&format!("{} {key} and on", "x".repeat(MAX - 10)));
        assert!(shown.ends_with("x [redacted…"), "{}", &shown[MAX - 20..]);
        let shown = redacted(&format!("{key}{} behind", "x".repeat(MAX)));
        assert_eq!(shown, "[redacted]…");
    }
}
