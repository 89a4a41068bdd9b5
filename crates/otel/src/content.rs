//! Content for spans: redacted, and cut.

use outrigger_secrets::Care;

/// A longer text is cut.
const MAX: usize = 16 * 1024;

/// The text without secrets, and not too long.
pub(crate) fn redacted(text: &str) -> String {
    let mut ranges = outrigger_secrets::find(text, Care::Evidence);
    ranges.sort_by_key(|range| range.start);
    let mut shown = String::with_capacity(text.len().min(MAX));
    let mut at = 0;
    for range in ranges {
        if let Some(before) = text.get(at..range.start) {
            shown.push_str(before);
            shown.push_str("[redacted]");
        }
        at = at.max(range.end);
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    // Only now, so that no half of a secret is left at the end.
    if shown.len() > MAX {
        let mut end = MAX;
        while !shown.is_char_boundary(end) {
            end -= 1;
        }
        shown.truncate(end);
        shown.push('…');
    }
    shown
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
}
