//! `campaign serve`: the process of a server and its own door.

#[cfg(unix)]
mod api;
mod deploy;
mod door;
mod metrics;
#[cfg(unix)]
mod notifications;
mod process;
