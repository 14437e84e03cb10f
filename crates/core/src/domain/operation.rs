//! Operations (the items of an envelope's `data`): identifiers, content, channels, the endpoint that accepts them, and
//! their outcomes.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Channel, Phone, ReportedChannel, Row, Stage};

/// Generates the kinds of operations from a list of their names, each with its channels in fallback order.
macro_rules! operations {
    ($($kind:ident = $word:literal tries [$($channel:ident),*];)*) => {
        /// The `type` of an operation that is sent per recipient (contract 2.1 and 4.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum OperationKind {
            $(#[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $kind,)*
        }

        impl OperationKind {
            /// Every kind.
            pub const ALL: [OperationKind; [$($word),*].len()] = [$(OperationKind::$kind),*];

            /// The value of `type` on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(OperationKind::$kind => $word,)*
                }
            }

            /// The channels in fallback order; empty for a pipeline, which lists its own channels.
            pub fn channels(self) -> &'static [Channel] {
                match self {
                    $(OperationKind::$kind => &[$(Channel::$channel),*],)*
                }
            }
        }
    };
}

operations! {
    Sms = "sms" tries [Sms];
    Viber = "viber" tries [Viber];
    Rcs = "rcs" tries [Rcs];
    Voice = "voice" tries [Voice];
    Telegram = "telegram" tries [Telegram];
    ViberSms = "viber+sms" tries [Viber, Sms];
    RcsSms = "rcs+sms" tries [Rcs, Sms];
    RcsViberSms = "rcs+viber+sms" tries [Rcs, Viber, Sms];
    Pipeline = "pipeline" tries [];
    Hlr = "hlr" tries [Hlr];
    CallOtp = "call/otp" tries [CallOtp];
}

impl OperationKind {
    /// The operation that carries these channels in this order.
    ///
    /// Channels without an operation type of their own use a `pipeline`; WhatsApp uses a `pipeline` even alone
    /// (contract 2.1).
    pub fn for_channels(channels: &[Channel]) -> Self {
        Self::ALL.into_iter().find(|kind| kind.channels() == channels).unwrap_or(OperationKind::Pipeline)
    }

    /// Whether the gateway promises a webhook for each message (contract 6.3). For a pipeline, the gateway promises
    /// less (6.4 and 6.5).
    pub fn promises_webhooks(self) -> bool {
        match self {
            Self::Viber | Self::Rcs | Self::RcsSms | Self::RcsViberSms => true,
            Self::Sms | Self::Voice | Self::Telegram | Self::ViberSms | Self::Pipeline | Self::Hlr | Self::CallOtp => {
                false
            }
        }
    }

    /// Whether the answer has its own form instead of a send result (contract 4.3 `hlr`, `call/otp`).
    pub fn is_single(self) -> bool {
        self.channels().iter().any(|channel| channel.facts().single)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One message to one recipient, ready to be encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'a> {
    /// Our identifier.
    pub id: MessageId,
    /// The recipient.
    pub phone: Phone,
    /// The content of the message.
    pub content: MessageContent<Cow<'a, str>>,
}

/// A template as its author wrote it, with the name that findings show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTemplate {
    /// The location of the text: a path of keys in the campaign file (`channels[0].sms.message`) or the name of a text
    /// file (`welcome.sms.txt`).
    pub name: String,
    /// The template's source.
    pub source: String,
}

/// The name of placeholders for missing texts. No key or file can have this name.
const PLACEHOLDER_NAME: &str = "\0";

impl NamedTemplate {
    /// A placeholder for a missing or wrong text, so that the rest of a campaign can be checked.
    pub fn placeholder() -> Self {
        Self { name: PLACEHOLDER_NAME.to_owned(), source: "…".to_owned() }
    }

    /// Whether the name belongs to a placeholder.
    pub fn is_placeholder(name: &str) -> bool {
        name == PLACEHOLDER_NAME
    }
}

/// Whether all recipients of a message get the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource<'m> {
    /// All recipients get this text.
    Same(&'m str),
    /// Each recipient gets a different text: the one at this index among the texts of the message.
    Filled(usize),
}

/// Extra properties of a channel that are sent unchanged.
pub type ExtraProperties = serde_json::Map<String, serde_json::Value>;

/// The content of a message: the operation that carries it and a stage for each channel, in fallback order.
///
/// `stages` is not empty and repeats no channel, and `kind` can carry it. The manifest guarantees this for every valid
/// campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageContent<T> {
    /// The operation sent for each recipient.
    pub kind: OperationKind,
    /// The channels in fallback order.
    pub stages: Vec<Stage<T>>,
}

