//! What the engine is given for a start of a run, whoever begins it.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::guard::combine_caps;
use super::{Adapters, Error, RunEvent};
use crate::check::CompiledCampaign;
use crate::check::online::MessagePrices;
use crate::delivery::{
    self, BreakerLimits, DeliveryObserver, Interrupt, SendConditions, SendContext, SendEnding, ShareDraw, SharedPace,
    Snapshot, send_operations, share_size, start_feed, start_share_feed,
};
use crate::domain::{Budget, RowSet};
use crate::gateway::{Gateway, RunWebhookUrls};
use crate::ledger::{Allowance, Bounds, Lease, Run};
use crate::manifest::{CampaignBrief, DeliverySettings, Destination, Profile, Rate, SendingTerms};

/// How long an asynchronous start asks about its first messages.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// What runs of a campaign are sent with.
#[derive(Clone, Copy)]
pub(super) struct RunSender<'s> {
    pub(super) adapters: &'s Adapters,
    pub(super) interrupt: &'s watch::Receiver<Interrupt>,
    pub(super) brief: &'s CampaignBrief,
    pub(super) terms: &'s SendingTerms,
    pub(super) destination: &'s Destination,
    /// Whether pace and hours are kept: always, but in a rehearsal.
    pub(super) keeps_time: bool,
}

/// A start of a run.
pub(super) struct SendJob<'r> {
    pub(super) run: &'r Run,
    /// By what right.
    pub(super) lease: Lease,
    /// Where the run stands, as far as what is selected goes.
    pub(super) snapshot: &'r Snapshot,
    /// The rows that were asked for; all where none were.
    pub(super) rows: Option<RowSet>,
    /// At most so many messages.
    pub(super) limit: Option<u64>,
    /// Whether a first rejection says nothing of the others.
    pub(super) retry: bool,
    /// Where the webhooks of its messages go.
    pub(super) hook: Option<RunWebhookUrls>,
    /// What it draws, where others send the run too.
    pub(super) shares: Option<ShareDraw>,
}

impl RunSender<'_> {
    /// Has the engine send what a start selects of a list.
    pub(super) async fn run_engine<R: Read + Send + 'static>(
        &self,
        start: SendJob<'_>,
        gateway: Arc<dyn Gateway>,
        prepared: CompiledCampaign<R>,
    ) -> Result<SendEnding, Error> {
        let SendJob { run, snapshot, shares, .. } = &start;
        let told = Arc::clone(&self.adapters.observer);
        let observer: DeliveryObserver = Arc::new(move |event| told(RunEvent::Sending(event)));
        let mut selection = delivery::SendSelection {
            settled: snapshot.settled.clone(),
            rows: start.rows.clone(),
            limit: start.limit,
            digests: snapshot.digests.clone(),
            renumbered: snapshot.renumbered.clone(),
            hook: start.hook.clone(),
            prices: self.prices(),
            hours: None,
        };
        let passes = self.plan_passes(run, &prepared, (&selection, shares.as_ref()))?;
        selection.hours = passes.as_ref().map(|passes| Arc::clone(&passes.hours));
        let feed = match shares {
            None => start_feed(prepared, run.ids, selection),
            Some(shares) => start_share_feed(prepared, run.ids, selection, shares.clone()),
        };
        let (ledger, interrupt) = (Arc::clone(&self.adapters.ledger), self.interrupt.clone());
        let edges = SendContext { ledger, gateway, observer, interrupt, passes: passes.map(Arc::new) };
        Ok(send_operations(self.build_conditions(&start), edges, feed, snapshot.counts.clone()).await)
    }

    /// What its messages cost, where the profile has prices for all of them.
    fn prices(&self) -> Option<MessagePrices> {
        MessagePrices::for_campaign(self.destination.profile()?, self.brief).ok()
    }

    /// What it has to keep within; a rehearsal costs nothing.
    fn build_bounds(&self) -> Option<Bounds> {
        let Budget { cost, recipients } = self.terms.limits;
        let budget = Budget { cost: cost.filter(|_| self.destination.is_live()), recipients };
        // Nobody gets a message by a rehearsal.
        let caps = match self.destination.is_live() {
            true => {
                let own = [self.terms.delivery.cap, self.terms.policy.cap];
                combine_caps((self.brief.purpose, own.into_iter().flatten()), self.destination)
            }
            false => Vec::new(),
        };
        // A rehearsal that keeps no pace waits for no other day.
        let per_day = self.terms.per_day.clone().filter(|_| self.keeps_time);
        let bounds = Bounds { budget, caps, per_day };
        (bounds != Bounds::default()).then_some(bounds)
    }

    fn build_conditions(&self, start: &SendJob<'_>) -> SendConditions {
        let (destination, SendJob { run, lease, snapshot, .. }) = (self.destination, start);
        let delivery = destination.limit_delivery(self.terms.delivery);
        let rate = delivery.rate.filter(|_| self.keeps_time).and_then(Rate::per_second);
        let proven = run.sharding.as_ref().is_some_and(|sharing| sharing.proven);
        SendConditions {
            lease: *lease,
            endpoint: run.endpoint,
            repeated: snapshot.repeated.clone(),
            rate,
            account: Allowance::of_account(
                destination.account_name(),
                destination.is_loopback(),
                destination.account_rate().per_second(),
            ),
            bounds: self.build_bounds().map(Arc::new),
            waits_at_bounds: self.terms.waits,
            batch: delivery.batch.get() as usize,
            in_flight: delivery.in_flight.get() as usize,
            timeout: delivery.timeout,
            limits: breaker_limits(&delivery, destination, self.terms.keep_going),
            proven: proven || start.retry || snapshot.has_accepted(),
            first_messages: if destination.is_live() { WARM_UP_TIMEOUT } else { Duration::ZERO },
            sharing: start.shares.as_ref().map(|_| self.shared_conditions(run, rate)),
            is_attended: false,
        }
    }

    /// How many rows it draws at once.
    pub(super) fn share_size(&self) -> u32 {
        let delivery = self.destination.limit_delivery(self.terms.delivery);
        share_size(delivery.rate.and_then(Rate::per_second), delivery.batch.get() as usize)
    }

    /// What processes that send a run together keep: the campaign's own pace, where it is below that of the account.
    fn shared_conditions(&self, run: &Run, rate: Option<f64>) -> SharedPace {
        let of_account = self.destination.account_rate().per_second();
        let own = rate.filter(|rate| of_account.is_none_or(|account| *rate < account));
        SharedPace { pace: own.map(|rate| Allowance::new(format!("{} of {}", run.name(), run.account), Some(rate))) }
    }
}

