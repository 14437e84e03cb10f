//! Remedies for errors: the `help:` line below the message. This module does no I/O.
//!
//! Errors of the `campaign_runs` crate have only messages, because only the command line knows its options. Each
//! suggested command repeats those options of the current command that it needs.

use std::path::Path;

use super::suggested::{RepeatedOptions, shell_path, with_gateway};
use campaign_core::domain::EXPIRED;
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::ResultsError;
use campaign_gateway::FailureCause;
use campaign_ledger::LedgerError;
use campaign_runs::{
    AccountView, BackupRefusal, ChangedInputs, ConsentRefusal, DecisionRefusal, EarlierEdition, Error, InputChanges,
    PlanRefusal, PolicyRefusal, ProposalKind, RetryRefusal, RunPhase, ScheduleRefusal, TemplateRefusal, short_digest,
};

/// The remedy if a confirmation needs a terminal.
const CONFIRM_HINT: &str = "run the command at a terminal, or add `--yes` to confirm in advance";
/// The remedy for a test outside the window without a terminal.
const OUTSIDE_WINDOW_HINT: &str = "wait until the window opens, or add `--outside-window`";
/// The remedy for a campaign whose schedule has ended.
pub(super) const FUTURE_DATE_HINT: &str = "set a future date under `schedule`";
/// The remedy for an interrupted run.
const RESUME_HINT: &str = "to resume, run the same command again";

