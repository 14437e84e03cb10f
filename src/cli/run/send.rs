//! Sending a run: claim, engine, results, end.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Platform, Selected, Start};
use crate::check::{Prepared, Texts, prepare};
use crate::cli::exit::Failure;
use crate::cli::runs;
use crate::cli::survey::blocking;
use crate::delivery::{
    Conditions, Edges, Ending, FrozenInputs, Limits, Observer, RunFolder, Selection, Snapshot, Stop, StopKind, feed,
    send,
};
use crate::failpoint;
use crate::gateway::Gateway;
use crate::ledger::{Allowance, Owner, Run, State};
use crate::manifest::Delivery;
use crate::regular;
use crate::report::Progress;
use crate::sandbox::{Counts, Sandbox};

/// How long an asynchronous start asks about its first messages.
const CANARY: Duration = Duration::from_secs(10);

impl Start<'_> {
    /// Sends the run and tells how it ended.
    pub(super) async fn send(&self, selected: Selected) -> Result<u8, Failure> {
        let began = Instant::now();
        let Selected { run, folder, lock: _lock } = selected;
        let (owner, doubtful) = runs::claim(self.ledger.as_ref(), run.key).await?;
        failpoint::pass("run.claimed");
        if doubtful > 0 {
            let requests = if doubtful == 1 { "1 request".to_owned() } else { format!("{doubtful} requests") };
            self.context.output.note(&format!(
                "in doubt from a start that was interrupted: {requests}: nothing proves whether the gateway executed them"
            ));
        }
        let (frozen, prepared) = thaw(folder).await?;
        let (key, scenario) = (self.key.clone(), Arc::clone(&self.scenario));
        let platform = Platform::open(&self.inputs.destination, key, scenario).await?;
        let gateway = platform.client(frozen.brief.endpoint, self.inputs.campaign.delivery.timeout)?;
        self.inquire_first(&run, owner, gateway.as_ref()).await?;
        let snapshot = runs::snapshot(self.ledger.as_ref(), &run, true).await?;
        let mut ending = self.engine(&run, owner, Arc::clone(&gateway), prepared, &snapshot).await;
        tracing::info!(run = run.name(), stopped = ending.stopped.is_some(), "sent");
        if self.asks_at_end(&ending) {
            let asked = self.inquire_last(&run, owner, gateway.as_ref()).await?;
            // Nothing is on its way any more: an intent without an outcome is doubt.
            ending.counts = runs::snapshot(self.ledger.as_ref(), &run, false).await?.counts;
            if let (None, Some(signal)) = (&ending.stopped, asked.interrupted) {
                ending.stopped = Some(Stop::new(StopKind::Interrupted(signal), "interrupted"));
            }
        }
        let played = match platform.into_sandbox() {
            Some(sandbox) => self.play_out(sandbox, &ending).await,
            None => None,
        };
        self.end(&run, owner, ending, (snapshot.parts, began), played.as_ref()).await
    }

    /// Whether there is somebody to ask about rows in doubt, and time for it.
    fn asks_at_end(&self, ending: &Ending) -> bool {
        let doubt = ending.counts.get(State::InDoubt) > 0;
        let kind = ending.stopped.as_ref().map(|stop| stop.kind);
        let gone = |kind| {
            matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::NotOwner | StopKind::KeyRefused)
        };
        doubt && !kind.is_some_and(gone)
    }

    /// Lets everything become of the messages that will, if a scenario says what; nobody waits for an interrupted one.
    async fn play_out(&self, sandbox: Sandbox, ending: &Ending) -> Option<Counts> {
        let interrupted = ending.stopped.as_ref().is_some_and(|stop| matches!(stop.kind, StopKind::Interrupted(_)));
        let counts = if self.args.scenario.is_some() && !interrupted { Some(sandbox.run_out().await) } else { None };
        sandbox.stop().await;
        counts
    }

    /// The engine, with progress on the terminal.
    async fn engine(
        &self,
        run: &Run,
        owner: Owner,
        gateway: Arc<dyn Gateway>,
        prepared: Prepared<BufReader<File>>,
        snapshot: &Snapshot,
    ) -> Ending {
        let output = &self.context.output;
        let progress = Arc::new(Progress::new(run.recipients, output.terminal(), output.quiet || output.json));
        let shown = Arc::clone(&progress);
        let observer: Observer = Arc::new(move |event| shown.show(&event));
        let selection = Selection {
            settled: snapshot.settled.clone(),
            rows: self.args.rows.clone(),
            limit: self.args.limit,
            digests: snapshot.digests.clone(),
            renumbered: snapshot.renumbered.clone(),
        };
        let feed = feed(prepared, run.ids, selection);
        let conditions = self.conditions(run, owner, snapshot);
        let (ledger, interrupt) = (Arc::clone(&self.ledger), self.interrupt.clone());
        let edges = Edges { ledger, gateway, observer, interrupt };
        let mut ending = send(conditions, edges, feed, snapshot.counts.clone()).await;
        progress.finish();
        let asked_for_some = self.args.limit.is_some() || self.args.rows.is_some();
        if ending.stopped.is_none() && asked_for_some && ending.counts.get(State::Planned) > 0 {
            ending.stopped = Some(Stop::new(StopKind::Limit, "the rows that were asked for are through"));
        }
        ending
    }

    fn conditions(&self, run: &Run, owner: Owner, snapshot: &Snapshot) -> Conditions {
        let destination = &self.inputs.destination;
        let delivery = destination.within(self.inputs.campaign.delivery);
        let waits = destination.is_live() || self.args.real_time;
        Conditions {
            run: run.key,
            owner,
            endpoint: run.endpoint,
            kind: run.kind,
            last_envelope: snapshot.last_envelope,
            repeated: snapshot.repeated.clone(),
            rate: if waits { delivery.rate.per_second() } else { None },
            account: Allowance::new(destination.account(), destination.rate().per_second()),
            batch: delivery.batch.get() as usize,
            in_flight: delivery.in_flight.get() as usize,
            timeout: delivery.timeout,
            limits: limits(&delivery, self.args.keep_going),
            first_messages: if destination.is_live() { CANARY } else { Duration::ZERO },
            attended: false,
        }
    }
}

