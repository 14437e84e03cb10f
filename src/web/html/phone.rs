//! A message as it looks on a phone, channel by channel.
//!
//! What is shown follows from the keys of a channel and not from the channel, so one that is new shows itself. Nothing of a
//! message is loaded: an image is a box with its address, and a link cannot be clicked, since it may be the recipient's own.

use serde::Serialize;

use super::FindingView;
use super::pieces::{TextView, split_pieces};
use crate::domain::{Card, FieldValue, MessageContent, Phone, SmsEncoding, Stage, measure_sms, split_sms};
use crate::message::MarkedText;

/// A message on one channel.
#[derive(Clone, Debug, Serialize)]
pub struct PhoneView {
    /// The channel's name.
    channel: &'static str,
    /// The same as a class of the stylesheet.
    class: String,
    /// Which one it is of the channels that are tried, from 1.
    place: usize,
    /// How many channels are tried.
    of: usize,
    /// The sender name.
    sender: Option<TextView>,
    /// What it says.
    body: Option<TextView>,
    /// Its image, button and link.
    attached: Attachments,
    /// The cards of a carousel.
    cards: Vec<CardView>,
    /// Its other texts, such as who speaks.
    others: Vec<TextView>,
    /// What it is billed by.
    size: Option<SmsSizeView>,
    /// What is said of its texts.
    pub findings: Vec<FindingView>,
}

/// What hangs on a message.
#[derive(Clone, Debug, Default, Serialize)]
struct Attachments {
    image: Option<TextView>,
    button: Option<TextView>,
    link: Option<TextView>,
}

/// A card of a carousel.
#[derive(Clone, Debug, Serialize)]
struct CardView {
    caption: Option<TextView>,
    attached: Attachments,
}

/// The size of an SMS.
#[derive(Clone, Debug, Serialize)]
struct SmsSizeView {
    parts: usize,
    characters: usize,
    /// What the characters take of a part: septets, or units of 16 bits.
    units: usize,
    gsm: bool,
}

/// A message on each channel on which it is tried, in that order.
pub type Fallbacks = Vec<PhoneView>;

impl PhoneView {
    /// A message on all its channels; `hide` is its recipient's number, where that is shown masked.
    #[must_use]
    pub fn from_content(content: &MessageContent<MarkedText>, hide: Option<Phone>) -> Fallbacks {
        let (stages, of) = (content.stages.iter().enumerate(), content.stages.len());
        stages.map(|(index, stage)| Self::from_stage(stage, (index + 1, of), hide)).collect()
    }

    fn from_stage(stage: &Stage<MarkedText>, (place, of): (usize, usize), hide: Option<Phone>) -> Self {
        let facts = stage.channel().facts();
        let channel = stage.channel().name();
        let mut view = Self {
            channel,
            class: channel.replace('/', "-"),
            place,
            of,
            sender: None,
            body: None,
            attached: Attachments::default(),
            cards: Vec::new(),
            others: Vec::new(),
            size: None,
            findings: Vec::new(),
        };
        for (field, value) in stage.values() {
            match value {
                FieldValue::Text(text) if field.key == "message" && facts.billed_by_part => {
                    view.size = Some(SmsSizeView::from_text(&text.text));
                    view.body = Some(split_pieces(text, &part_ends(&text.text), hide));
                }
                FieldValue::Text(text) => view.set_text(field.key, split_pieces(text, &[], hide)),
                FieldValue::Cards(cards) => {
                    view.cards = cards.into_iter().map(|card| CardView::from_card(card, hide)).collect()
                }
                FieldValue::Word(_) | FieldValue::Number(_) | FieldValue::Flag(_) => {}
            }
        }
        view
    }

    fn set_text(&mut self, key: &str, text: TextView) {
        match key {
            "signature" => self.sender = Some(text),
            "message" => self.body = Some(text),
            key => {
                if let Some(other) = self.attached.set_text(key, text) {
                    self.others.push(other);
                }
            }
        }
    }
}

impl Attachments {
    /// Takes what hangs on a message; gives back what does not.
    fn set_text(&mut self, key: &str, text: TextView) -> Option<TextView> {
        match key {
            "image" => self.image = Some(text),
            "button" => self.button = Some(text),
            "link" | "url" => self.link = Some(text),
            _ => return Some(text),
        }
        None
    }
}

impl CardView {
    fn from_card(card: Card<&MarkedText>, hide: Option<Phone>) -> Self {
        let (mut caption, mut attached) = (None, Attachments::default());
        for (field, text) in card.into_texts() {
            caption = attached.set_text(field.key, split_pieces(text, &[], hide)).or(caption);
        }
        Self { caption, attached }
    }
}

impl SmsSizeView {
    fn from_text(text: &str) -> Self {
        let size = measure_sms(text);
        let gsm = size.encoding == SmsEncoding::Gsm7;
        Self { parts: size.parts, characters: text.chars().count(), units: size.units, gsm }
    }
}

/// Where the parts of an SMS end, but for the last.
fn part_ends(text: &str) -> Vec<usize> {
    let mut ends: Vec<usize> = split_sms(text)
        .into_iter()
        .scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        })
        .collect();
    ends.pop();
    ends
}
