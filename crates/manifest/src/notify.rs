//! Notifications about runs: events, method and format, and how a file defines them.

use serde::{Deserialize, Serialize};

use super::CampaignPaths;
use super::document::{ConfigSection, FindingCollector};
use super::profile::{SecretSource, read_secret_source};
use campaign_core::domain::NotificationEvent;
use campaign_core::finding::{Finding, rules};

/// Notification settings: which events, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// The events.
    pub when: Vec<NotificationEvent>,
    /// How the notifications about all these events are sent.
    pub method: NotificationMethod,
}

/// The method and the target of a notification. It contains no secrets, only their locations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationMethod {
    /// By an HTTP POST request.
    Post {
        /// The location of the address, which is a secret.
        url: SecretSource,
        /// The format of the body.
        form: NotificationFormat,
        /// Whether the address can be on this machine or its network.
        local: bool,
    },
    /// By starting a program with these arguments (the program is the first); each is a template.
    Command(Vec<String>),
}

/// The format of the body of a notification request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationFormat {
    /// For an incoming webhook of Slack.
    Slack,
    /// For a workflow of Microsoft Teams.
    Teams,
    /// For a Telegram bot; the address ends with `/sendMessage?chat_id=…`.
    TelegramBot,
    /// All facts as JSON.
    Json,
    /// A template of the author.
    Own(String),
}

impl NotificationMethod {
    /// The parts of the notification method that are templates.
    pub fn templates(&self) -> impl Iterator<Item = &str> {
        let texts: Vec<&str> = match self {
            Self::Post { form: NotificationFormat::Own(body), .. } => vec![body],
            Self::Post { .. } => Vec::new(),
            Self::Command(words) => words.iter().map(String::as_str).collect(),
        };
        texts.into_iter()
    }
}

/// The notification settings; `None` if there are none or errors were reported.
pub(crate) fn read_notify(
    root: ConfigSection<'_>,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Option<NotifySettings> {
    let section = root.subsection("notify");
    let entry = root.entry("notify").filter(|_| root.has_value("notify"))?;
    let has = |key: &str| section.has_value(key);
    if let Some(key) = ["preset", "body", "local"].into_iter().find(|key| has("command") && has(key)) {
        let finding = Finding::new(&rules::NOTIFY, format!("`{key}` is only for `url`, not for `command`"));
        report.add(&section.entry(key)?.key_span, finding.help(format!("remove `{key}` or `command`")));
        return None;
    }
    let method = match (has("url"), has("command")) {
        (true, false) => {
            let url = read_secret_source(section.find_value("url")?, "url", paths, report);
            let form = read_format(section, report);
            NotificationMethod::Post {
                url: url?.with_absolute_path(),
                form: form?,
                local: section.parse_value("local")?,
            }
        }
        (false, true) => NotificationMethod::Command(read_command(section, paths)),
        (has_both, _) => {
            let problem =
                if has_both { "`notify` has both `url` and `command`" } else { "`notify` needs `url` or `command`" };
            let help = if has_both {
                "remove `url` or `command`"
            } else {
                "add one of them, for example `url: { env: SLACK_URL }`"
            };
            let finding = Finding::new(&rules::NOTIFY, problem.to_owned());
            report.add(&entry.key_span, finding.help(help));
            return None;
        }
    };
    Some(NotifySettings { when: section.parse_items("when"), method })
}

fn read_format(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<NotificationFormat> {
    if let (Some(entry), true) = (section.entry("body"), section.has_value("body")) {
        if section.has_value("preset") {
            let finding = Finding::new(&rules::NOTIFY, "`preset` and `body` cannot be combined".to_owned());
            report.add(&entry.key_span, finding.help("keep one of them"));
            return None;
        }
        return Some(NotificationFormat::Own(entry.value.as_scalar()?.text.clone()));
    }
    Some(match section.text("preset").unwrap_or("json") {
        "slack" => NotificationFormat::Slack,
        "teams" => NotificationFormat::Teams,
        "telegram" => NotificationFormat::TelegramBot,
        _ => NotificationFormat::Json,
    })
}

/// The program and its arguments. A path to the program is relative to the campaign file, and a bare name is looked up.
fn read_command(section: ConfigSection<'_>, paths: &CampaignPaths) -> Vec<String> {
    let mut words: Vec<String> = section.list_items("command").into_iter().map(str::to_owned).collect();
    if let Some(program) = words.first_mut() {
        *program = paths.resolve_program(program);
    }
    words
}
