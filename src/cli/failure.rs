//! The failures that end a command, and the one place that finds words and codes for what `runs` refuses.

use super::backup;
use super::changed::inputs_changed;
use super::suggested::{Options, file};
use super::{busy, consent, exit, plan, policy, schedule};
use crate::delivery::SingleKind;
use crate::domain::{self, LOOPBACK, Row, one_or};
use crate::finding::{Finding, list, quoted, rules};
use crate::gateway::{FailureCause, InquiryFailure};
use crate::ledger::LedgerError;
use crate::regular_file::ran_out_of_handles;
use crate::report::{LossSign, ResultsError, plural};
use crate::runs::{AccountView, Error, ProposalKind, Refusal, RetryLeftOut, RunPhase, WeakerRule};

/// Why a command ended without its result.
#[derive(Debug)]
pub(super) enum Failure {
    /// What the command itself has to say.
    Explained(Explanation),
    /// What a run could not do.
    Run(Box<Error>),
}

/// A failure as it is told.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) exit: u8,
    /// One sentence; the findings, where there are any, tell the rest.
    pub(super) message: String,
    pub(super) findings: Vec<Finding>,
    /// What to do next, if that has a line of its own.
    pub(super) help: Option<String>,
}

impl Failure {
    pub(super) fn new(exit: u8, message: impl Into<String>) -> Self {
        Self::Explained(Explanation::new(exit, message))
    }

    /// An input is wrong, or could not be opened for want of a handle, which no input is to blame for.
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Self::Explained(Explanation::wrong(message))
    }

    /// Inputs are wrong in these ways, which this message sums up.
    pub(super) fn with_findings(message: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self::Explained(Explanation { findings, ..Explanation::wrong(message) })
    }

    /// The same failure with what to do next.
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Explained(explanation) => Self::Explained(Explanation { help: Some(help.into()), ..explanation }),
            run @ Self::Run(_) => run,
        }
    }

    /// Something in the state folder or the results could not be written or read.
    pub(super) fn storage(message: impl std::fmt::Display) -> Self {
        Self::new(exit::STORAGE, message.to_string())
    }

    /// The words and the code; commands that it suggests have these options behind them.
    pub(super) fn explain(self, options: &Options) -> Explanation {
        match self {
            Failure::Explained(explanation) => explanation,
            Failure::Run(error) => explain(*error, options),
        }
    }
}

impl Explanation {
    fn new(exit: u8, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: Vec::new(), help: None }
    }

    fn wrong(message: impl Into<String>) -> Self {
        Self::new(if ran_out_of_handles() { exit::STORAGE } else { exit::WRONG }, message)
    }

    fn findings(findings: Vec<Finding>) -> Self {
        let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
        let what = if errors > 0 { plural(errors, "problem") + " found" } else { "not looked at".to_owned() };
        Self { findings, ..Self::wrong(format!("{what}; nothing was sent")) }
    }

    fn storage(message: impl std::fmt::Display) -> Self {
        Self::new(exit::STORAGE, message.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Run(Box::new(error))
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Error::from(error).into()
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Error::from(error).into()
    }
}

