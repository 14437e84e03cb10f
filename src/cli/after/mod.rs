//! What is done about a run after it was sent: asking, deciding, sending again, looking. One file per command.

mod held;
mod reconcile;
mod resolve;
mod retry;
mod rows;
mod show;

pub(super) use held::Held;
pub(super) use reconcile::{learnt_line, reconcile};
pub(super) use resolve::resolve;
pub(super) use retry::retry;
pub(super) use show::show;

/// The name of the person at this computer, as decisions keep it.
pub(super) fn person() -> String {
    let known = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    known.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "somebody".to_owned())
}