/// The remedy for an error, if there is one.
pub(super) fn error_hint(error: &Error, options: &RepeatedOptions) -> Option<String> {
    let command = |arguments: &str| options.command(arguments);
    Some(match error {
        Error::Unanswered { gateway, failure, .. } => return unanswered_hint(gateway, failure.cause, &failure.reason),
        Error::Template(refusal) => return template_hint(refusal, options),
        Error::SandboxAccount => {
            "start a sandbox with `campaign sandbox`, then add `--gateway NAME` with the profile that it prints"
                .to_owned()
        }
        Error::NoGateway => format!("add a profile: `{}`", command("gateway add NAME")),
        Error::SeveralGateways(_) => "choose a profile with `--gateway NAME`".to_owned(),
        Error::NoSuchRun { near: Some(near), .. } => format!("did you mean `{near}`?"),
        Error::NoSuchRun { near: None, .. } => format!("list the runs in this ledger: `{}`", command("status")),
        Error::Busy { campaign, .. } => {
            let (status, stop) = (command(&format!("status {campaign}")), command(&format!("stop {campaign}")));
            format!("watch the run with `{status}`, or stop it with `{stop}`")
        }
        // Only the process that started a single operation can stop it.
        Error::BusyRun { campaign, .. } if SingleKind::from_name(campaign).is_some() => {
            "wait until that process ends".to_owned()
        }
        Error::BusyRun { campaign, .. } => {
            format!("wait until that run ends, or stop it with `{}`", command(&format!("stop {campaign}")))
        }
        Error::NothingToStopYet { .. } => "try again in a moment".to_owned(),
        Error::RoundUnfinished { .. } => "finish that run first: run the same command without `--again`".to_owned(),
        Error::Retry(refusal) => return retry_refusal_hint(refusal, options),
        Error::Cancelled { file: campaign, gateway, .. } => {
            let campaign = campaign.as_deref().map_or_else(|| "FILE".to_owned(), shell_path);
            format!(
                "to retry the run's rejected and unsent rows: `{}`; to include its cancelled recipients, use a new \
                 `edition` or `--again`, both of which also send to recipients who already got the message",
                options.command(with_gateway(format!("run {campaign}"), Some(gateway)))
            )
        }
        Error::SingleRun { run } => single_run_hint(run).to_owned(),
        Error::SinglesOnTheirWay { .. } => "press Ctrl-C in the terminal where that process is running".to_owned(),
        Error::NoCampaign(_) => "see `campaign gateway --help` for how to repeat it".to_owned(),
        Error::OtherFile { .. } => {
            "if this is another campaign, change its `name`; if you moved the file, add `--moved`".to_owned()
        }
        Error::RunsElsewhere { run, .. } => {
            format!("select the run by its name, `{run}`; if you moved the file, add `--moved` to the next `run`")
        }
        Error::TextChanged { .. } => "to send the new message to everyone, set an `edition`, for example `edition: \
            \"{{ today }}\"`; to send it only to recipients who have not received the old one yet, add \
            `--accept-changes`"
            .to_owned(),
        Error::NoGatewayNamed => "set `gateway: NAME` in the campaign, or add `--gateway NAME`; to rehearse, add \
                                  `--gateway sandbox`"
            .to_owned(),
        Error::InputsChanged(changed) => changed_inputs_hint(changed, options),
        Error::NotConfirmed { proposal, refusal } => return unconfirmed_hint(proposal, *refusal),
        Error::Policy(refusal) => policy_hint(refusal, options),
        Error::OtherNumber { number: 0, .. } => "all recipients would be skipped, for example because they reached \
                                                 the `cap` or opted out"
            .to_owned(),
        Error::OtherNumber { number, .. } => format!(
            "to send the message to all of them, use `--again {number}`; to send only to new recipients, remove \
             `--again`"
        ),
        Error::TooManyRecipients { number, .. } => {
            let check = options.command("check FILE");
            format!("check the list with `{check}`; to send to all these recipients, add `--up-to {number}`")
        }
        Error::TooManyAbroad { number, .. } => {
            let check = options.command("check FILE");
            format!("check the list with `{check}`; to send to all these recipients, add `--up-to-abroad {number}`")
        }
        Error::Decision(refusal) => return decision_hint(refusal, options),
        Error::HostChanged { gateway, .. } => format!(
            "compare `base_url` with the provider's documentation; if the new address is correct: `{}`",
            command(&format!("gateway trust {gateway}"))
        ),
        Error::WeakerApproval(change) => format!(
            "restore `approval`, or accept the change at a terminal: `{}`",
            command(&format!("gateway trust {}", change.gateway))
        ),
        Error::OtherReach { .. } => "restore the profile's address".to_owned(),
        Error::Backup(BackupRefusal::NotRestored { .. }) => {
            format!("restore the backup where you want to use it: `{}`", command("ledger restore DIR"))
        }
        Error::Backup(BackupRefusal::MaySendTwice { number, .. }) => accept_duplicates_hint(*number),
        Error::LedgerLost { .. } => format!(
            "if you sent them with another ledger (another user, `--state-dir` or `--ledger`), use that ledger; if it \
             is lost, {}",
            new_ledger_hint(options)
        ),
        Error::Ledger(error) => return ledger_hint(error, options),
        Error::Results(error) => return results_hint(error, options),
        Error::ResultsPlace(_) => "choose another file; only a results file can be overwritten".to_owned(),
        Error::Interrupted { phase: RunPhase::Sending(_) | RunPhase::Ending, .. } => RESUME_HINT.to_owned(),
        Error::Plan(refusal) => return plan_hint(refusal, options),
        Error::Schedule(refusal) => return schedule_hint(refusal, options),
        Error::Findings(_)
        | Error::UnknownGateway { .. }
        | Error::KeyRefused(_)
        | Error::Input(_)
        | Error::Client(_)
        | Error::IdTaken
        | Error::TooManyThisHour { .. }
        | Error::TooManyInquiries { .. }
        | Error::Taken { .. }
        | Error::NoSuchRow { .. }
        | Error::RehearsalForgotten { .. }
        | Error::NothingToCancel { .. }
        | Error::Storage(_)
        | Error::Interrupted { phase: RunPhase::Preparing, .. }
        | Error::Internal(_) => return None,
    })
}

/// The remedy that accepts possible duplicates.
fn accept_duplicates_hint(number: u64) -> String {
    format!("to accept possible duplicates, add `--i-accept-duplicates {number}`")
}