/// The words and the code of what `runs` refused.
fn explain(error: Error, options: &Options) -> Explanation {
    let command = |arguments: String| options.command(arguments);
    match error {
        Error::Findings(findings) => Explanation::findings(findings),
        Error::UnknownGateway { name, file: campaign, mut findings } => {
            let add = command(format!("gateway add {} --for {}", quoted(name), file(&campaign)));
            let unknown = findings.iter_mut().filter(|finding| *finding.rule == rules::UNKNOWN_GATEWAY);
            // What is misspelt is not to be added.
            for unknown in unknown.filter(|finding| !finding.help.as_ref().is_some_and(|help| help.ends_with('?'))) {
                let known = unknown.help.take().unwrap_or_default();
                unknown.help = Some(format!("{known}; to add it: {add}"));
            }
            Explanation::findings(findings)
        }
        Error::KeyRefused(findings) => Explanation { exit: exit::KEY, ..Explanation::findings(findings) },
        Error::Input(reason) => Explanation::wrong(reason),
        // No input is to blame: what a profile says about it was looked at before.
        Error::Client(error) => Explanation::storage(error),
        Error::Unanswered { gateway, key, failure } => unanswered(&gateway, &key, &failure),
        Error::OrderUnclear { gateway, failure, view } => {
            let look = options.view(view, &gateway);
            let message = format!(
                "{}; it may have been done all the same: look with `{look}` before you try again",
                failure.reason
            );
            Explanation { message, ..unanswered(&gateway, "the profile", &failure) }
        }
        Error::NothingDeleted { id } => {
            Explanation::new(exit::REJECTIONS, format!("the gateway deleted nothing: is there a template {id}?"))
        }
        Error::NoSuchTemplate { gateway, id } => Explanation::wrong(format!(
            "there is no Viber template {id}; see `{}`",
            options.view(AccountView::ViberTemplates, &gateway)
        )),
        Error::TemplateTextUnknown { id } => Explanation::wrong(format!(
            "the gateway does not tell the text of the Viber template {id}; say `--text TEXT`"
        )),
        Error::SandboxAccount => Explanation::wrong(
            "the built-in sandbox lives only as long as a run and has no account between runs; start one with \
             `campaign sandbox`, and name the profile that it prints with `--gateway NAME`",
        ),
        Error::NoGateway => Explanation::wrong(format!(
            "there is no gateway to ask; add one: `{}`",
            command("gateway add NAME".to_owned())
        )),
        Error::SeveralGateways(names) => Explanation::wrong(format!(
            "there are several gateways; say which with `--gateway NAME`: {}",
            list(names.iter().map(String::as_str))
        )),
        Error::NoSuchRun { name, near } => {
            let status = || format!("see `{}` for the runs of this ledger", command("status".to_owned()));
            let hint = near.map_or_else(status, |near| format!("did you mean `{near}`?"));
            Explanation::wrong(format!("there is no run `{name}`; {hint}"))
        }
        Error::Busy { campaign, gateway, since } => {
            Explanation::new(exit::BUSY, busy::sending(&campaign, &gateway, since, options))
        }
        Error::NothingToStopYet { run, campaign } => Explanation::new(
            exit::BUSY,
            format!(
                "{run} is not being sent, but another process has `{campaign}`: it may be about to send a new run; \
                 nothing was stopped, so say it again in a moment"
            ),
        ),
        Error::Taken { run } => Explanation::new(exit::BUSY, format!("another process took {run}")),
        Error::RoundUnfinished { run } => {
            Explanation::wrong(format!("{run} is unfinished; run it to its end before you send to everybody again"))
        }
        Error::RetryUnfinished { run, file: campaign, gateway } => {
            let again = command(format!("run {} --gateway {gateway}", file(&campaign)));
            Explanation::wrong(format!("{run} is unfinished; first: {again}"))
        }
        Error::Cancelled { run, file: campaign, gateway } => {
            let campaign = campaign.as_deref().map_or_else(|| "FILE".to_owned(), file);
            let again = command(format!("run {campaign} --gateway {gateway}"));
            let help = format!(
                "to send its rejected and unsent rows: {again}; to include its cancelled recipients, use a new `edition` or \
                 `--again`, which also send to recipients who already have the message"
            );
            let message = format!("{run} was stopped for good and cannot send again");
            Explanation { help: Some(help), ..Explanation::wrong(message) }
        }
        Error::Replaced { run } => Explanation::wrong(format!(
            "a start with changed inputs ended {run}; retry the run that took its place, if there is one"
        )),
        Error::SingleRun { run } => Explanation::wrong(match SingleKind::named(&run) {
            Some(SingleKind::Message) => {
                format!(
                    "{run} holds messages of assistants, whose texts are not kept: have the assistant send it again"
                )
            }
            Some(SingleKind::Test) => format!("{run} holds test messages; send another with `campaign test`"),
            _ => format!("{run} holds single questions; ask again with `campaign gateway`"),
        }),
        Error::SinglesOnTheirWay { run } => Explanation::new(
            exit::BUSY,
            format!("{run} holds single operations, and each is stopped where somebody waits for it, by Ctrl-C"),
        ),
        Error::IdTaken => Explanation::wrong("a message has that identifier already; leave it out to get a new one"),
        Error::TooManyThisHour { next } => Explanation::new(
            exit::STOPPED,
            format!("as many messages as an hour may have were sent; the next from {next:.0} on"),
        ),
        Error::TooManyQuestions { wait } => {
            let seconds = wait.as_secs() + 1;
            Explanation::new(exit::STOPPED, format!("too many questions to the gateway; try again in {seconds} s"))
        }
        Error::NoCampaign(single) => Explanation::wrong(format!(
            "a {} is not a campaign and is never repeated by itself; `campaign gateway --help` tells how to ask anew",
            single.name()
        )),
        Error::OtherFile { campaign, run, began_at, there } => Explanation::wrong(format!(
            "`{campaign}` was sent from `{}` ({run}, {began_at:.0}), and this file says something else: whoever has that \
             message would not get this one. Give this campaign another `name`; or, if it is the same one and its file \
             was moved, say `--moved`",
            there.display()
        )),
        Error::RunsElsewhere { campaign, run, there } => Explanation::wrong(format!(
            "no run began from this file; those of `{campaign}` began from `{}`, the last is {run}, and are meant by that name. \
             If this is the same file and was moved, the next `run` says so with `--moved`",
            there.display()
        )),
        Error::TextChanged { run, began_at, people } => Explanation::wrong(format!(
            "{} {} the message of {run} ({began_at:.0}), and since then the channels or their texts changed: they would get \
             nothing of it. For another mailing give the campaign an `edition`, such as `edition: \"{{{{ today }}}}\"`; \
             to send the new text to the others alone, say `--accept-changes`",
            domain::people(people),
            one_or(people, "has", "have")
        )),
        Error::NoGatewayNamed => Explanation::wrong(
            "`--yes` agrees to send, and no gateway is named to send through: write `gateway: NAME` into the campaign, or \
             say `--gateway NAME`; `--gateway sandbox` rehearses",
        ),
        Error::InputsChanged { run, changes, damaged, earlier_edition } => {
            let stop = command(format!("stop {run} --for-good"));
            let explanation = Explanation::wrong(inputs_changed(&run, &changes, earlier_edition.as_ref(), &stop));
            if damaged { Explanation { exit: exit::STORAGE, ..explanation } } else { explanation }
        }
        Error::RetryChanged { run, changes } => Explanation::wrong(format!(
            "{run} would be sent from the copies it began with, but since then these changed: {}; put them back, or run \
             the campaign anew with `--accept-changes`: it skips whoever has a message",
            changes.join(", ")
        )),
        Error::NotConfirmed { what, refusal } => {
            let help = match (&what, refusal) {
                (ProposalKind::OutsideWindow(_), Refusal::NobodyToAsk) => Some(policy::OUTSIDE.to_owned()),
                _ => None,
            };
            Explanation { help, ..Explanation::wrong(consent::not_confirmed(&what, refusal)) }
        }
        Error::Policy(refusal) => {
            let (message, help) = policy::refusal(&refusal, options);
            Explanation { help: Some(help), ..Explanation::wrong(message) }
        }
        Error::OtherNumber { said, number } => Explanation::wrong(format!(
            "`--again {said}` does not match: the new round would go to {}, who would all get the \
             message once more; to send to new recipients only, leave `--again` out; if all are meant, say `--again {number}`",
            plural(number, "recipient")
        )),
        Error::TooManyRecipients { number, limit } => Explanation::wrong(format!(
            "{} {} more than the gateway's limit of {limit}; look at the list with `campaign \
             check`; if all of them are meant, say `--up-to {number}`",
            plural(number, "recipient"),
            one_or(number, "is", "are")
        )),
        Error::NoSuchRow { row, last } => no_such_row(row, last),
        Error::NothingToRetry { run, failed, error, left_out } => {
            nothing_to_retry(&run, failed, error.as_deref(), left_out)
        }
        Error::RetryUnconfirmed { run, rows, said } => retry_unconfirmed(&run, rows, said),
        Error::Undecidable { row, state } => Explanation::wrong(format!(
            "row {row} is {state} and cannot become that by a decision; nothing was decided"
        )),
        Error::NotInDoubt { row, state } => {
            Explanation::wrong(format!("row {row} is not in doubt but {state}; nothing was decided"))
        }
        Error::NothingToDecide { run } => Explanation::wrong(format!("no row of {run} waits for a decision")),
        Error::DuplicatesNotAccepted { rows, said } => Explanation::wrong(duplicates_not_accepted(rows, said)),
        Error::ReplacedForGood => {
            Explanation::wrong("a newer run took this one's place; nothing of it can be sent any more")
        }
        Error::IdsUnreadable { path, finding } => Explanation {
            message: format!("`{}` cannot be read; nothing was decided", path.display()),
            ..Explanation::findings(vec![*finding])
        },
        Error::NoIds { path, run } => Explanation::wrong(format!(
            "`{}` has neither a column `id` nor `row` and `to`; take them from `{}`",
            path.display(),
            command(format!("results {run} --state in_doubt --out -"))
        )),
        Error::Shortened { path, row, cell, run } => Explanation::wrong(format!(
            "`{}`, row {row}: a spreadsheet has shortened the numbers (`{cell}`), so nothing says whose row this is; nothing \
             was decided. Take the file from `{}`, which keeps each digit, or name the rows with `--rows`",
            path.display(),
            command(format!("results {run} --state in_doubt --excel --out FILE.xlsx"))
        )),
        Error::ForeignId { path, row, named, run } => {
            Explanation::wrong(format!("`{}`, row {row}: {named} of {run}; nothing was decided", path.display()))
        }
        Error::RehearsalForgotten { run } => Explanation::wrong(format!(
            "{run} was a rehearsal on the built-in sandbox, which forgets everything at its end; there is nobody to ask"
        )),
        Error::NothingToCancel { run } => {
            Explanation::wrong(format!("{run} has come to its end, so there is nothing of it to stop"))
        }
        Error::HostChanged { gateway, known, now } => Explanation::wrong(format!(
            "the gateway `{gateway}` was {} and is now {}, where its key and all messages would go; compare `base_url` with \
             what the provider says. If it is right, run `{}`",
            at_host(&known),
            at_host(&now),
            command(format!("gateway trust {gateway}"))
        )),
        Error::WeakerApproval(change) => {
            let WeakerRule { gateway, account, known, now, by, at } = change.as_ref();
            Explanation::wrong(format!(
                "the account `{account}` needs {known} (recorded by {by} at {at:.0}), and the gateway `{gateway}` has {now}; \
                 nothing was sent. Restore `approval`, or run `{}` at a terminal",
                command(format!("gateway trust {gateway}"))
            ))
        }
        Error::OtherReach { run, gateway, loopback } => Explanation::wrong(format!(
            "{run} went through {}, and the profile `{gateway}` is now {}; restore the profile's address first",
            if loopback { "a gateway on this machine" } else { "a live gateway" },
            if loopback { "at a live host" } else { "on this machine" },
        )),
        Error::Backup(refusal) => {
            let (exit, message) = backup::refused(refusal, &command("ledger restore DIR".to_owned()));
            Explanation::new(exit, message)
        }
        Error::LedgerLost { ledger, signs } => {
            let told: Vec<String> = signs.iter().map(LossSign::to_string).collect();
            Explanation::storage(format!(
                "nothing was sent: messages went out that the ledger in `{ledger}` does not know of: {}. If they were sent from \
                 another ledger (another user, another `--state-dir` or `--ledger`), use that one; if it is lost for good, take those \
                 who have a message off your list and say `--new-ledger`",
                told.join("; ")
            ))
        }
        Error::Ledger(purged @ LedgerError::Purged { .. })
        | Error::Results(ResultsError::Ledger(purged @ LedgerError::Purged { .. })) => {
            Explanation::wrong(format!("{purged}, which `{}` shows", command("status --all".to_owned())))
        }
        Error::Ledger(error) => Explanation::storage(error),
        Error::Results(error) => match &error {
            ResultsError::Contradicted { run, .. } => {
                Explanation::storage(format!("{error}; name another file with `results {run} --out FILE`"))
            }
            _ => Explanation::storage(error),
        },
        Error::BusyRun { campaign, gateway, since } => {
            Explanation::new(exit::BUSY, busy::held(&campaign, &gateway, since, options))
        }
        Error::ResultsPlace(why) => Explanation::wrong(format!(
            "{why}; nothing was written: only results are replaced by results, so name another file"
        )),
        Error::Storage(reason) => Explanation::storage(reason),
        Error::Interrupted { signal, phase } => {
            Explanation::new(exit::SIGNAL.saturating_add(signal), interrupted(phase))
        }
        Error::Plan(refusal) => Explanation::wrong(plan::refusal(&refusal, options)),
        Error::Schedule(refusal) => Explanation::wrong(schedule::words::refusal(&refusal, options)),
        Error::Internal(reason) => Explanation::new(exit::BUG, reason),
    }
}

