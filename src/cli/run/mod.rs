//! `campaign run`: sends a campaign, or goes on where it stopped.

mod again;
mod begin;
mod dry;
mod ending;
mod inquire;
mod lost;
mod online;
mod platform;
mod played;
mod resume;
mod send;

pub(super) use ending::left_out;
pub(super) use platform::{Platform, key};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;

use super::args::RunArgs;
use super::context::Context;
use super::exit::{self, Failure};
use super::sandbox;
use super::survey::{self, Inputs, blocking};
use super::target;
use crate::delivery::{Interrupt, OneOff, RunFolder, RunLock};
use crate::ledger::{Ledger, Progress, Run, RunId};
use crate::manifest::Brief;
use crate::report::check_place;
use crate::sandbox::Scenario;

pub(super) async fn run(context: &Context, args: RunArgs) -> Result<u8, Failure> {
    if let Some(one_off) = args.file.to_str().and_then(OneOff::named).filter(|_| !args.file.exists()) {
        let name = one_off.name();
        return Err(Failure::wrong(format!(
            "a {name} is not a campaign and is never repeated by itself; `campaign gateway --help` tells how to ask anew"
        )));
    }
    let inputs = inputs(context, &args)?;
    if !context.output.json {
        context.output.findings(&inputs.warnings);
    }
    if args.dry_run {
        return dry::dry_run(context, inputs, args.gateway.as_deref()).await;
    }
    if args.real_time && inputs.destination.is_live() {
        return Err(Failure::wrong("`--real-time` is for rehearsals; a real run always keeps its pace"));
    }
    if args.scenario.is_some() && inputs.destination.is_live() {
        let help = "add `--gateway sandbox`, or give it to `campaign sandbox --scenario FILE`";
        return Err(Failure::wrong(format!("`--scenario` is for rehearsals on the built-in sandbox; {help}")));
    }
    let scenario = sandbox::scenario(context, args.scenario.as_deref())?;
    let start = Start::open(context, args, inputs, scenario).await?;
    start.go(start.prepare()).await
}

/// Sends rejected rows of a run again, as new messages.
pub(super) async fn again(context: &Context, args: RunArgs, run: RunId, error: Option<String>) -> Result<u8, Failure> {
    let inputs = inputs(context, &args)?;
    let start = Start::open(context, args, inputs, Arc::default()).await?;
    start.go(start.prepare_again(run, error.as_deref())).await
}

/// The campaign that is sent, whose results have a place.
fn inputs(context: &Context, args: &RunArgs) -> Result<Arc<Inputs>, Failure> {
    let inputs = survey::load(context, &args.file, args.gateway.as_deref())?;
    match target::finding(context, &inputs)? {
        Some(finding) => Err(Failure::findings(vec![finding])),
        None => Ok(Arc::new(inputs)),
    }
}

/// A moment after the second signal; its number.
async fn second(mut interrupt: watch::Receiver<Interrupt>) -> u8 {
    let signal = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::AtOnce(_))).await.map(|signal| *signal);
    match signal {
        Ok(Interrupt::AtOnce(signal)) => {
            tokio::time::sleep(Duration::from_millis(700)).await;
            signal
        }
        _ => std::future::pending().await,
    }
}

/// One call to `run`.
struct Start<'a> {
    context: &'a Context,
    args: RunArgs,
    inputs: Arc<Inputs>,
    key: SecretString,
    ledger: Arc<dyn Ledger>,
    state: PathBuf,
    interrupt: watch::Receiver<Interrupt>,
    /// What the built-in sandbox plays.
    scenario: Arc<Scenario>,
    _lock: RunLock,
}

/// The ledger, whatever its mark says of it, since a person wants it to count.
async fn accepted(context: &Context) -> Result<Arc<dyn Ledger>, Failure> {
    let (ledger, refused) = context.accepted_ledger().await?;
    if let Some(refused) = refused {
        context.output.note(&format!("this ledger counts from now on, as you say: {}", refused.reason()));
    }
    Ok(ledger)
}

/// Takes the lock of a campaign on an account.
fn lock(state: &Path, brief: &Brief, account: &str) -> Result<RunLock, Failure> {
    RunLock::take(state, &brief.name, account)
        .map_err(|error| Failure::storage(format!("the run cannot be locked: {error}")))?
        .ok_or_else(|| {
            let message = format!("another process is sending `{}` through `{}`", brief.name, brief.gateway);
            Failure::new(exit::NOTHING, message)
        })
}

/// What the preparation of a call came to.
enum Ready {
    /// This run is to be sent.
    Run(Box<Selected>),
    /// There is nothing to send, which was said.
    Nothing(u8),
}

