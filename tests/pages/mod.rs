//! What people look at in a browser: files that `preview`, `plan` and `report` write.

mod files;
mod report;
