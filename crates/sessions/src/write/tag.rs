//! What may be in a tag.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization as _;

/// How often a text is cleaned until it is taken as it is.
const MOST_ROUNDS: usize = 10;

/// A tag as the official SDKs keep it: in Unicode's normal form KC, without characters that cannot be seen, and trimmed.
///
/// Taken out is what belongs to the categories format, private use and unassigned, so that two tags that look the same are the
/// same. The result may be empty.
///
/// ```
/// use outrigger_sessions::write::clean_tag;
///
/// assert_eq!(clean_tag("  \u{fb01}x\u{200d}ed "), "fixed");
/// assert_eq!(clean_tag("\u{200b}"), "");
/// ```
pub fn clean_tag(tag: &str) -> String {
    let mut cleaned = tag.to_owned();
    // The rest of a text can compose to new characters.
    for _ in 0..MOST_ROUNDS {
        let next: String = cleaned.nfkc().filter(|c| is_visible(*c)).collect();
        if next == cleaned {
            break;
        }
        cleaned = next;
    }
    cleaned.trim().to_owned()
}

fn is_visible(c: char) -> bool {
    use GeneralCategory::{Format, PrivateUse, Unassigned};
    !matches!(get_general_category(c), Format | PrivateUse | Unassigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_no_part_of_a_tag() {
        for (tag, cleaned) in [
            ("a\u{200b}b\u{feff}\u{202e}", "ab"),
            ("\u{e000}\u{10fffd}x\u{378}", "x"),
            ("ｆｕｌｌ", "full"),
            ("e\u{200d}\u{301}", "é"),
            ("two\nlines 👩\u{200d}🚀", "two\nlines 👩🚀"),
            (" \u{2060} ", ""),
        ] {
            assert_eq!(clean_tag(tag), cleaned, "{tag:?}");
        }
    }
}
