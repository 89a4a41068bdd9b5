//! Ids and times that are the same in every run.

use std::time::Duration;

use crate::inject::random::Random;

/// Makes ids that look like the CLI's, the same ones for the same seed.
#[derive(Debug, Default)]
pub(super) struct Ids {
    random: Random,
    messages: u32,
    tasks: u32,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            ..Self::default()
        }
    }

    /// A UUID of version 4.
    pub(super) fn uuid(&mut self) -> String {
        uuid::Builder::from_random_bytes(
            (u128::from(self.random.next()) << 64 | u128::from(self.random.next())).to_be_bytes(),
        )
        .into_uuid()
        .to_string()
    }

    /// The number of the next message of the model, from 1.
    pub(super) fn message(&mut self) -> u32 {
        self.messages += 1;
        self.messages
    }

    /// Goes on behind the messages and records of another process, which may have had the same seed.
    pub(super) fn go_on(&mut self, messages: u32, records: usize) {
        self.messages = self.messages.max(messages);
        self.random = Random::new(self.random.next() ^ records as u64);
    }

    /// The id of an agent and that of its run.
    pub(super) fn agent(&mut self) -> (String, String) {
        self.tasks += 1;
        let (agent, run) = (self.random.next(), self.random.next() as u32);
        (
            format!("a{agent:016x}"),
            format!("0mwq{:05x}-{run:08x}", self.tasks),
        )
    }

    /// The id of a task and that of its run.
    pub(super) fn task(&mut self) -> (String, String) {
        self.tasks += 1;
        let (run, task) = (self.random.next() as u32, self.random.next() as u32);
        (
            format!("b{task:08x}"),
            format!("0mwq{:05x}-{run:08x}", self.tasks),
        )
    }
}

/// The moment at which every simulation begins: 2026-11-21T21:00:00Z, in milliseconds.
const BEGIN: u64 = 1_795_294_800_000;

/// Milliseconds since 1970 at this time since the beginning.
pub(super) fn wall_ms(elapsed: Duration) -> u64 {
    BEGIN + elapsed.as_millis() as u64
}

/// A timestamp as JavaScript writes it.
pub(super) fn timestamp(elapsed: Duration) -> String {
    let ms = wall_ms(elapsed);
    let (days, rest) = ((ms / 86_400_000) as i64, ms % 86_400_000);
    // Days to a civil date, after Howard Hinnant's `civil_from_days`.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z",
        rest % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_repeat_and_times_are_right() {
        let mut ids = Ids::new(7);
        let first = ids.uuid();
        assert_eq!(first, Ids::new(7).uuid());
        assert_ne!(first, ids.uuid());
        assert_eq!(uuid::Uuid::parse_str(&first).unwrap().get_version_num(), 4);
        assert_eq!(timestamp(Duration::ZERO), "2026-11-21T21:00:00.000Z");
        assert_eq!(
            timestamp(Duration::from_millis(3 * 3_600_000 + 61_005)),
            "2026-11-22T00:01:01.005Z"
        );
    }
}
