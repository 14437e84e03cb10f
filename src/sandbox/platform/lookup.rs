//! What a lookup finds out about a number.

use serde::Serialize;

use crate::domain::Phone;

/// The record of a number (contract 4.3 `hlr`): every number belongs to one made-up Ukrainian operator.
#[derive(Serialize)]
pub(crate) struct NumberRecord {
    phone: u64,
    /// What became of the lookup, in the word of a message's status.
    status: String,
    imsi: u64,
    mccmnc: u32,
    ported: bool,
    network: Networks,
}

#[derive(Serialize)]
struct Networks {
    origin: Network,
}

#[derive(Serialize)]
struct Network {
    name: &'static str,
    prefix: u32,
    country: Country,
}

#[derive(Serialize)]
struct Country {
    name: &'static str,
    prefix: u32,
}

impl NumberRecord {
    /// The record of a number whose lookup has that status, the same at each lookup.
    pub(crate) fn of(phone: Phone, status: String) -> Self {
        const OPERATOR: u32 = 25_501;
        const SUBSCRIBERS: u64 = 10_000_000_000;
        let country = Country { name: "Ukraine", prefix: 380 };
        Self {
            phone: phone.get(),
            status,
            imsi: u64::from(OPERATOR) * SUBSCRIBERS + phone.get() % SUBSCRIBERS,
            mccmnc: OPERATOR,
            ported: false,
            network: Networks { origin: Network { name: "Sandbox Mobile", prefix: 50, country } },
        }
    }
}