/// The remedy for an inquiry that failed. `None` if the gateway rejected the inquiry.
fn unanswered_hint(gateway: &str, cause: FailureCause, reason: &str) -> Option<String> {
    Some(match cause {
        FailureCause::KeyRefused => format!("check the API key of `{gateway}` with the provider"),
        FailureCause::Refused => return None,
        FailureCause::NotConnected => connection_hint(gateway, reason),
        FailureCause::SlowDown(Some(wait)) => format!("try again after {} s", wait.as_secs()),
        FailureCause::SlowDown(None) | FailureCause::TimedOut | FailureCause::Unclear => "try again later".to_owned(),
    })
}

/// The remedy for a failed connection. If this machine refused the connection, the remedy is to start the sandbox.
fn connection_hint(gateway: &str, reason: &str) -> String {
    match is_refused_locally(reason) {
        true => START_SANDBOX.to_owned(),
        false => format!("check the address of `{gateway}` and your connection, then try again"),
    }
}

/// The remedy for a refused connection to this machine.
const START_SANDBOX: &str = "start the sandbox with `campaign sandbox`";

/// Whether a connection to this machine was refused.
pub(super) fn is_refused_locally(reason: &str) -> bool {
    ["connection refused by 127.", "connection refused by localhost", "connection refused by [::1]"]
        .iter()
        .any(|phrase| reason.contains(phrase))
}

fn template_hint(refusal: &TemplateRefusal, options: &RepeatedOptions) -> Option<String> {
    Some(match refusal {
        TemplateRefusal::Unclear { gateway, channel, .. } => {
            let list = options.view_command(AccountView::Templates(*channel), gateway);
            format!("check whether the change was made before you try again: `{list}`")
        }
        TemplateRefusal::NothingDeleted { .. } => return None,
        TemplateRefusal::NoSuchTemplate { gateway, channel, .. } => {
            let list = options.view_command(AccountView::Templates(*channel), gateway);
            format!("list the account's templates: `{list}`")
        }
        TemplateRefusal::TextUnknown { .. } => "add the text with `--text TEXT`".to_owned(),
    })
}

fn retry_refusal_hint(refusal: &RetryRefusal, options: &RepeatedOptions) -> Option<String> {
    Some(match refusal {
        RetryRefusal::Unfinished { file: campaign, gateway, .. } => {
            format!(
                "finish the run first: `{}`",
                options.command(with_gateway(format!("run {}", shell_path(campaign)), Some(gateway)))
            )
        }
        RetryRefusal::Replaced { .. } => {
            format!("retry the run that replaced this one; to find that run: `{}`", options.command("status --all"))
        }
        RetryRefusal::Changed { file, gateway, changes, .. } => retry_hint(changes, file, gateway, options),
        RetryRefusal::Nothing { failed, .. } if *failed > 0 => {
            "to include failed messages, add `--state failed`".to_owned()
        }
        RetryRefusal::Nothing { skipped, .. } if skipped.excluded.contains_key(EXPIRED) => {
            "to retry expired messages, set a later `until` under `delivery` in the campaign file".to_owned()
        }
        RetryRefusal::Nothing { .. } => return None,
        RetryRefusal::OtherNumber { run, .. } => {
            format!("check the number of messages: `{}`", options.command(format!("retry {run}")))
        }
        RetryRefusal::NeedsApproval { run, .. } => {
            format!("retry it with `{}`", options.command(format!("retry {run}")))
        }
        RetryRefusal::Unconfirmed { rows, .. } => {
            format!("try again later, or accept possible duplicates with `--i-accept-duplicates {rows}`")
        }
    })
}

fn single_run_hint(run: &str) -> &'static str {
    match SingleKind::from_name(run) {
        Some(SingleKind::Message) => "ask the assistant to send the message again",
        Some(SingleKind::Test) => "send another one with `campaign test`",
        _ => "repeat it with `campaign gateway`",
    }
}

