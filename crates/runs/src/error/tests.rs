//! Tests that error messages suit every surface: plain English, without options, commands or `Debug` output.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::{HeldRecipient, ScheduleChange, SkippedRetries};
use campaign_core::domain::{CountrySet, Phone, Purpose};
use campaign_gateway::FailureCause;
use campaign_ledger::RowState;

fn inquiry_failure(cause: FailureCause) -> InquiryFailure {
    InquiryFailure { cause, reason: "why".to_owned(), gateway_text: None, not_executed: false }
}

fn campaign_file() -> PathBuf {
    PathBuf::from("sale.yaml")
}

fn run_errors() -> Vec<Error> {
    let (run, gateway, at) = (|| "sale@1".to_owned(), || "main".to_owned(), Timestamp::UNIX_EPOCH);
    let campaign = || "sale".to_owned();
    let busy = |campaign: &str| Error::Busy { campaign: campaign.to_owned(), gateway: gateway(), since: Some(at) };
    vec![
        Error::Findings(Vec::new()),
        Error::Template(TemplateRefusal::Unclear {
            gateway: gateway(),
            failure: inquiry_failure(FailureCause::TimedOut),
            channel: TemplateChannel::Sms,
        }),
        Error::Template(TemplateRefusal::NothingDeleted { id: 7 }),
        Error::Template(TemplateRefusal::NoSuchTemplate { gateway: gateway(), channel: TemplateChannel::Viber, id: 7 }),
        Error::Template(TemplateRefusal::TextUnknown { channel: TemplateChannel::Viber, id: 7 }),
        Error::IdTaken,
        Error::TooManyThisHour { next: at },
        Error::TooManyInquiries { wait: Duration::from_secs(2) },
        Error::SandboxAccount,
        Error::NoGateway,
        Error::SeveralGateways(vec!["one".to_owned(), "other".to_owned()]),
        Error::NoSuchRun { name: run(), near: None },
        busy("sale"),
        busy("gateway.lookup"),
        Error::NothingToStopYet { run: run(), campaign: campaign() },
        Error::Taken { run: run() },
        Error::RoundUnfinished { run: run() },
        Error::Cancelled { run: run(), file: None, gateway: gateway() },
        Error::SingleRun { run: "gateway.lookup@1".to_owned() },
        Error::SinglesOnTheirWay { run: run() },
        Error::NoCampaign(SingleKind::Lookup),
        Error::OtherFile { campaign: campaign(), run: run(), began_at: at, there: campaign_file() },
        Error::RunsElsewhere { campaign: campaign(), run: run(), there: campaign_file() },
        Error::TextChanged { run: run(), began_at: at, people: 1, changes: vec![CHANGED_TEXTS] },
        Error::TextChanged { run: run(), began_at: at, people: 2, changes: vec!["`vars`", "`variants`"] },
        Error::NoGatewayNamed,
        Error::OtherNumber { expected: 2, number: 3 },
        Error::TooManyRecipients { number: 3, limit: 2 },
        Error::TooManyAbroad { number: 3, limit: 2, home: "UA".to_owned() },
        Error::NoSuchRow { row: Row::new(9), last: Row::new(4) },
        Error::RehearsalForgotten { run: run() },
        Error::NothingToCancel { run: run() },
        Error::HostChanged { gateway: gateway(), known: "loopback".to_owned(), now: "gate.example".to_owned() },
        Error::OtherReach { run: run(), gateway: gateway(), loopback: true },
        Error::LedgerLost {
            ledger: "ledger.sqlite".to_owned(),
            signs: vec![LossSign::Results { path: campaign_file(), identifiers: 2 }],
        },
        Error::ResultsPlace("`a.csv` is not a results file".to_owned()),
        Error::Interrupted { signal: 2, phase: RunPhase::Preparing },
        Error::Interrupted { signal: 2, phase: RunPhase::Sending(1) },
        Error::Interrupted { signal: 2, phase: RunPhase::Ending },
        Error::Backup(BackupRefusal::NotRestored { ledger: "ledger.sqlite".to_owned(), made_at: at }),
        Error::Backup(BackupRefusal::MaySendTwice { made_at: at, number: 3, accepted: Some(2) }),
    ]
}

