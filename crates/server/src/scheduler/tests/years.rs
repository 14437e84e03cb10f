//! Tests of whole years in several time zones, against occurrences computed by `tests/schedules/judge.py`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::scheduler::tests::*;

/// The occurrences computed by `tests/schedules/judge.py`.
const GOLDEN: &str = include_str!("../../../../../tests/schedules/golden.txt");

/// The years of the golden file, with the number of their occurrences and a hash of them.
fn golden_years() -> Vec<(i16, &'static str, &'static str, usize, &'static str)> {
    let year = |line: &'static str| {
        let [year, zone, cron, count, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (year.parse().expect("a year"), zone, cron, count.parse().expect("a number"), hash)
    };
    GOLDEN.lines().filter_map(|line| line.strip_prefix("= ")).map(year).collect()
}

#[tokio::test(start_paused = true)]
async fn year_of_occurrences_matches_the_golden_file() {
    let lines = ["30 3 * * *", "15 2 * * *", "0 10 * * MON", "0 12 15 * MON"];
    let mut fired = 0;
    for (year, zone, line, count, hash) in golden_years() {
        let is_frequent = line.starts_with("*/15") && zone == "Australia/Lord_Howe";
        if !lines.contains(&line) && !is_frequent {
            continue;
        }
        set_clock(&format!("{}-12-31T23:59:30Z", year - 1));
        let setup = TestSetup::new(&format!("timezone: {zone}\nschedule: {{ cron: \"{line}\" }}"));
        setup.activate().await.expect("an active schedule");
        let days = if year % 4 == 0 { 366 } else { 365 };
        setup.run_for(days * DAY).await;
        let text: String = setup.fired_occurrences().iter().fold(String::new(), |text, one| text + one + "\n");
        let mut digest = String::new();
        Sha256::digest(text).iter().for_each(|byte| write!(digest, "{byte:02x}").expect("a string"));
        assert_eq!(
            (setup.fired_occurrences().len(), digest.as_str()),
            (count, hash),
            "{year} {zone} {line}: {:?}",
            setup.reported_events()
        );
        fired += count;
    }
    assert!(fired > 5_000, "{fired}");
}
