//! Rules about the gateway account and the ledger.

use crate::check::online::{AccountTerms, Signature};
use campaign_core::domain::{Amount, Channel};
use campaign_core::finding::{Finding, Rule, RuleText, did_you_mean, quote_for_shell};
use campaign_gateway::{Balance, InquiryFailure, SenderName};

pub(super) static BALANCE_TOO_LOW: Rule = Rule::error(
    "balance-too-low",
    RuleText {
        cause: "The account balance might be too low. If it runs out, the run stops before all messages are sent.",
        example: &["the balance is 120.00 UAH, and the messages can cost up to 200.00 UAH"],
        fix: "top up the account, or send to fewer recipients with `run --limit N`",
    },
);

/// A finding if the balance is lower than the maximum cost.
pub(in crate::check) fn check_balance(balance: &Balance, cost: Amount) -> Option<Finding> {
    let Balance { amount, currency } = balance;
    if *amount >= cost {
        return None;
    }
    let missing = cost.saturating_sub(*amount);
    let shown = |amount: Amount| format!("{amount} {currency}").trim_end().to_owned();
    let (amount, cost, missing) = (shown(*amount), shown(cost), shown(missing));
    let message = format!("the balance is {amount}, but the messages can cost up to {cost}, which is {missing} more");
    Some(
        Finding::new(&BALANCE_TOO_LOW, message)
            .help("top up the account, or send to fewer recipients with `run --limit N`"),
    )
}

/// The gateway rejects the API key.
pub static KEY_REFUSED: Rule = Rule::error(
    "key-refused",
    RuleText {
        cause: "The gateway rejects the API key. No messages can be sent.",
        example: &[
            "gateways.yaml: production: { api_key: { env: CAMPAIGN_API_KEY } }     # the key is no longer valid",
        ],
        fix: "check the key that the profile names under `api_key`",
    },
);

/// An error that the key was rejected, with the reason.
pub(in crate::check) fn key_rejected_finding(reason: String, key: &str) -> Finding {
    Finding::new(&KEY_REFUSED, reason).help(format!("check {key}; the profile reads the API key from there"))
}

/// The gateway did not return some account data.
pub static ONLINE_UNKNOWN: Rule = Rule::warning(
    "online-unknown",
    RuleText {
        cause: "The gateway did not return the account data. Runs are not affected.",
        example: &["`check --online` cannot reach the gateway"],
        fix: "check again later, or select the right profile with `--gateway NAME`",
    },
);

/// A warning that data is unknown, with the reason.
pub(in crate::check) fn online_unknown_finding(
    what: &str,
    unanswered: &InquiryFailure,
    account: AccountTerms<'_>,
) -> Finding {
    let finding = Finding::new(&ONLINE_UNKNOWN, format!("{what} unknown: {}", unanswered.reason));
    finding.help(format!(
        "run `{}` and `{}` to try again; missing account data does not stop a run",
        account.balance, account.senders
    ))
}

/// The account does not have a sender name, or must not use it.
pub static SENDER_UNKNOWN: Rule = Rule::error(
    "sender-unknown",
    RuleText {
        cause: "The account cannot use this sender name. The gateway rejects messages sent under unknown or \
            unverified names.",
        example: &["channels: [{ sms: { signature: OlenaKo, message: Hi } }]     # the account has OlenaCo"],
        fix: "use a name listed by `gateway senders`, or have the name verified",
    },
);

/// The gateway's status for unverified sender names; the contract leaves the set open (2.5).
const UNVERIFIED: &str = "New";

/// Compares a signature with the sender names of the account.
pub(in crate::check) fn check_sender_name(
    signature: &Signature,
    senders: &[&SenderName],
    account: AccountTerms<'_>,
) -> Option<Finding> {
    // An account without sender names might not need any, so an empty list proves nothing.
    if senders.is_empty() {
        return None;
    }
    let Signature { channel, name, place } = signature;
    // The list might contain only SMS sender names, so it proves nothing about other channels.
    let new = |message: String| match channel {
        Channel::Sms => Finding::new(&SENDER_UNKNOWN, message),
        _ => Finding::new(&SENDER_UNKNOWN, message).into_warning(),
    };
    let known = || senders.iter().map(|sender| sender.name.as_str());
    let finding = match senders.iter().find(|sender| sender.name == *name).map(|sender| sender.status.as_str()) {
        Some(status) if account.verified.iter().any(|word| word.eq_ignore_ascii_case(status)) => return None,
        Some(status) if status.eq_ignore_ascii_case(UNVERIFIED) => new(format!(
            "the sender name `{name}` is not verified yet: its status is `{status}`"
        ))
        .help(format!("wait until the gateway has verified it, or use another name listed by `{}`", account.senders)),
        Some(status) => Finding::new(
            &SENDER_UNKNOWN,
            format!("the sender name `{name}` has the status `{status}`, which might mean that it cannot be used"),
        )
        .into_warning()
        .help("ask the gateway's support team what this status means"),
        None => new(format!("the account has no sender name `{name}`")).help(match did_you_mean(name, known()) {
            Some(meant) if meant.eq_ignore_ascii_case(name) => {
                format!("did you mean `{meant}`? names are case-sensitive")
            }
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("run `{}` to list the account's sender names", account.senders),
        }),
    };
    Some(finding.at(place.clone()))
}

pub(super) static UNCONFIRMED_REPLICA: Rule = Rule::warning(
    "unconfirmed-replica",
    RuleText {
        cause: "A replica does not confirm the ledger's commits. After a failover, it might not know which recipients \
                already got a message.",
        example: &["the ledger is in PostgreSQL with one asynchronous replica"],
        fix: "list the replicas in `synchronous_standby_names`, so that one of them confirms each commit",
    },
);

/// A warning that this many replicas might lack committed data. `None` for 0.
#[must_use]
pub fn check_replicas(replicas: u64) -> Option<Finding> {
    let replicas = match replicas {
        0 => return None,
        1 => "a replica that does not".to_owned(),
        more => format!("{more} replicas that do not"),
    };
    let finding =
        Finding::new(&UNCONFIRMED_REPLICA, format!("the ledger's database has {replicas} confirm its commits"));
    Some(finding.help("list the replicas in the database setting `synchronous_standby_names`"))
}

pub(super) static UNFAMILIAR_LEDGER: Rule = Rule::warning(
    "unfamiliar-ledger",
    RuleText {
        cause: "This machine has never used this ledger. If the database was restored from an old copy, recipients \
            could get messages again.",
        example: &["`campaign run` on a new computer, with a shared ledger that other computers have used"],
        fix: "compare the latest run in `campaign status` with the last one you know of; if runs are missing, see \"A \
              snapshot of the database\" in docs/shared-ledger.md",
    },
);

/// A warning about a ledger that this machine has never used, with its number of live runs and the latest one.
#[must_use]
pub fn unfamiliar_ledger_finding(place: &str, runs: u64, latest: &str) -> Finding {
    let runs = if runs == 1 {
        "a live run from another machine".to_owned()
    } else {
        format!("{runs} live runs from other machines")
    };
    let message = format!(
        "this machine has never used the ledger {}, which contains {runs}; the most recent is {latest}",
        quote_for_shell(place)
    );
    Finding::new(&UNFAMILIAR_LEDGER, message).help(
        "check in `campaign status` that no later run is missing: if the database was restored from a snapshot, \
         recipients could get messages again",
    )
}