fn breaker_limits(delivery: &DeliverySettings, destination: &Destination, keep_going: bool) -> BreakerLimits {
    let stop_after = &delivery.stop_after;
    BreakerLimits {
        doubtful_envelopes: stop_after.doubtful_envelopes.get(),
        same_error_in_a_row: stop_after.same_error_in_a_row.get(),
        rejected: stop_after.rejected.to_fraction(),
        unreachable: stop_after.unreachable(destination.profile().is_none_or(Profile::is_loopback)),
        keep_going,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    const GATEWAYS: &str = "\
far:
  base_url: https://g.example
  api_key: { env: KEY }
  rate: 100/s
near:
  base_url: http://127.0.0.1:9
  api_key: { env: KEY }
  rate: unlimited
mixed:
  base_url: http://127.0.0.1:9
  async_url: https://g.example
  api_key: { env: KEY }
  rate: 100/s
";

    /// How many seconds a gateway that cannot be reached is tried.
    fn unreachable_seconds(folder: &TempDir, gateway: &str, stop_after: &str) -> u64 {
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        fs::write(&file, format!("delivery: {{ {stop_after} }}\nrecipients: {{ file: a.csv }}\nchannels: [hlr]\n"))
            .unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let destination = match gateway {
            "" => Destination::Rehearsal,
            name => Destination::Live(Box::new(gateways.find_profile(name).unwrap().clone())),
        };
        breaker_limits(
            &load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now())).value.unwrap().delivery,
            &destination,
            false,
        )
        .unreachable
        .as_secs()
    }

    #[test]
    fn unreachable_gateway_is_given_up_later_if_remote() {
        let folder = TempDir::new().unwrap();
        let by_default = ["", "near", "far", "mixed"].map(|gateway| unreachable_seconds(&folder, gateway, ""));
        assert_eq!(by_default, [10, 10, 1800, 1800]);
        let given =
            ["", "near", "far"].map(|gateway| unreachable_seconds(&folder, gateway, "stop_after: { unreachable: 2m }"));
        assert_eq!(given, [120; 3]);
    }
}
