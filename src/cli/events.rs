//! What happens, in words: notes on standard error, and progress while messages are sent.

use std::sync::{Arc, Mutex, PoisonError};

use super::output::Output;
use super::progress::{self, Progress};
use crate::check::online::Cost;
use crate::delivery::{self, Reconciliation};
use crate::gateway::Balance;
use crate::report::{KeptResults, cost_words, duration, plural, thousands};
use crate::runs::{Event, Observer, RetryLeftOut, StaleResults};

/// An observer that tells a person.
pub(super) fn observer(output: &Output) -> Observer {
    let output = output.clone();
    let progress: Mutex<Option<Progress>> = Mutex::default();
    Arc::new(move |event| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::SendingBegins { recipients, later, .. } => {
                *progress = Some(Progress::new(recipients, later, output.progress()));
            }
            Event::Sending(event) => match &*progress {
                Some(progress) => progress.show(&event),
                None => wait(&output, &event),
            },
            Event::SendingEnded => progress.take().iter().for_each(Progress::finish),
            event => tell(&output, event),
        }
    })
}

/// Tells a person who waits for a single operation what it waits for.
fn wait(output: &Output, event: &delivery::DeliveryEvent) {
    match event {
        // Of a single operation nothing is asked before it ends.
        delivery::DeliveryEvent::Settled { .. } | delivery::DeliveryEvent::Asking { .. } => {}
        delivery::DeliveryEvent::Warning(what) => output.note(what),
        delivery::DeliveryEvent::Waiting { reason, time, next } => output.note(&progress::wait(reason, *time, *next)),
        delivery::DeliveryEvent::Slow { waited, at_most } => {
            output.note(&format!("waiting {} for an answer, at most {}", duration(*waited), duration(*at_most)));
        }
        delivery::DeliveryEvent::Stopping { reason, at_most, .. } => output.note(&format!(
            "{reason}: what was sent already is waited for, at most {}; a second Ctrl-C leaves at once",
            duration(*at_most)
        )),
    }
}

fn tell(output: &Output, event: Event) {
    match event {
        Event::Warnings(findings) => {
            if !output.json {
                output.findings(&findings);
            }
        }
        Event::OtherProfiles(findings) => output.findings(&findings),
        Event::HookUnusable { profile, reason } => {
            output.note(&format!("no receipts are taken for the profile `{profile}`: {reason}"));
        }
        Event::Contradicted(sign) => {
            output.distrust(&format!("messages went out that the ledger does not know of: {sign}"));
        }
        Event::Fetching { what } => output.note(&format!("fetching the list: {what}")),
        Event::NotFinal { run, messages } => {
            let ask = output.command(format!("reconcile {run} --all"));
            output.note(&format!(
                "what became of {messages} of {run} may still change, and people are chosen by what is known now; to ask: {ask}"
            ));
        }
        Event::PutAside { sign, aside } => {
            output.note(&format!("{sign}: it is `{aside}` from now on"));
        }
        Event::ResultsKept(kept) => output.note(&kept_results(&kept)),
        Event::WaitingToAsk(wait) => {
            output.note(&format!("waiting {}: {}", duration(wait.time), wait.reason.words()));
        }
        Event::Money { balance, cost } => output.note(&money(&balance, &cost)),
        Event::Approved { by, at } => output.note(&format!("approved by {by} ({at:.0})")),
        Event::GoingOn { run, other_edition: None } => output.note(&format!("going on with {run}")),
        Event::GoingOn { run, other_edition: Some(edition) } => output.note(&format!(
            "going on with {run} of the edition `{edition}`, which is unfinished; the edition of now begins after it"
        )),
        Event::EditionKept { replaced, edition } => output.note(&format!(
            "what takes the place of {replaced} is still of its edition `{edition}`; the edition of now begins with the next \
             start, for everybody on the list"
        )),
        Event::AskingBeforeRetry { rows } => output.note(&format!(
            "asking the gateway about {} before the retry, in case another channel delivered",
            plural(rows, "message")
        )),
        Event::RetryPlanned { run, rows, left_out } => output.note(&retry_line(&run, rows, left_out)),
        Event::Retrying { run, rows } => {
            output.note(&format!("sending {} of {run} as new messages", plural(rows, "row")));
        }
        Event::DoubtFromBefore { requests } => {
            let requests = plural(requests as u64, "request");
            output.note(&format!(
                "in doubt from a start that was interrupted: {requests}: nothing proves whether the gateway executed them"
            ));
        }
        Event::AskingAboutDoubt { rows } => {
            let rows = plural(rows, "row");
            output.note(&format!("asking the gateway about {rows} in doubt; nothing is sent again"));
        }
        Event::Reconciliation(learnt) => output.note(&learnt_line(&learnt)),
        Event::ResultsUnwritten(why) => output.note(&unwritten(output, why)),
        Event::SendingBegins { .. } | Event::Sending(_) | Event::SendingEnded => {}
    }
}

