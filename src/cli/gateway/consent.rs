//! Asking for a yes before something changes on a live account.

use crate::cli::args::Agreed;
use crate::cli::consent::typed;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::runs::Account;

/// A change that needs a yes, unless it stays on this machine or was agreed to beforehand.
pub(super) struct Consent {
    /// The word that a person types for yes.
    verb: &'static str,
    needed: bool,
}

impl Consent {
    /// Finds out whether a yes is needed. Asks nobody yet, so that nothing is looked up in vain.
    ///
    /// # Errors
    /// When it is needed and nobody can be asked.
    pub(super) fn to(
        verb: &'static str,
        context: &Context,
        account: &Account,
        agreed: &Agreed,
    ) -> Result<Self, Failure> {
        let needed = !agreed.yes && !account.profile.is_loopback();
        if needed && !context.output.can_ask() {
            return Err(Failure::wrong(format!(
                "this would {verb} a template of the live gateway `{}`; say `--yes` to agree where nobody can be asked",
                account.profile.name
            )));
        }
        Ok(Self { verb, needed })
    }

    /// Shows what will happen and has the word typed.
    pub(super) async fn ask(self, account: &Account, what: &str) -> Result<(), Failure> {
        if !self.needed {
            return Ok(());
        }
        let (profile, verb) = (&account.profile, self.verb);
        let text = format!(
            "{verb} through {} at {}:\n{}\ntype `{verb}` to {verb} it, anything else to leave: ",
            profile.name,
            profile.base_url.host(),
            what
        );
        if typed(text).await?.trim() == verb {
            Ok(())
        } else {
            Err(Failure::wrong(format!("nothing was done: `{verb}` was not typed")))
        }
    }
}
