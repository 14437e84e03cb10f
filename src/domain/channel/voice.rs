//! Spoken messages.

use serde::{Deserialize, Serialize};

use super::value::{self, FieldValues, filled, map, optional, text};
use super::{Facts, Field, FieldKind, Need, TextLimit, Values, WirePlace};
use crate::domain::Extra;

const GENDERS: &[&str] = &["male", "female"];

const MESSAGE: Field = Field::message("message").required();
const GENDER: Field = speaker("gender", FieldKind::Choice(GENDERS))
    .about("female", "The voice's gender, `male` or `female`.")
    .limit(TextLimit::OneOf(GENDERS));
const LANGUAGE: Field = speaker("language", FieldKind::Template).about("uk-UA", "The spoken language.");
const NAME: Field = speaker("name", FieldKind::Template).about("uk-UA-Standard-A", "The name of the voice.");
const DTMF: Field = Field::new("dtmf", FieldKind::Flag)
    .about("true", "Records the digit that the recipient presses.")
    .flat(WirePlace::Under("dtmf"))
    .stage(WirePlace::Nowhere("its voice stage has no such field"));

pub(super) const FACTS: Facts = Facts {
    title: "voice",
    example: "{ message: \"Your code is {{ code }}\", … }",
    doc: "A spoken message.",
    fields: &[MESSAGE, GENDER, LANGUAGE, NAME, DTMF, Field::extra()],
    personal: true,
    price_example: "1.20",
    price_doc: "The price of a spoken message.",
    ..Facts::PLAIN
};

/// Who speaks: an object of its own, but in a pipeline beside the text.
const fn speaker(key: &'static str, kind: FieldKind) -> Field {
    Field::new(key, kind)
        .need(Need::OutsidePipeline("a voice message needs a speaker"))
        .flat(WirePlace::Within("voice", key))
        .stage(WirePlace::Under(key))
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
    /// Whether the digits that the recipient presses are collected.
    pub dtmf: Option<bool>,
    /// Extra properties.
    pub fields: Extra,
}

impl<T> Voice<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        Some(Self {
            message: values.text(&MESSAGE)?,
            gender: values.text(&GENDER),
            language: values.text(&LANGUAGE),
            name: values.text(&NAME),
            dtmf: values.flag(&DTMF),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        filled([
            text(&MESSAGE, &self.message),
            optional(&GENDER, &self.gender),
            optional(&LANGUAGE, &self.language),
            optional(&NAME, &self.name),
            value::flag(&DTMF, self.dtmf),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Voice<U>, E> {
        Ok(Voice {
            message: f(&self.message)?,
            gender: map(&self.gender, f)?,
            language: map(&self.language, f)?,
            name: map(&self.name, f)?,
            dtmf: self.dtmf,
            fields: self.fields.clone(),
        })
    }
}
