//! HTML pages, as files and on the server.

mod browsing;
mod coming_in;
mod deciding;
mod files;
mod following;
mod overview;
mod report;
mod retrying;
mod rows;
mod testing;