/// What a retry is going to send, and what it leaves out.
fn retry_line(run: &str, rows: u64, left_out: RetryLeftOut) -> String {
    let RetryLeftOut { delivered, under_way, unconfirmed, guarded } = left_out;
    let parts = [
        (delivered, "delivered"),
        (under_way, "still being delivered"),
        (unconfirmed, "not confirmed as failed by the gateway"),
        (guarded, "opted out, reached by another run or skipped before"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
    let rest = if parts.is_empty() { String::new() } else { format!("; skipped: {}", parts.join(" · ")) };
    format!("retry of {run}: {} to send{rest}", plural(rows, "message"))
}

/// The money of an account, and what a campaign costs of it.
pub(super) fn money(balance: &Balance, cost: &Cost) -> String {
    let amount = format!("{} {}", balance.amount, balance.currency);
    format!("the balance is {}; this {}", amount.trim_end(), cost_words(cost, Some(&balance.currency)))
}

/// The new path of another run's results.
pub(super) fn kept_results(KeptResults { run, path }: &KeptResults) -> String {
    format!("the results of {run} are in `{}` now", path.display())
}

/// What was learnt by asking about rows in doubt.
pub(super) fn learnt_line(learnt: &Reconciliation) -> String {
    let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *learnt;
    if asked == 0 {
        return "the gateway was not asked: the account's rate left no room for it in time".to_owned();
    }
    let parts = [
        (found, "went out"),
        (failed, "the gateway had and refused"),
        (not_found, "not found"),
        (unresolved, "unresolved"),
        (unclear, "without a usable answer (`campaign show` tells why)"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
    let parts = if parts.is_empty() { "nothing new".to_owned() } else { parts.join(", ") };
    let blind = if blind > 0 {
        "; its answers prove nothing: it says the same of messages that were sent and that never were"
    } else {
        ""
    };
    format!("asked the gateway about {} in doubt: {parts}{blind}", plural(asked, "row"))
}

/// Why results were not written anew.
pub(super) fn unwritten(output: &Output, why: StaleResults) -> String {
    match why {
        StaleResults::Later { run, later, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!("`{}` holds the results of {later}; those of {run}: {elsewhere}", path.display())
        }
        StaleResults::Gone { run, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!("the folder of `{}` is gone; the results of {run}: {elsewhere}", path.display())
        }
        StaleResults::Failed(error) => format!("the results were not written anew: {}", output.explain(error).message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Channel;

    #[test]
    fn balance_and_cost_are_told_in_a_line() {
        let balance = Balance { amount: "1200.5".parse().unwrap(), currency: "UAH".into() };
        let told = money(&balance, &Cost::AtMost("80".parse().unwrap()));
        assert_eq!(told, "the balance is 1 200.50 UAH; this costs at most 80.00 UAH");
        let unknown = money(&balance, &Cost::Unknown(vec![Channel::Viber, Channel::Sms]));
        assert!(unknown.ends_with("the profile's `prices` lack `viber` and `sms`"), "{unknown}");
    }
}
