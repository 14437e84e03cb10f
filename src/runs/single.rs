//! A lookup or a code call: one paid operation that somebody waits for.
//!
//! It is a run of one row: the ledger knows of it before it is sent, and it is never repeated by itself.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;

use super::consent::confirm;
use super::{Adapters, Connection, Consent, Error, Event, Proposal, check_host, key};
use crate::delivery::{Edges, Interrupt, SingleConditions, SingleEnding, SingleKind, Stop, send_single};
use crate::domain::{Endpoint, MessageId, Outcome, Phone};
use crate::gateway::Encoded;
use crate::ledger::{Activity, Allowance, Hold, Lease, Progress, Run, RunEnd, State, StateCounts, StopKind};
use crate::manifest::Destination;

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a gateway that cannot be reached is tried while somebody waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lookup or a code call that somebody wants.
pub struct Single {
    pub(super) operation: SingleKind,
    pub(super) phone: Phone,
    pub(super) destination: Destination,
    key: SecretString,
}

/// A lookup or a code call that somebody agreed to.
pub struct ConfirmedSingle {
    pub(super) single: Single,
    pub(super) adapters: Adapters,
}

/// What came of a lookup or a code call.
#[derive(Debug)]
pub struct EndedSingle {
    /// Its run.
    pub run: Run,
    /// Our identifier.
    pub id: MessageId,
    /// Its state.
    pub state: State,
    /// What the gateway said; nothing if it was left before that.
    pub outcome: Option<Outcome>,
    /// Why it was not sent, or was left.
    pub stop: Option<Stop>,
}

impl Single {
    /// An operation about a number. Nobody is asked yet.
    ///
    /// # Errors
    /// When there is no key.
    pub fn of(operation: SingleKind, phone: Phone, destination: Destination) -> Result<Self, Error> {
        let key = key(&destination)?;
        Ok(Self { operation, phone, destination, key })
    }

    /// Asks for a yes, without which no gateway but one on this machine is asked.
    ///
    /// # Errors
    /// When there is none, or the host of the gateway changed.
    pub async fn confirm(self, adapters: Adapters, consent: &dyn Consent) -> Result<ConfirmedSingle, Error> {
        if let Some(profile) = self.destination.remote() {
            check_host(adapters.ledger.as_ref(), profile).await?;
            let (operation, phone, state) = (self.operation, self.phone, adapters.state.as_path());
            confirm(consent, Proposal::Single { operation, phone, profile, state }).await?;
        }
        Ok(ConfirmedSingle { single: self, adapters })
    }
}

impl ConfirmedSingle {
    /// Sends it, and waits for what comes of it.
    ///
    /// # Errors
    /// When another one goes on through the account, or the ledger or the state folder cannot be written.
    pub async fn send(self, interrupt: watch::Receiver<Interrupt>) -> Result<EndedSingle, Error> {
        let Single { operation, phone, destination, key } = &self.single;
        let hold = self.hold().await?;
        self.close_interrupted(&hold).await?;
        let run = self.begin(&hold).await?;
        let lease = self.adapters.ledger.claim(&hold, run.key).await?.lease;
        let connection = Connection::open(destination, key.clone(), Arc::default()).await?;
        let gateway = connection.client(self.adapters.connect, Endpoint::Sync, TIMEOUT)?;
        let id = run.ids.id(SingleKind::ROW).ok_or_else(|| Error::Internal("the run has no identifier".to_owned()))?;
        let encoded = Encoded::new(SingleKind::ROW, &operation.operation(id, *phone));
        let (ledger, observer) = (Arc::clone(&self.adapters.ledger), Arc::clone(&self.adapters.observer));
        let observer = Arc::new(move |event| observer(Event::Sending(event)));
        let edges = Edges { ledger, gateway, observer, interrupt };
        let ending = send_single(self.conditions(&run, lease), edges, encoded).await;
        tracing::info!(run = run.name(), "asked");
        if let Some(sandbox) = connection.into_sandbox() {
            sandbox.stop().await;
        }
        match ending.stopped {
            Some(stop) if stop.kind == StopKind::Ledger => Err(Error::Storage(stop.to_string())),
            _ => self.end(run, lease, id, ending).await,
        }
    }

    async fn hold(&self) -> Result<Hold, Error> {
        let Single { operation, destination, .. } = &self.single;
        let hold = self.adapters.ledger.hold(operation.campaign(), destination.account()).await?;
        hold.ok_or_else(|| Error::BusySingle { operation: *operation, gateway: destination.gateway().to_owned() })
    }

    fn conditions(&self, run: &Run, lease: Lease) -> SingleConditions {
        let rate = self.single.destination.rate().per_second();
        SingleConditions {
            lease,
            kind: run.kind,
            account: Allowance::new(run.account.as_str(), rate),
            timeout: TIMEOUT,
            patience: PATIENCE,
        }
    }

    /// Marks the run.
    async fn end(
        &self,
        run: Run,
        lease: Lease,
        id: MessageId,
        SingleEnding { outcome, stopped: stop }: SingleEnding,
    ) -> Result<EndedSingle, Error> {
        let kind = stop.as_ref().map(|stop| stop.kind);
        // Whatever came of it, nothing goes on with it.
        let state = Activity::Over.once(outcome.as_ref());
        // Left at a second signal, the intent shows as doubt from the next look on; another owner ends its own run.
        if outcome.is_some() && kind != Some(StopKind::NotOwner) {
            let mut counts = StateCounts::default();
            counts.add(state, 1);
            let reason = stop.as_ref().map(ToString::to_string);
            let end = RunEnd {
                lag: None,
                // Nothing goes on with it: whoever wants it again asks again.
                progress: Progress::Finished,
                stop: kind,
                stopped: reason.filter(|_| state == State::NotSent),
                counts,
                parts: 0,
                results: None,
                at: (self.adapters.clock)(),
            };
            self.adapters.ledger.end(lease, end).await?;
        }
        Ok(EndedSingle { run, id, state, outcome, stop })
    }
}
