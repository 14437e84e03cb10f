//! Checks against the gateway account: API key, sender names and balance.
//!
//! This module does no I/O: it evaluates the answers to requests that other modules make. A missing answer never
//! blocks a run.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;

use super::{MessageSize, RecipientCountries, RowsBySize, Survey, rules};
use campaign_content::message::{TemplateNames, render_constant};
use campaign_core::domain::{Amount, Channel, NamedTemplate, Phone, Region, Stage, find_country};
use campaign_core::finding::{Finding, SourceLocation};
use campaign_gateway::{Balance, FailureCause, InquiryFailure, SenderName};
use campaign_manifest::{CampaignBrief, MessagePrice, Profile, SourceMap};

/// The gateway's answer to one request for balance and sender names.
pub type AccountAnswer =
    Result<(Result<Balance, InquiryFailure>, Result<Vec<SenderName>, InquiryFailure>), InquiryFailure>;

/// A sender name that is the same for all recipients.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The channel that uses the name.
    pub channel: Channel,
    /// The name, rendered with the constants of the campaign.
    pub name: String,
    /// The location in the campaign file.
    pub place: Option<SourceLocation>,
}

/// The message prices of a campaign, by variant.
#[derive(Clone, Debug)]
pub struct MessagePrices(Vec<VariantPrices>);

/// The prices of a variant's messages.
#[derive(Clone, Debug, Default)]
struct VariantPrices {
    /// The prices in countries that a channel has its own price for.
    by_country: Vec<(Region, ChannelPrices)>,
    /// The prices in all other countries.
    others: ChannelPrices,
}

/// The price of a message, by channel.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelPrices {
    /// The price of an SMS part; 0 without an SMS channel.
    sms_part: Amount,
    /// The highest price of the other channels; 0 without other channels.
    other: Amount,
    /// The price of the first channel, if it is not SMS.
    first: Option<Amount>,
}

/// The maximum cost of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// At most this amount, in the account's currency.
    AtMost(Amount),
    /// The profile has no price for these channels.
    Unknown(Vec<Channel>),
}

impl MessagePrices {
    /// The prices of a campaign's channels.
    ///
    /// # Errors
    /// The channels that the profile has no price for.
    pub fn for_campaign(profile: &Profile, brief: &CampaignBrief) -> Result<Self, Vec<Channel>> {
        let (mut prices, mut missing) = (Vec::new(), Vec::new());
        for arm in brief.list_arms() {
            let channels: Vec<Channel> = arm.content.stages.iter().map(Stage::channel).collect();
            let mut priced = Vec::new();
            for channel in channels {
                match profile.price_per_message(channel) {
                    Some(price) => priced.push((channel, price)),
                    None if missing.contains(&channel) => {}
                    None => missing.push(channel),
                }
            }
            prices.push(VariantPrices::from_channels(&priced));
        }
        if missing.is_empty() { Ok(Self(prices)) } else { Err(missing) }
    }

    /// The cost of a message to `phone` on the message's most expensive channel.
    pub fn message_cost(&self, size: MessageSize, phone: Phone) -> Amount {
        let Some(variant) = self.0.get(size.arm) else { return Amount::default() };
        // The country is looked up only if a price depends on it.
        let country = if variant.by_country.is_empty() { None } else { find_country(phone) };
        variant.for_country(country).max_cost(size)
    }

    /// The cost if each message is delivered on its most expensive channel, which is the amount that the gateway
    /// reserves (contract 4.3 `pipeline`).
    pub fn max_cost(&self, sized: SizedRows<'_>, rows: &RoaringBitmap) -> Amount {
        self.sum_costs(sized, rows, ChannelPrices::max_cost)
    }

    /// The cost if each message is delivered on its first channel.
    pub fn likely_cost(&self, sized: SizedRows<'_>, rows: &RoaringBitmap) -> Amount {
        self.sum_costs(sized, rows, ChannelPrices::likely_cost)
    }

    /// The total cost of the messages for `rows`, based on each message's size and country.
    fn sum_costs(
        &self,
        SizedRows { by_size, countries }: SizedRows<'_>,
        rows: &RoaringBitmap,
        cost: impl Fn(ChannelPrices, MessageSize) -> Amount,
    ) -> Amount {
        let mut sum = Amount::default();
        for (size, rows_of_size) in by_size {
            let Some(variant) = self.0.get(size.arm) else { continue };
            let chosen = rows_of_size & rows;
            let mut others = chosen.len();
            for (country, prices) in &variant.by_country {
                let messages = countries.rows_in(*country).map_or(0, |rows| rows.intersection_len(&chosen));
                others -= messages;
                sum = sum.saturating_add(cost(*prices, *size).saturating_mul(messages));
            }
            sum = sum.saturating_add(cost(variant.others, *size).saturating_mul(others));
        }
        sum
    }
}