fn limits(delivery: &Delivery, keep_going: bool) -> Limits {
    let stop_after = &delivery.stop_after;
    Limits {
        doubtful_envelopes: stop_after.doubtful_envelopes.get(),
        same_error_in_a_row: stop_after.same_error_in_a_row.get(),
        rejected: stop_after.rejected.fraction(),
        unreachable: stop_after.unreachable,
        keep_going,
    }
}

/// Opens the frozen copies of a run: what is sent never depends on what the files say now.
async fn thaw(folder: RunFolder) -> Result<(FrozenInputs, Prepared<BufReader<File>>), Failure> {
    blocking(move || {
        let damaged = |error: String| {
            Failure::storage(format!("the frozen copies in `{}` cannot be read: {error}", folder.path().display()))
        };
        let frozen = folder.frozen().map_err(|error| damaged(error.to_string()))?;
        let path = folder.recipients();
        let file = regular::open(&path).map_err(|error| damaged(error.to_string()))?;
        let mut load = |name: &str| {
            let found = frozen.includes.iter().find(|(include, _)| include == name);
            found.map(|(_, source)| source.clone()).ok_or_else(|| format!("the text `{name}` is not among the copies"))
        };
        let texts = Texts { places: None, load: &mut load };
        let prepared = prepare(&frozen.brief, (BufReader::with_capacity(1 << 16, file), &path), texts, &frozen.today)
            .map_err(|findings| {
            damaged(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
        })?;
        Ok((frozen, prepared))
    })
    .await
}
