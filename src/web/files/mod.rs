//! Pages that are files: what a campaign will say before it is sent, for whoever looks at it or approves it, and what a run came to.
//!
//! Such a file stands alone: it loads nothing, holds no script, and shows a recipient's number by its last digits unless
//! somebody asked for the numbers. Nothing here writes a file, reads a clock or decides anything.

mod messages;
mod plan;
mod preview;
mod report;
mod shared;

pub use messages::MessageSelection;
pub use plan::{PlanPage, render_plan_page};
pub use preview::{PreviewPage, PreviewView, build_preview_view, render_preview_page};
pub use report::{FirstMessages, ReportPage, render_report_page};
