//! Tests in a campaign file, and the message to a made-up recipient. Neither uses the ledger or the network.

use std::sync::Arc;

use super::{Error, Inputs, RunEvent, RunObserver, run_blocking};
use campaign_core::finding::{Finding, rules};
use campaign_engine::check::{
    MadeUpError, MadeUpMessage, MadeUpRecipient, TestResult, TestedCampaign, run_each_test, run_given_test,
};
use campaign_manifest::{CampaignTest, TestSubject};

/// Runs the tests of a campaign, in the order of the file.
///
/// # Errors
/// If the program ends meanwhile.
pub async fn run_campaign_tests(inputs: &Arc<Inputs>) -> Result<Vec<TestResult>, Error> {
    if inputs.campaign.tests.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = Arc::clone(inputs);
    run_blocking(move || inputs.run_tests()).await
}

/// Runs the tests and refuses to send if one fails. Notes are reported.
pub(super) async fn refuse_failed_tests(inputs: &Arc<Inputs>, observer: &RunObserver) -> Result<(), Error> {
    let results = run_campaign_tests(inputs).await?;
    let findings: Vec<Finding> = results.into_iter().flat_map(|test| test.findings).collect();
    if findings.iter().any(Finding::is_error) {
        return Err(Error::Findings(findings));
    }
    if !findings.is_empty() {
        observer(RunEvent::Warnings(findings));
    }
    Ok(())
}

impl Inputs {
    pub(super) fn run_tests(&self) -> Vec<TestResult> {
        let header = self.read_header();
        let (campaign, profile) = (&self.campaign, self.destination.profile());
        let tested = TestedCampaign { campaign, profile, header: header.as_ref() };
        campaign.tests.iter().map(|test| self.run_test(&tested, test)).collect()
    }

    fn run_test(&self, tested: &TestedCampaign<'_>, test: &CampaignTest) -> TestResult {
        match &test.subject {
            TestSubject::Given(cells) => run_given_test(tested, test, cells, &mut |name| self.load_text(name)),
            TestSubject::Each(_) if tested.header.is_none() => tested.without_list(test),
            TestSubject::Each(count) => match self.compile_for_day(&tested.today(test)) {
                Ok(mut compiled) => run_each_test(tested, test, *count, &mut compiled),
                Err(findings) => tested.with_problems(test, findings),
            },
        }
    }
}

/// The messages of a made-up recipient with these cells, by column: one, or one for each variant.
///
/// # Errors
/// If the texts or the cells are wrong.
pub fn compose_made_up(inputs: &Inputs, cells: &[(String, String)]) -> Result<Vec<MadeUpMessage>, Error> {
    let header = inputs.read_header();
    let load = &mut |name: &str| inputs.load_text(name);
    let recipient = MadeUpRecipient::compile(&inputs.campaign, header.as_ref(), cells, &inputs.today, load);
    let recipient = recipient.map_err(|error| {
        Error::Findings(match error {
            MadeUpError::Unknown { message, help, .. } => {
                vec![Finding::new(&rules::UNKNOWN_COLUMN, message).help(help)]
            }
            MadeUpError::Texts(findings) => findings,
        })
    })?;
    recipient.compose_messages().map_err(Error::Findings)
}
