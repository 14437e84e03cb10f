//! The first messages of a campaign as they look on a phone, channel by channel, with the findings about their texts.
//!
//! The view of a phone is derived from the keys of a channel, so a new channel needs no code here. Images are not
//! loaded: each is a box with its address. Links cannot be clicked, because they might be personal.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;

use serde::Serialize;

use crate::web::masking::{find_phone_numbers, mask_all_numbers, mask_recipient};
use crate::web::words::PageWords;
use campaign_content::message::MarkedText;
use campaign_core::domain::{
    Card, FieldValue, MessageContent, NamedTemplate, Phone, Row, RowSet, SmsEncoding, Stage, measure_sms, split_sms,
};
use campaign_core::finding::{Finding, SourceLocation, severity_word};
use campaign_engine::check::CompiledCampaign;
use campaign_engine::report::{MarkedMessage, preview_marked_rows};
use campaign_ledger::{ExcludedRows, RowState};
use campaign_manifest::{CampaignBrief, MessageArm, SourceMap};
use campaign_runs::{Error, Inputs};

/// The selection of the messages to show, and the way in which they are shown.
#[derive(Clone, Copy, Debug)]
pub struct MessageSelection<'c> {
    /// The selected rows; `None` for all rows.
    pub rows: Option<&'c RowSet>,
    /// The maximum number of messages.
    pub max: usize,
    /// Whether numbers are shown in full.
    pub unmasked: bool,
}

/// A row of the list, with its message or the reason the row gets no message.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MessageView {
    row: u32,
    /// The number, masked unless numbers were requested.
    to: String,
    variant: Option<String>,
    phones: Fallbacks,
    /// The reason the row gets no message.
    skipped: Option<SkipReasonView>,
}

/// The reason a row gets no message.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkipReasonView {
    state: &'static str,
    /// The reason in the page's language, if it is a known reason.
    translated: Option<String>,
    /// The reason in English.
    english: String,
}

impl SkipReasonView {
    pub(super) fn from_reason(words: &PageWords, state: RowState, reason: &str) -> Self {
        let translated = words.item_name("reason", reason).map(str::to_owned);
        Self { state: state.name(), translated, english: reason.to_owned() }
    }
}

impl MessageView {
    /// Creates the view of a row without a message.
    fn empty(row: Row) -> Self {
        Self { row: row.get(), to: String::new(), variant: None, phones: Vec::new(), skipped: None }
    }

    /// Sets the recipient, the message and the name of the message's variant, if it has one. The recipient's number is
    /// masked unless `unmasked` is set.
    fn set_message(&mut self, message: &MarkedMessage, arms: &[MessageArm<'_>], unmasked: bool) {
        let MarkedMessage { phone, arm, content } = message;
        self.to = format_number(*phone, unmasked);
        self.phones = PhoneView::from_content(content, (!unmasked).then_some(*phone));
        self.variant = arms.get(*arm).and_then(|arm| arm.name).map(str::to_owned);
    }
}

/// Collects up to `max` messages of the given rows of a run's list. Rows without a message are omitted.
///
/// # Errors
/// If the list is damaged.
pub(super) fn collect_run_messages<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    brief: &CampaignBrief,
    rows: &RowSet,
    max: usize,
    unmasked: bool,
) -> Result<Vec<MessageView>, Error> {
    let (arms, no_exclusions) = (brief.list_arms(), ExcludedRows::default());
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        if let Ok(message) = message {
            let mut view = MessageView::empty(row);
            view.set_message(&message, &arms, unmasked);
            views.push(view);
        }
    };
    let result = preview_marked_rows(prepared, &no_exclusions, Some(rows), max, show);
    result.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(views)
}

/// The first messages, and the findings that are not about their texts.
pub(super) struct CampaignMessages {
    pub(super) messages: Vec<MessageView>,
    pub(super) other_findings: Vec<FindingView>,
}

