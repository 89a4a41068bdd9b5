//! What must hold of what clients write for schedules and webhooks, for inputs that a machine makes up.

use outrigger_host::{AddressRule, MissedRuns};

use crate::deliver::target;
use crate::schedules::Times;

/// A cron expression, a time zone, and a time as a number; or an address of a webhook.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(url) = target(text, &AddressRule::public()) {
        assert_eq!(url.scheme(), "https");
        assert!(url.username().is_empty() && url.password().is_none());
        let again = target(url.as_str(), &AddressRule::public());
        assert_eq!(
            again.as_ref(),
            Ok(&url),
            "an address is another one when it is read again"
        );
    }
    let mut lines = text.split('\n');
    let (Some(cron), Some(zone), Some(Ok(from))) =
        (lines.next(), lines.next(), lines.next().map(str::parse::<u64>))
    else {
        return;
    };
    // From 1970 to 2100.
    let from = from % 4_102_444_800_000;
    let Ok(times) = Times::parse(cron, zone) else {
        return;
    };
    let Some(due) = times.after(from) else { return };
    assert!(due > from, "a time does not go forward");
    let late = due.saturating_add(from % 1_000_000_000);
    for missed in [MissedRuns::Skip, MissedRuns::Latest] {
        let plan = times.plan(due, late, missed);
        assert!(
            plan.next_at.is_none_or(|next| next > late),
            "what is due next has passed"
        );
        assert!(
            plan.run.is_none_or(|run| (due..=late).contains(&run)),
            "a time is run that was not due"
        );
        if let Some((first, last, count)) = plan.missed {
            assert!(first == due && last >= first && last <= late && count >= 1);
        }
    }
}