impl MessageContent<Cow<'_, str>> {
    /// Copies the content with owned texts.
    pub fn to_owned_texts(&self) -> MessageContent<Cow<'static, str>> {
        self.map_texts(|text| Cow::Owned(text.to_string()))
    }
}

impl<T> MessageContent<T> {
    /// The channels in fallback order.
    pub fn channel_chain(&self) -> Chain {
        Chain::from_channels(self.stages.iter().map(Stage::channel))
    }

    /// Whether a second message is harmless apart from being a duplicate. A repeated code or call confuses recipients
    /// or costs them money.
    pub fn may_repeat(&self) -> bool {
        !self.stages.iter().any(|stage| stage.channel().facts().personal)
    }

    /// The purpose if the campaign defines none: service for number lookups and verification calls, otherwise
    /// marketing.
    pub fn default_purpose(&self) -> Purpose {
        let is_service = self.stages.iter().any(|stage| stage.channel().facts().single);
        if is_service { Purpose::Service } else { Purpose::Marketing }
    }

    /// Converts each text of the content with `f`.
    pub fn map_texts<'a, U>(&'a self, mut f: impl FnMut(&'a T) -> U) -> MessageContent<U> {
        match self.try_map_texts(|text| Ok::<_, Infallible>(f(text))) {
            Ok(content) => content,
            Err(never) => match never {},
        }
    }

    /// Converts each text of the content with `f`.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map_texts<'a, U, E>(&'a self, mut f: impl FnMut(&'a T) -> Result<U, E>) -> Result<MessageContent<U>, E> {
        let stages = self.stages.iter().map(|stage| stage.try_map(&mut f)).collect::<Result<_, E>>()?;
        Ok(MessageContent { kind: self.kind, stages })
    }
}

/// The maximum number of channels in a chain: a pipeline can list six, each once (contract 4.3 `pipeline`).
const MAX_CHANNELS: usize = 6;

/// The channels of one message in fallback order.
///
/// A chain without channels is unknown: the message is a pipeline that an earlier version sent without recording its
/// channels.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Chain([Option<Channel>; MAX_CHANNELS]);

impl Chain {
    /// The chain whose channels were not recorded.
    pub const UNKNOWN: Self = Self([None; MAX_CHANNELS]);

    /// The chain of these channels, in fallback order.
    pub fn from_channels(channels: impl IntoIterator<Item = Channel>) -> Self {
        let mut chain = Self::UNKNOWN;
        for (place, channel) in chain.0.iter_mut().zip(channels) {
            *place = Some(channel);
        }
        chain
    }

    /// The channels in fallback order.
    pub fn channels(self) -> impl Iterator<Item = Channel> {
        self.0.into_iter().flatten()
    }

    /// Whether the channels are recorded.
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// Whether the gateway can try another channel after the first one; true for an unknown chain.
    pub fn has_fallback(self) -> bool {
        self.channels().count() != 1
    }

    /// Whether a failure that the gateway reports for this channel means that the whole message failed.
    ///
    /// True for the last channel of the chain, and if the report names no channel (contract 6.2). False for an earlier
    /// channel, for a channel outside the chain, and for an unknown channel name.
    pub fn is_exhausted_by(self, reported: Option<&ReportedChannel>) -> bool {
        match reported {
            None => true,
            Some(ReportedChannel::Known(channel)) => self.channels().last() == Some(*channel),
            Some(ReportedChannel::Other(_)) => false,
        }
    }
}

impl From<OperationKind> for Chain {
    /// The chain of a combined type or a single channel; unknown for a pipeline, which lists its own channels.
    fn from(kind: OperationKind) -> Self {
        Self::from_channels(kind.channels().iter().copied())
    }
}

impl fmt::Display for Chain {
    /// The names of the channels separated by spaces; empty for an unknown chain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, channel) in self.channels().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            f.write_str(channel.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({self})")
    }
}

impl FromStr for Chain {
    type Err = ();

    /// Parses the output of [`Display`](fmt::Display).
    fn from_str(names: &str) -> Result<Self, ()> {
        let channels: Vec<Channel> =
            names.split_whitespace().map(Channel::from_name).collect::<Option<_>>().ok_or(())?;
        if channels.len() > MAX_CHANNELS { Err(()) } else { Ok(Self::from_channels(channels)) }
    }
}

/// The host name that represents every loopback address. A sandbox on another port is therefore still the same host.
pub const LOOPBACK: &str = "loopback";

/// The gateway endpoint that a campaign uses (contract 4.1 and 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// Answers each operation with a `msg_id`.
    #[default]
    Sync,
    /// Queues the envelope and answers with one `request_id`.
    Async,
}

