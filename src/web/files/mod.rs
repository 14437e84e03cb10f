//! Pages that are files: what a campaign will say before it is sent, for whoever looks at it or approves it, and what a run came to.
//!
//! Such a file stands alone: it loads nothing, holds no script, and shows a recipient's number by its last digits unless
//! somebody asked for the numbers. Nothing here writes a file, reads a clock or decides anything.

mod messages;
mod plan;
mod preview;
mod report;
mod shared;

pub use messages::Shown;
pub use plan::{PlanPage, plan_page};
pub use preview::{PreviewPage, PreviewView, preview_page, preview_view};
pub use report::{FirstMessages, ReportPage, report_page};
