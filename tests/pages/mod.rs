//! Pages: as files, and of a server.

mod browsing;
mod coming_in;
mod deciding;
mod files;
mod following;
mod report;
