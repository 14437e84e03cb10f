//! What answers the envelopes of a start: the gateway of a profile, or a sandbox that lives as long as the start.

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use super::{Connect, Error, read_api_key};
use crate::domain::Endpoint;
use crate::gateway::{AnswerRules, Gateway, GatewayAddress};
use crate::manifest::{Destination, Profile};
use crate::sandbox::{LocalReceiver, Sandbox, SandboxSettings, Scenario};

/// The key that the built-in sandbox and its client agree on, unless a scenario gives it another.
const REHEARSAL_KEY: &str = "rehearsal";

/// The key that opens a destination.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn read_destination_key(destination: &Destination) -> Result<SecretString, Error> {
    destination.profile().map_or_else(|| Ok(REHEARSAL_KEY.to_owned().into()), read_api_key)
}

/// What answers the envelopes of a start.
pub enum Connection<'a> {
    /// The built-in sandbox.
    Sandbox(Sandbox),
    /// The gateway of a profile, with the key that opens it.
    Gateway(&'a Profile, SecretString),
}

impl<'a> Connection<'a> {
    /// The connection to a destination; a sandbox plays the scenario, and its webhooks are brought to the receiver.
    ///
    /// # Errors
    /// When a sandbox cannot start.
    pub async fn open(
        destination: &'a Destination,
        key: SecretString,
        scenario: Arc<Scenario>,
        receiver: Option<LocalReceiver>,
    ) -> Result<Self, Error> {
        match destination {
            Destination::Live(profile) => Ok(Connection::Gateway(profile, key)),
            Destination::Rehearsal => {
                let sandbox =
                    Sandbox::start(SandboxSettings { key, scenario, receiver, ..SandboxSettings::default() }).await;
                let failed = |error| Error::Internal(format!("the built-in sandbox cannot start: {error}"));
                sandbox.map(Connection::Sandbox).map_err(failed)
            }
        }
    }

    /// A client of it.
    ///
    /// # Errors
    /// When none can be made.
    pub fn create_client(
        &self,
        connect: Connect,
        endpoint: Endpoint,
        timeout: Duration,
    ) -> Result<Arc<dyn Gateway>, Error> {
        let (address, key, rules) = match self {
            Connection::Sandbox(sandbox) => (
                GatewayAddress {
                    base_url: sandbox.base_url(),
                    async_url: sandbox.async_url(),
                    proxy: None,
                    timeout,
                    embedded: true,
                },
                // A scenario may have given the sandbox a key of its own.
                sandbox.key(),
                AnswerRules { trust_status: Vec::new(), fatal_errors: vec!["Not enough money".to_owned()] },
            ),
            Connection::Gateway(profile, key) => (
                GatewayAddress {
                    base_url: profile.base_url.as_str().to_owned(),
                    async_url: profile.async_url.as_ref().map_or_else(String::new, |url| url.as_str().to_owned()),
                    proxy: profile.proxy.clone(),
                    timeout,
                    embedded: false,
                },
                key,
                AnswerRules { trust_status: profile.trust_status.clone(), fatal_errors: profile.fatal_errors.clone() },
            ),
        };
        let key = key.expose_secret().to_owned().into();
        let api = connect(&address, endpoint, key, rules).map_err(Error::Client)?;
        Ok(Arc::new(api))
    }

    /// The sandbox, for a rehearsal.
    #[must_use]
    pub fn into_sandbox(self) -> Option<Sandbox> {
        match self {
            Connection::Sandbox(sandbox) => Some(sandbox),
            Connection::Gateway(..) => None,
        }
    }
}
