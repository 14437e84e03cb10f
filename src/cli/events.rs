//! Events in words: notes on standard error, and the progress of a run.

use std::sync::{Arc, Mutex, PoisonError};

use super::clock;
use super::output::Output;
use super::progress::{self, Progress};
use super::retry_errors;
use crate::check::online::Cost;
use crate::delivery::{self, Reconciliation};
use crate::domain::one_or;
use crate::gateway::Balance;
use crate::report::{KeptResults, cost_words, duration, plural, thousands};
use crate::runs::{Event, Observer, RetryLeftOut, StaleResults};

/// An observer that shows events to a person.
pub(super) fn observer(output: &Output) -> Observer {
    let output = output.clone();
    let progress: Mutex<Option<Progress>> = Mutex::default();
    Arc::new(move |event| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::SendingBegins { recipients, later, .. } => {
                *progress = Some(Progress::new(recipients, later, &output));
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

/// Shows what a single operation waits for.
fn wait(output: &Output, event: &delivery::DeliveryEvent) {
    match event {
        // A single operation has no counts and no warm-up.
        delivery::DeliveryEvent::Settled { .. } | delivery::DeliveryEvent::Asking { .. } => {}
        delivery::DeliveryEvent::Warning(what) => output.warning(what),
        delivery::DeliveryEvent::Waiting { reason, time, next } => output.note(&progress::wait(reason, *time, *next)),
        delivery::DeliveryEvent::Slow { waited, at_most } => {
            output.note(&format!("waiting for a response: {} so far, at most {}", duration(*waited), duration(*at_most)));
        }
        delivery::DeliveryEvent::Stopping { reason, at_most, .. } => output.note(&format!(
            "{reason}: waiting up to {} for the response to the request in flight; press Ctrl-C again to exit immediately",
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
            output.note(&format!("receipts for the profile `{profile}` are not accepted: {reason}"));
        }
        Event::Contradicted(sign) => {
            output.distrust(&format!("the ledger does not contain all messages that were sent: {sign}"));
        }
        Event::Fetching { what } => output.note(&format!("fetching the list: {what}")),
        Event::NotFinal { run, messages } => {
            let ask = output.command(format!("reconcile {run} --all"));
            output.note(&format!(
                "the delivery status of {messages} in {run} might still change, but recipients are selected by their \
                 current status. To update the status first: {ask}"
            ));
        }
        Event::PutAside { sign, aside } => {
            output.note(&format!("{sign}, so the file was renamed to `{aside}`"));
        }
        Event::ResultsKept(kept) => output.note(&kept_results(&kept)),
        Event::WaitingToAsk(wait) => {
            output.note(&format!("waiting {}: {}", duration(wait.time), wait.reason.words()));
        }
        Event::Money { balance, cost } => output.note(&money(&balance, &cost)),
        Event::Approved { by, at } => output.note(&format!("approved by {by} on {}", clock::minute(at))),
        Event::GoingOn { run, other_edition: None } => output.note(&format!("resuming {run}")),
        Event::GoingOn { run, other_edition: Some(edition) } => output.note(&format!(
            "resuming {run} of the unfinished edition `{edition}`; the current edition starts after it"
        )),
        Event::EditionKept { replaced, edition } => output.note(&format!(
            "this run replaces {replaced} and keeps its edition `{edition}`; the next run starts the current edition \
             for the whole list"
        )),
        Event::AskingBeforeRetry { rows } => output.note(&format!(
            "asking the gateway about {} before the retry, in case another channel delivered {}",
            plural(rows, "message"),
            one_or(rows, "it", "them")
        )),
        Event::RetryPlanned { run, rows, left_out, errors, scope } => {
            output.note(&retry_line(&run, rows, left_out));
            for line in retry_errors::lines(&output.options, &run, &errors, &scope) {
                output.note(&line);
            }
        }
        Event::Retrying { run, rows } => {
            output.note(&format!("retrying {} in {run}: each row gets a new message", plural(rows, "row")));
        }
        Event::DoubtFromBefore { requests } => {
            let requests = plural(requests as u64, "request");
            output.note(&format!(
                "an earlier run was interrupted and left {requests} in doubt, which the gateway might have processed"
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

/// What a retry sends and what it skips.
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

/// The balance of an account and the cost of a campaign.
pub(super) fn money(balance: &Balance, cost: &Cost) -> String {
    let amount = format!("{} {}", balance.amount, balance.currency);
    format!("balance: {}; this {}", amount.trim_end(), cost_words(cost, Some(&balance.currency)))
}

/// The new path of another run's results.
pub(super) fn kept_results(KeptResults { run, path }: &KeptResults) -> String {
    format!("the results of {run} were moved to `{}`", path.display())
}

/// The result of asking about rows in doubt.
pub(super) fn learnt_line(learnt: &Reconciliation) -> String {
    let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *learnt;
    if asked == 0 {
        return "the gateway was not asked: the account's rate limit left no room for requests".to_owned();
    }
    let parts = [
        (found, "sent"),
        (failed, "rejected by the gateway"),
        (not_found, "not found"),
        (unresolved, "unresolved"),
        (unclear, "without a usable response (see `campaign show`)"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
    let parts = if parts.is_empty() { "nothing new".to_owned() } else { parts.join(", ") };
    let blind = if blind > 0 {
        "; its responses prove nothing, because they are the same for sent and for unknown messages"
    } else {
        ""
    };
    format!("asked the gateway about {} in doubt: {parts}{blind}", plural(asked, "row"))
}

/// Why results were not updated.
pub(super) fn unwritten(output: &Output, why: StaleResults) -> String {
    match why {
        StaleResults::Later { run, later, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!(
                "`{}` now contains the results of {later}; to write the results of {run}: {elsewhere}",
                path.display()
            )
        }
        StaleResults::Gone { run, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!("the folder of `{}` no longer exists; to write the results of {run}: {elsewhere}", path.display())
        }
        StaleResults::Failed(error) => {
            format!("the results were not updated: {}", output.explain(&error).on_one_line())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Channel;

    #[test]
    fn balance_and_cost_share_a_line() {
        let balance = Balance { amount: "1200.5".parse().unwrap(), currency: "UAH".into() };
        let told = money(&balance, &Cost::AtMost("80".parse().unwrap()));
        assert_eq!(told, "balance: 1 200.50 UAH; this costs at most 80.00 UAH");
        let unknown = money(&balance, &Cost::Unknown(vec![Channel::Viber, Channel::Sms]));
        assert!(unknown.ends_with("the profile has no `prices` for `viber` and `sms`"), "{unknown}");
    }
}