/// The planned rows of a list by the size of their messages and by country.
#[derive(Clone, Copy, Debug)]
pub struct SizedRows<'s> {
    by_size: &'s RowsBySize,
    countries: &'s RecipientCountries,
}

impl<'s> From<&'s Survey> for SizedRows<'s> {
    fn from(survey: &'s Survey) -> Self {
        Self { by_size: &survey.by_size, countries: &survey.countries }
    }
}

impl VariantPrices {
    /// The prices of a variant; `priced` lists the channels in the order in which they are tried.
    fn from_channels(priced: &[(Channel, &MessagePrice)]) -> Self {
        let listed_countries = priced.iter().flat_map(|(_, price)| &price.by_country).map(|(country, _)| *country);
        let countries: BTreeSet<Region> = listed_countries.collect();
        let prices = |country| ChannelPrices::from_channels(priced, country);
        let by_country = countries.into_iter().map(|country| (country, prices(Some(country)))).collect();
        Self { by_country, others: prices(None) }
    }

    fn for_country(&self, country: Option<Region>) -> ChannelPrices {
        let country_prices = self.by_country.iter().find(|(priced, _)| Some(*priced) == country);
        country_prices.map_or(self.others, |(_, prices)| *prices)
    }
}

impl ChannelPrices {
    fn from_channels(priced: &[(Channel, &MessagePrice)], country: Option<Region>) -> Self {
        let mut prices = Self::default();
        for (index, (channel, price)) in priced.iter().enumerate() {
            let price = price.for_country(country);
            if channel.facts().billed_by_part {
                prices.sms_part = price;
            } else {
                prices.other = prices.other.max(price);
                if index == 0 {
                    prices.first = Some(price);
                }
            }
        }
        prices
    }

    /// The cost of a message on its most expensive channel.
    fn max_cost(self, size: MessageSize) -> Amount {
        self.sms_part.saturating_mul(size.sms_parts.into()).max(self.other)
    }

    /// The cost of a message on its first channel.
    fn likely_cost(self, size: MessageSize) -> Amount {
        self.first.unwrap_or_else(|| self.sms_part.saturating_mul(size.sms_parts.into()))
    }
}

impl Cost {
    /// The maximum cost of the messages for `rows`, or the channels whose price is unknown.
    pub fn estimate(profile: &Profile, brief: &CampaignBrief, survey: &Survey, rows: &RoaringBitmap) -> Self {
        match MessagePrices::for_campaign(profile, brief) {
            Ok(prices) => Cost::AtMost(prices.max_cost(survey.into(), rows)),
            Err(missing) => Cost::Unknown(missing),
        }
    }
}

/// The constant sender names of a campaign.
///
/// `today` is the date that texts see. Sender names that depend on the row are omitted.
pub fn find_signatures(brief: &CampaignBrief, places: &SourceMap, today: &str) -> Vec<Signature> {
    let names = TemplateNames {
        vars: brief.vars.clone(),
        campaign: brief.name.clone(),
        today: today.to_owned(),
        language: brief.text_language(),
        ..TemplateNames::default()
    };
    let find_constant_name = |stage: &Stage<NamedTemplate>| {
        let texts = stage.texts().filter(|_| stage.channel().facts().senders_listed);
        let (_, text) = texts.into_iter().find(|(field, _)| field.key == "signature")?;
        let name = render_constant(text, &names).ok()?;
        let place = places.locate_text(&text.name, 1, 1, text.source.chars().count());
        Some(Signature { channel: stage.channel(), name, place })
    };
    brief.all_contents().flat_map(|content| &content.stages).filter_map(find_constant_name).collect()
}

/// The facts about an account that are known before the gateway answers.
#[derive(Clone, Copy, Debug)]
pub struct AccountTerms<'a> {
    /// The statuses that mark a sender name as verified.
    pub verified: &'a [String],
    /// The location of the API key.
    pub key: &'a str,
    /// The command that shows the account's balance.
    pub balance: &'a str,
    /// The command that shows the account's sender names.
    pub senders: &'a str,
}