fn unconfirmed_hint(proposal: &ProposalKind, refusal: ConsentRefusal) -> Option<String> {
    match (proposal, refusal) {
        (_, ConsentRefusal::Declined) | (ProposalKind::Approve, ConsentRefusal::NoTerminal) => None,
        (ProposalKind::OutsideWindow(_), ConsentRefusal::NoTerminal) => Some(OUTSIDE_WINDOW_HINT.to_owned()),
        (
            ProposalKind::Run(_)
            | ProposalKind::ActivateSchedule
            | ProposalKind::Single
            | ProposalKind::Template { .. },
            ConsentRefusal::NoTerminal,
        ) => Some(CONFIRM_HINT.to_owned()),
    }
}

fn policy_hint(refusal: &PolicyRefusal, options: &RepeatedOptions) -> String {
    match refusal {
        PolicyRefusal::Mandatory { gateway } => {
            format!("send it through another profile, or remove `mandatory: never` from `{gateway}` in gateways.yaml")
        }
        PolicyRefusal::Suppressed(..) => format!(
            "remove this recipient's `--to`; the number is on the suppression list (`{}`) or in a `suppress` file",
            options.command("suppress list")
        ),
        PolicyRefusal::NoConsent(_) => {
            "remove this recipient's `--to`, or record the recipient's consent where `recipients.consent` looks for it"
                .to_owned()
        }
        PolicyRefusal::OutsideCountries { .. } => {
            "check the number; `countries` in the campaign or in the profile's `policy` lists the allowed countries"
                .to_owned()
        }
        PolicyRefusal::OutsideWindow { .. } => OUTSIDE_WINDOW_HINT.to_owned(),
        PolicyRefusal::Capped => "send it later, when the cap allows another message".to_owned(),
        PolicyRefusal::TooManyTests { .. } => format!(
            "to reach more recipients, start a run with a limit, for example `{}`, or select rows with `where`",
            options.command("run FILE -n 20")
        ),
        PolicyRefusal::UnapprovedTests { digest, .. } => format!(
            "ask an approver to run `{}`, which approves exactly these messages; then repeat this command",
            options.command(format!("approve {} --key FILE", short_digest(digest)))
        ),
    }
}

fn decision_hint(refusal: &DecisionRefusal, options: &RepeatedOptions) -> Option<String> {
    Some(match refusal {
        DecisionRefusal::DuplicatesNotAccepted { rows, .. } => accept_duplicates_hint(*rows),
        DecisionRefusal::NoIds { run, .. } => {
            format!(
                "export the rows in doubt: `{}`",
                options.command(format!("results {run} --state in_doubt --out -"))
            )
        }
        DecisionRefusal::Shortened { run, .. } => format!(
            "export the file with `{}`, which keeps all digits, or select the rows with `--rows`",
            options.command(format!("results {run} --state in_doubt --excel --out FILE.xlsx"))
        ),
        DecisionRefusal::NotApplicable { .. }
        | DecisionRefusal::NotInDoubt { .. }
        | DecisionRefusal::Nothing { .. }
        | DecisionRefusal::Replaced
        | DecisionRefusal::Unreadable { .. }
        | DecisionRefusal::ForeignId { .. } => return None,
    })
}

fn ledger_hint(error: &LedgerError, options: &RepeatedOptions) -> Option<String> {
    Some(match error {
        LedgerError::Storage { .. } => {
            "free up disk space or fix the problem, then run the same command again".to_owned()
        }
        LedgerError::Unreachable { .. } => {
            "check that the database server is running and that this machine can reach it, then run \
                                            the same command again"
                .to_owned()
        }
        LedgerError::Damaged { .. } | LedgerError::DamagedFile { .. } | LedgerError::Unreadable(_) => format!(
            "use `{}` to see what is damaged; restore an intact copy, or keep the file and ask for help",
            options.command("ledger check")
        ),
        LedgerError::Outdated { .. } if error.was_copied_to_database() => {
            "use the database: add `--ledger` with its address, or set CAMPAIGN_LEDGER".to_owned()
        }
        LedgerError::Outdated { .. } => format!(
            "restore the newest ledger together with its high-water mark; if that ledger is lost, {}",
            new_ledger_hint(options)
        ),
        LedgerError::Purged { .. } => format!("see the run's counts: `{}`", options.command("status --all")),
        LedgerError::Busy { .. } => "wait until that process ends, then run the same command again".to_owned(),
        LedgerError::Occupied { .. } => "use a database without a ledger".to_owned(),
        LedgerError::NotUpgraded { .. } => {
            format!("install this version on all machines, then run `{}`", options.command("ledger upgrade"))
        }
        LedgerError::TooNew { .. } => "use the version of campaign that wrote the ledger, or a newer one".to_owned(),
        LedgerError::Closed
        | LedgerError::NotCopied { .. }
        | LedgerError::CopiesUnreadable { .. }
        | LedgerError::NotBackedUp { .. }
        | LedgerError::NotRestored { .. }
        | LedgerError::CampaignNotLocked { .. } => return None,
    })
}

