//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use super::Start;
use crate::cli::exit::Failure;
use crate::report::{Sign, unknown_copies, unknown_results};

impl Start<'_> {
    /// Looks for what contradicts the ledger; refuses to send, or puts it aside for `--new-ledger`.
    ///
    /// The caller has the lock, so nobody writes those results meanwhile.
    pub(super) async fn settle_signs(&self) -> Result<(), Failure> {
        if self.inputs.profile.is_none() {
            return Ok(());
        }
        let ledger = Some(self.ledger.as_ref());
        let mut signs = unknown_copies(ledger, &self.state).await?;
        signs.extend(unknown_results(ledger, &self.inputs.campaign.results_file()).await?);
        if !self.args.new_ledger {
            return if signs.is_empty() { Ok(()) } else { Err(self.unknown_to_ledger(&signs)) };
        }
        for sign in signs {
            let aside = sign.put_aside().map_err(|error| Failure::storage(format!("{sign}: {error}")))?;
            self.context.output.note(&format!("{sign}: it is `{}` from now on", aside.display()));
        }
        Ok(())
    }

    fn unknown_to_ledger(&self, signs: &[Sign]) -> Failure {
        let told: Vec<String> = signs.iter().map(Sign::to_string).collect();
        Failure::storage(format!(
            "nothing was sent: messages went out that the ledger in `{}` does not know of: {}. If they were sent from \
             another ledger (another user, another `--state-dir`), use that one; if it is lost for good, take those who \
             have a message off your list and say `--new-ledger`",
            self.state.display(),
            told.join("; ")
        ))
    }
}