/// Checks the account's sender names and balance, and returns findings about anything that might prevent sending.
pub fn check_account(
    answer: &AccountAnswer,
    signatures: &[Signature],
    account: AccountTerms<'_>,
    cost: &Cost,
) -> Vec<Finding> {
    let (balance, senders) = match answer {
        Ok(answer) => answer,
        Err(failure) if failure.cause == FailureCause::KeyRefused => {
            return vec![rules::key_rejected_finding(failure.reason.clone(), account.key)];
        }
        Err(failure) => {
            return vec![rules::unknown_account_data_finding("the sender names and the balance are", failure, account)];
        }
    };
    let mut findings = match senders {
        Ok(senders) => {
            let named_senders: Vec<&SenderName> =
                senders.iter().filter(|sender| !sender.name.trim().is_empty()).collect();
            signatures
                .iter()
                .filter_map(|signature| rules::check_sender_name(signature, &named_senders, account))
                .collect()
        }
        Err(failure) => vec![rules::unknown_account_data_finding("the sender names are", failure, account)],
    };
    match (balance, cost) {
        (Ok(balance), Cost::AtMost(cost)) => findings.extend(rules::check_balance(balance, *cost)),
        (Ok(_), Cost::Unknown(_)) => {}
        (Err(failure), _) => findings.push(rules::unknown_account_data_finding("the balance is", failure, account)),
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::Severity;
    use campaign_manifest::{CampaignDay, load_campaign};

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    fn balance(text: &str) -> Balance {
        Balance { amount: amount(text), currency: "UAH".into() }
    }

    fn signature(channel: Channel, name: &str) -> Signature {
        Signature { channel, name: name.into(), place: None }
    }

    fn senders() -> Vec<SenderName> {
        let sender = |name: &str, status: &str| SenderName { name: name.into(), status: status.into() };
        vec![sender("OlenaCo", "Checked"), sender("Fresh", "New"), sender("Odd", "Paused"), sender("Bare", "")]
    }

    fn unanswered(cause: FailureCause) -> InquiryFailure {
        InquiryFailure { cause, reason: "why".into(), gateway_text: None, not_executed: true }
    }

    fn unpriced() -> Cost {
        Cost::Unknown(vec![Channel::Sms])
    }

    fn account(verified: &[String]) -> AccountTerms<'_> {
        AccountTerms {
            verified,
            key: "the environment variable `KEY`",
            balance: "campaign gateway balance",
            senders: "campaign gateway senders",
        }
    }

    /// The findings for an account in which the status `Checked` marks a sender name as verified.
    fn check(answer: &AccountAnswer, signatures: &[Signature], cost: &Cost) -> Vec<Finding> {
        check_account(answer, signatures, account(&["Checked".to_owned()]), cost)
    }

    fn rules(findings: &[Finding]) -> Vec<(&'static str, Severity)> {
        findings.iter().map(|finding| (finding.rule.id, finding.severity)).collect()
    }

    #[test]
    fn unknown_sender_is_an_error_for_sms_only() {
        use Severity::{Error, Warning};
        let table = [
            (Channel::Sms, "OlenaCo", None, ""),
            (Channel::Viber, "OlenaCo", None, ""),
            (Channel::Sms, "olenaco", Some(Error), "did you mean `OlenaCo`? names are case-sensitive"),
            (Channel::Sms, "OlenaKo", Some(Error), "did you mean `OlenaCo`?"),
            (Channel::Sms, "Stranger", Some(Error), "campaign gateway senders"),
            (Channel::Viber, "Stranger", Some(Warning), "campaign gateway senders"),
            (Channel::Rcs, "olenaco", Some(Warning), "OlenaCo"),
            (Channel::Sms, "Fresh", Some(Error), "wait"),
            (Channel::Viber, "Fresh", Some(Warning), "wait"),
            (Channel::Sms, "Odd", Some(Warning), "support"),
            (Channel::Sms, "Bare", Some(Warning), "support"),
        ];
        for (channel, name, severity, help) in table {
            let answer = Ok((Ok(balance("1")), Ok(senders())));
            let found = check(&answer, &[signature(channel, name)], &Cost::Unknown(vec![channel]));
            let expected: Vec<_> = severity.map(|severity| ("sender-unknown", severity)).into_iter().collect();
            assert_eq!(rules(&found), expected, "{channel} {name}");
            let helped = found.first().and_then(|finding| finding.help.clone()).unwrap_or_default();
            assert!(helped.contains(help), "{channel} {name}: {helped}");
        }
    }

    #[test]
    fn sender_list_without_names_gives_no_findings() {
        let sender = |name: &str| SenderName { name: name.into(), status: "Checked".into() };
        let unknown = vec![("sender-unknown", Severity::Error)];
        for (list, expected) in
            [(vec![], vec![]), (vec![sender(""), sender(" ")], vec![]), (vec![sender(""), sender("OlenaCo")], unknown)]
        {
            let answer = Ok((Ok(balance("1")), Ok(list)));
            assert_eq!(rules(&check(&answer, &[signature(Channel::Sms, "Stranger")], &unpriced())), expected);
        }
    }

    #[test]
    fn profile_defines_which_sender_statuses_count_as_verified() {
        let answer: AccountAnswer = Ok((Ok(balance("1")), Ok(senders())));
        for (word, name, severity) in [
            ("paused", "Odd", None),
            ("Paused", "OlenaCo", Some(Severity::Warning)),
            ("New", "Fresh", None),
            ("Paused", "Fresh", Some(Severity::Error)),
        ] {
            let found =
                check_account(&answer, &[signature(Channel::Sms, name)], account(&[word.to_owned()]), &unpriced());
            assert_eq!(found.first().map(|finding| finding.severity), severity, "{word} {name}");
        }
    }

    #[test]
    fn balance_below_the_highest_cost_is_an_error() {
        for (amount_left, cost, is_too_low) in
            [("80", "80.00", false), ("79.99", "80", true), ("-1", "0", true), ("0", "0", false)]
        {
            let answer = Ok((Ok(balance(amount_left)), Ok(Vec::new())));
            let found = check(&answer, &[], &Cost::AtMost(amount(cost)));
            assert_eq!(rules(&found), if is_too_low { vec![("balance-too-low", Severity::Error)] } else { vec![] });
        }
        let answer = Ok((Ok(balance("1200.5")), Ok(Vec::new())));
        let found = check(&answer, &[], &Cost::AtMost(amount("2000")));
        assert_eq!(
            found[0].message,
            "the balance is 1 200.50 UAH, but the messages can cost up to 2 000.00 UAH, which is 799.50 UAH more"
        );
        assert_eq!(rules(&check(&answer, &[], &Cost::Unknown(vec![Channel::Sms]))), []);
    }

    #[test]
    fn only_a_rejected_key_and_confirmed_problems_are_errors() {
        let (sms, cost) = ([signature(Channel::Sms, "Stranger")], Cost::AtMost(amount("9")));
        let rule = |answer: AccountAnswer| rules(&check(&answer, &sms, &cost));
        let error = |rule| (rule, Severity::Error);
        let doubt = ("online-unknown", Severity::Warning);
        assert_eq!(rule(Err(unanswered(FailureCause::KeyRefused))), [error("key-refused")]);
        for cause in
            [FailureCause::Refused, FailureCause::NotConnected, FailureCause::SlowDown(None), FailureCause::Unclear]
        {
            assert_eq!(rule(Err(unanswered(cause))), [doubt]);
            assert_eq!(rule(Ok((Err(unanswered(cause)), Err(unanswered(cause))))), [doubt, doubt]);
            assert_eq!(rule(Ok((Ok(balance("1")), Err(unanswered(cause))))), [doubt, error("balance-too-low")]);
            assert_eq!(rule(Ok((Err(unanswered(cause)), Ok(senders())))), [error("sender-unknown"), doubt]);
        }
    }

    #[test]
    fn each_message_is_priced_at_its_most_expensive_channel() {
        let rows = |rows: &[u32]| rows.iter().copied().collect::<RoaringBitmap>();
        let size = |arm, sms_parts| MessageSize { arm, sms_parts };
        let channel_prices =
            |sms: &str, other: &str| ChannelPrices { sms_part: amount(sms), other: amount(other), first: None };
        let sized = RowsBySize::from([(size(0, 1), rows(&[2, 3, 4])), (size(0, 3), rows(&[5, 6]))]);
        let no_countries = RecipientCountries::default();
        let by_size = |by_size| SizedRows { by_size, countries: &no_countries };
        let everywhere = |others| VariantPrices { by_country: Vec::new(), others };
        let cost = |sms: &str, other: &str, chosen: &[u32]| {
            MessagePrices(vec![everywhere(channel_prices(sms, other))])
                .max_cost(by_size(&sized), &rows(chosen))
                .to_string()
        };
        let all = [2, 3, 4, 5, 6];
        assert_eq!(cost("0.80", "0", &all), "7.20");
        assert_eq!(cost("0.80", "1.00", &all), "7.80", "the other channel is more expensive only for short messages");
        assert_eq!(cost("0.80", "9", &all), "45.00");
        assert_eq!(cost("0.80", "0", &[4, 5, 99]), "3.20", "only the rows that are sent to");
        let lookups = RowsBySize::from([(size(0, 0), rows(&[2, 3]))]);
        let lookup_prices = MessagePrices(vec![everywhere(channel_prices("0", "0.05"))]);
        assert_eq!(lookup_prices.max_cost(by_size(&lookups), &rows(&[2, 3])).to_string(), "0.10");
        let variants = RowsBySize::from([(size(0, 1), rows(&[2, 3])), (size(1, 2), rows(&[4]))]);
        let prices =
            MessagePrices(vec![everywhere(channel_prices("0.80", "0")), everywhere(channel_prices("0.80", "2.00"))]);
        assert_eq!(
            prices.max_cost(by_size(&variants), &rows(&[2, 3, 4])).to_string(),
            "3.60",
            "each variant at the prices of its own channels"
        );
        let first = |sms: &str, first: &str| ChannelPrices { first: Some(amount(first)), ..channel_prices(sms, "9") };
        let prices = MessagePrices(vec![everywhere(channel_prices("0.80", "0")), everywhere(first("0.80", "0.50"))]);
        let likely = prices.likely_cost(by_size(&variants), &rows(&[2, 3, 4]));
        assert_eq!(likely.to_string(), "2.10", "each message at the price of its first channel");
    }

    #[test]
    fn message_is_priced_by_the_country_of_its_number() {
        let region = |code: &str| code.parse::<Region>().unwrap();
        let price = |country_prices: &[(&str, &str)], others: &str| MessagePrice {
            by_country: country_prices.iter().map(|(code, price)| (region(code), amount(price))).collect(),
            others: amount(others),
        };
        let (sms, viber) = (price(&[("UA", "0.80"), ("PL", "2.10")], "4"), price(&[("DE", "9")], "0.50"));
        let prices =
            MessagePrices(vec![VariantPrices::from_channels(&[(Channel::Viber, &viber), (Channel::Sms, &sms)])]);
        let size = MessageSize { arm: 0, sms_parts: 2 };
        let numbers = [380_501_234_567, 48_501_234_567, 4_916_012_345_678, 80_012_345_678];
        let costs = numbers.map(|number| prices.message_cost(size, Phone::new(number).unwrap()).to_string());
        assert_eq!(costs, ["1.60", "4.20", "9.00", "8.00"], "an unknown country costs as much as the others");
        let mut countries = RecipientCountries::default();
        for (row, code) in [(2, "UA"), (3, "UA"), (4, "PL"), (5, "DE"), (6, "FR")] {
            countries.add_row(campaign_core::domain::Row::new(row), Some(region(code)));
        }
        let by_size = RowsBySize::from([(size, (2..7).collect::<RoaringBitmap>())]);
        let sized = SizedRows { by_size: &by_size, countries: &countries };
        let cost = |rows: std::ops::Range<u32>| prices.max_cost(sized, &rows.collect()).to_string();
        assert_eq!([cost(2..7), cost(2..4), cost(4..6)], ["24.40", "3.20", "13.20"]);
        assert_eq!(prices.likely_cost(sized, &(2..7).collect()).to_string(), "11.00", "Viber is tried first");
    }

    #[test]
    fn only_constant_signatures_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let yaml = "vars: { shop: OlenaCo }\nrecipients: { file: a.csv }\nchannels:\n  \
            - rcs: { signature: Constant, message: x, image: https://a.b/c.png, button: y, link: https://a.b }\n  \
            - viber: { signature: \"{{ shop }}\", message: x }\n  \
            - sms: { signature: \"{{ brand }}\", message: x }\n";
        std::fs::write(&file, yaml).unwrap();
        let loaded = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now()));
        let campaign = loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings));
        let found = find_signatures(&campaign.brief, &campaign.places, "2026-11-21");
        let names: Vec<_> = found.iter().map(|found| (found.channel, found.name.as_str())).collect();
        assert_eq!(names, [(Channel::Rcs, "Constant"), (Channel::Viber, "OlenaCo")], "`brand` is a column");
        assert!(found.iter().all(|found| found.place.is_some()));
    }
}
