//! Who is told how a run went, and how.

use serde::{Deserialize, Serialize};

use super::profile::KeySource;
use crate::domain::Occasion;

/// Who is told, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// What is told.
    pub when: Vec<Occasion>,
    /// How.
    pub way: NotifyWay,
}

/// How somebody is told. It holds no secret, only where one is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyWay {
    /// Something is posted to an address.
    Post {
        /// Where the address is kept, which is a secret.
        url: KeySource,
        /// What is posted.
        form: NotifyForm,
        /// Whether it may be an address of this machine or of its own network.
        local: bool,
    },
    /// A program is started with these arguments, itself the first; each is a template.
    Command(Vec<String>),
}

/// What is posted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyForm {
    /// What an incoming webhook of Slack takes.
    Slack,
    /// What a workflow of Microsoft Teams takes.
    Teams,
    /// What a bot of Telegram takes; its address ends with `/sendMessage?chat_id=…`.
    TelegramBot,
    /// All that is known, as JSON.
    Json,
    /// The author's own text, a template.
    Own(String),
}

impl NotifyWay {
    /// The templates in it.
    pub fn templates(&self) -> impl Iterator<Item = &str> {
        let texts: Vec<&str> = match self {
            Self::Post { form: NotifyForm::Own(body), .. } => vec![body],
            Self::Post { .. } => Vec::new(),
            Self::Command(words) => words.iter().map(String::as_str).collect(),
        };
        texts.into_iter()
    }
}
