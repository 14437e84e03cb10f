//! `campaign serve`: process, health checks, metrics, JSON API, notifications.

#[cfg(unix)]
mod api;
mod deploy;
mod listener;
mod metrics;
#[cfg(unix)]
mod notifications;
mod process;
