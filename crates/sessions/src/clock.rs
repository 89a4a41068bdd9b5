//! Points in time: as records have them, and as numbers.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as `2026-01-31T12:34:56.789Z`.
pub(crate) fn now() -> String {
    iso(SystemTime::now())
}

/// A time as JavaScript writes it; times before 1970 become its beginning.
pub(crate) fn iso(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date of a day, counted from 1970: in years that begin in March, a leap day is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// Milliseconds since 1970 of an ISO 8601 time with a zone, such as `2026-01-02T03:04:05.678Z`, or of the beginning of a day in UTC,
/// such as `2026-01-02`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_digit).then_some(())?;
        text.get(from..to)?.parse().ok()
    };
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if bytes.len() == 10 {
        let is_day = is(4, b"-") && is(7, b"-") && (1..=12).contains(&month) && (1..=31).contains(&day);
        return is_day.then(|| days(year, month, day) * 86_400_000);
    }
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_shaped = is(4, b"-") && is(7, b"-") && is(10, b"T ") && is(13, b":") && is(16, b":");
    let is_sane =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    if !is_shaped || !is_sane {
        return None;
    }
    let mut at = 19;
    let mut millis = 0;
    if is(at, b".") {
        let digits = bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let shown = digits.min(3);
        millis = number(at + 1, at + 1 + shown).filter(|_| digits > 0)? * 10_i64.pow(3 - shown as u32);
        at += 1 + digits;
    }
    let zone = match text.get(at..)? {
        "Z" | "z" => 0,
        zone => {
            let sign = match zone.as_bytes().first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let length = text.len() - at;
            let minutes = if length == 6 && is(at + 3, b":") {
                at + 4
            } else {
                at + 3
            };
            (text.len() == minutes + 2).then_some(())?;
            sign * (number(at + 1, at + 3)? * 60 + number(minutes, minutes + 2)?)
        }
    };
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - zone;
    Some((minutes * 60 + second) * 1000 + millis)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by counting years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Whole milliseconds since 1970; negative before.
pub(crate) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_as_javascript_writes_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_795_346_304, "2026-11-22T11:18:24.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(iso(UNIX_EPOCH + Duration::new(seconds, 7_900_000)), text);
        }
    }

    #[test]
    fn times_are_read_with_their_zone() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:00.289Z", 1_767_225_600_289),
            ("2026-01-01T01:30:00+01:30", 1_767_225_600_000),
            ("2025-12-31T23:00:00-0100", 1_767_225_600_000),
            ("2024-02-29T12:00:00.1Z", 1_709_208_000_100),
            ("2000-03-01T00:00:00.123456Z", 951_868_800_123),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2026-01-01", 1_767_225_600_000),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026/01/01",
            "2026-01-0x",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "2026-01-01T00:00:00+1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(millis(UNIX_EPOCH + Duration::from_micros(1_999)), 1);
        assert_eq!(millis(UNIX_EPOCH - Duration::from_micros(1)), -1);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for days in (0..40_000).step_by(17) {
            let millis = days * 86_400_000 + 45_296_789;
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(parse(&iso(time)), i64::try_from(millis).ok(), "{}", iso(time));
        }
    }
}
