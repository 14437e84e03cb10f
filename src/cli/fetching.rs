//! Fetches a list from a URL, a database or a program, for a command that sends nothing.

use std::io::{self, IsTerminal as _, Read};
use std::sync::Arc;

use super::context::Context;
use super::failure::CommandFailure;
use crate::delivery::Interrupt;
use crate::ledger::Ledger;
use crate::runs::{Error, FetchContext, Inputs, RunPhase, fetch_list};

/// Standard input, if something is piped into it.
pub(super) fn piped_input() -> Option<Box<dyn Read + Send>> {
    let input = io::stdin();
    if input.is_terminal() { None } else { Some(Box::new(input)) }
}

impl Context {
    /// A campaign with its list, fetched if `wanted`. A signal ends the fetch.
    pub(super) async fn fetch_list(
        &self,
        inputs: Arc<Inputs>,
        wanted: bool,
        ledger: Option<&dyn Ledger>,
    ) -> Result<Arc<Inputs>, CommandFailure> {
        if !wanted || !inputs.list.is_unfetched() {
            return Ok(inputs);
        }
        let (state, profiles, mut interrupt) = (self.create_state_folder()?, self.profiles(), self.watch_signals()?);
        let with =
            FetchContext { state: &state, ledger, profiles: &profiles, input: piped_input, observer: &self.observer };
        let _waiting = self.output.show_spinner("Fetching the list…");
        tokio::select! {
            fetched = fetch_list(&inputs, with) => Ok(fetched?),
            signal = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => {
                let signal = match signal.map(|signal| *signal) {
                    Ok(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => signal,
                    Ok(Interrupt::None) | Err(_) => 2,
                };
                Err(Error::Interrupted { signal, phase: RunPhase::Preparing }.into())
            }
        }
    }
}
