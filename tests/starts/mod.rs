//! Checks at the start of a run: the campaign's name, changes, the edition, stopped runs, and the system ledger.

mod changes;
mod editions;
mod ending;
mod identity;
mod stopped;
#[cfg(unix)]
mod system_ledger;
mod words;

use crate::support::{Folder, Gateway, campaign};

/// Creates a campaign through this gateway in its own folder inside `home`, with its own text.
fn write_campaign_in(home: &Folder, gateway: &Gateway, folder: &str, text: &str, people: usize) {
    let sms = format!("  - sms: {{ signature: OlenaCo, message: {text} }}");
    let source = campaign().to(people).channels(&sms).through(gateway).write();
    for name in ["sale.yaml", "sale.csv", "gateways.yaml"] {
        let written = std::fs::read_to_string(source.path(name)).expect("a file");
        home.write(&format!("{folder}/{name}"), &written);
    }
}
