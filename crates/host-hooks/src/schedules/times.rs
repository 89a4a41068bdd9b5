//! The times of a cron expression in a time zone, without a clock.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use outrigger_host::{DueRun, MissedRuns};

/// How late a time is still on time.
const ON_TIME: Duration = Duration::from_secs(60);

/// How many missed times are counted. With more, the count stays there.
const COUNTED: u64 = 10_000;

pub(crate) struct Times {
    cron: Cron,
    zone: TimeZone,
}

impl Times {
    pub(crate) fn parse(cron: &str, zone: &str) -> Result<Self, String> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let parsed = parser
            .parse(cron)
            .map_err(|error| format!("`{cron}` is no cron expression: {error}"))?;
        let zone = TimeZone::get(zone).map_err(|error| format!("`{zone}` is no time zone: {error}"))?;
        Ok(Self { cron: parsed, zone })
    }

    fn zoned(&self, millis: u64) -> Option<Zoned> {
        let millis = i64::try_from(millis).ok()?;
        Some(
            Timestamp::from_millisecond(millis)
                .ok()?
                .to_zoned(self.zone.clone()),
        )
    }

    /// The first time after this one, in milliseconds since 1970. `None` if there is none.
    pub(crate) fn after(&self, millis: u64) -> Option<u64> {
        let next = self.cron.find_next_occurrence(&self.zoned(millis)?, false).ok()?;
        let next = u64::try_from(next.timestamp().as_millisecond()).ok()?;
        // Whatever the expression is, the times go forward.
        (next > millis).then_some(next)
    }

    /// The last time up to this one.
    fn up_to(&self, millis: u64) -> Option<u64> {
        let last = self
            .cron
            .find_previous_occurrence(&self.zoned(millis)?, true)
            .ok()?;
        u64::try_from(last.timestamp().as_millisecond()).ok()
    }

    /// What is done at `now` about a schedule that is due since `due`.
    pub(crate) fn plan(&self, due: u64, now: u64, missed: MissedRuns) -> DueRun {
        let mut plan = DueRun::new(self.after(now));
        let (mut last, mut before_last, mut count) = (due, None, 1);
        while let Some(next) = self.after(last).filter(|next| *next <= now) {
            (before_last, last, count) = (Some(last), next, count + 1);
            if count == COUNTED {
                last = self.up_to(now).filter(|end| *end > last).unwrap_or(last);
                break;
            }
        }
        let is_on_time = u128::from(now.saturating_sub(last)) <= ON_TIME.as_millis();
        if is_on_time {
            plan.run = Some(last);
            plan.missed = before_last.map(|end| (due, end, count - 1));
        } else {
            plan.run = (missed == MissedRuns::Latest).then_some(last);
            plan.missed = Some((due, last, count));
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> u64 {
        let at: Timestamp = text.parse().unwrap();
        u64::try_from(at.as_millisecond()).unwrap()
    }

    fn text(millis: u64) -> String {
        Timestamp::from_millisecond(i64::try_from(millis).unwrap())
            .unwrap()
            .to_string()
    }

    /// The times after `from`, in UTC.
    fn next(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let times = Times::parse(cron, zone).unwrap();
        let mut found = Vec::new();
        let mut now = at(from);
        while found.len() < count {
            now = times.after(now).unwrap();
            found.push(text(now));
        }
        found
    }

    /// On 29 March 2026, Berlin has no time from 2:00 to 3:00.
    #[test]
    fn a_time_that_does_not_exist_is_run_after_the_gap() {
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
            [
                "2026-03-28T01:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-30T00:30:00Z"
            ],
        );
        assert_eq!(
            next("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 4),
            [
                "2026-03-29T00:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:30:00Z",
                "2026-03-29T02:00:00Z"
            ],
        );
    }

    /// On 25 October 2026, Berlin has the time from 2:00 to 3:00 twice.
    #[test]
    fn a_time_that_comes_twice_is_run_once() {
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        assert_eq!(
            next("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", 4),
            [
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T02:00:00Z"
            ],
        );
    }

    #[test]
    fn what_is_no_expression_and_no_zone_is_named() {
        for (cron, zone) in [
            ("", "UTC"),
            ("* * * *", "UTC"),
            ("61 * * * *", "UTC"),
            ("*/5 * * * * *", "UTC"),
            ("0 0 * * *", "Europe/Nowhere"),
            ("0 0 * * *", ""),
        ] {
            assert!(Times::parse(cron, zone).is_err(), "{cron} {zone}");
        }
        assert_eq!(Times::parse("0 0 30 2 *", "UTC").unwrap().after(0), None);
        assert_eq!(
            next("@daily", "UTC", "2026-01-01T00:00:00Z", 1),
            ["2026-01-02T00:00:00Z"]
        );
    }

    #[test]
    fn missed_times_are_told_and_at_most_the_latest_is_run() {
        let times = Times::parse("0 * * * *", "UTC").unwrap();
        let due = at("2026-01-01T10:00:00Z");
        let hour = |hour: u64| due + hour * 3_600_000;

        let on_time = times.plan(due, due + 59_000, MissedRuns::Skip);
        assert_eq!(
            (on_time.run, on_time.missed, on_time.next_at),
            (Some(due), None, Some(hour(1)))
        );

        let now = hour(3) + 600_000;
        let skipped = times.plan(due, now, MissedRuns::Skip);
        assert_eq!(
            (skipped.run, skipped.missed, skipped.next_at),
            (None, Some((due, hour(3), 4)), Some(hour(4)))
        );
        let latest = times.plan(due, now, MissedRuns::Latest);
        assert_eq!(
            (latest.run, latest.missed),
            (Some(hour(3)), Some((due, hour(3), 4)))
        );

        // The host comes back just when a time is due: that one is run whatever the rule is, and the earlier ones are missed.
        let back = times.plan(due, hour(3) + 1000, MissedRuns::Skip);
        assert_eq!((back.run, back.missed), (Some(hour(3)), Some((due, hour(2), 3))));

        let minutely = Times::parse("* * * * *", "UTC").unwrap();
        let year = due + 365 * 24 * 3_600_000;
        let long = minutely.plan(due, year + 1000, MissedRuns::Skip);
        assert_eq!((long.run, long.missed.unwrap().2), (Some(year), COUNTED - 1));
    }

    proptest! {
        #[test]
        fn times_go_forward_and_a_plan_is_about_the_past(
            minute in 0_u64..60, hour in 0_u64..24, day in prop_oneof![Just("*".to_owned()), (1_u64..29).prop_map(|day| day.to_string())],
            start in 1_700_000_000_u64..1_900_000_000, late in 0_u64..40_000_000_u64, part in 0.0..1.0_f64,
            zone in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("America/St_Johns"), Just("Australia/Lord_Howe")],
        ) {
            let times = Times::parse(&format!("{minute} {hour} {day} * *"), zone).unwrap();
            let due = times.after(start * 1000).unwrap();
            prop_assert!(due > start * 1000);
            let between = start * 1000 + ((due - start * 1000) as f64 * part) as u64;
            prop_assert_eq!(times.after(between.min(due - 1)), Some(due), "also of a clock that was set back");
            let now = due + late * 100;
            let plan = times.plan(due, now, MissedRuns::Latest);
            prop_assert!(plan.next_at.unwrap() > now);
            let run = plan.run.unwrap();
            prop_assert!(run >= due && run <= now);
            prop_assert!(times.after(run).unwrap() > now, "the latest");
            if let Some((first, last, count)) = plan.missed {
                prop_assert_eq!(first, due);
                prop_assert!(last >= first && last <= run && count >= 1);
            }
        }
    }
}
