//! The servers behind `campaign serve` and `campaign connector`.
//!
//! - [`webhook`]: delivery receipts
//! - [`web`]: the dashboard and the monitoring metrics
//! - [`connector`]: the tools for AI assistants (MCP)
//! - [`scheduler`]: the daemon that fires active schedules

pub mod connector;
pub mod scheduler;
pub mod web;
pub mod webhook;
