//! What a scenario knows of each channel.

use super::keys::BEHAVIOUR;
use crate::domain::Channel;
use crate::manifest::document::{Key, Shape};

/// How a channel is played if nobody says otherwise, and how its keys are called.
#[derive(Clone, Copy)]
pub(super) struct Play {
    /// What a part costs.
    price: &'static str,
    /// What is priced.
    priced: &'static str,
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
pub(super) const fn play(channel: Channel) -> Play {
    match channel {
        Channel::Sms => plain("0.80", "The price of one part of an SMS.", "{ delivered: 97% }", "SMS."),
        Channel::Viber => read("0.50", "The price of a Viber message.", "{ delivered: 60%, read: 80% }", "Viber."),
        Channel::Rcs => read("0.60", "An RCS message.", "{ delivered: 40% }", "RCS."),
        Channel::Telegram => {
            read("0.45", "The price of a one-time code sent through Telegram.", "{ delivered: 70% }", "Telegram.")
        }
        Channel::Voice => {
            let play = plain("1.20", "The price of a spoken message.", "{ delivered: 80%, digit: 1 }", "Voice.");
            Play { is_spoken: true, ..play }
        }
        Channel::Whatsapp => read("1.50", "The price of a WhatsApp message.", "{ delivered: 60% }", "WhatsApp."),
        Channel::Hlr => plain("0.05", "The price of a lookup.", "{ delivered: 95% }", "Lookups."),
        Channel::CallOtp => {
            plain("0.25", "The price of a verification call.", "{ delivered: 95% }", "Verification calls.")
        }
    }
}

const fn plain(price: &'static str, priced: &'static str, example: &'static str, doc: &'static str) -> Play {
    Play { price, priced, example, doc, tells_reading: false, is_spoken: false }
}

const fn read(price: &'static str, priced: &'static str, example: &'static str, doc: &'static str) -> Play {
    Play { tells_reading: true, ..plain(price, priced, example, doc) }
}

const COUNT: usize = Channel::ALL.len();

/// The keys of the prices.
pub(super) static PRICES: &[Key] = &{
    let mut keys = [Key::new("", Shape::Amount, ""); COUNT];
    let mut at = 0;
    while at < COUNT {
        let (channel, play) = (Channel::ALL[at], play(Channel::ALL[at]));
        keys[at] = Key::new(channel.name(), Shape::Amount, play.price).doc(play.priced).default(play.price);
        at += 1;
    }
    keys
};

/// The keys of how messages fare in each channel.
pub(super) static CHANNELS: &[Key] = &{
    let mut keys = [Key::new("", Shape::Map(BEHAVIOUR), ""); COUNT];
    let mut at = 0;
    while at < COUNT {
        let (channel, play) = (Channel::ALL[at], play(Channel::ALL[at]));
        keys[at] = Key::new(channel.name(), Shape::Map(BEHAVIOUR), play.example).doc(play.doc);
        at += 1;
    }
    keys
};

/// The names of the channels.
pub(super) static NAMES: &[&str] = &{
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = Channel::ALL[at].name();
        at += 1;
    }
    names
};
