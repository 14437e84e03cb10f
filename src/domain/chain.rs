//! The chain of a message: its channels, in the order in which the gateway tries them.

use std::fmt;
use std::str::FromStr;

use super::{Channel, OperationKind, ReportedChannel};

/// The most channels of one chain: a pipeline can name six, each once (contract 4.3 `pipeline`).
const MAX_CHANNELS: usize = 6;

/// The channels of one message, in the order in which the gateway tries them.
///
/// A chain without channels is unknown: the message is a pipeline, and an earlier version sent it without recording its
/// channels.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Chain([Option<Channel>; MAX_CHANNELS]);

impl Chain {
    /// The chain whose channels nobody recorded.
    pub const UNKNOWN: Self = Self([None; MAX_CHANNELS]);

    /// The chain of these channels, tried in this order.
    #[must_use]
    pub fn from_channels(channels: impl IntoIterator<Item = Channel>) -> Self {
        let mut chain = Self::UNKNOWN;
        for (place, channel) in chain.0.iter_mut().zip(channels) {
            *place = Some(channel);
        }
        chain
    }

    /// The channels, the first one first.
    pub fn channels(self) -> impl Iterator<Item = Channel> {
        self.0.into_iter().flatten()
    }

    /// Whether its channels are recorded.
    #[must_use]
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// Whether another channel can be tried after the first one; true of an unknown chain.
    #[must_use]
    pub fn has_fallback(self) -> bool {
        self.channels().count() != 1
    }

    /// Whether a failure that the gateway reports for this channel is the failure of the whole message.
    ///
    /// That is so for the last channel of the chain, and if no channel is named (contract 6.2). It is not so for an earlier
    /// channel, for one outside the chain, or for an unknown word.
    #[must_use]
    pub fn ends_with(self, reported: Option<&ReportedChannel>) -> bool {
        match reported {
            None => true,
            Some(ReportedChannel::Known(channel)) => self.channels().last() == Some(*channel),
            Some(ReportedChannel::Other(_)) => false,
        }
    }
}

impl From<OperationKind> for Chain {
    /// The chain of a combined type or a single channel; unknown for a pipeline, which names its own.
    fn from(kind: OperationKind) -> Self {
        Self::from_channels(kind.channels().iter().copied())
    }
}

impl fmt::Display for Chain {
    /// The channels' names with spaces between them; nothing for an unknown chain.
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

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(names: &str) -> Result<Self, ()> {
        let channels: Vec<Channel> =
            names.split_whitespace().map(Channel::from_name).collect::<Option<_>>().ok_or(())?;
        if channels.len() > MAX_CHANNELS { Err(()) } else { Ok(Self::from_channels(channels)) }
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
            assert_eq!(chain.ends_with(reported.as_ref()), ends, "{reported:?}");
        }
    }

    #[test]
    fn unknown_chain_is_ended_by_no_named_channel() {
        assert!(Channel::ALL.into_iter().all(|channel| !Chain::UNKNOWN.ends_with(reported_channel(channel).as_ref())));
        assert!(Chain::UNKNOWN.ends_with(None));
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
