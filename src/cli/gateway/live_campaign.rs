//! The offer of `campaign gateway add` to use the new profile for a campaign.

use std::path::{Path, PathBuf};

use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::cli::question::read_typed_line;
use crate::cli::suggested::shell_path;
use crate::cli::text::StyledLine;
use crate::draft::{GatewayLine, find_campaigns};

/// A campaign that the next commands are about.
pub(super) struct LiveCampaign {
    pub(super) file: PathBuf,
    /// Whether the file names the new profile, so that the next commands need not.
    pub(super) names_gateway: bool,
}

/// Offers to write `gateway: NAME` into the campaign of `--for`, else into the only campaign of the current folder. Without a
/// terminal nothing is offered, and only `--for` counts.
pub(super) async fn offer_live_campaign(
    context: &Context,
    given: Option<&Path>,
    gateway: &str,
) -> Result<Option<LiveCampaign>, CommandFailure> {
    let can_ask = context.output.can_ask();
    let Some(campaign) = given.map(Path::to_owned).or_else(|| only_campaign().filter(|_| can_ask)) else {
        return Ok(None);
    };
    let mut names_gateway = false;
    if let Some(line) = GatewayLine::prepare(&campaign, gateway).filter(|_| can_ask) {
        let (name, run) = (shell_path(&campaign), context.output.command(format!("run {}", shell_path(&campaign))));
        context.output.print_lines(StyledLine::from_prose(&format!(
            "Use {gateway} for {name}? This adds the line `gateway: {gateway}` to the file. `{run}` then sends live \
             messages once you confirm how many."
        )));
        let prompt = "Type yes to add the line, or press Enter to leave the file as it is: ";
        if read_typed_line(prompt.to_owned()).await?.trim() == "yes" {
            line.write()?;
            names_gateway = true;
        }
    }
    Ok(Some(LiveCampaign { file: campaign, names_gateway }))
}

/// The campaign of the current folder, if there is exactly one.
fn only_campaign() -> Option<PathBuf> {
    let mut campaigns = find_campaigns(Path::new("."));
    let campaign = campaigns.pop().filter(|_| campaigns.is_empty())?;
    Some(campaign.strip_prefix(".").map_or_else(|_| campaign.clone(), Path::to_owned))
}
