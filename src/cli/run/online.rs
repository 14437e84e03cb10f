//! Asking a live gateway before anybody gets a message: key, sender names, money.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::Start;
use crate::check::Survey;
use crate::check::online::{Cost, Prices};
use crate::cli::failure::Failure;
use crate::cli::online;
use crate::cli::survey::blocking;
use crate::manifest::Profile;

impl Start<'_> {
    /// Whether this call asks first. Where a yes is needed and nobody can give it, the run ends without a request.
    pub(super) fn asks_first(&self) -> bool {
        !self.args.offline && (self.args.yes || self.context.output.can_ask())
    }

    /// Asks the gateway about messages to these rows of a survey.
    pub(super) async fn ask_for_new(
        &self,
        profile: &Profile,
        survey: &Survey,
        rows: &RoaringBitmap,
    ) -> Result<(), Failure> {
        let cost = Cost::of(profile, &self.inputs.campaign.brief.content, &survey.by_sms_parts, rows);
        self.ask_gateway(profile, &cost).await
    }

    /// Asks the gateway about what is left of an unfinished run, `open` being the rows that are not settled.
    ///
    /// The list is looked at again only where prices make something of it.
    pub(super) async fn ask_for_rest(&self, profile: &Profile, open: &RoaringBitmap) -> Result<(), Failure> {
        let cost = match Prices::of(profile, &self.inputs.campaign.brief.content) {
            Ok(prices) => {
                let inputs = Arc::clone(&self.inputs);
                // Whoever has a message is not among the open rows.
                let looked = blocking(move || inputs.look(&RoaringTreemap::new(), None)).await?;
                let survey = looked.survey;
                let rows = self.chosen(&(open & survey.planned_rows()), survey.last_row)?;
                Cost::AtMost(prices.most(&survey.by_sms_parts, &rows))
            }
            Err(missing) => Cost::Unknown(missing),
        };
        self.ask_gateway(profile, &cost).await
    }

    async fn ask_gateway(&self, profile: &Profile, cost: &Cost) -> Result<(), Failure> {
        let output = &self.context.output;
        let online = online::ask(output, (&self.inputs, profile), Arc::clone(&self.ledger), cost).await?;
        if let Some(money) = &online.money {
            output.note(money);
        }
        let warnings = online.allowed()?;
        if !output.json {
            output.findings(&warnings);
        }
        Ok(())
    }
}
