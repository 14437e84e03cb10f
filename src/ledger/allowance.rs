//! What an account may send.

use std::sync::Arc;

/// An account, and how fast it may be used; what shares the account's name shares its pace.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// The account's name.
    pub name: Arc<str>,
    /// Operations per second; nothing if there is no limit.
    pub rate: Option<f64>,
}

impl Allowance {
    /// The allowance of the account of that name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, rate: Option<f64>) -> Self {
        Self { name: name.into(), rate }
    }

    /// The allowance of an account; through loopback it is a separate one, so that a sandbox never slows a live gateway.
    #[must_use]
    pub fn of_account(account: &str, loopback: bool, rate: Option<f64>) -> Self {
        match loopback {
            true => Self::new(format!("{account} (loopback)"), rate),
            false => Self::new(account, rate),
        }
    }
}
