//! What is planned is sent, and nothing else: what a plan is held against, how long it is kept, and who agrees to it.

mod approved;
mod pinned;
mod scheduled;
mod signed;

use crate::support::Folder;

/// Plans the campaign with these options, and gives the digest.
fn plan(sale: &Folder, options: &[&str]) -> String {
    let planned = sale.campaign(&[&["plan", "sale.yaml", "--json"], options].concat()).exits(0).json();
    planned["digest"].as_str().expect("a digest").to_owned()
}
