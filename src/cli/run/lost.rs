//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use std::path::Path;

use crate::cli::exit::Failure;
use crate::cli::output::Output;
use crate::cli::survey::Inputs;
use crate::ledger::Ledger;
use crate::report::{Sign, unknown_copies, unknown_results};

/// What contradicts the ledger, or that there is none; nothing for a rehearsal.
pub(super) async fn signs(ledger: Option<&dyn Ledger>, state: &Path, inputs: &Inputs) -> Result<Vec<Sign>, Failure> {
    if !inputs.destination.is_live() {
        return Ok(Vec::new());
    }
    let mut signs = unknown_copies(ledger, state).await?;
    signs.extend(unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Refuses to send while something contradicts the ledger.
pub(super) fn refuse(signs: &[Sign], state: &Path) -> Result<(), Failure> {
    if signs.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = signs.iter().map(Sign::to_string).collect();
    Err(Failure::storage(format!(
        "nothing was sent: messages went out that the ledger in `{}` does not know of: {}. If they were sent from another \
         ledger (another user, another `--state-dir`), use that one; if it is lost for good, take those who have a message \
         off your list and say `--new-ledger`",
        state.display(),
        told.join("; ")
    )))
}

/// Gives what contradicts the ledger other names, because a person wants the ledger to count.
pub(super) fn put_aside(signs: &[Sign], output: &Output) -> Result<(), Failure> {
    for sign in signs {
        let aside = sign.put_aside().map_err(|error| Failure::storage(format!("{sign}: {error}")))?;
        output.note(&format!("{sign}: it is `{}` from now on", aside.display()));
    }
    Ok(())
}
