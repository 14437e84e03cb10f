//! `countries`, `home` and prices by country: which countries messages reach, and what that costs.

mod abroad;
mod allowed;
#[cfg(target_os = "linux")]
mod night;
mod prices;

use crate::support::{Draft, Gateway, campaign};

/// Two numbers of Ukraine, one of Poland and one of Germany.
const LIST: &str = "phone,name\n+380501230001,Olena\n+48501230001,Ewa\n+380501230002,Taras\n+491601230001,Uta\n";
const OLENA: u64 = 380_501_230_001;
const EWA: u64 = 48_501_230_001;
const TARAS: u64 = 380_501_230_002;

/// A campaign to [`LIST`], one message per request.
fn international_campaign(gateway: &Gateway) -> Draft {
    campaign().with_list(LIST).batches_of(1).one_at_a_time().through(gateway)
}