/// Collects messages of a list. Excluded rows get the reason for the exclusion instead of a message.
///
/// # Errors
/// If the inputs cannot be read.
pub(super) fn collect_messages(
    inputs: &Inputs,
    excluded: &ExcludedRows,
    findings: &[Finding],
    selection: MessageSelection<'_>,
    words: &PageWords,
) -> Result<CampaignMessages, Error> {
    let arms = inputs.campaign.brief.list_arms();
    let mut other_findings: Vec<&Finding> = findings.iter().collect();
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        let mut view = MessageView::empty(row);
        match message {
            Ok(message) => {
                view.set_message(&message, &arms, selection.unmasked);
                if let Some(arm) = arms.get(message.arm) {
                    attach_findings(&mut view.phones, arm, &mut other_findings, &inputs.campaign.places);
                }
            }
            Err((state, reason)) => view.skipped = Some(SkipReasonView::from_reason(words, state, reason)),
        }
        views.push(view);
    };
    let result = preview_marked_rows(&mut inputs.compile_campaign()?, excluded, selection.rows, selection.max, show);
    result.map_err(|finding| Error::Findings(vec![*finding]))?;
    if selection.rows.is_none() && views.iter().all(|view| view.phones.is_empty()) {
        add_messages_of_skipped_rows(inputs, &mut views, selection)?;
    }
    Ok(CampaignMessages {
        messages: views,
        other_findings: other_findings.into_iter().map(FindingView::from_finding).collect(),
    })
}

/// Adds the messages that the skipped rows would get, for a list whose shown rows are all skipped.
fn add_messages_of_skipped_rows(
    inputs: &Inputs,
    views: &mut [MessageView],
    selection: MessageSelection<'_>,
) -> Result<(), Error> {
    let (arms, no_exclusions) = (inputs.campaign.brief.list_arms(), ExcludedRows::default());
    let mut remaining = views.iter_mut().peekable();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        while remaining.next_if(|view| view.row < row.get()).is_some() {}
        if let (Some(view), Ok(message)) = (remaining.next_if(|view| view.row == row.get()), message) {
            view.set_message(&message, &arms, selection.unmasked);
        }
    };
    let result = preview_marked_rows(&mut inputs.compile_campaign()?, &no_exclusions, None, selection.max, show);
    result.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(())
}

fn format_number(phone: Phone, unmasked: bool) -> String {
    if unmasked { format!("+{phone}") } else { phone.format_masked() }
}

/// Moves each finding from `other_findings` to the first phone that shows the text with the problem.
fn attach_findings(
    phones: &mut [PhoneView],
    arm: &MessageArm<'_>,
    other_findings: &mut Vec<&Finding>,
    places: &SourceMap,
) {
    for (phone, stage) in phones.iter_mut().zip(&arm.content.stages) {
        other_findings.retain(|finding| {
            let is_about_stage = finding.place.as_ref().is_some_and(|place| is_within_stage(place, stage, places));
            phone.findings.extend(is_about_stage.then(|| FindingView::from_finding(finding)));
            !is_about_stage
        });
    }
}

/// Whether a source location lies within one of the texts of this stage.
fn is_within_stage(place: &SourceLocation, stage: &Stage<NamedTemplate>, places: &SourceMap) -> bool {
    stage.texts().any(|(_, text)| {
        let text_location = places.locate_text(&text.name, 1, 1, text.source.chars().count());
        text_location.is_some_and(|text_location| {
            let within = place.span.start >= text_location.span.start && place.span.start <= text_location.span.end;
            text_location.source.path() == place.source.path() && within
        })
    })
}

/// A message on one channel.
#[derive(Clone, Debug, Serialize)]
pub struct PhoneView {
    /// The channel's name.
    channel: &'static str,
    /// The channel as a class of the stylesheet.
    class: String,
    /// The position of the channel in the fallback order, from 1.
    place: usize,
    /// The number of channels in the fallback order.
    of: usize,
    /// The sender name.
    sender: Option<TextView>,
    /// The text.
    body: Option<TextView>,
    /// The image, button and link.
    attached: Attachments,
    /// The cards of a carousel.
    cards: Vec<CardView>,
    /// The other texts of the message.
    others: Vec<TextView>,
    /// The size that is billed.
    size: Option<SmsSizeView>,
    /// The findings about the texts of the message.
    pub findings: Vec<FindingView>,
}

/// The attachments of a message.
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

#[derive(Clone, Debug, Serialize)]
struct SmsSizeView {
    parts: usize,
    characters: usize,
    /// The size in septets or 16-bit units.
    units: usize,
    gsm: bool,
}

/// A message on each of its channels, in the fallback order.
type Fallbacks = Vec<PhoneView>;

impl PhoneView {
    /// Builds one view for each channel of a message; `phone_to_mask` is the recipient's phone number if it must be
    /// masked.
    pub fn from_content(content: &MessageContent<MarkedText>, phone_to_mask: Option<Phone>) -> Fallbacks {
        let (stages, stage_count) = (content.stages.iter().enumerate(), content.stages.len());
        stages.map(|(index, stage)| Self::from_stage(stage, index + 1, stage_count, phone_to_mask)).collect()
    }

