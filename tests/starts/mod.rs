//! What a start begins with: whose campaign it is, what changed since, which edition, and how a run ends for good.

mod changes;
mod editions;
mod ending;
mod stopped;
mod whose;
mod words;

use crate::support::{Folder, Gateway, campaign};

/// A campaign through this gateway in a folder of its own within `home`, with a text of its own.
fn in_folder(home: &Folder, gateway: &Gateway, folder: &str, text: &str, people: usize) {
    let sms = format!("  - sms: {{ signature: OlenaCo, message: {text} }}");
    let draft = campaign().to(people).channels(&sms).through(gateway).write();
    for name in ["sale.yaml", "sale.csv", "gateways.yaml"] {
        let written = std::fs::read_to_string(draft.path(name)).expect("a file");
        home.write(&format!("{folder}/{name}"), &written);
    }
}