/// The remedy for a lost ledger: `run --new-ledger`, because no other command has this option.
fn new_ledger_hint(options: &RepeatedOptions) -> String {
    format!(
        "remove from the list all recipients who already got the message, then run `{}`",
        options.command("run FILE --new-ledger")
    )
}

fn results_hint(error: &ResultsError, options: &RepeatedOptions) -> Option<String> {
    match error {
        ResultsError::Ledger(error) => ledger_hint(error, options),
        ResultsError::LedgerIncomplete { run, .. } => Some(format!(
            "write the results to another file: `{}`",
            options.command(format!("results {run} --out FILE"))
        )),
        ResultsError::ListChanged(_) => Some(format!(
            "restore the copy, or start again with `{}`; recipients who already got the message are skipped",
            options.command("run FILE --accept-changes")
        )),
        ResultsError::Recipients(_)
        | ResultsError::PathBlocked(_)
        | ResultsError::BackupFailed { .. }
        | ResultsError::Write { .. } => None,
    }
}

fn schedule_hint(refusal: &ScheduleRefusal, options: &RepeatedOptions) -> Option<String> {
    Some(match refusal {
        ScheduleRefusal::None { .. } => {
            "add a schedule and a `timezone` to the file, for example `schedule: { every: Mon 10:00 }`".to_owned()
        }
        ScheduleRefusal::Over { file: campaign } => {
            let next = options.command(format!("schedule next {}", shell_path(campaign)));
            format!("{FUTURE_DATE_HINT}; to check the date: `{next}`")
        }
        ScheduleRefusal::OtherFile { name, .. } => format!(
            "give this campaign another `name`, or remove that schedule first: `{}`",
            options.command(format!("schedule remove {name}"))
        ),
        ScheduleRefusal::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
        ScheduleRefusal::Unknown { any: true, .. } => {
            format!("list the active schedules: `{}`", options.command("schedule list"))
        }
        ScheduleRefusal::Unknown { any: false, .. } => {
            format!("no schedule is active; activate one: `{}`", options.command("schedule add FILE"))
        }
        ScheduleRefusal::Changed(_) | ScheduleRefusal::Recorded { .. } => return None,
    })
}

/// The remedy for an unfinished run whose inputs changed.
fn changed_inputs_hint(changed: &ChangedInputs, options: &RepeatedOptions) -> String {
    let ChangedInputs { run, file, gateway, changes, earlier_edition } = changed;
    let accept = accept_command(file, gateway.as_deref(), options);
    let stop = options.command(format!("stop {run} --for-good"));
    if let Some(edition) = earlier_edition {
        return earlier_edition_hint(run, edition, &accept, &stop);
    }
    match changes {
        InputChanges::List { .. } => format!(
            "to send to the current list, except to recipients who already got the message: `{accept}`; to finish \
             with the old list, restore it; to cancel the rest: `{stop}`"
        ),
        InputChanges::Campaign(_) => format!(
            "to apply the changes to recipients who have not received a message yet: `{accept}`; to finish without \
             the changes, undo them; to cancel the rest: `{stop}`"
        ),
        InputChanges::Copies { .. } => format!(
            "to send from the current files, except to recipients who already got the message: `{accept}`; to cancel \
             the rest: `{stop}`"
        ),
    }
}

