//! Rules about opt-out instructions: whether marketing messages contain them, and whether recipients can follow them.

use super::links::has_real_recipients;
use crate::check::compiled_campaign::to_finding;
use campaign_content::message::{TextProblem, constant_parts, problem_at};
use campaign_core::define_rules;
use campaign_core::domain::{MessageContent, NamedTemplate, OptOutWords, Stage};
use campaign_core::finding::Finding;
use campaign_manifest::{Campaign, MessageArm, Profile};

define_rules! {
    TEXTS:
    warning NO_WAY_OUT = "no-way-out" {
        cause: "Marketing does not tell recipients how to opt out. Many countries and operators require opt-out \
                instructions, and recipients who cannot opt out complain.",
        example: [
            "message: \"Sale: 20% off until Sunday\"",
            "gateways.yaml: production: { base_url: \"https://api.provider.ua\" }",
        ],
        fix: "add a link or a word such as STOP to the text, or `unsubscribe_link: true` to a plain `sms`",
    }
    warning REPLIES_IMPOSSIBLE = "replies-impossible" {
        cause: "An SMS asks for a reply, but its sender is a name. Phones cannot reply to a sender name that contains \
                letters.",
        example: [
            "message: \"Sale! Reply STOP to opt out\"",
            "gateways.yaml: production: { base_url: \"https://api.provider.ua\" }",
        ],
        fix: "replace the request with a link or `unsubscribe_link: true`, or send from a number",
    }
}

/// The stems of words that tell recipients how to stop messages.
const OPT_OUT_STEMS: [&str; 4] = ["unsub", "optout", "відпис", "отпис"];
/// The stems of words that ask for a reply.
const REPLY_STEMS: [&str; 12] =
    ["reply", "answer", "send", "text", "respond", "відпов", "надішл", "надсил", "напиш", "ответ", "отправ", "пришл"];
/// Parts of template names whose values probably contain opt-out instructions or a link to a page.
const INSTRUCTION_NAMES: [&str; 6] = ["link", "url", "stop", "unsub", "opt_out", "optout"];

/// A warning about marketing messages that do not tell recipients how to opt out.
pub(super) fn check_opt_out_instructions(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if !campaign.brief.purpose.is_marketing() || !has_real_recipients(profile) {
        return None;
    }
    let arm = campaign.brief.list_arms().into_iter().find(|arm| !has_opt_out_instructions(arm))?;
    let which = arm.name.map(|name| format!(" of the variant `{name}`")).unwrap_or_default();
    let message = format!("the marketing messages{which} do not tell recipients how to opt out");
    let key = arm.name.map(|name| format!("variants.{name}"));
    let place = key.iter().map(String::as_str).chain(["channels"]).find_map(|key| campaign.places.locate_key(key));
    Some(Finding::new(&NO_WAY_OUT, message).help(NO_WAY_OUT.text.fix).at(place))
}

/// Whether a message of a variant tells recipients how to opt out. A text that includes another text is assumed to
/// contain such instructions.
fn has_opt_out_instructions(arm: &MessageArm<'_>) -> bool {
    let MessageArm { content, vars, .. } = arm;
    let MessageContent { stages, .. } = *content;
    stages.iter().any(|stage| {
        let gateway_adds_instructions = match stage {
            Stage::Sms(sms) => sms.unsubscribe_link == Some(true) || sms.fields.contains_key("unsubscribe_link"),
            _ => false,
        };
        gateway_adds_instructions
            || stage.texts().any(|(field, text)| match field.key {
                "link" | "url" => true,
                "message" | "caption" | "button" => tells_how_to_opt_out(text, vars),
                _ => false,
            })
    })
}

fn tells_how_to_opt_out(text: &NamedTemplate, vars: &[(String, String)]) -> bool {
    if constant_parts(text).any(|(part, _)| has_link(part) || find_opt_out_word(part).is_some()) {
        return true;
    }
    let tags = find_tags(text);
    let is_instruction = |tag: &String| {
        let inserts_text = ["include", "extends", "import"].iter().any(|word| tag.contains(word));
        inserts_text || INSTRUCTION_NAMES.iter().any(|name| tag.contains(name))
    };
    let mentions = |name: &str| tags.iter().any(|tag| tag.contains(&name.to_lowercase()));
    tags.iter().any(is_instruction)
        || vars.iter().any(|(name, value)| mentions(name) && (has_link(value) || find_opt_out_word(value).is_some()))
}