/// The run that this call sends.
struct Selected {
    run: Run,
    folder: RunFolder,
    /// The lock of the account that it was begun on, if the profile has another one by now.
    lock: Option<RunLock>,
}

impl<'a> Start<'a> {
    async fn open(
        context: &'a Context,
        args: RunArgs,
        inputs: Arc<Inputs>,
        scenario: Arc<Scenario>,
    ) -> Result<Self, Failure> {
        let key = key(&inputs.destination)?;
        // A run whose results have no place is found out before it is sent, not after.
        let target = target::of_campaign(context, &inputs.campaign, inputs.campaign.results_file())?;
        check_place(&target).map_err(Failure::storage)?;
        let interrupt = context.interrupt()?;
        let state = context.state()?;
        if !args.new_ledger && !context.has_ledger()? {
            // Before one is begun: the right one may be put back where it would stand.
            lost::refuse(&lost::signs(None, &state, &inputs).await?, &state)?;
        }
        let ledger = if args.new_ledger { accepted(context).await? } else { context.ledger().await? };
        let lock = lock(&state, &inputs.campaign.brief, inputs.destination.account())?;
        // With the lock, so that nobody writes those results meanwhile.
        let signs = lost::signs(Some(ledger.as_ref()), &state, &inputs).await?;
        match args.new_ledger {
            true => lost::put_aside(&signs, &context.output)?,
            false => lost::refuse(&signs, &state)?,
        }
        Ok(Self { context, args, inputs, key, ledger, state, interrupt, scenario, _lock: lock })
    }

    /// The lock of a run that was begun when the profile's account was another one; nothing if it is the one that is held.
    fn lock_of(&self, run: &Run) -> Result<Option<RunLock>, Failure> {
        let other = run.account != self.inputs.destination.account();
        other.then(|| lock(&self.state, &self.inputs.campaign.brief, &run.account)).transpose()
    }

    /// Sends what the preparation selects; a signal before that leaves without sending.
    async fn go(&self, prepare: impl Future<Output = Result<Ready, Failure>>) -> Result<u8, Failure> {
        let mut interrupt = self.interrupt.clone();
        let ready = tokio::select! {
            ready = prepare => ready?,
            signal = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => {
                let code = match signal.map(|signal| *signal) {
                    Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => exit::SIGNAL.saturating_add(signal),
                    _ => exit::BUG,
                };
                return Err(Failure::new(code, "interrupted before anything was sent"));
            }
        };
        match ready {
            Ready::Run(run) => tokio::select! {
                ended = self.send(*run) => ended,
                // The engine leaves at once by itself; this is for what comes after it, such as results of millions.
                signal = second(interrupt) => {
                    Err(Failure::new(exit::SIGNAL.saturating_add(signal), "interrupted twice; run it again to go on"))
                }
            },
            Ready::Nothing(code) => Ok(code),
        }
    }

    /// Finds the run to go on with, or begins one.
    async fn prepare(&self) -> Result<Ready, Failure> {
        let inputs = Arc::clone(&self.inputs);
        let edition = blocking(move || Ok(inputs.open()?.edition)).await?;
        let runs = survey::runs_of(self.ledger.as_ref(), &self.inputs).await?;
        // Of any edition: one that was begun yesterday keeps yesterday's edition until it is through.
        let open = match runs.iter().rfind(|run| run.progress == Progress::Open) {
            Some(open) => Some(open.clone()),
            None => self.ask_finished(&runs).await?,
        };
        let Some(open) = open else { return self.begin(&edition, None).await };
        // A request to stop that nobody was there to hear is not for this call; one that comes from now on is.
        self.ledger.request_stop(open.key, false).await?;
        if self.args.again.is_some() {
            let message =
                format!("{} is unfinished; run it to its end before you send to everybody again", open.name());
            return Err(Failure::wrong(message));
        }
        let lock = self.lock_of(&open)?;
        let folder = RunFolder::of(&self.state, &open.name());
        let changes = self.changes(&folder).await?;
        if changes.is_empty() {
            return self.resume(open, folder, lock).await;
        }
        // A rehearsal protects nobody, so it may begin anew without asking.
        if self.args.accept_changes || !self.inputs.destination.is_live() {
            return self.begin(&edition, Some(open)).await;
        }
        let refused = Failure::wrong(format!(
            "{} is unfinished, and since it began these changed: {}; put them back to go on, or end it and begin anew \
             with `--accept-changes` (whoever has a message is skipped)",
            open.name(),
            changes.join(", ")
        ));
        let damaged = folder.frozen().is_ok_and(|frozen| !resume::is_whole(&folder, &frozen));
        Err(if damaged { Failure { exit: exit::STORAGE, ..refused } } else { refused })
    }
}
