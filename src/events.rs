//! Run events as notes and warnings on standard error.

use std::sync::{Arc, Mutex, PoisonError};

use super::output::Output;
use super::progress::ProgressReporter;
use super::{progress, retry};
use campaign_core::domain::choose_plural;
use campaign_engine::check::online::Cost;
use campaign_engine::delivery;
use campaign_engine::delivery::Reconciliation;
use campaign_engine::report::{
    ResultsBackup, SendingProgress, describe_cost, format_count, format_duration, format_local_minute, format_thousands,
};
use campaign_gateway::Balance;
use campaign_ledger::RowState;
use campaign_runs::{RunEvent, RunObserver, SkippedRetries, StaleResults};

/// Creates an observer that prints events.
pub(super) fn terminal_observer(output: &Output) -> RunObserver {
    let output = output.clone();
    let progress: Mutex<Option<ProgressReporter>> = Mutex::default();
    Arc::new(move |event| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RunEvent::SendingBegins { recipients, later, counts, .. } => {
                let sending = SendingProgress::new(recipients, later).starting_from(counts);
                *progress = Some(ProgressReporter::new(sending, &output));
            }
            RunEvent::Sending(event) => match &*progress {
                Some(progress) => progress.handle_event(&event),
                None => show_single_operation_event(&output, &event),
            },
            RunEvent::SendingEnded => progress.take().iter().for_each(ProgressReporter::finish_display),
            event => show_event(&output, event),
        }
    })
}

/// Prints why a single operation waits, and any warning about it.
fn show_single_operation_event(output: &Output, event: &delivery::DeliveryEvent) {
    match event {
        // A single operation has no counts and no warm-up.
        delivery::DeliveryEvent::Settled { .. } | delivery::DeliveryEvent::Asking { .. } => {}
        delivery::DeliveryEvent::Warning(warning) => output.print_warning(warning),
        delivery::DeliveryEvent::Waiting { reason, time, next } => {
            output.print_note(&progress::describe_wait(reason, *time, *next))
        }
        delivery::DeliveryEvent::Slow { .. } => output.print_note(&progress::describe_event(event)),
        delivery::DeliveryEvent::Stopping { reason, at_most, .. } => output.print_note(&format!(
            "{reason}: waiting up to {} for the response to the request in flight; press Ctrl-C again to exit \
             immediately",
            format_duration(*at_most)
        )),
    }
}

fn show_event(output: &Output, event: RunEvent) {
    match event {
        RunEvent::Warnings(findings) => {
            if !output.json {
                output.print_findings(&findings);
            }
        }
        RunEvent::OtherProfiles(findings) => output.print_findings(&findings),
        RunEvent::HookUnusable { profile, reason } => {
            output.print_note(&format!("receipts for the profile `{profile}` are not accepted: {reason}"));
        }
        RunEvent::Contradicted(sign) => {
            output.warn_untrusted_ledger(&format!("the ledger does not contain all messages that were sent: {sign}"));
        }
        RunEvent::Fetching { what } => output.print_note(&format!("fetching the list: {what}")),
        RunEvent::NotFinal { run, messages } => {
            let ask = output.command(format!("reconcile {run} --all"));
            output.print_note(&format!(
                "the delivery status of {messages} in {run} might still change, but recipients are selected by their \
                 current status. To update the status first: {ask}"
            ));
        }
        RunEvent::PutAside { sign, aside } => {
            output.print_note(&format!("{sign}, so the file was renamed to `{aside}`"));
        }
        RunEvent::ResultsKept(backup) => output.print_note(&describe_results_backup(&backup)),
        RunEvent::WaitingToAsk(wait) => {
            output.print_note(&format!("waiting {}: {}", format_duration(wait.time), wait.reason.describe()));
        }
        RunEvent::Money { balance, cost } => output.print_note(&format_balance_and_cost(&balance, &cost)),
        RunEvent::Approved { by, at } => output.print_note(&format!("approved by {by} on {}", format_local_minute(at))),
        RunEvent::GoingOn { run, other_edition: None } => output.print_note(&format!("resuming {run}")),
        RunEvent::GoingOn { run, other_edition: Some(edition) } => output.print_note(&format!(
            "resuming {run} from the unfinished edition `{edition}`; the current edition starts when that run ends"
        )),
        RunEvent::EditionKept { replaced, edition } => output.print_note(&format!(
            "this run replaces {replaced} and keeps its edition `{edition}`; the next run starts the current edition \
             for the whole list"
        )),
        RunEvent::AskingBeforeRetry { rows } => output.print_note(&format!(
            "asking the gateway about {} before the retry, in case another channel delivered {}",
            format_count(rows, "message"),
            choose_plural(rows, "it", "them")
        )),
        RunEvent::RetryPlanned { run, rows, skipped, errors, scope } => {
            output.print_note(&describe_retry(&run, rows, &skipped));
            for line in retry::describe_errors(&output.options, &run, &errors, &scope) {
                output.print_note(&line);
            }
        }
        RunEvent::Retrying { run, rows } => {
            output.print_note(&format!("retrying {} in {run}: each row gets a new message", format_count(rows, "row")));
        }
        RunEvent::DoubtFromBefore { requests } => {
            let requests = format_count(requests as u64, "request");
            output.print_note(&format!(
                "a process that was sending this run ended unexpectedly; {requests} in doubt might have been processed \
                     by the gateway"
            ));
        }
        RunEvent::AskingAboutDoubt { rows } => {
            let rows = format_count(rows, "row");
            output.print_note(&format!("asking the gateway about {rows} in doubt; nothing is sent again"));
        }
        RunEvent::Reconciliation(reconciliation) => output.print_note(&describe_reconciliation(&reconciliation)),
        RunEvent::ResultsUnwritten(stale_results) => {
            output.print_note(&describe_stale_results(output, stale_results));
        }
        RunEvent::SendingBegins { .. } | RunEvent::Sending(_) | RunEvent::SendingEnded => {}
    }
}

