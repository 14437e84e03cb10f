//! Everything but sending.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Error, Inputs, ListSurvey, ProtectedFiles, RunObserver, refuse_start, survey_list};
use crate::ledger::{Ledger, ListReader};
use crate::report::{ListSource, Listing, ResultsFormat, RowSelection, write_results_file};

/// What a run would send.
#[derive(Debug)]
pub struct DryRun {
    /// What was found in the list.
    pub survey: ListSurvey,
    /// Where the results are.
    pub results: PathBuf,
}

/// Looks at everything, unless `run` would refuse it without `accept_changes`, and writes the results of a run that sends nothing.
///
/// # Errors
/// When the inputs are wrong, or the results cannot be written.
pub async fn dry_run(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    files: ProtectedFiles<'_>,
    accept_changes: bool,
    observer: &RunObserver,
) -> Result<DryRun, Error> {
    if let Some(ledger) = ledger
        && !accept_changes
    {
        refuse_start(ledger, inputs).await?;
    }
    let survey = survey_list(inputs, ledger, observer).await?;
    let campaign = &inputs.campaign;
    let target = files.results_target(campaign, campaign.dry_results_file());
    target.resolve_path().map_err(Error::ResultsPlace)?;
    let open = || {
        let opened = inputs.open_list().map_err(|_| io::Error::other("the file no longer exists"));
        opened.map(|list| Box::new(list) as ListReader)
    };
    let listing = Listing {
        recipients: ListSource::Outside { path: inputs.list.place(), open: &open },
        recipients_sha256: &survey.sha256,
        brief: &campaign.brief,
        run: None,
        kind: campaign.brief.content.kind,
        left_out: &survey.survey.left_out,
        selection: RowSelection::default(),
        only: None,
        records: None,
        earlier: None,
    };
    write_results_file(&target, ResultsFormat::Csv, vec![listing]).await?;
    Ok(DryRun { survey, results: target.path().to_owned() })
}
