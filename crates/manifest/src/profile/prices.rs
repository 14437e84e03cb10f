//! Prices of messages by channel, the same for all countries or by the country of the number.

use crate::document::ConfigSection;
use crate::keys::OTHER_COUNTRIES;
use crate::yaml::Node;
use campaign_core::domain::{Amount, Channel, Region};

/// The price of a message on a channel, of an SMS per part.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePrice {
    /// The prices of some countries.
    pub by_country: Vec<(Region, Amount)>,
    /// The price for all other countries, and for numbers of an unknown country.
    pub others: Amount,
}

impl MessagePrice {
    /// The price for a number of this country.
    #[must_use]
    pub fn for_country(&self, country: Option<Region>) -> Amount {
        let own = self.by_country.iter().find(|(priced, _)| Some(*priced) == country);
        own.map_or(self.others, |(_, price)| *price)
    }

    /// The highest price of all countries.
    #[must_use]
    pub fn highest_price(&self) -> Amount {
        self.by_country.iter().map(|(_, price)| *price).fold(self.others, Amount::max)
    }

    /// The price as a profile writes it: `0.80`, or `UA: 0.80, else: 4.00`.
    #[must_use]
    pub fn format_price(&self) -> String {
        if self.by_country.is_empty() {
            return self.others.to_string();
        }
        let own = self.by_country.iter().map(|(country, price)| format!("{country}: {price}"));
        own.chain([format!("{OTHER_COUNTRIES}: {}", self.others)]).collect::<Vec<_>>().join(", ")
    }
}

/// The prices of a profile.
pub(super) fn read_prices(section: ConfigSection<'_>) -> Vec<(Channel, MessagePrice)> {
    let read = |channel: Channel| Some((channel, read_price(section.find_value(channel.name())?)?));
    Channel::ALL.into_iter().filter_map(read).collect()
}

/// The price under a key; `None` if it is wrong, which the structure check reports.
fn read_price(value: &Node) -> Option<MessagePrice> {
    let amount = |node: &Node| node.as_scalar()?.text.trim().parse::<Amount>().ok();
    let Some(entries) = value.as_entries() else {
        return Some(MessagePrice { by_country: Vec::new(), others: amount(value)? });
    };
    let mut price = MessagePrice { by_country: Vec::new(), others: amount(&value.find_entry(OTHER_COUNTRIES)?.value)? };
    for entry in entries.iter().filter(|entry| entry.key != OTHER_COUNTRIES) {
        price.by_country.push((entry.key.parse().ok()?, amount(&entry.value)?));
    }
    Some(price)
}