/// The remedy for a run whose rows cannot be retried because its inputs changed.
fn retry_hint(changes: &InputChanges, campaign: &Path, gateway: &str, options: &RepeatedOptions) -> String {
    let accept = accept_command(campaign, Some(gateway), options);
    let send = format!("to send the changed campaign to recipients who have not received a message yet: `{accept}`");
    match changes {
        InputChanges::List { .. } => format!(
            "{send}; to retry with the old list, restore it; to send again only to recipients whose message failed, use \
             `recipients: {{ run: …, state: failed }}` in another campaign"
        ),
        InputChanges::Campaign(_) => format!("{send}; to retry without the changes, undo them"),
        InputChanges::Copies { .. } => send,
    }
}

/// The remedy for a changed run that belongs to an earlier edition, such as yesterday's edition.
fn earlier_edition_hint(run: &str, edition: &EarlierEdition, accept: &str, stop: &str) -> String {
    let now = if edition.current.is_empty() {
        "the message without an edition".to_owned()
    } else {
        edition.describe_current()
    };
    let first = format!("to cancel the rest of {run}: `{stop}`, then run the same command again");
    match edition.is_kept {
        true => format!(
            "{first}; to send the changed campaign to recipients who have not received a message from {run} yet: \
             `{accept}`; the next run sends {now}"
        ),
        false => format!(
            "{first}; to send {now} to recipients who have not received a message from {run}: `{accept}`; the next \
             run sends {now} to the others"
        ),
    }
}

fn accept_command(campaign: &Path, gateway: Option<&str>, options: &RepeatedOptions) -> String {
    options.command(format!("{} --accept-changes", with_gateway(format!("run {}", shell_path(campaign)), gateway)))
}

