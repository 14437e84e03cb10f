//! The words for what runs by itself.

use jiff::Timestamp;

use crate::calendar::{InvertedZone, Occurrence};
use crate::cli::suggested::{Options, file};
use crate::finding::one_line;
use crate::runs::{ArmedChange, ScheduleRefusal};

/// Why a campaign is no longer due, after its name.
pub(super) const OVER: &str = "is no longer due: the times of its `schedule` have passed";
/// The remedy.
pub(super) const DATE_TO_COME: &str = "set a future date under `schedule`";

/// An occurrence for a person. A zone such as `Etc/GMT+2` has its offset and the time that it is there now, because the sign of
/// its name is inverted.
pub(in crate::cli) fn date(occurrence: &Occurrence) -> String {
    let shown = occurrence.local();
    let words = shown.strftime("%a %-d %b %Y, %H:%M");
    let instead = match shown.datetime() == occurrence.nominal {
        true => String::new(),
        false => format!(", instead of {}, which clocks leave out", occurrence.name()),
    };
    let zone = occurrence.zone_name();
    let inverted = InvertedZone::of(zone)
        .map(|zone| format!(", which is {}, now {}", zone.offset(), zone.local_time(Timestamp::now())));
    format!("{words} ({zone}{}){instead}", inverted.unwrap_or_default())
}

/// What changed since a schedule was armed.
pub(in crate::cli) fn changed(change: ArmedChange) -> &'static str {
    match change {
        ArmedChange::Unreadable => "its file cannot be read or has errors now",
        ArmedChange::Campaign => "its file or a text of it changed",
        ArmedChange::Addresses => "its gateway is another one, or has other addresses",
        ArmedChange::Account => "the account of its gateway is another one",
    }
}

/// Why nothing was done about a schedule.
pub(in crate::cli) fn refusal(refusal: &ScheduleRefusal, options: &Options) -> String {
    match refusal {
        ScheduleRefusal::None { file } => {
            let help =
                "write `schedule: { every: Mon 10:00 }` and its `timezone` into it, with the times that you mean";
            format!("`{}` has no `schedule`; {help}", file.display())
        }
        ScheduleRefusal::Over { file } => over(file, options),
        ScheduleRefusal::OtherFile { name, there } => {
            let remove = options.command(format!("schedule remove {name}"));
            format!(
                "`{name}` is armed from another file, `{}`; give this campaign another name, or say `{remove}` first",
                one_line(&there.display().to_string())
            )
        }
        ScheduleRefusal::Unknown { name, near, any } => {
            let list = options.command("schedule list");
            match (near, any) {
                (Some(near), _) => format!("nothing is armed as `{name}`; did you mean `{near}`?"),
                (None, true) => format!("nothing is armed as `{name}`; `{list}` tells what is"),
                (None, false) => format!("nothing is armed as `{name}`, nor is anything else"),
            }
        }
        ScheduleRefusal::Changed(change) => format!("changed since it was armed: {}", changed(*change)),
        ScheduleRefusal::Recorded { nominal } => format!("what was due at {nominal} began already, or was left out"),
    }
}

/// The message that a campaign is no longer due, with the remedy.
pub(super) fn over(campaign: &std::path::Path, options: &Options) -> String {
    let next = options.command(format!("schedule next {}", file(campaign)));
    format!("`{}` {OVER}; {DATE_TO_COME}; `{next}` then shows it", campaign.display())
}

/// How a campaign is armed.
pub(in crate::cli) fn arm(campaign: &std::path::Path, options: &Options) -> String {
    options.command(format!("schedule add {}", file(campaign)))
}