impl Endpoint {
    /// The endpoint's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Sync => "sync",
            Endpoint::Async => "async",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The purpose of a run's messages, which decides which opt-outs apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Marketing and news; recipients who opted out get none.
    #[default]
    Marketing,
    /// Codes, order statuses, calls: messages that recipients asked for or need.
    Service,
}

impl Purpose {
    /// The purpose's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Marketing => "marketing",
            Purpose::Service => "service",
        }
    }

    /// The purpose with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Purpose::Marketing, Purpose::Service].into_iter().find(|purpose| purpose.name() == name)
    }

    /// Whether this is the default purpose.
    pub fn is_marketing(&self) -> bool {
        *self == Purpose::Marketing
    }
}

/// The outcome of one operation of an envelope, as far as it is proven.
///
/// Stored by position: only append variants. A ledger stores the number of a variant instead of its name. A variant
/// inserted before others would therefore change what old messages mean, and the checksum over the bytes would not
/// detect the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationOutcome {
    /// The gateway accepted the operation.
    Accepted {
        /// The gateway's identifier; a lookup or a verification call might have none.
        msg_id: Option<GatewayMessageId>,
        /// The number of billed parts.
        parts: Option<u32>,
        /// The `data` of a lookup or a verification call, as JSON.
        answer: Option<String>,
    },
    /// The gateway queued the envelope.
    Queued {
        /// The identifier of the envelope (contract 2.3).
        request_id: Arc<str>,
    },
    /// The gateway rejected the operation; this is final.
    Rejected {
        /// The error in the gateway's words.
        error: String,
    },
    /// The gateway provably did not execute the operation.
    NotSent {
        /// The proof.
        reason: Arc<str>,
    },
    /// The outcome is unknown.
    InDoubt {
        /// The observation that left the outcome unknown.
        reason: Arc<str>,
    },
}

/// An error that sending the message again does not fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermanentError {
    /// The number is not a valid phone number.
    InvalidNumber,
    /// The recipient opted out at the gateway or the operator.
    OptedOut,
    /// The gateway reported that the text is empty.
    EmptyText,
}

/// Parts of error messages and statuses, in lower case: first from the contract (7) and the platform, then from other
/// platforms.
const ERROR_PARTS: [(PermanentError, &[&str]); 3] = [
    (
        PermanentError::InvalidNumber,
        &[
            "valid receiver phone number",
            "invalid destination",
            "invalid number",
            "invalid phone",
            "invalid msisdn",
            "wrong number",
        ],
    ),
    (
        PermanentError::OptedOut,
        &["opted out", "opt-out", "unsubscribed", "blacklist", "black list", "blocklist", "stop list", "stop-list"],
    ),
    (PermanentError::EmptyText, &["please enter sms text", "empty text"]),
];

impl PermanentError {
    /// The permanent error that a gateway error or status means. `None` if sending again can help, or the error is
    /// unknown.
    pub fn classify(error: &str) -> Option<Self> {
        let error = error.to_lowercase();
        let known = ERROR_PARTS.iter().find(|(_, parts)| parts.iter().any(|part| error.contains(part)));
        known.map(|(kind, _)| *kind)
    }
}

/// Our identifier of one message: the contract's `id`, below 2^53 so that every JSON reader reads it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageId(u64);

impl MessageId {
    /// One more than the largest identifier.
    pub const LIMIT: u64 = 1 << 53;

    /// The identifier with this number. `None` if the number is too large.
    pub fn new(number: u64) -> Option<Self> {
        (number < Self::LIMIT).then_some(Self(number))
    }

    /// The identifier as a number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identifiers that a run reserves, one for each row number from 0, so that an identifier can be calculated from
/// its row.
///
/// No message is ever sent with the identifier of row 1, the header. Status inquiries use it as a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    /// The identifier of row 0.
    pub first: u64,
    /// The number of reserved identifiers.
    pub len: u64,
}

impl IdRange {
    /// The number of days since 2026-01-01 that fit into the upper 14 bits of an identifier.
    const DAYS: u64 = 1 << 14;
    /// The number of values of the lower 39 bits, which hold a random start plus a row number.
    const SPAN: u64 = 1 << 39;

    /// A range of `len` identifiers, whose upper bits are the days since 2026-01-01 and whose lower bits begin at a
    /// random number.
    ///
    /// `len` is at most 2^32 + 2, so the range always fits.
    pub fn draw(days: u64, random: u64, len: u64) -> Self {
        let start = random % (Self::SPAN - len);
        Self { first: (days % Self::DAYS) * Self::SPAN + start, len }
    }

    /// The identifier of a row of the run. `None` for a row outside the range.
    pub fn id_for_row(self, row: Row) -> Option<MessageId> {
        let offset = u64::from(row.get());
        (offset < self.len).then(|| MessageId::new(self.first + offset)).flatten()
    }