/// Describes the rows that a retry sends and skips.
fn describe_retry(run: &str, rows: u64, skipped: &SkippedRetries) -> String {
    let SkippedRetries { delivered, under_way, unconfirmed, excluded: _ } = *skipped;
    let parts = [
        (delivered, "delivered"),
        (under_way, "still being delivered"),
        (unconfirmed, "whose failure the gateway did not confirm"),
    ];
    let mut parts = list_nonzero_counts(&parts);
    parts.extend(skipped.describe_excluded());
    let rest = if parts.is_empty() { String::new() } else { format!("; skipped: {}", parts.join(" · ")) };
    format!("retry of {run}: {} to send{rest}", format_count(rows, "message"))
}

/// Describes each count that is not zero.
fn list_nonzero_counts(parts: &[(u64, &str)]) -> Vec<String> {
    let nonzero = parts.iter().filter(|(count, _)| *count > 0);
    nonzero.map(|(count, description)| format!("{} {description}", format_thousands(*count))).collect()
}

/// Formats the balance of an account and the cost of a campaign.
fn format_balance_and_cost(balance: &Balance, cost: &Cost) -> String {
    format!("balance: {balance}; this {}", describe_cost(cost, Some(&balance.currency)))
}

/// Describes where the results of another run were moved to.
pub(super) fn describe_results_backup(ResultsBackup { run, path }: &ResultsBackup) -> String {
    format!("the results of {run} were moved to `{}`", path.display())
}

/// Describes the result of reconciliation.
pub(super) fn describe_reconciliation(reconciliation: &Reconciliation) -> String {
    let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *reconciliation;
    if asked == 0 {
        return "the gateway was not asked, because the account's rate limit allowed no more requests".to_owned();
    }
    let parts = [
        (found, "sent"),
        // The name of the state is used, because the gateway might have accepted these messages but not delivered them.
        (failed, RowState::Failed.name()),
        (not_found, "not found"),
        (unresolved, "unresolved"),
        (unclear, "without a usable response (see `campaign show`)"),
    ];
    let parts = list_nonzero_counts(&parts);
    let parts = if parts.is_empty() { "nothing new".to_owned() } else { parts.join(", ") };
    let blind = if blind > 0 {
        "; its responses are inconclusive, because they are the same for sent and unknown messages"
    } else {
        ""
    };
    format!("asked the gateway about {} in doubt: {parts}{blind}", format_count(asked, "row"))
}

/// Describes why results were not updated.
pub(super) fn describe_stale_results(output: &Output, stale_results: StaleResults) -> String {
    match stale_results {
        StaleResults::Later { run, later, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!(
                "`{}` now contains the results of {later}; to write the results of {run}: {elsewhere}",
                path.display()
            )
        }
        StaleResults::Gone { run, path } => {
            let elsewhere = output.command(format!("results {run} --out FILE"));
            format!(
                "the folder that contained `{}` no longer exists; to write the results of {run}: {elsewhere}",
                path.display()
            )
        }
        StaleResults::Failed(error) => {
            format!("the results were not updated: {}", output.explain_error(&error).to_single_line())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::Channel;

    #[test]
    fn reconciliation_calls_undelivered_messages_failed() {
        let reconciliation = Reconciliation { asked: 5, found: 3, failed: 2, ..Reconciliation::default() };
        let line = describe_reconciliation(&reconciliation);
        assert_eq!(line, "asked the gateway about 5 rows in doubt: 3 sent, 2 failed");
    }

    #[test]
    fn balance_and_cost_share_a_line() {
        let balance = Balance { amount: "1200.5".parse().unwrap(), currency: "UAH".into() };
        let line = format_balance_and_cost(&balance, &Cost::AtMost("80".parse().unwrap()));
        assert_eq!(line, "balance: 1 200.50 UAH; this costs at most 80.00 UAH");
        let unknown = format_balance_and_cost(&balance, &Cost::Unknown(vec![Channel::Viber, Channel::Sms]));
        assert!(unknown.ends_with("the profile has no `prices` for `viber` and `sms`"), "{unknown}");
    }
}
