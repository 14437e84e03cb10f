//! Time zones of runs: pages show the times of a run in the zone of its campaign.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;

use crate::ledger::{Ledger, Run, RunId};
use crate::report::load_campaign_zone;

/// The zones that were read. The zone of a run never changes, so each is read once.
#[derive(Default)]
pub(super) struct RunZones(Mutex<HashMap<RunId, TimeZone>>);

impl RunZones {
    /// The zone of a run's campaign; the zone of this machine if the campaign has none or its copy cannot be read.
    pub(super) async fn zone_of_run(&self, ledger: &dyn Ledger, run: &Run) -> TimeZone {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&run.key).cloned();
        if let Some(known) = known {
            return known;
        }
        let Some(zone) = load_campaign_zone(ledger, run).await else { return TimeZone::system() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.key, zone.clone());
        zone
    }
}