    /// The row to which an identifier belongs. `None` for an identifier outside the range.
    pub fn row_for_id(self, id: MessageId) -> Option<Row> {
        let offset = id.get().checked_sub(self.first)?;
        if offset >= self.len { None } else { u32::try_from(offset).ok().map(Row::new) }
    }

    /// Whether the two ranges overlap. A ledger in a database checks this with SQL instead.
    pub fn overlaps(self, other: Self) -> bool {
        self.first < other.first + other.len && other.first < self.first + self.len
    }
}

/// The gateway's identifier of a message (contract 2.2: string or number), unchanged.
///
/// Stored by position: only append variants. A ledger stores the number of a variant instead of its name. A variant
/// inserted before others would therefore change what old messages mean, and the checksum over the bytes would not
/// detect the change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GatewayMessageId {
    /// A non-negative whole JSON number.
    Number(u64),
    /// Anything else, as text.
    Text(String),
}

impl GatewayMessageId {
    /// Converts a numeric text to a number, because webhooks send identifiers as text, but answers contain numbers
    /// (contract 2.4, 2.2).
    #[must_use]
    pub fn normalize(self) -> Self {
        match self {
            GatewayMessageId::Text(text) => match text.parse::<u64>() {
                Ok(number) if number.to_string() == text => GatewayMessageId::Number(number),
                _ => GatewayMessageId::Text(text),
            },
            GatewayMessageId::Number(number) => GatewayMessageId::Number(number),
        }
    }
}

impl fmt::Display for GatewayMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayMessageId::Number(number) => number.fmt(f),
            GatewayMessageId::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported_channel(channel: Channel) -> Option<ReportedChannel> {
        Some(ReportedChannel::Known(channel))
    }

    #[test]
    fn failure_of_the_last_channel_ends_the_chain() {
        let chain = Chain::from(OperationKind::RcsViberSms);
        for (reported, ends) in [
            (reported_channel(Channel::Rcs), false),
            (reported_channel(Channel::Viber), false),
            (reported_channel(Channel::Sms), true),
            (reported_channel(Channel::Voice), false),
            (Some(ReportedChannel::Other("MAX".into())), false),
            (None, true),
        ] {
            assert_eq!(chain.is_exhausted_by(reported.as_ref()), ends, "{reported:?}");
        }
    }

    #[test]
    fn failure_of_a_named_channel_does_not_end_an_unknown_chain() {
        assert!(
            Channel::ALL.into_iter().all(|channel| !Chain::UNKNOWN.is_exhausted_by(reported_channel(channel).as_ref()))
        );
        assert!(Chain::UNKNOWN.is_exhausted_by(None));
        assert!(Chain::UNKNOWN.has_fallback());
        assert_eq!(Chain::from(OperationKind::Pipeline), Chain::UNKNOWN);
    }

    #[test]
    fn chain_round_trips_as_text() {
        let whole = [Channel::Voice, Channel::Telegram, Channel::Viber, Channel::Rcs, Channel::Sms, Channel::Whatsapp];
        for length in 0..=whole.len() {
            let chain = Chain::from_channels(whole[..length].iter().copied());
            assert_eq!(chain.to_string().parse(), Ok(chain));
            assert_eq!(chain.has_fallback(), length != 1);
        }
        assert_eq!("viber fax".parse::<Chain>(), Err(()));
    }
}

#[cfg(test)]
mod outcome_tests {
    use super::*;
    use crate::domain::Status;

    #[test]
    fn permanent_errors_are_classified_by_gateway_text() {
        for (error, kind) in [
            ("Please enter valid receiver phone number", Some(PermanentError::InvalidNumber)),
            (Status::InvalidDestination.name(), Some(PermanentError::InvalidNumber)),
            ("Number is in Stop List", Some(PermanentError::OptedOut)),
            ("Please enter SMS text", Some(PermanentError::EmptyText)),
            ("No route", None),
            ("Not enough money", None),
            ("Error in Alpha-name", None),
            (Status::InvalidSource.name(), None),
            ("", None),
        ] {
            assert_eq!(PermanentError::classify(error), kind, "{error}");
        }
    }
}

#[cfg(test)]
mod identifier_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn row_ids_map_back_to_their_rows(days in 0_u64..100_000, random: u64, len in 2_u64..6_000_000, row in 0_u32..6_000_000) {
            let range = IdRange::draw(days, random, len);
            match range.id_for_row(Row::new(row)) {
                Some(id) => prop_assert_eq!(range.row_for_id(id), Some(Row::new(row))),
                None => prop_assert!(u64::from(row) >= len),
            }
            prop_assert!(range.first + range.len <= MessageId::LIMIT);
        }
    }
}
