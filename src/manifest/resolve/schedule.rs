//! The key `schedule`: when a campaign runs by itself.

use std::ops::Range;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Resolver;
use crate::calendar::{NoTiming, Schedule, Timing, help_for_misordered};
use crate::finding::{Finding, rules};
use crate::manifest::section::Section;
use crate::manifest::value::Seconds;

/// How a key says local times.
type Read = fn(&str) -> Result<Timing, NoTiming>;

const KEYS: [(&str, Read); 3] = [("at", Timing::at), ("every", Timing::every), ("cron", Timing::cron)];

impl Resolver<'_> {
    /// The schedule, if there is one; what is wrong with it was told where there is none.
    pub(super) fn schedule(&mut self, root: Section<'_>, zone: Option<&str>) -> Option<Schedule> {
        let key = &root.entry("schedule")?.key_span;
        let section = root.section("schedule");
        let (timing, ends) = (self.timing(section, key), self.ends(section));
        if self.lacks_timezone(root) {
            let finding = Finding::new(&rules::SCHEDULE, "`schedule` needs `timezone` for its times");
            self.report.at(key, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let seconds = |name| section.parsed(name).map(|Seconds(seconds)| Duration::from_secs(seconds.into()));
        Some(Schedule {
            timing: timing?,
            zone: TimeZone::get(zone?).ok()?,
            ends,
            grace: seconds("grace")?,
            wait_for_file: seconds("wait_for_file"),
        })
    }

    /// The local times, which one key says.
    fn timing(&mut self, section: Section<'_>, schedule: &Range<usize>) -> Option<Timing> {
        let typed: Vec<_> =
            KEYS.into_iter().filter_map(|(name, read)| Some((name, read, section.typed(name)?))).collect();
        match typed[..] {
            [] => {
                let finding = Finding::new(&rules::SCHEDULE, "`schedule` has no time");
                let help = "add `at: 2026-12-01 10:00`, `every: Mon 10:00` or `cron: 0 10 * * MON` under `schedule`";
                self.report.at(schedule, finding.help(help));
                None
            }
            [(name, read, (text, span))] => match read(text) {
                Ok(timing) => Some(timing),
                Err(NoTiming { why, help }) => {
                    self.report.at(span, Finding::new(&rules::SCHEDULE, format!("`{name}: {text}` {why}")).help(help));
                    None
                }
            },
            [(first, ..), (second, _, (_, span)), ..] => {
                let message = format!("`schedule` has two times: `{first}` and `{second}`");
                self.report.at(span, Finding::new(&rules::SCHEDULE, message).help("remove one of them"));
                None
            }
        }
    }

    /// The last day.
    fn ends(&mut self, section: Section<'_>) -> Option<Date> {
        let (text, span) = section.typed("ends")?;
        let read = Date::strptime("%Y-%m-%d", text);
        if read.is_err() {
            let finding = Finding::new(&rules::SCHEDULE, format!("`ends: {text}` is not a valid date"));
            let form = "write the last day on which the campaign runs, such as `2027-01-01`";
            self.report.at(span, finding.help(help_for_misordered(text).unwrap_or_else(|| form.to_owned())));
        }
        read.ok()
    }
}
