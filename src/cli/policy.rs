//! Words for what a policy holds back.

use jiff::Zoned;

use super::suggested::Options;
use crate::report::{plural, thousands};
use crate::runs::{HeldRecipient, PolicyRefusal, short};

/// How a test is sent outside of the window where no person can be asked.
pub(super) const OUTSIDE: &str = "wait until the window opens, or add `--outside-window`";

/// That the window is closed, and when it opens.
pub(super) fn describe_closed_window(opens: Option<&Zoned>) -> String {
    match opens {
        Some(opens) => format!("the window is closed now; it opens at {}", format_local(opens)),
        None => "the window is closed now, and does not open for a year".to_owned(),
    }
}

/// A time on its clocks, with their zone.
pub(super) fn format_local(time: &Zoned) -> String {
    let zone = time.time_zone().iana_name().map_or_else(|| time.offset().to_string(), str::to_owned);
    format!("{} ({zone})", time.strftime("%Y-%m-%d %H:%M"))
}

/// Why a single message is held back, and what to do.
pub(super) fn refusal(refusal: &PolicyRefusal, options: &Options) -> (String, String) {
    match refusal {
        PolicyRefusal::Suppressed(held) => {
            let named = |held: &HeldRecipient| format!("recipient {} ({})", held.place, held.phone.masked());
            let named: Vec<String> = held.iter().map(named).collect();
            let message =
                format!("nothing was sent to anyone: {} opted out, and the message is marketing", named.join(", "));
            let list = options.command("suppress list");
            (
                message,
                format!(
                    "remove the `--to` of this recipient; the number is on the list (`{list}`) or in a `suppress` file"
                ),
            )
        }
        PolicyRefusal::OutsideWindow { opens } => {
            (format!("nothing was sent: {}", describe_closed_window(opens.as_ref())), OUTSIDE.to_owned())
        }
        PolicyRefusal::Capped => (
            "nothing was sent: the recipient has reached the message cap".to_owned(),
            "send it later, when the cap allows another message".to_owned(),
        ),
        PolicyRefusal::TooManyTests { number, most } => (
            format!("nothing was sent: {}", describe_excess(*number, *most)),
            format!(
                "to reach more recipients, send a run of some rows, such as `{}`, or select rows with `where`",
                options.command("run FILE -n 20")
            ),
        ),
        PolicyRefusal::UnapprovedTests { digest, gateway, number, most } => {
            let approve = options.command(format!("approve {} --key FILE", short(digest)));
            let message = format!(
                "nothing was sent: {}; more need the `approval` of the gateway `{gateway}`",
                describe_excess(*number, *most)
            );
            (
                message,
                format!(
                    "ask an approver to run `{approve}`, which approves exactly these messages, then repeat this command"
                ),
            )
        }
    }
}

fn describe_excess(number: u64, most: u64) -> String {
    let recipients = plural(number, "recipient");
    format!("this would bring the tests of this edition to {recipients}; the limit is {}", thousands(most))
}
