//! The voice channel: spoken messages.

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, flag_value, optional_text_value, present_values, text_value, try_map_optional};
use super::{ChannelFacts, ChannelField, FieldKind, FieldRequirement, StageValues, TextLimit, WirePlace};
use crate::domain::ExtraProperties;

const GENDERS: &[&str] = &["male", "female"];

const MESSAGE: ChannelField = ChannelField::message("message").required();
const GENDER: ChannelField = speaker_field("gender", FieldKind::Choice(GENDERS))
    .with_docs("female", "The voice's gender, `male` or `female`.")
    .with_limit(TextLimit::OneOf(GENDERS));
const LANGUAGE: ChannelField =
    speaker_field("language", FieldKind::Template).with_docs("uk-UA", "The spoken language.");
const NAME: ChannelField =
    speaker_field("name", FieldKind::Template).with_docs("uk-UA-Standard-A", "The name of the voice.");
const DTMF: ChannelField = ChannelField::new("dtmf", FieldKind::Flag)
    .with_docs("true", "Records the digit that the recipient presses.")
    .with_flat_place(WirePlace::Under("dtmf"))
    .with_stage_place(WirePlace::Nowhere("its voice stage has no such field"));

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "voice",
    example: "{ message: \"Your code is {{ code }}\", … }",
    doc: "A spoken message.",
    fields: &[MESSAGE, GENDER, LANGUAGE, NAME, DTMF, ChannelField::extra()],
    personal: true,
    price_example: "1.20",
    price_doc: "The price of a spoken message.",
    ..ChannelFacts::PLAIN
};

/// The key for a property of the voice. In a pipeline stage, the property is next to the text; otherwise it is in the
/// `voice` object.
const fn speaker_field(key: &'static str, kind: FieldKind) -> ChannelField {
    ChannelField::new(key, kind)
        .with_requirement(FieldRequirement::OutsidePipeline("a voice message needs a speaker"))
        .with_flat_place(WirePlace::Within("voice", key))
        .with_stage_place(WirePlace::Under(key))
}

/// A spoken message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voice<T> {
    /// The text to speak.
    pub message: T,
    /// `male` or `female`.
    pub gender: Option<T>,
    /// The language, for example `uk-UA`.
    pub language: Option<T>,
    /// The voice, for example `uk-UA-Standard-A`.
    pub name: Option<T>,
    /// Whether the digit that the recipient presses is recorded.
    pub dtmf: Option<bool>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Voice<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        Some(Self {
            message: values.take_text(&MESSAGE)?,
            gender: values.take_text(&GENDER),
            language: values.take_text(&LANGUAGE),
            name: values.take_text(&NAME),
            dtmf: values.take_flag(&DTMF),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([
            text_value(&MESSAGE, &self.message),
            optional_text_value(&GENDER, &self.gender),
            optional_text_value(&LANGUAGE, &self.language),
            optional_text_value(&NAME, &self.name),
            flag_value(&DTMF, self.dtmf),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Voice<U>, E> {
        Ok(Voice {
            message: f(&self.message)?,
            gender: try_map_optional(&self.gender, f)?,
            language: try_map_optional(&self.language, f)?,
            name: try_map_optional(&self.name, f)?,
            dtmf: self.dtmf,
            fields: self.fields.clone(),
        })
    }
}