fn no_such_row(row: Row, last: Row) -> Explanation {
    Explanation::wrong(format!("there is no row {row}; the last recipient is in row {last}"))
}

/// Why no row can be sent again.
fn nothing_to_retry(run: &str, failed: u64, error: Option<&str>, left_out: RetryLeftOut) -> Explanation {
    let which = error.map(|error| format!(" with `{error}` in its error")).unwrap_or_default();
    let RetryLeftOut { delivered, under_way, unconfirmed: _, guarded } = left_out;
    let mut meanwhile = match guarded {
        0 => String::new(),
        rows => format!("; {} opted out, got a message by another run or were skipped before", plural(rows, "row")),
    };
    for (rows, what) in [(delivered, "delivered"), (under_way, "still being delivered")] {
        if rows > 0 {
            meanwhile += &format!("; the gateway reports {} as {what}", plural(rows, "message"));
        }
    }
    let others = match failed {
        0 => String::new(),
        rows => {
            format!("; {} failed to be delivered, which only `--state failed` sends again", plural(rows, "message"))
        }
    };
    Explanation::wrong(format!("{run} has no row{which} to send again{meanwhile}{others}"))
}

/// Why messages are not sent again that may have been delivered.
fn retry_unconfirmed(run: &str, rows: u64, said: Option<u64>) -> Explanation {
    let messages = plural(rows, "message");
    match said {
        None => Explanation::new(
            exit::STOPPED,
            format!(
                "nothing was sent: the gateway did not confirm that {messages} of {run} failed on every channel; try again \
                 later, or accept possible duplicates with `--i-accept-duplicates {rows}`"
            ),
        ),
        Some(other) => Explanation::wrong(format!(
            "nothing was sent: the gateway did not confirm the failure of {messages} of {run}, but `--i-accept-duplicates` \
             says {other}; try again later, or, if they may get the message twice, say `--i-accept-duplicates {rows}`"
        )),
    }
}

