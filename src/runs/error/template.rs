//! Why templates of an account were not changed.

use crate::gateway::InquiryFailure;
use crate::runs::AccountView;

/// Why templates of an account were not changed.
#[derive(Debug, thiserror::Error)]
pub enum TemplateRefusal {
    /// It is unknown whether the change was made.
    #[error("`{gateway}` gave no usable response: {}; the change might have been made", .failure.reason)]
    Unclear {
        /// The profile.
        gateway: String,
        /// Why it is unknown.
        failure: InquiryFailure,
        /// Where the change can be seen.
        view: AccountView,
    },
    /// A deletion deleted nothing.
    #[error("the gateway deleted nothing; template {id} might not exist")]
    NothingDeleted {
        /// The gateway's identifier of the template.
        id: u64,
    },
    /// The account has no such Viber template.
    #[error("the account of `{gateway}` has no Viber template {id}")]
    NoSuchTemplate {
        /// The profile.
        gateway: String,
        /// The gateway's identifier of the template.
        id: u64,
    },
    /// The gateway does not return the text of a template, which its deletion requires.
    #[error("cannot delete the Viber template {id}: the gateway did not return its text, which is required")]
    TextUnknown {
        /// The gateway's identifier of the template.
        id: u64,
    },
}
