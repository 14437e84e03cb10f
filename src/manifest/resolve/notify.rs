//! The keys under `notify`.

use crate::finding::{Finding, rules};
use crate::manifest::CampaignPaths;
use crate::manifest::notify::{Notify, NotifyForm, NotifyWay};
use crate::manifest::profile::key_source;
use crate::manifest::report::Report;
use crate::manifest::section::Section;

/// Who is told; nothing where nobody is, or where what is wrong was told.
pub(in crate::manifest) fn notify(root: Section<'_>, paths: &CampaignPaths, report: &mut Report) -> Option<Notify> {
    let section = root.section("notify");
    let entry = root.entry("notify").filter(|_| root.has("notify"))?;
    let has = |key: &str| section.has(key);
    if let Some(form) = ["preset", "body", "local"].into_iter().find(|key| has("command") && has(key)) {
        let finding = Finding::new(&rules::NOTIFY, format!("`{form}` is only for `url`, not for `command`"));
        report.at(&section.entry(form)?.key_span, finding.help(format!("remove `{form}` or `command`")));
        return None;
    }
    let way = match (has("url"), has("command")) {
        (true, false) => {
            let url = key_source(section.value("url")?, "url", paths, report);
            let form = form(section, report);
            NotifyWay::Post { url: url?.resolved_from_root(), form: form?, local: section.parsed("local")? }
        }
        (false, true) => NotifyWay::Command(words(section, paths)),
        (both, _) => {
            let what = if both { "`notify` has both `url` and `command`" } else { "`notify` needs `url` or `command`" };
            let help = if both {
                "remove `url` or `command`"
            } else {
                "add one of them, for example `url: { env: SLACK_URL }`"
            };
            let finding = Finding::new(&rules::NOTIFY, what.to_owned());
            report.at(&entry.key_span, finding.help(help));
            return None;
        }
    };
    Some(Notify { when: section.parsed_items("when"), way })
}

fn form(section: Section<'_>, report: &mut Report) -> Option<NotifyForm> {
    if let (Some(entry), true) = (section.entry("body"), section.has("body")) {
        if section.has("preset") {
            let finding = Finding::new(&rules::NOTIFY, "`preset` and `body` cannot be combined".to_owned());
            report.at(&entry.key_span, finding.help("keep one of them"));
            return None;
        }
        return Some(NotifyForm::Own(entry.value.scalar()?.text.clone()));
    }
    Some(match section.text("preset").unwrap_or("json") {
        "slack" => NotifyForm::Slack,
        "teams" => NotifyForm::Teams,
        "telegram" => NotifyForm::TelegramBot,
        _ => NotifyForm::Json,
    })
}

/// The program and its arguments; a path is relative to the campaign file, a bare name is looked up.
fn words(section: Section<'_>, paths: &CampaignPaths) -> Vec<String> {
    let mut words: Vec<String> = section.items("command").into_iter().map(str::to_owned).collect();
    if let Some(program) = words.first_mut() {
        *program = paths.program(program);
    }
    words
}
