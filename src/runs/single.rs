//! A lookup or a code call: one paid operation that somebody waits for.
//!
//! It is a row of a run that all such operations through a profile share: the ledger knows of it before it is sent, and it
//! is never repeated by itself.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;

use super::consent::confirm;
use super::{Adapters, Connection, Consent, Error, Event, Proposal, check_host, key};
use crate::delivery::{Edges, Interrupt, SingleConditions, SingleEnding, SingleKind, Stop, send_single};
use crate::domain::{MessageId, Outcome, Phone, Row};
use crate::gateway::EncodedOperation;
use crate::ledger::{Activity, Allowance, Lease, Run, SharedRun, State};
use crate::manifest::Destination;

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a gateway that cannot be reached is tried while somebody waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lookup or a code call that somebody wants.
pub struct Single {
    operation: SingleKind,
    phone: Phone,
    destination: Destination,
    key: SecretString,
}

/// A lookup or a code call that somebody agreed to.
pub struct ConfirmedSingle {
    single: Single,
    adapters: Adapters,
}

/// What came of a lookup or a code call.
#[derive(Debug)]
pub struct EndedSingle {
    /// The run that it is in.
    pub run: Run,
    /// Its row there.
    pub row: Row,
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
        Ok(Self::opened_by(key, operation, phone, destination))
    }

    /// The same for somebody who brings the key.
    #[must_use]
    pub fn opened_by(key: SecretString, operation: SingleKind, phone: Phone, destination: Destination) -> Self {
        Self { operation, phone, destination, key }
    }

    /// What somebody agreed to who may: the operator that lets it be asked for.
    ///
    /// # Errors
    /// When the host of the gateway changed.
    pub async fn ordered(self, adapters: Adapters) -> Result<ConfirmedSingle, Error> {
        if let Some(profile) = self.destination.remote() {
            check_host(adapters.ledger.as_ref(), profile).await?;
        }
        Ok(ConfirmedSingle { single: self, adapters })
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
    /// When the ledger cannot be written before anything is begun.
    pub async fn send(self, interrupt: watch::Receiver<Interrupt>) -> Result<EndedSingle, Error> {
        let Single { operation, phone, destination, key } = &self.single;
        // Kept until the end: it is what tells others that somebody is at it.
        let block = self.adapters.ledger.draw(&self.shared_run(), 1).await?;
        let (run, row) = (block.run.clone(), block.lease.rows.first);
        let id = run.id(row, None).ok_or_else(|| Error::Internal("the row has no identifier".to_owned()))?;
        let connection = Connection::open(destination, key.clone(), Arc::default(), None).await?;
        let gateway = connection.client(self.adapters.connect, run.endpoint, TIMEOUT)?;
        let encoded = EncodedOperation::new(row, &operation.operation(id, *phone));
        let (ledger, observer) = (Arc::clone(&self.adapters.ledger), Arc::clone(&self.adapters.observer));
        let observer = Arc::new(move |event| observer(Event::Sending(event)));
        let edges = Edges { ledger, gateway, observer, interrupt };
        let SingleEnding { outcome, stopped: stop } =
            send_single(self.conditions(&run, block.lease), edges, encoded).await;
        tracing::info!(run = run.name(), row = row.get(), "asked");
        if let Some(sandbox) = connection.into_sandbox() {
            sandbox.stop().await;
        }
        // Whatever came of it, nothing goes on with it: whoever wants it again asks again.
        let state = Activity::Over.once(outcome.as_ref());
        Ok(EndedSingle { run, row, id, state, outcome, stop })
    }

    /// The run that takes all such operations through the profile.
    fn shared_run(&self) -> SharedRun {
        let Single { operation, destination, .. } = &self.single;
        SharedRun {
            campaign: operation.campaign().to_owned(),
            gateway: destination.gateway().to_owned(),
            account: destination.account().to_owned(),
            kind: operation.kind(),
            live: destination.is_live(),
        }
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
}
