//! The campaign of a start with its list at hand: a file, a run's own copy, or fetched anew.

use std::sync::Arc;

use super::fetch::reconcile_past;
use super::launch::Session;
use super::{CampaignList, Error, Inputs, fetch_list};
use crate::ledger::Run;

impl Session {
    /// The campaign with its list: of a run that goes on its own copy, which is all that it ever goes by.
    pub(super) async fn load_with_list(&self, runs: &[Run]) -> Result<Arc<Inputs>, Error> {
        let inputs = self.inputs();
        if inputs.destination.is_live()
            && let Some(open) = self.find_unfinished(runs).await?
        {
            return self.load_with_list_of(&open).await;
        }
        self.fetch_list().await
    }

    /// The campaign with the list of a run, where it is no file that can be read anew; with a new one where its copy is gone.
    pub(super) async fn load_with_list_of(&self, run: &Run) -> Result<Arc<Inputs>, Error> {
        let inputs = self.inputs();
        if !inputs.list.is_unfetched() {
            return Ok(Arc::clone(inputs));
        }
        match self.adapters.ledger.load_copies(run).await {
            Ok(copies) => Ok(Arc::new(inputs.with_list(CampaignList::Copies(copies)))),
            Err(_) => self.fetch_list().await,
        }
    }

    /// The campaign with its list, fetched anew where it is no file.
    pub(super) async fn fetch_list(&self) -> Result<Arc<Inputs>, Error> {
        let (inputs, adapters) = (self.inputs(), &self.adapters);
        reconcile_past(adapters, inputs).await?;
        fetch_list(inputs, adapters.fetch_context()).await
    }
}
