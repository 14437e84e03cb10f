//! Calendar calculations compared with an independent implementation: `judge.py`, which uses croniter and zoneinfo.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use campaign_core::calendar::{Schedule, Timing};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use sha2::{Digest as _, Sha256};

/// One year of a cron line in a time zone, as `judge.py` recorded it.
struct Year {
    year: i16,
    zone: String,
    line: String,
    count: usize,
    sha256: String,
    /// Occurrences near a clock change.
    near: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schedules")
}

/// Parses the recorded occurrences.
fn read_recorded_years() -> Vec<Year> {
    let mut years: Vec<Year> = Vec::new();
    for line in std::fs::read_to_string(folder().join("golden.txt")).expect("a recorded occurrence").lines() {
        match line.strip_prefix("= ").map(|line| line.split('\t').collect::<Vec<_>>()) {
            Some(words) => {
                let [year, zone, line, count, sha256] = words[..] else { panic!("{line}") };
                years.push(Year {
                    year: year.parse().expect("a year"),
                    zone: zone.to_owned(),
                    line: line.to_owned(),
                    count: count.parse().expect("a number"),
                    sha256: sha256.to_owned(),
                    near: Vec::new(),
                });
            }
            None => years.last_mut().expect("a year before").near.push(line.to_owned()),
        }
    }
    years
}

/// Returns the occurrences of a year in the format of `judge.py`.
fn list_occurrences(year: i16, zone: &str, line: &str) -> Vec<String> {
    let zone = TimeZone::get(zone).expect("a zone");
    let grace = Duration::from_secs(3600);
    let schedule = Schedule {
        timing: Timing::parse_cron(line).expect("a cron line"),
        zone,
        ends: None,
        grace,
        wait_for_file: None,
    };
    let start_of_year =
        |year| civil::date(year, 1, 1).at(0, 0, 0, 0).to_zoned(TimeZone::UTC).expect("a year").timestamp();
    let (start, end): (Timestamp, Timestamp) = (start_of_year(year), start_of_year(year + 1));
    let due = schedule
        .occurrences_after(start - jiff::SignedDuration::from_secs(1))
        .take_while(|occurrence| occurrence.at < end);
    due.map(|occurrence| format!("{}\t{}", occurrence.at.strftime("%Y-%m-%dT%H:%MZ"), occurrence.format_nominal_time()))
        .collect()
}

/// Prints the reason why the comparison was skipped.
fn print_skip_reason(why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "skipped: {why}");
}

#[test]
fn occurrences_around_clock_changes_match_the_reference() {
    let years = read_recorded_years();
    assert!(years.len() > 50 && years.iter().map(|year| year.near.len()).sum::<usize>() > 500);
    for Year { year, zone, line, count, sha256, near } in years {
        let actual = list_occurrences(year, &zone, &line);
        let known: BTreeSet<&String> = actual.iter().collect();
        let missing: Vec<&String> = near.iter().filter(|due| !known.contains(due)).collect();
        assert!(missing.is_empty(), "{year} {zone} {line}: {missing:?}");
        let text: String = actual.iter().map(|due| format!("{due}\n")).collect();
        let hash = Sha256::digest(text).iter().fold(String::new(), |mut hash, byte| {
            let _ = write!(hash, "{byte:02x}");
            hash
        });
        assert_eq!((actual.len(), hash), (count, sha256), "{year} {zone} {line}");
    }
}

#[test]
fn occurrences_of_a_whole_year_match_the_reference() {
    let judge = folder().join("judge.py");
    let run_judge = |arguments: &[&str]| Command::new("python3").arg(&judge).args(arguments).output();
    match run_judge(&["--can"]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => return print_skip_reason(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => return print_skip_reason(&format!("cannot run python3: {error}")),
    }
    for (year, zone) in [("2026", "America/New_York"), ("2026", "Australia/Lord_Howe"), ("2011", "Pacific/Apia")] {
        let lines = ["*/20 * * 3,4,10,11,12 *", "5 0 * * *", "59 23 28-31 * *"];
        let answer = run_judge(&[&[year, zone], &lines[..]].concat()).unwrap();
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        let answer = String::from_utf8(answer.stdout).unwrap();
        for line in lines {
            let expected: Vec<&str> =
                answer.lines().filter_map(|due| due.strip_prefix(line)?.strip_prefix('\t')).collect();
            assert_eq!(list_occurrences(year.parse().unwrap(), zone, line), expected, "{year} {zone} {line}");
        }
    }
}
