//! Who is told how a run went, and how.

use serde::{Deserialize, Serialize};

use super::profile::SecretSource;
use crate::domain::NotificationEvent;

/// Who is told, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// What is told.
    pub when: Vec<NotificationEvent>,
    /// How.
    pub method: NotificationMethod,
}

/// How somebody is told. It holds no secret, only where one is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationMethod {
    /// Something is posted to an address.
    Post {
        /// Where the address is kept, which is a secret.
        url: SecretSource,
        /// What is posted.
        form: NotificationFormat,
        /// Whether it may be an address of this machine or of its own network.
        local: bool,
    },
    /// A program is started with these arguments, itself the first; each is a template.
    Command(Vec<String>),
}

/// What is posted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationFormat {
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

impl NotificationMethod {
    /// The templates in it.
    pub fn templates(&self) -> impl Iterator<Item = &str> {
        let texts: Vec<&str> = match self {
            Self::Post { form: NotificationFormat::Own(body), .. } => vec![body],
            Self::Post { .. } => Vec::new(),
            Self::Command(words) => words.iter().map(String::as_str).collect(),
        };
        texts.into_iter()
    }
}
