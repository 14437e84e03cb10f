//! What a scenario knows of each channel.

use super::keys::BEHAVIOUR;
use crate::domain::Channel;
use crate::manifest::document::{KeySpec, ValueShape};

/// How a channel is played if nobody says otherwise, and how its keys are called.
#[derive(Clone, Copy)]
pub(super) struct ChannelDefaults {
    /// What a part costs.
    price: &'static str,
    /// What is priced.
    price_doc: &'static str,
    /// How its messages may fare, as somebody would write it.
    example: &'static str,
    /// What fares.
    doc: &'static str,
    /// Whether it tells that a message was read.
    pub(super) tells_reading: bool,
    /// Whether it is spoken: a call that lasts, in which digits are pressed.
    pub(super) is_spoken: bool,
}

/// How a channel is played.
pub(super) const fn channel_defaults(channel: Channel) -> ChannelDefaults {
    match channel {
        Channel::Sms => unread_channel("0.80", "The price of one part of an SMS.", "{ delivered: 97% }", "SMS."),
        Channel::Viber => {
            read_channel("0.50", "The price of a Viber message.", "{ delivered: 60%, read: 80% }", "Viber.")
        }
        Channel::Rcs => read_channel("0.60", "An RCS message.", "{ delivered: 40% }", "RCS."),
        Channel::Telegram => read_channel(
            "0.45",
            "The price of a one-time code sent through Telegram.",
            "{ delivered: 70% }",
            "Telegram.",
        ),
        Channel::Voice => {
            let play =
                unread_channel("1.20", "The price of a spoken message.", "{ delivered: 80%, digit: 1 }", "Voice.");
            ChannelDefaults { is_spoken: true, ..play }
        }
        Channel::Whatsapp => {
            read_channel("1.50", "The price of a WhatsApp message.", "{ delivered: 60% }", "WhatsApp.")
        }
        Channel::Hlr => unread_channel("0.05", "The price of a lookup.", "{ delivered: 95% }", "Lookups."),
        Channel::CallOtp => {
            unread_channel("0.25", "The price of a verification call.", "{ delivered: 95% }", "Verification calls.")
        }
    }
}

const fn unread_channel(
    price: &'static str,
    priced: &'static str,
    example: &'static str,
    doc: &'static str,
) -> ChannelDefaults {
    ChannelDefaults { price, price_doc: priced, example, doc, tells_reading: false, is_spoken: false }
}

const fn read_channel(
    price: &'static str,
    priced: &'static str,
    example: &'static str,
    doc: &'static str,
) -> ChannelDefaults {
    ChannelDefaults { tells_reading: true, ..unread_channel(price, priced, example, doc) }
}

const CHANNEL_COUNT: usize = Channel::ALL.len();

/// The keys of the prices.
pub(super) static PRICES: &[KeySpec] = &{
    let mut keys = [KeySpec::new("", ValueShape::Amount, ""); CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        let (channel, play) = (Channel::ALL[at], channel_defaults(Channel::ALL[at]));
        keys[at] =
            KeySpec::new(channel.name(), ValueShape::Amount, play.price).with_doc(play.price_doc).default(play.price);
        at += 1;
    }
    keys
};

/// The keys of how messages fare in each channel.
pub(super) static CHANNELS: &[KeySpec] = &{
    let mut keys = [KeySpec::new("", ValueShape::Map(BEHAVIOUR), ""); CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        let (channel, play) = (Channel::ALL[at], channel_defaults(Channel::ALL[at]));
        keys[at] = KeySpec::new(channel.name(), ValueShape::Map(BEHAVIOUR), play.example).with_doc(play.doc);
        at += 1;
    }
    keys
};

/// The names of the channels.
pub(super) static NAMES: &[&str] = &{
    let mut names = [""; CHANNEL_COUNT];
    let mut at = 0;
    while at < CHANNEL_COUNT {
        names[at] = Channel::ALL[at].name();
        at += 1;
    }
    names
};
