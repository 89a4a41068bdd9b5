//! Durations and points in time as people type and read them.

use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::fmt::friendly::SpanParser;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A duration such as `90s`, `10m` or `1h 30m`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let time = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => SpanParser::new().parse_unsigned_duration(text).ok(),
    };
    match time {
        Some(time) if !time.is_zero() => Ok(time),
        Some(_) => Err("it has to be longer than no time".to_owned()),
        None => Err("it is no duration such as 90s, 10m or 1h 30m".to_owned()),
    }
}

/// A point in time: so long ago, such as `90m`, `12h`, `2d` or `4w`, or a date or a time of this time zone, such as `2026-02-03` or
/// `2026-02-03 14:30`, or one with an offset.
pub(crate) fn point(text: &str) -> Result<SystemTime, String> {
    point_before(text, &Zoned::now())
}

fn point_before(text: &str, now: &Zoned) -> Result<SystemTime, String> {
    let wrong =
        || format!("{text:?} is neither a time ago such as 90m, 12h, 2d or 4w nor a date such as 2026-02-03");
    if let Ok(span) = SpanParser::new().parse_span(text) {
        let then = now.checked_sub(span.abs()).map_err(|_| wrong())?;
        return Ok(then.into());
    }
    if let Ok(then) = text.parse::<Timestamp>() {
        return Ok(then.into());
    }
    // A date is its first moment.
    let then: DateTime = text.parse().map_err(|_| wrong())?;
    let then = then.to_zoned(now.time_zone().clone()).map_err(|_| wrong())?;
    Ok(then.into())
}

/// The day and the minute of an ISO 8601 time in the time zone of this machine (`TZ`); the text itself where it is none.
pub(crate) fn minute(iso: &str) -> String {
    formatted(iso, "%Y-%m-%d %H:%M", TimeZone::system())
}

/// The same with the time zone, for what is read elsewhere.
pub(crate) fn minute_with_zone(iso: &str) -> String {
    formatted(iso, "%Y-%m-%d %H:%M %Z", TimeZone::system())
}

fn formatted(iso: &str, form: &str, zone: TimeZone) -> String {
    // A machine that does not know its zone has UTC.
    let zone = if zone.is_unknown() { TimeZone::UTC } else { zone };
    match iso.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(zone).strftime(form).to_string(),
        Err(_) => iso.to_owned(),
    }
}

/// How long ago that was, in milliseconds since 1970: `3 h ago`.
pub(crate) fn ago(then: i64) -> String {
    between(then, Timestamp::now().as_millisecond())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_units_or_is_seconds() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0", "0s", "-1s", "soon", "1x", "99999999999999999999"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_point_is_a_time_ago_or_a_date() {
        let now: Zoned = "2026-02-10T12:00:00+05:30[+05:30]".parse().unwrap();
        for (text, then) in [
            ("90m", "2026-02-10T05:00:00Z"),
            ("2d", "2026-02-08T06:30:00Z"),
            ("2d ago", "2026-02-08T06:30:00Z"),
            ("1w", "2026-02-03T06:30:00Z"),
            ("2026-02-03", "2026-02-02T18:30:00Z"),
            ("2026-02-03 14:30", "2026-02-03T09:00:00Z"),
            ("2026-02-03T14:30:00Z", "2026-02-03T14:30:00Z"),
        ] {
            let then: Timestamp = then.parse().unwrap();
            assert_eq!(point_before(text, &now), Ok(then.into()), "{text}");
        }
        for wrong in [
            "",
            "7",
            "d",
            "yesterday",
            "2026-13-01",
            "99999999999999999999d",
            "20000y",
        ] {
            assert!(point_before(wrong, &now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_told_in_the_zone() {
        let zone = || TimeZone::posix("XST-5:30").unwrap();
        let form = "%Y-%m-%d %H:%M %Z";
        assert_eq!(
            formatted("2026-02-03T20:05:06.789Z", form, zone()),
            "2026-02-04 01:35 XST"
        );
        assert_eq!(formatted("yesterday", form, zone()), "yesterday");
        assert_eq!(formatted("äääääääääää", form, zone()), "äääääääääää");
    }

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
}