fn refusal_errors() -> Vec<Error> {
    let (run, gateway, digest) = (|| "sale@1".to_owned(), || "main".to_owned(), || "ab12".to_owned());
    let unanswered =
        |cause| Error::Unanswered { gateway: gateway(), key: "$KEY".to_owned(), failure: inquiry_failure(cause) };
    let unapproved = |digest| PlanRefusal::Unapproved {
        digest,
        file: campaign_file(),
        gateway: gateway(),
        number: 3,
        sent: 1,
        above: 2,
    };
    let held = HeldRecipient { place: 1, phone: Phone::new(380_501_234_567).unwrap() };
    let skipped = SkippedRetries { delivered: 1, under_way: 1, unconfirmed: 0, excluded: [("cap", 1)].into() };
    let changed = |changes, earlier_edition| {
        Error::InputsChanged(Box::new(ChangedInputs {
            run: run(),
            file: campaign_file(),
            gateway: None,
            changes,
            earlier_edition,
        }))
    };
    let list = || InputChanges::List { list: "sale.csv".to_owned(), how: "1 row added".to_owned() };
    let edition = EarlierEdition { unfinished: "monday".to_owned(), current: String::new(), is_kept: true };
    let mut errors = vec![
        unanswered(FailureCause::KeyRefused),
        unanswered(FailureCause::Refused),
        unanswered(FailureCause::NotConnected),
        unanswered(FailureCause::SlowDown(Some(Duration::from_secs(9)))),
        unanswered(FailureCause::Unclear),
        Error::Retry(RetryRefusal::Unfinished { run: run(), file: campaign_file(), gateway: gateway() }),
        Error::Retry(RetryRefusal::Replaced { run: run() }),
        Error::Retry(RetryRefusal::OtherNumber { run: run(), confirmed: 2, number: 3 }),
        Error::Retry(RetryRefusal::NeedsApproval { run: run(), gateway: gateway() }),
        Error::Retry(RetryRefusal::Changed { run: run(), file: campaign_file(), gateway: gateway(), changes: list() }),
        Error::Retry(RetryRefusal::Nothing { run: run(), failed: 2, error: Some("No route".to_owned()), skipped }),
        Error::Retry(RetryRefusal::Unconfirmed { run: run(), rows: 3, accepted: Some(2) }),
        Error::Decision(DecisionRefusal::NotApplicable { row: Row::new(2), state: RowState::Accepted }),
        Error::Decision(DecisionRefusal::NotInDoubt { row: Row::new(2), state: RowState::Accepted }),
        Error::Decision(DecisionRefusal::Nothing { run: run() }),
        Error::Decision(DecisionRefusal::DuplicatesNotAccepted { rows: 3, accepted: Some(2) }),
        Error::Decision(DecisionRefusal::Replaced),
        Error::Decision(DecisionRefusal::NoIds { path: campaign_file(), run: run() }),
        changed(list(), None),
        changed(InputChanges::Campaign(vec!["`vars`".to_owned()]), Some(edition)),
        changed(InputChanges::Copies { place: "runs/sale@1".to_owned(), damaged: true }, None),
        Error::Policy(PolicyRefusal::Suppressed(vec![held], Purpose::Marketing)),
        Error::Policy(PolicyRefusal::Mandatory { gateway: gateway() }),
        Error::Policy(PolicyRefusal::OutsideWindow { opens: None }),
        Error::Policy(PolicyRefusal::Capped),
        Error::Policy(PolicyRefusal::OutsideCountries { held: vec![held], allowed: CountrySet::default() }),
        Error::Policy(PolicyRefusal::TooManyTests { number: 3, limit: 2 }),
        Error::Policy(PolicyRefusal::UnapprovedTests { digest: digest(), gateway: gateway(), number: 3, limit: 2 }),
        Error::Plan(unapproved(None)),
        Error::Plan(PlanRefusal::Unknown { digest: digest() }),
        Error::Plan(PlanRefusal::Changed {
            digest: digest(),
            file: campaign_file(),
            gateway: gateway(),
            differences: Vec::new(),
        }),
        Error::Plan(PlanRefusal::More {
            digest: digest(),
            file: campaign_file(),
            gateway: gateway(),
            planned: 2,
            now: 3,
        }),
        Error::Plan(PlanRefusal::NoRecipientsLeft {
            digest: digest(),
            file: campaign_file(),
            gateway: gateway(),
            run: run(),
        }),
        Error::Plan(PlanRefusal::NeedsKey { digest: digest(), gateway: gateway() }),
        Error::Plan(PlanRefusal::NoSchedule { file: campaign_file() }),
        Error::Schedule(ScheduleRefusal::Over { file: campaign_file() }),
        Error::Schedule(ScheduleRefusal::Changed(ScheduleChange::Addresses)),
        Error::Schedule(ScheduleRefusal::Unknown { name: "sale".to_owned(), near: None, any: true }),
    ];
    let kinds = || {
        [
            ProposalKind::Run(2),
            ProposalKind::ActivateSchedule,
            ProposalKind::Approve,
            ProposalKind::Single,
            ProposalKind::OutsideWindow(None),
            ProposalKind::Template { gateway: gateway(), verb: "delete" },
        ]
    };
    for refusal in [ConsentRefusal::Declined, ConsentRefusal::NoTerminal] {
        errors.extend(kinds().map(|proposal| Error::NotConfirmed { proposal, refusal }));
    }
    errors
}

#[test]
fn errors_are_plain_sentences_for_every_surface() {
    for error in run_errors().into_iter().chain(refusal_errors()) {
        let message = error.to_string();
        let first = message.chars().next().unwrap();
        // The message for a declined prompt is a complete sentence.
        let is_declined = matches!(error, Error::NotConfirmed { refusal: ConsentRefusal::Declined, .. });
        assert_eq!(is_declined, first.is_uppercase() && message.ends_with('.'), "{message}");
        assert!(!message.contains("`--") && !message.contains("`campaign "), "a surface adds what to type: {message}");
        assert!(!message.contains("1970-01-01T"), "people read local times: {message}");
        let debug_forms = [" { ", "Some(", "None", "::", "NobodyToAsk"];
        assert!(debug_forms.iter().all(|form| !message.contains(form)), "{message}");
        let unidiomatic = ["whoever", "nobody", "put back", "gone on", "came to", "say `", "took the place"];
        assert!(unidiomatic.iter().all(|words| !message.contains(words)), "{message}");
    }
}
