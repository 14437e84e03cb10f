//! HTML pages, as files and on the server.

mod access;
mod browsing;
mod decisions;
mod files;
mod live_updates;
mod overview;
mod report;
mod retrying;
mod rows;
mod testing;
