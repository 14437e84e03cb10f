//! Everything but sending.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Error, Inputs, ListSurvey, Observer, OwnFiles, refuse_start, survey_list};
use crate::ledger::{Ledger, ListReader};
use crate::report::{ListSource, Listing, RowSelection, Style, write_file};

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
    files: OwnFiles<'_>,
    accept_changes: bool,
    observer: &Observer,
) -> Result<DryRun, Error> {
    if let Some(ledger) = ledger
        && !accept_changes
    {
        refuse_start(ledger, inputs).await?;
    }
    let survey = survey_list(inputs, ledger, observer).await?;
    let campaign = &inputs.campaign;
    let target = files.target(campaign, campaign.dry_results_file());
    target.judge().map_err(Error::ResultsPlace)?;
    let open = || {
        let opened = inputs.list().map_err(|_| io::Error::other("the file no longer exists"));
        opened.map(|list| Box::new(list) as ListReader)
    };
    let listing = Listing {
        recipients: ListSource::Outside { place: inputs.list.place(), open: &open },
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
    write_file(&target, Style::Csv, vec![listing]).await?;
    Ok(DryRun { survey, results: target.path().to_owned() })
}
