//! Recipients outside the home countries of a profile: those of earlier runs, and countries that none of them reached.

use super::{Error, Inputs, ListSurvey, run_blocking};
use campaign_core::domain::{CountryFinder, CountrySet, Region};
use campaign_engine::check::sum_recipients;
use campaign_ledger::{Ledger, NumberFilter, NumberSet, RunFilter};
use campaign_manifest::Profile;

/// What the ledger knows about the countries of an account. The default is an account without runs.
#[derive(Clone, Debug, Default)]
pub struct EarlierCountries {
    /// The countries of the list outside `home` that no run reached.
    pub new: Vec<Region>,
    /// The number of recipients outside `home` who already have a message of the edition.
    pub sent_abroad: u64,
}

impl ListSurvey {
    /// Adds what the ledger knows about the countries outside `home`; `sent` contains the numbers with a message of the
    /// edition.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn with_earlier_countries(
        mut self,
        ledger: Option<&dyn Ledger>,
        inputs: &Inputs,
        sent: &NumberSet,
    ) -> Result<Self, Error> {
        let profile = inputs.destination.profile();
        if let Some((profile, home)) = profile.and_then(|profile| Some((profile, profile.home.as_ref()?))) {
            if profile.abroad_limit.is_some() {
                self.earlier.sent_abroad = count_abroad(sent.clone(), home.clone()).await?;
            }
            if inputs.campaign.brief.watched_home(Some(profile)).is_some() {
                let abroad = self.survey.countries.count_abroad(home, &self.survey.planned_rows());
                let abroad = abroad.into_iter().filter_map(|count| count.country).collect();
                self.earlier.new = match ledger {
                    Some(ledger) => find_new_countries(ledger, inputs, abroad).await?,
                    None => abroad,
                };
            }
        }
        Ok(self)
    }

    /// The number of recipients outside `home` in the edition: those who have a message, and those who would get one.
    #[must_use]
    pub fn count_abroad(&self, profile: &Profile) -> u64 {
        let Some(home) = &profile.home else { return 0 };
        let planned = self.survey.countries.count_abroad(home, &self.survey.planned_rows());
        self.earlier.sent_abroad + sum_recipients(&planned)
    }
}

/// Counts the phone numbers outside these countries.
async fn count_abroad(numbers: NumberSet, home: CountrySet) -> Result<u64, Error> {
    run_blocking(move || {
        let mut finder = CountryFinder::default();
        numbers.phones().filter(|phone| !home.contains(finder.find_country(*phone))).count() as u64
    })
    .await
}

/// Finds which of these countries no run of the account has reached yet. The latest runs are read first.
async fn find_new_countries(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    mut countries: Vec<Region>,
) -> Result<Vec<Region>, Error> {
    if countries.is_empty() {
        return Ok(countries);
    }
    let runs = ledger.list_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let (account, loopback) = (inputs.destination.account_name(), inputs.destination.is_loopback());
    let of_account = runs.iter().rev().filter(|run| run.account == account && run.suppression.loopback == loopback);
    for run in of_account {
        let numbers = ledger.load_numbers(NumberFilter::Sent(&[run.key])).await?;
        countries = run_blocking(move || {
            let (mut finder, mut left) = (CountryFinder::default(), countries);
            for phone in numbers.phones() {
                if left.is_empty() {
                    break;
                }
                let country = finder.find_country(phone);
                left.retain(|new| Some(*new) != country);
            }
            left
        })
        .await?;
        if countries.is_empty() {
            break;
        }
    }
    Ok(countries)
}
