//! The keys that say when messages leave: `delivery.window` and `delivery.until`.

use std::ops::Range;
use std::time::Duration;

use super::Resolver;
use crate::calendar::{Timing, help_for_misordered};
use crate::finding::{Finding, Rule, rules};
use crate::manifest::section::Section;
use crate::manifest::value::Seconds;
use crate::manifest::window::{Columns, SendingWindow, Until, window};

impl Resolver<'_> {
    /// The window, if there is one; nothing at all where it is wrong, which was told.
    pub(super) fn window(&mut self, root: Section<'_>) -> Option<Option<SendingWindow>> {
        let delivery = root.section("delivery");
        let read = window(delivery, Columns::Known, self.report);
        if let Some(entry) = delivery.entry("window").filter(|_| delivery.has("window")) {
            self.zone_for(root, ("delivery.window", &rules::WINDOW), &entry.key_span);
        }
        read
    }

    /// The end of all sending, if there is one; nothing at all where it is wrong, which was told.
    pub(super) fn until(&mut self, root: Section<'_>) -> Option<Option<Until>> {
        let Some((text, span)) = root.section("delivery").typed("until") else { return Some(None) };
        if let Ok(Seconds(seconds)) = text.parse() {
            if seconds == 0 {
                let finding = Finding::new(&rules::UNTIL, "`until` leaves no time for sending messages");
                self.report.at(span, finding.help("write a duration such as `12h`"));
            }
            return Some(Some(Until::After(Duration::from_secs(seconds.into()))));
        }
        self.zone_for(root, ("delivery.until", &rules::UNTIL), span);
        match Timing::at(text) {
            Ok(timing) => timing.once().map(Until::At).map(Some),
            Err(no) => {
                let form = "write a date and time such as `2026-12-07 20:00`, or a duration such as `12h`";
                let help = help_for_misordered(text).unwrap_or_else(|| form.to_owned());
                let finding = Finding::new(&rules::UNTIL, format!("`until: {text}` {}", no.why));
                self.report.at(span, finding.help(help));
                None
            }
        }
    }

    /// Tells that local times need a zone.
    fn zone_for(&mut self, root: Section<'_>, (key, rule): (&str, &'static Rule), span: &Range<usize>) {
        if self.lacks_timezone(root) {
            let finding = Finding::new(rule, format!("`{key}` needs `timezone` for its times"));
            self.report.at(span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
    }
}