    fn from_stage(stage: &Stage<MarkedText>, place: usize, stage_count: usize, phone_to_mask: Option<Phone>) -> Self {
        let facts = stage.channel().facts();
        let channel = stage.channel().name();
        let mut view = Self {
            channel,
            class: channel.replace('/', "-"),
            place,
            of: stage_count,
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
                    view.body = Some(split_pieces(text, &part_ends(&text.text), phone_to_mask));
                }
                FieldValue::Text(text) => view.set_text(field.key, split_pieces(text, &[], phone_to_mask)),
                FieldValue::Cards(cards) => {
                    view.cards = cards.into_iter().map(|card| CardView::from_card(card, phone_to_mask)).collect()
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
    /// Stores the text of an attachment, or returns the text if the key does not name an attachment.
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
    fn from_card(card: Card<&MarkedText>, phone_to_mask: Option<Phone>) -> Self {
        let (mut caption, mut attached) = (None, Attachments::default());
        for (field, text) in card.into_texts() {
            caption = attached.set_text(field.key, split_pieces(text, &[], phone_to_mask)).or(caption);
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

/// The byte offsets at which the parts of an SMS end, except for the last part.
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

/// A text as a sequence of pieces.
type TextView = Vec<TextPiece>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct TextPiece {
    /// The text of the piece, in which phone numbers can be masked.
    pub text: String,
    /// Whether the text came from the recipient's row.
    pub from_row: bool,
    /// Whether the text is a link or a part of a link. No link on a page can be clicked, because it might be personal.
    pub link: bool,
    /// The number of the part of an SMS that begins here, from 2.
    pub part: Option<usize>,
}

/// Splits a text into pieces; `parts` are the byte offsets where SMS parts end. If `phone_to_mask` is given, this phone
/// number of the recipient and all phone numbers that come from the row are masked.
fn split_pieces(text: &MarkedText, parts: &[usize], phone_to_mask: Option<Phone>) -> TextView {
    let (text, marks) = (text.text.as_str(), &text.from_row);
    let links = find_links(text);
    let numbers = phone_to_mask.map(|phone| find_phone_numbers(text, phone)).unwrap_or_default();
    // A number that is split between pieces could not be masked, so a cut moves to the end of the number.
    let after_number =
        |at: usize| numbers.iter().find(|number| number.start < at && at < number.end).map_or(at, |number| number.end);
    let parts: Vec<usize> = parts.iter().map(|end| after_number(*end)).collect();
    let boundaries =
        |ranges: &[Range<usize>]| ranges.iter().flat_map(|range| [range.start, range.end]).collect::<Vec<_>>();
    let cuts = boundaries(marks).into_iter().chain(boundaries(&links)).map(after_number);
    let mut cuts: BTreeSet<usize> = cuts.chain(parts.iter().copied()).collect();
    cuts.insert(text.len());
    cuts.remove(&0);
    let (mut pieces, mut start) = (Vec::with_capacity(cuts.len()), 0);
    let within = |ranges: &[Range<usize>], at: usize| ranges.iter().any(|range| range.contains(&at));
    for end in cuts {
        let piece = &text[start..end];
        let has_row_values = marks.iter().any(|mark| mark.start < end && start < mark.end);
        let piece = match phone_to_mask {
            Some(phone) => {
                if has_row_values {
                    mask_all_numbers(piece, phone)
                } else {
                    mask_recipient(piece, phone).into_owned()
                }
            }
            None => piece.to_owned(),
        };
        // The second part starts where the first part ends.
        let part = parts.iter().position(|end| *end == start && start > 0).map(|index| index + 2);
        if !piece.is_empty() {
            pieces.push(TextPiece { text: piece, from_row: within(marks, start), link: within(&links, start), part });
        }
        start = end;
    }
    pieces
}

/// Finds the byte ranges of the links in a text, without trailing punctuation.
fn find_links(text: &str) -> Vec<Range<usize>> {
    let (mut links, mut from) = (Vec::new(), 0);
    while let Some(start) = ["https://", "http://"].iter().filter_map(|scheme| text[from..].find(scheme)).min() {
        let start = from + start;
        let end = text[start..]
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'))
            .map_or(text.len(), |end| start + end);
        let link = text[start..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '»', '\'']);
        links.push(start..start + link.len());
        from = end;
    }
    links
}

/// The view of a finding. The text of a finding is always in English.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingView {
    severity: &'static str,
    rule: &'static str,
    message: Vec<FindingFragment>,
    help: Option<Vec<FindingFragment>>,
    /// The file, the line and the column.
    place: Option<String>,
}

/// A fragment of a finding's message: plain text, or a name that the message quotes in backticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FindingFragment {
    text: String,
    code: bool,
}

/// Splits a message into text and code. An unpaired backtick is an ordinary character.
fn split_code(message: &str) -> Vec<FindingFragment> {
    let paired_backticks = message.matches('`').count() / 2 * 2;
    let pieces = message.splitn(paired_backticks + 1, '`').enumerate();
    let fragments = pieces.map(|(index, text)| FindingFragment { text: text.to_owned(), code: index % 2 == 1 });
    fragments.filter(|fragment| !fragment.text.is_empty()).collect()
}

/// The rules about single rows. These rows are also counted as invalid or skipped.
const ROW_RULES: [&str; 1] = ["invalid-row"];

impl FindingView {
    /// Whether the finding counts as a finding of this severity. Findings about single rows count as rows instead.
    pub(in crate::web) fn is_counted_as(&self, severity: &str) -> bool {
        self.severity == severity && !ROW_RULES.contains(&self.rule)
    }

    /// Creates the view of a finding.
    pub fn from_finding(finding: &Finding) -> Self {
        let place = finding.place.as_ref();
        Self {
            severity: severity_word(finding.severity),
            rule: finding.rule.id,
            message: split_code(&finding.message),
            help: finding.help.as_deref().map(split_code),
            place: place.map(|place| {
                format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number())
            }),
        }
    }
}

#[cfg(test)]
mod pieces_tests {
    use super::*;