/// The remedy for a refused plan or approval, if there is one.
fn plan_hint(refusal: &PlanRefusal, options: &RepeatedOptions) -> Option<String> {
    let campaign_command = |command: &str, campaign, gateway: &str| {
        options.command(with_gateway(format!("{command} {}", shell_path(campaign)), Some(gateway)))
    };
    let approve = |digest: &str| options.command(format!("approve {digest} --key FILE"));
    Some(match refusal {
        PlanRefusal::Unknown { .. } => format!("create a plan: `{}`", options.command("plan FILE")),
        PlanRefusal::OtherVersion { .. } => format!("plan the campaign again: `{}`", options.command("plan FILE")),
        PlanRefusal::Changed { file, gateway, differences, .. } if differences.is_empty() => {
            format!("see what the campaign would send now: `{}`", campaign_command("plan", file, gateway))
        }
        PlanRefusal::Changed { file, gateway, .. } => {
            format!("undo the changes, or plan the campaign again: `{}`", campaign_command("plan", file, gateway))
        }
        PlanRefusal::More { file, gateway, .. } => {
            format!("to send to all of them, plan the campaign again: `{}`", campaign_command("plan", file, gateway))
        }
        PlanRefusal::NoRecipientsLeft { file, gateway, .. } => {
            format!("finish the run without the plan: `{}`", campaign_command("run", file, gateway))
        }
        PlanRefusal::Used { digest } => {
            format!("to approve one more run: `{}`", options.command(format!("approve {}", short_digest(digest))))
        }
        // The refused command has stored a plan with its own options, so only the approval is missing.
        PlanRefusal::Unapproved { digest: Some(digest), .. } => {
            let digest = short_digest(digest);
            format!("run `{}`, then repeat this command with `--plan {digest}`", approve(digest))
        }
        PlanRefusal::Unapproved { digest: None, file: campaign, gateway, .. } => {
            let plan = campaign_command("plan", campaign, gateway);
            let run = with_gateway(format!("run {}", shell_path(campaign)), Some(gateway));
            let run = options.command(format!("{run} --plan DIGEST"));
            format!("run `{plan}`, then `{}`, then `{run}`", approve("DIGEST"))
        }
        PlanRefusal::NeedsKey { digest, .. } => format!("sign the approval: `{}`", approve(short_digest(digest))),
        PlanRefusal::NoApprovers => "approve the plan at a terminal, without a key".to_owned(),
        PlanRefusal::NoSchedule { .. } => {
            format!("activate the schedule first: `{}`", options.command("schedule add FILE"))
        }
        PlanRefusal::Ambiguous { .. }
        | PlanRefusal::Approved { .. }
        | PlanRefusal::NoCampaign { .. }
        | PlanRefusal::Gone { .. }
        | PlanRefusal::UnknownKey { .. }
        | PlanRefusal::NotProven
        | PlanRefusal::OtherPlan { .. }
        | PlanRefusal::Rehearsal => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_of(error: &Error) -> String {
        error_hint(error, &RepeatedOptions::default()).unwrap_or_default()
    }

    #[test]
    fn hint_for_a_busy_lookup_does_not_suggest_stopping_it() {
        let busy = |campaign: &str| {
            let (campaign, gateway) = (campaign.to_owned(), "main".to_owned());
            hint_of(&Error::BusyRun { campaign, gateway, since: None })
        };
        assert_eq!(busy("gateway.lookup"), "wait until that process ends");
        assert_eq!(busy("sale"), "wait until that run ends, or stop it with `campaign stop sale`");
    }

    #[test]
    fn refused_connection_on_this_machine_suggests_the_sandbox() {
        for (reason, is_sandbox) in [
            ("connection refused by 127.0.0.1:8025", true),
            ("connection refused by localhost:8025", true),
            ("connection refused by [::1]:8025", true),
            ("cannot connect to gateway.invalid: dns error", false),
        ] {
            assert_eq!(connection_hint("main", reason) == START_SANDBOX, is_sandbox, "{reason}");
        }
    }

    #[test]
    fn lost_ledger_suggests_an_option_of_the_run_command() {
        let outdated = Error::Ledger(LedgerError::Outdated {
            path: "ledger.sqlite".to_owned(),
            reason: "it is older".to_owned(),
            mark: "mark".to_owned(),
        });
        assert!(hint_of(&outdated).ends_with("then run `campaign run FILE --new-ledger`"), "{}", hint_of(&outdated));
    }

    fn changed_hint(changes: InputChanges, earlier_edition: Option<EarlierEdition>) -> String {
        let (run, file, gateway) = ("sale@1".to_owned(), "sale.yaml".into(), Some("other".to_owned()));
        changed_inputs_hint(
            &ChangedInputs { run, file, gateway, changes, earlier_edition },
            &RepeatedOptions::default(),
        )
    }

    #[test]
    fn hint_order_of_accept_and_stop_depends_on_the_change() {
        const ACCEPT: &str = "`campaign run sale.yaml --gateway other --accept-changes`";
        const STOP: &str = "`campaign stop sale@1 --for-good`";
        let list = || InputChanges::List { list: "sale.csv".to_owned(), how: "10 rows added".to_owned() };
        let copies = InputChanges::Copies { place: "runs/sale@1".to_owned(), damaged: true };
        for (changes, first) in [
            (list(), "to send to the current list"),
            (InputChanges::Campaign(vec!["`vars`".to_owned()]), "to apply the changes"),
            (copies, "to send from the current files"),
        ] {
            let hint = changed_hint(changes, None);
            assert!(hint.starts_with(first) && hint.ends_with(STOP), "{hint}");
            assert!(hint.find(ACCEPT) < hint.find(STOP), "{hint}");
        }
        for is_kept in [true, false] {
            let edition = EarlierEdition { unfinished: "monday".to_owned(), current: "tuesday".to_owned(), is_kept };
            let hint = changed_hint(list(), Some(edition));
            assert!(hint.starts_with("to cancel the rest of sale@1"), "{hint}");
            assert!(hint.find(STOP) < hint.find(ACCEPT), "{hint}");
            let without_edition = EarlierEdition { unfinished: String::new(), current: String::new(), is_kept };
            let hint = changed_hint(list(), Some(without_edition));
            assert!(hint.contains("the message without an edition") && !hint.contains("no edition"), "{hint}");
        }
    }
}
