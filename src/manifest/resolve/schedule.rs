//! The key `schedule`: when a campaign runs by itself.

use std::ops::Range;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Resolver;
use crate::calendar::{Schedule, Timing, TimingError, suggest_date_order};
use crate::finding::{Finding, rules};
use crate::manifest::section::ConfigSection;
use crate::manifest::value::Seconds;

/// How a key says local times.
type TimingParser = fn(&str) -> Result<Timing, TimingError>;

const KEYS: [(&str, TimingParser); 3] =
    [("at", Timing::parse_at), ("every", Timing::parse_every), ("cron", Timing::parse_cron)];

impl Resolver<'_> {
    /// The schedule, if there is one; what is wrong with it was told where there is none.
    pub(super) fn resolve_schedule(&mut self, root: ConfigSection<'_>, zone: Option<&str>) -> Option<Schedule> {
        let key = &root.entry("schedule")?.key_span;
        let section = root.subsection("schedule");
        let (timing, ends) = (self.resolve_timing(section, key), self.resolve_end_date(section));
        if self.lacks_timezone(root) {
            let finding = Finding::new(&rules::SCHEDULE, "`schedule` needs `timezone` for its times");
            self.report.add(key, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let seconds = |name| section.parse_value(name).map(|Seconds(seconds)| Duration::from_secs(seconds.into()));
        Some(Schedule {
            timing: timing?,
            zone: TimeZone::get(zone?).ok()?,
            ends,
            grace: seconds("grace")?,
            wait_for_file: seconds("wait_for_file"),
        })
    }

    /// The local times, which one key says.
    fn resolve_timing(&mut self, section: ConfigSection<'_>, schedule: &Range<usize>) -> Option<Timing> {
        let typed: Vec<_> =
            KEYS.into_iter().filter_map(|(name, read)| Some((name, read, section.typed_text(name)?))).collect();
        match typed[..] {
            [] => {
                let finding = Finding::new(&rules::SCHEDULE, "`schedule` has no time");
                let help = "add `at: 2026-12-01 10:00`, `every: Mon 10:00` or `cron: 0 10 * * MON` under `schedule`";
                self.report.add(schedule, finding.help(help));
                None
            }
            [(name, read, (text, span))] => match read(text) {
                Ok(timing) => Some(timing),
                Err(TimingError { why, help }) => {
                    self.report.add(span, Finding::new(&rules::SCHEDULE, format!("`{name}: {text}` {why}")).help(help));
                    None
                }
            },
            [(first, ..), (second, _, (_, span)), ..] => {
                let message = format!("`schedule` has two times: `{first}` and `{second}`");
                self.report.add(span, Finding::new(&rules::SCHEDULE, message).help("remove one of them"));
                None
            }
        }
    }

    /// The last day.
    fn resolve_end_date(&mut self, section: ConfigSection<'_>) -> Option<Date> {
        let (text, span) = section.typed_text("ends")?;
        let read = Date::strptime("%Y-%m-%d", text);
        if read.is_err() {
            let finding = Finding::new(&rules::SCHEDULE, format!("`ends: {text}` is not a valid date"));
            let form = "write the last day on which the campaign runs, such as `2027-01-01`";
            self.report.add(span, finding.help(suggest_date_order(text).unwrap_or_else(|| form.to_owned())));
        }
        read.ok()
    }
}