    fn describe_pieces(text: &str, from_row: &[(usize, usize)], parts: &[usize]) -> String {
        let marked =
            MarkedText { text: text.to_owned(), from_row: from_row.iter().map(|(start, end)| *start..*end).collect() };
        let piece = |piece: TextPiece| {
            let part = piece.part.map(|part| format!("{part}|")).unwrap_or_default();
            let text = if piece.link { format!("<{}>", piece.text) } else { piece.text };
            part + &if piece.from_row { format!("[{text}]") } else { text }
        };
        split_pieces(&marked, parts, None).into_iter().map(piece).collect()
    }

    #[test]
    fn text_is_split_at_row_values_links_and_sms_parts() {
        assert_eq!(describe_pieces("", &[], &[]), "");
        assert_eq!(describe_pieces("Hi Olia!", &[(3, 7)], &[]), "Hi [Olia]!");
        assert_eq!(
            describe_pieces("See https://a.example/?c=7.", &[(25, 26)], &[]),
            "See <https://a.example/?c=>[<7>]."
        );
        assert_eq!(describe_pieces("(http://a.example) https://b", &[], &[]), "(<http://a.example>) <https://b>");
        assert_eq!(describe_pieces("abcdef", &[(1, 5)], &[2, 4]), "a[b]2|[cd]3|[e]f");
    }

    #[test]
    fn phone_number_in_a_text_is_masked() {
        let phone = Phone::new(380_501_234_567).unwrap();
        let marked = MarkedText { text: "call 0501234567 now".into(), from_row: std::iter::once(5..15).collect() };
        let texts: Vec<String> = split_pieces(&marked, &[], Some(phone)).into_iter().map(|piece| piece.text).collect();
        assert_eq!(texts, ["call ", "0…67", " now"]);
    }

    #[test]
    fn phone_number_from_another_column_is_masked() {
        let phone = Phone::new(380_501_234_567).unwrap();
        let text = "Ask +380671234589 or our hotline 0671234500";
        // The mark and the end of an SMS part divide the number.
        let marked = MarkedText { text: text.into(), from_row: std::iter::once(8..17).collect() };
        let text_shown: String =
            split_pieces(&marked, &[10], Some(phone)).into_iter().map(|piece| piece.text).collect();
        assert_eq!(text_shown, "Ask …89 or our hotline 0671234500", "numbers in the template itself are not masked");
        let text_shown: String = split_pieces(&marked, &[10], None).into_iter().map(|piece| piece.text).collect();
        assert_eq!(text_shown, text);
    }
}

#[cfg(test)]
mod findings_tests {
    use super::*;

    #[test]
    fn text_in_backticks_is_shown_as_code() {
        let table = [
            ("the link `http://a` is", "the link |[http://a]| is"),
            ("`a` and `b`", "[a]| and |[b]"),
            ("a ` b", "a ` b"),
            ("`a` ` b", "[a]| ` b"),
            ("", ""),
        ];
        for (text, expected) in table {
            let views =
                split_code(text).into_iter().map(|part| if part.code { format!("[{}]", part.text) } else { part.text });
            assert_eq!(views.collect::<Vec<_>>().join("|"), expected, "{text}");
        }
    }
}