/// Why a decision to send again needs a number, or another one.
fn duplicates_not_accepted(rows: u64, said: Option<u64>) -> String {
    let told = plural(rows, "row");
    match said {
        None => format!(
            "whoever of these {told} has the message already may get it twice; if you accept that, say \
             `--i-accept-duplicates {rows}`"
        ),
        Some(other) => {
            format!("`--i-accept-duplicates {other}` does not match: it is about {told}; nothing was decided")
        }
    }
}

fn interrupted(phase: RunPhase) -> String {
    match phase {
        RunPhase::Preparing => "interrupted before anything was sent".to_owned(),
        RunPhase::Sending(messages) => format!(
            "interrupted twice with {} on the way: in doubt from now on, and not sent again by itself; the results were not \
             written; run it again to go on",
            plural(messages, "message")
        ),
        RunPhase::Ending => "interrupted twice; run it again to go on".to_owned(),
    }
}

/// A question without a good answer, with what to do.
fn unanswered(gateway: &str, key: &str, answer: &InquiryFailure) -> Explanation {
    let (name, reason) = (gateway, &answer.reason);
    match answer.cause {
        FailureCause::KeyRefused => {
            let whence = format!("the key of `{name}` comes from {key}, as its profile says");
            Explanation::new(exit::KEY, format!("{reason}; {whence}"))
        }
        FailureCause::Refused => Explanation::new(exit::REJECTIONS, reason),
        FailureCause::NotConnected => Explanation::new(
            exit::STOPPED,
            format!("{reason}; nothing was asked. Check the address of `{name}` and your connection, then try again"),
        ),
        FailureCause::SlowDown(Some(wait)) => {
            Explanation::new(exit::STOPPED, format!("{reason} and to wait {} s; try again after that", wait.as_secs()))
        }
        FailureCause::SlowDown(None) => Explanation::new(exit::STOPPED, format!("{reason}; try again later")),
        FailureCause::TimedOut | FailureCause::Unclear => {
            Explanation::new(exit::STOPPED, format!("`{name}` gave no usable answer: {reason}; try again later"))
        }
    }
}
/// Where a host is, for a sentence such as "the gateway was …".
pub(super) fn at_host(host: &str) -> String {
    match host {
        LOOPBACK => "on this machine (loopback)".to_owned(),
        host => format!("at {host}"),
    }
}
