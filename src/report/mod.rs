//! Projections of the ledger: the results, the summary, previews, progress.
//!
//! A report reads and shows. It decides nothing and changes no state.

mod cell;
mod columns;
mod layout;
mod line;
mod preview;
mod progress;
mod results;
mod signs;
mod speed;
mod summary;
mod sweep;
mod target;

pub use preview::{preview, preview_json};
pub use progress::Progress;
pub use results::{Fates, Listing, ResultsError, check_place, write_file, write_objects, write_results};
pub use signs::{Sign, unknown_copies, unknown_results};
pub use summary::{Summary, counts_json, counts_line, duration, plural, thousands};
pub use sweep::{Fate, Judged, Sweep};
pub use target::{Kept, Target};
