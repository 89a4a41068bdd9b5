//! Times as people say them.

use std::time::{SystemTime, UNIX_EPOCH};

/// How long ago that was, in milliseconds since 1970: `3 h ago`.
pub(super) fn ago(then: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    between(then, i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

fn between(then: i64, now: i64) -> String {
    const STEPS: [(i64, i64, &str); 5] = [
        (60, 1, "s"),
        (60 * 60, 60, "min"),
        (24 * 60 * 60, 60 * 60, "h"),
        (365 * 24 * 60 * 60, 24 * 60 * 60, "d"),
        (i64::MAX, 365 * 24 * 60 * 60, "y"),
    ];
    // A clock that was set back makes no sense of what it wrote.
    let seconds = (now.saturating_sub(then) / 1000).max(0);
    let step = STEPS.iter().find(|(below, _, _)| seconds < *below);
    let (_, unit, name) = step.unwrap_or(&STEPS[4]);
    format!("{} {name} ago", seconds / unit)
}

/// The day and the minute of an ISO 8601 time, which it is given in UTC; the text itself where it is none.
pub(super) fn minute(iso: &str) -> String {
    match iso.get(..16) {
        Some(head) if head.as_bytes()[10] == b'T' => head.replace('T', " "),
        _ => iso.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_number() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        for (age, said) in [
            (-5, "0 s ago"),
            (59_999, "59 s ago"),
            (60_000, "1 min ago"),
            (DAY - 1, "23 h ago"),
            (DAY * 364, "364 d ago"),
            (DAY * 800, "2 y ago"),
        ] {
            assert_eq!(between(DAY, DAY + age), said);
        }
        assert!(between(i64::MIN, i64::MAX).ends_with(" y ago"));
    }

    #[test]
    fn a_time_is_cut_to_its_minute() {
        assert_eq!(minute("2026-02-03T04:05:06.789Z"), "2026-02-03 04:05");
        assert_eq!(minute("yesterday"), "yesterday");
        assert_eq!(minute("äääääääääää"), "äääääääääää");
    }
}
