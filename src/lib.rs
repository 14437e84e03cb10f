//! A declarative campaign runner for a multi-channel messaging gateway.

pub mod audience;
pub mod check;
pub mod cli;
pub mod delivery;
pub mod domain;
pub mod finding;
pub mod gateway;
pub mod ledger;
pub mod manifest;
pub mod message;
pub mod report;
pub mod sandbox;