/// The template tags of a text, in lower case.
fn find_tags(text: &NamedTemplate) -> Vec<String> {
    let mut tags = Vec::new();
    let mut next = 0;
    for (_, part_span) in constant_parts(text) {
        tags.push(text.source[next..part_span.start].to_lowercase());
        next = part_span.end;
    }
    tags.push(text.source[next..].to_lowercase());
    tags.retain(|tag| !tag.is_empty());
    tags
}

fn has_link(text: &str) -> bool {
    let text = text.to_lowercase();
    ["://", "www."].iter().any(|prefix| text.contains(prefix))
        || text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',')).any(|word| {
            let (host, path) = word.split_once('/').unwrap_or((word, ""));
            !path.is_empty()
                && host.contains('.')
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        })
}

/// The first word about opting out in a text, with its position.
fn find_opt_out_word(text: &str) -> Option<(usize, &str)> {
    let words = OptOutWords::default();
    split_words(text)
        .find(|(_, word)| {
            let plain: String = word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
            OPT_OUT_STEMS.iter().any(|stem| plain.starts_with(stem)) || words.find_covering_word(word).is_some()
        })
        .or_else(|| text.to_lowercase().find("opt out").map(|at| (at, "opt out")))
}

/// Splits a text into words, each with its position. Hyphens and apostrophes are part of a word.
fn split_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word_char = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’');
    let mut at = 0;
    text.split(move |c| !is_word_char(c)).filter_map(move |word| {
        let start = at + text[at..].find(word).unwrap_or(0);
        at = start + word.len();
        (!word.is_empty()).then_some((start, word))
    })
}

/// A warning about an SMS that asks for a reply but is sent from a sender name.
pub(super) fn check_impossible_replies(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if !has_real_recipients(profile) {
        return None;
    }
    let mut stages = campaign.brief.all_contents().flat_map(|content| &content.stages);
    let problem = stages.find_map(find_impossible_reply)?;
    Some(to_finding(problem, Some(&campaign.places)))
}

fn find_impossible_reply(stage: &Stage<NamedTemplate>) -> Option<TextProblem> {
    let Stage::Sms(sms) = stage else { return None };
    let is_name = constant_parts(&sms.signature).any(|(part, _)| part.contains(char::is_alphabetic));
    if !is_name {
        return None;
    }
    let asks_for_reply = constant_parts(&sms.message).any(|(part, _)| {
        split_words(part).any(|(_, word)| REPLY_STEMS.iter().any(|stem| word.to_lowercase().starts_with(stem)))
    });
    let words = OptOutWords::default();
    let (at, word) = constant_parts(&sms.message).filter(|_| asks_for_reply).find_map(|(part, span)| {
        let opt_out_word = split_words(part).find(|(_, word)| words.find_covering_word(word).is_some());
        opt_out_word.map(|(at, word)| (span.start + at, word))
    })?;
    let message = format!("recipients cannot reply `{word}` to the sender name `{}`", sms.signature.source.trim());
    Some(problem_at(&sms.message, at..at + word.len(), &REPLIES_IMPOSSIBLE, message, REPLIES_IMPOSSIBLE.text.fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> NamedTemplate {
        NamedTemplate { name: "channels[0].sms.message".to_owned(), source: source.to_owned() }
    }

    #[test]
    fn opt_out_instructions_are_recognized_by_word_or_link() {
        let vars = [("site".to_owned(), "https://shop.example".to_owned()), ("shop".to_owned(), "Olena".to_owned())];
        for (source, expected) in [
            ("Sale: 20% off", false),
            ("Sale at {{ shop }}, {{ first_name }}!", false),
            ("Version 2.0 and/or more", false),
            ("Sale: https://shop.example", true),
            ("Sale: shop.example/sale", true),
            ("Sale. {{ site }}", true),
            ("Sale. {{ opt_out_url }}", true),
            ("Reply STOP", true),
            ("Щоб відписатися, надішліть СТОП.", true),
            ("To opt out, call us", true),
            ("Unsubscribe: 0 800", true),
            ("{% include \"footer.txt\" %} Sale", true),
        ] {
            assert_eq!(tells_how_to_opt_out(&text(source), &vars), expected, "{source}");
        }
    }

    #[test]
    fn words_are_split_with_their_positions() {
        let words: Vec<_> = split_words("Та «СТОП», opt-out!").collect();
        assert_eq!(words.iter().map(|(_, word)| *word).collect::<Vec<_>>(), ["Та", "СТОП", "opt-out"]);
        for (at, word) in words {
            assert!("Та «СТОП», opt-out!"[at..].starts_with(word));
        }
    }
}
