//! What a lookup finds out about a number.

use serde_json::{Value, json};

use crate::domain::Phone;

/// The record of a number (contract 4.3 `hlr`) whose lookup has that status: every number belongs to one made-up
/// Ukrainian operator, and has the same record at each lookup.
pub(crate) fn lookup_record(phone: Phone, status: &str) -> Value {
    const OPERATOR: u64 = 25_501;
    const SUBSCRIBERS: u64 = 10_000_000_000;
    let country = json!({ "name": "Ukraine", "prefix": 380 });
    json!({
        "phone": phone.to_u64(),
        "status": status,
        "imsi": OPERATOR * SUBSCRIBERS + phone.to_u64() % SUBSCRIBERS,
        "mccmnc": OPERATOR,
        "ported": false,
        "network": { "origin": { "name": "Sandbox Mobile", "prefix": 50, "country": country } },
    })
}
