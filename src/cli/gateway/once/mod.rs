//! `campaign gateway lookup` and `campaign gateway otp`: one paid operation that a person waits for.
//!
//! It is a run of one row: the ledger knows of it before it is sent, and it is never repeated by itself.

mod answer;
mod begin;
mod ending;

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;

use super::profile::only;
use crate::audience::{PhoneProblem, parse};
use crate::cli::args::OneOffArgs;
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::{Explanation, Failure};
use crate::delivery::{
    DeliveryEvent, Edges, Interrupt, Observer, OneOff, RunLock, SingleConditions, StopKind, send_single,
};
use crate::domain::{Endpoint, Phone, Region};
use crate::gateway::{Encoded, JsonApi};
use crate::ledger::{Allowance, Ledger, Owner, Run};
use crate::manifest::{Destination, Profile, SANDBOX};
use crate::report::duration;
use crate::runs::{Platform, check_host, claim, key};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a gateway that cannot be reached is tried while a person waits.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn once(context: &Context, one_off: OneOff, args: OneOffArgs) -> Result<u8, Failure> {
    let phone = number(&args)?;
    let destination = choose(context, args.gateway.as_deref())?;
    let key = key(&destination)?;
    let ledger = context.ledger().await?;
    if let Some(profile) = destination.remote() {
        check_host(ledger.as_ref(), profile).await?;
        consent::one_off(&context.output, args.yes, question(context, one_off, phone, profile)?).await?;
    }
    let interrupt = context.interrupt()?;
    let asking = Asking { context, one_off, phone, destination, key, ledger, interrupt };
    let _lock = asking.lock()?;
    asking.ask().await
}

/// One call: what is asked, of whom, and with what.
struct Asking<'a> {
    context: &'a Context,
    one_off: OneOff,
    phone: Phone,
    destination: Destination,
    key: SecretString,
    ledger: Arc<dyn Ledger>,
    interrupt: watch::Receiver<Interrupt>,
}

impl Asking<'_> {
    fn lock(&self) -> Result<RunLock, Failure> {
        let (name, gateway) = (self.one_off.name(), self.destination.gateway());
        RunLock::take(&self.context.state()?, self.one_off.campaign(), self.destination.account())
            .map_err(|error| Failure::storage(format!("the {name} cannot be locked: {error}")))?
            .ok_or_else(|| {
                let message =
                    format!("another {name} through `{gateway}` is going on; wait for its end, then ask again");
                Failure::new(exit::NOTHING, message)
            })
    }

    /// Begins the run, sends its operation, and tells how it ended.
    async fn ask(&self) -> Result<u8, Failure> {
        self.close_interrupted().await?;
        let run = self.begin().await?;
        let (owner, _) = claim(self.ledger.as_ref(), run.key).await?;
        let platform = Platform::open(&self.destination, self.key.clone(), Arc::default()).await?;
        let gateway = platform.client(JsonApi::new, Endpoint::Sync, TIMEOUT)?;
        let id = run.ids.id(OneOff::ROW).ok_or_else(|| Failure::new(exit::BUG, "the run has no identifier"))?;
        let operation = Encoded::new(OneOff::ROW, &self.one_off.operation(id, self.phone));
        let (ledger, interrupt) = (Arc::clone(&self.ledger), self.interrupt.clone());
        let edges = Edges { ledger, gateway, observer: self.observer(), interrupt };
        let ending = send_single(self.conditions(&run, owner), edges, operation).await;
        tracing::info!(run = run.name(), "asked");
        if let Some(sandbox) = platform.into_sandbox() {
            sandbox.stop().await;
        }
        match ending.stopped {
            Some(stop) if stop.kind == StopKind::Ledger => Err(Failure::storage(stop)),
            _ => self.end(&run, owner, id, ending).await,
        }
    }

    fn conditions(&self, run: &Run, owner: Owner) -> SingleConditions {
        let rate = self.destination.rate().per_second();
        SingleConditions {
            run: run.key,
            owner,
            kind: run.kind,
            last_envelope: 0,
            account: Allowance::new(run.account.as_str(), rate),
            timeout: TIMEOUT,
            patience: PATIENCE,
        }
    }

    /// Tells a person who waits what it waits for.
    fn observer(&self) -> Observer {
        let output = self.context.output.clone();
        Arc::new(move |event| match event {
            DeliveryEvent::Settled { .. } => {}
            DeliveryEvent::Warning(what) => output.note(&what),
            DeliveryEvent::Waiting { reason, time } => {
                output.note(&format!("{reason}; the next attempt is in {}", duration(time)));
            }
            DeliveryEvent::Stopping { reason, at_most, .. } => output.note(&format!(
                "{reason}: what was sent already is waited for, at most {}; a second Ctrl-C leaves at once",
                duration(at_most)
            )),
        })
    }
}

/// The number that was typed.
fn number(args: &OneOffArgs) -> Result<Phone, Failure> {
    let region = args.region.as_deref().map(str::parse::<Region>).transpose();
    let region = region.map_err(|error| Failure::wrong(error.to_string()))?;
    parse(args.phone.expose_secret(), region).map_err(|problem| {
        Failure::wrong(match problem {
            PhoneProblem::National => {
                "a number without its country's code; write it with `+`, or say its country, such as `--region UA`"
                    .to_owned()
            }
            problem => format!("PHONE is not a number that can be used: {problem}"),
        })
    })
}

/// Where the question goes: through the profile that was named, else the only one there is; or to the built-in sandbox.
fn choose(context: &Context, name: Option<&str>) -> Result<Destination, Failure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().named(name, None, &context.observer)?,
        None => only(context).map_err(|failure| {
            let failure = failure.explain(&context.output.options);
            let message = format!("{}, or say `--gateway sandbox` to rehearse", failure.message);
            Failure::Explained(Explanation { message, ..failure })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}

/// What a person agrees to.
fn question(context: &Context, one_off: OneOff, phone: Phone, profile: &Profile) -> Result<String, Failure> {
    let (what, effect) = match one_off {
        OneOff::Lookup => ("a lookup of", "it costs money; the subscriber notices nothing"),
        OneOff::CodeCall => ("a code call to", "it costs money, and that phone rings"),
    };
    let (through, host) = (&profile.name, profile.base_url.host());
    let ledger = context.state()?;
    Ok(format!("{what} +{phone} · through {through} at {host}\n  {effect}\n  ledger: {}\n", ledger.display()))
}
