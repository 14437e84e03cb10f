//! Plans and approvals: only planned messages are sent. The stories cover what a plan compares, how long it is kept and
//! who approves it.

mod approved;
mod pinned;
mod resources;
mod scheduled;
pub(crate) mod signed;

use crate::support::{Finished, Folder, Process};

/// Plans the campaign with these options and returns the digest.
fn plan(sale: &Folder, options: &[&str]) -> String {
    let planned = sale.campaign(&[&["plan", "sale.yaml", "--json"], options].concat()).exits(0).json();
    planned["digest"].as_str().expect("a digest").to_owned()
}

/// A time zone whose date is always earlier than the date in `LATER`.
const EARLIER: &str = "Pacific/Pago_Pago";

/// A time zone whose date is always later than the date in `EARLIER`.
const LATER: &str = "Pacific/Kiritimati";

/// Makes each day its own edition, which changes no digest.
fn use_daily_edition(sale: &Folder) {
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: \"{{ today }}\"\n");
}

/// Runs the campaign on the date of a time zone.
fn run_in(sale: &Folder, zone: &str, arguments: &[&str]) -> Finished {
    let mut command = sale.command(&[&["run", "sale.yaml", "--no-wait"], arguments].concat());
    command.env("TZ", zone);
    Process::start(command).finish()
}
