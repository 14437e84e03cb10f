//! Numbers and money as each language writes them.

use std::borrow::Cow;

use super::{Language, Words};
use crate::check::online::Cost;
use crate::domain::Amount;
use crate::report::thousands;

/// Between thousands: narrow, and no line ends there.
const THIN: &str = "\u{202f}";
/// Between a number and what it counts, where no line should end.
const FIRM: char = '\u{a0}';

impl Words {
    /// A number with its thousands apart.
    #[must_use]
    pub fn number(&self, number: u64) -> String {
        thousands(number).replace(' ', THIN)
    }

    /// An amount of money with its currency, where that is known.
    #[must_use]
    pub fn money(&self, amount: Amount, currency: Option<&str>) -> String {
        let amount = amount.shortest().to_string().replace(' ', THIN).replace('-', "\u{2212}");
        let amount = match self.language() {
            Language::English => amount,
            Language::Ukrainian => amount.replace('.', ","),
        };
        match currency {
            Some(currency) => format!("{amount}{FIRM}{currency}"),
            None => amount,
        }
    }

    /// What messages cost at most, or which channels have no price.
    #[must_use]
    pub fn cost(&self, cost: &Cost, currency: Option<&str>) -> String {
        match cost {
            Cost::AtMost(amount) => self.money(*amount, currency),
            Cost::Unknown(channels) => {
                let named = channels.iter().map(|channel| {
                    let word = channel.name();
                    self.kind("channel", word).map_or(Cow::Borrowed(word), Cow::Borrowed)
                });
                let channels = named.collect::<Vec<_>>().join(", ");
                self.say_with("cost.unknown", &[("channels", &channels)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_money_are_written_as_the_language_does() {
        let (english, ukrainian) = (Words::of(Language::English), Words::of(Language::Ukrainian));
        assert_eq!(english.number(1_234_567), "1\u{202f}234\u{202f}567");
        let amount: Amount = "-1234.5".parse().unwrap();
        assert_eq!(english.money(amount, Some("UAH")), "\u{2212}1\u{202f}234.50\u{a0}UAH");
        assert_eq!(ukrainian.money(amount, Some("UAH")), "\u{2212}1\u{202f}234,50\u{a0}UAH");
        assert_eq!(ukrainian.money("0.85".parse().unwrap(), None), "0,85");
    }
}
