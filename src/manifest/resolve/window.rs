//! The keys that say when messages leave: `delivery.window` and `delivery.until`.

use std::ops::Range;
use std::time::Duration;

use super::Resolver;
use crate::calendar::{Timing, suggest_date_order};
use crate::finding::{Finding, Rule, rules};
use crate::manifest::section::ConfigSection;
use crate::manifest::value::Seconds;
use crate::manifest::window::{ColumnSupport, SendingDeadline, SendingWindow, read_window};

impl Resolver<'_> {
    /// The window, if there is one; nothing at all where it is wrong, which was told.
    pub(super) fn resolve_window(&mut self, root: ConfigSection<'_>) -> Option<Option<SendingWindow>> {
        let delivery = root.subsection("delivery");
        let read = read_window(delivery, ColumnSupport::Known, self.report);
        if let Some(entry) = delivery.entry("window").filter(|_| delivery.has_value("window")) {
            self.require_zone(root, ("delivery.window", &rules::WINDOW), &entry.key_span);
        }
        read
    }

    /// The end of all sending, if there is one; nothing at all where it is wrong, which was told.
    pub(super) fn resolve_until(&mut self, root: ConfigSection<'_>) -> Option<Option<SendingDeadline>> {
        let Some((text, span)) = root.subsection("delivery").typed_text("until") else { return Some(None) };
        if let Ok(Seconds(seconds)) = text.parse() {
            if seconds == 0 {
                let finding = Finding::new(&rules::UNTIL, "`until` leaves no time for sending messages");
                self.report.add(span, finding.help("write a duration such as `12h`"));
            }
            return Some(Some(SendingDeadline::After(Duration::from_secs(seconds.into()))));
        }
        self.require_zone(root, ("delivery.until", &rules::UNTIL), span);
        match Timing::parse_at(text) {
            Ok(timing) => timing.single_time().map(SendingDeadline::At).map(Some),
            Err(no) => {
                let form = "write a date and time such as `2026-12-07 20:00`, or a duration such as `12h`";
                let help = suggest_date_order(text).unwrap_or_else(|| form.to_owned());
                let finding = Finding::new(&rules::UNTIL, format!("`until: {text}` {}", no.why));
                self.report.add(span, finding.help(help));
                None
            }
        }
    }

    /// Tells that local times need a zone.
    fn require_zone(&mut self, root: ConfigSection<'_>, (key, rule): (&str, &'static Rule), span: &Range<usize>) {
        if self.lacks_timezone(root) {
            let finding = Finding::new(rule, format!("`{key}` needs `timezone` for its times"));
            self.report.add(span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
    }
}
