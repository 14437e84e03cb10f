//! Runner of the tests in a campaign file, without the ledger. A test composes messages for a made-up recipient or
//! random rows of the list, and compares them word by word with the expected messages.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use campaign_content::audience::{Chunk, ListHeader, RecordRef, ValidNumber};
use campaign_content::message::find_mentions;
use campaign_core::calendar::Occurrence;
use campaign_core::domain::{
    Channel, MessageContent, NamedTemplate, Phone, Stage, choose_plural, find_country, format_count, measure_sms,
};
use campaign_core::finding::{Finding, Rule, SourceLocation, join_names, rules};
use campaign_ledger::{COUNTRY, RowState};
use campaign_manifest::{Campaign, CampaignTest, DuplicatePolicy, ExpectedText, Profile};
use jiff::Timestamp;
use jiff::civil::DateTime;
use roaring::RoaringTreemap;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::compiled_campaign::{CompiledCampaign, Composer, Recipe};
use super::exclusions::HOLDOUT;
use super::made_up_recipient::{MadeUpError, MadeUpRecipient, MadeUpRow};
use super::online::MessagePrices;
use super::rules::{TEST_FAILED, TEST_NOT_RUN};
use super::survey::{MessageSize, count_sms_parts};
use super::timing::zone_of_number;

/// The skip reason if `until` has passed.
const EXPIRED: &str = "expired";
/// The maximum number of characters of a text that a finding repeats.
const MAX_QUOTED: usize = 200;

/// The campaign under test.
#[derive(Clone, Copy)]
pub struct TestedCampaign<'c> {
    /// The campaign whose file contains the tests.
    pub campaign: &'c Campaign,
    /// The profile of its gateway. `None` in a rehearsal.
    pub profile: Option<&'c Profile>,
    /// The header of the list, if the list was read.
    pub header: Option<&'c ListHeader>,
}

/// The result of one of the `tests` in a campaign file.
#[derive(Clone, Debug)]
pub struct TestResult {
    /// The name of the test.
    pub name: String,
    /// The location in the campaign file.
    pub place: Option<SourceLocation>,
    /// The outcome, which is [`TestOutcome::Passed`] only if there are no findings.
    pub outcome: TestOutcome,
    /// The reasons why it failed or was not run completely.
    pub findings: Vec<Finding>,
}

/// The outcome of a test. Only errors among its findings prevent sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// The test passed.
    Passed,
    /// Something is not as expected, or the test is wrong.
    Failed,
    /// The test was not run.
    NotRun,
}

/// A difference from the expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestFailure {
    /// The path of the key with the expectation in the campaign file.
    key: String,
    /// The problem, as a sentence without a full stop.
    message: String,
    /// The remedy.
    help: Option<String>,
}

/// The planned outcome for a recipient.
enum RecipientFate<'m> {
    Message {
        phone: Phone,
        arm: usize,
        sms_parts: u32,
        content: &'m MessageContent<Cow<'m, str>>,
    },
    Skipped(&'static str),
    Invalid(String),
    /// The sending window is closed.
    Waiting,
}

/// Runs a test with a made-up recipient. `load` loads a text by the name in `include` or `extends`.
pub fn run_given_test(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    given: &[(String, String)],
    load: &mut dyn FnMut(&str) -> Result<String, String>,
) -> TestResult {
    let given_key = format!("{}.given", test.path);
    let today = tested.today(test);
    let recipient = match MadeUpRecipient::compile(tested.campaign, tested.header, given, &today, load) {
        Ok(recipient) => recipient,
        Err(MadeUpError::Unknown { name, message, help }) => {
            let finding = Finding::new(&rules::CAMPAIGN_TEST, prefix_test_name(test, &message)).help(help);
            let place = tested.locate(&format!("{given_key}.{name}")).or_else(|| tested.locate(&given_key));
            return tested.result(test, TestOutcome::Failed, vec![finding.at(place)]);
        }
        // The texts are wrong for every recipient, so the test is not run.
        Err(MadeUpError::Texts(findings)) => return tested.result(test, TestOutcome::NotRun, findings),
    };
    if let Some(finding) = tested.check_time(test, &recipient.recipe) {
        return tested.result(test, TestOutcome::Failed, vec![finding]);
    }
    let (mut findings, mut reported_messages) = (Vec::new(), BTreeSet::new());
    let rows = recipient.rows(test.expect.skipped == Some(HOLDOUT), None);
    for row in &rows {
        let variant = row.arm.filter(|_| rows.len() > 1).and_then(|arm| tested.campaign.brief.variants.get(arm));
        let prefix = variant.map(|variant| format!("with variant `{}`, ", variant.name)).unwrap_or_default();
        let failures = match run_row(tested, test, &recipient, row) {
            Ok(failures) => failures,
            Err(finding) => {
                if reported_messages.insert(finding.message.clone()) {
                    findings.push(finding);
                }
                continue;
            }
        };
        findings.extend(failures.into_iter().map(|failure| {
            let message = prefix_test_name(test, &format!("{prefix}{}", failure.message));
            tested.failure_finding(&TEST_FAILED, &failure, message)
        }));
    }
    let outcome = if findings.is_empty() { TestOutcome::Passed } else { TestOutcome::Failed };
    findings.extend(tested.note_unknown_cost(test));
    tested.result(test, outcome, findings)
}

/// Runs a test for a row of a made-up recipient.
///
/// # Errors
/// If a cell that decides about the recipient is not given, or the row cannot be read.
fn run_row(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    recipient: &MadeUpRecipient,
    row: &MadeUpRow,
) -> Result<Vec<TestFailure>, Finding> {
    let recipe = &recipient.recipe;
    let locate_given = || tested.locate(&format!("{}.given", test.path));
    let require = |used: &BTreeSet<usize>, by: &str| match recipient.missing_columns(used).as_slice() {
        [] => Ok(()),
        missing => {
            let names = join_names(missing.iter().copied());
            let message = prefix_test_name(test, &format!("{by} {names}, which the test does not give"));
            let help = format!("add to `given`, for example `{}: \"\"` for an empty cell", missing[0]);
            Err(Finding::new(&rules::CAMPAIGN_TEST, message).help(help).at(locate_given()))
        }
    };
    require(&recipe.condition.iter().flat_map(|condition| condition.columns()).collect(), "`where` uses")?;
    let zone = tested.zone_column().and_then(|name| recipient.find_column(name));
    let judged = recipient.with_record(row, |record| {
        with_fate(tested, test, &mut recipe.composer(), record, zone, |fate, arm| {
            let used = arm.map(|arm| recipe.arms[arm].used_columns()).unwrap_or_default();
            let is_selected = !matches!(fate, RecipientFate::Skipped(reason) if reason != HOLDOUT && reason != EXPIRED);
            let used = if is_selected { used } else { BTreeSet::new() };
            (used, judge_fate(tested, test, &fate, true))
        })
    });
    let (used, failures) = judged.map_err(|findings| {
        let reason = findings.first().map_or("", |finding| finding.message.as_str());
        let message = prefix_test_name(test, &format!("the row of the recipient cannot be read: {reason}"));
        Finding::new(&rules::CAMPAIGN_TEST, message).at(locate_given())
    })?;
    require(&used, "the texts use")?;
    require(&zone.into_iter().collect(), "the sending window uses")?;
    Ok(failures)
}

/// Runs a test with random rows of the list, at most `count`.
///
/// The choice depends on the name of the test and on row numbers only. Rows without a message are never chosen.
pub fn run_each_test<R: Read>(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    count: usize,
    compiled: &mut CompiledCampaign<R>,
) -> TestResult {
    let CompiledCampaign { reader, recipe, .. } = compiled;
    if let Some(finding) = tested.check_time(test, recipe) {
        return tested.result(test, TestOutcome::Failed, vec![finding]);
    }
    let zone = tested.zone_column().and_then(|name| reader.header().find_column(name));
    let mut composer = recipe.composer();
    let (seed, mut chunk) = (hash_name(&test.name), Chunk::new());
    let mut chosen: BTreeMap<(u64, u32), Vec<TestFailure>> = BTreeMap::new();
    let mut seen_numbers = RoaringTreemap::new();
    let allows_duplicates = tested.campaign.brief.duplicates == DuplicatePolicy::Allow;
    loop {
        match reader.read_chunk(&mut chunk) {
            Ok(true) => {}
            Ok(false) => break,
            Err(finding) => return tested.result(test, TestOutcome::NotRun, vec![*finding]),
        }
        for record in chunk.iter() {
            // A row gets no message if an earlier row with the same number gets one.
            if !allows_duplicates
                && let Some(phone) = recipe.parse_phone(record)
                && composer.selects(record).is_ok_and(|selects| selects)
                && !seen_numbers.insert(phone.to_u64())
            {
                continue;
            }
            let key = (hash_row(seed, record.row.get()), record.row.get());
            let is_full = chosen.len() == count;
            if is_full && chosen.last_key_value().is_some_and(|(last, _)| key > *last) {
                continue;
            }
            let failures = with_fate(tested, test, &mut composer, record, zone, |fate, arm| {
                let is_chosen = match fate {
                    RecipientFate::Invalid(_) => false,
                    RecipientFate::Skipped(reason) => arm.is_some() && reason != HOLDOUT,
                    _ => arm.is_some(),
                };
                is_chosen.then(|| judge_fate(tested, test, &fate, false))
            });
            let Some(failures) = failures else { continue };
            if is_full {
                chosen.pop_last();
            }
            chosen.insert(key, failures);
        }
    }
    if chosen.is_empty() {
        let message = prefix_test_name(test, "it was not run, because the list has no messages");
        let finding = Finding::new(&TEST_NOT_RUN, message).at(tested.locate(&format!("{}.each", test.path)));
        return tested.result(test, TestOutcome::NotRun, vec![finding]);
    }
    let mut findings = tested.row_findings(test, &chosen);
    let outcome = if findings.is_empty() { TestOutcome::Passed } else { TestOutcome::Failed };
    findings.extend(tested.note_unknown_cost(test));
    tested.result(test, outcome, findings)
}

impl TestedCampaign<'_> {
    /// The result of a test with random rows that was not run, because the list was not read.
    pub fn result_without_list(&self, test: &CampaignTest) -> TestResult {
        let message = prefix_test_name(test, "it was not run, because the list was not read");
        let finding = Finding::new(&TEST_NOT_RUN, message)
            .help("if the list comes from a program, URL, query or earlier run, add `--fetch`")
            .at(self.locate(&format!("{}.each", test.path)));
        self.result(test, TestOutcome::NotRun, vec![finding])
    }

    /// The result of a test whose texts cannot be compiled.
    pub fn result_with_problems(&self, test: &CampaignTest, findings: Vec<Finding>) -> TestResult {
        self.result(test, TestOutcome::NotRun, findings)
    }

    /// The date that texts see.
    pub fn today(&self, test: &CampaignTest) -> String {
        test.at.map_or(self.campaign.today, DateTime::date).to_string()
    }

    fn result(&self, test: &CampaignTest, outcome: TestOutcome, findings: Vec<Finding>) -> TestResult {
        let place = self.locate(&format!("{}.name", test.path));
        TestResult { name: test.name.clone(), place, outcome, findings }
    }

    fn locate(&self, key: &str) -> Option<SourceLocation> {
        self.campaign.places.locate_key(key)
    }

    fn failure_finding(&self, rule: &'static Rule, failure: &TestFailure, message: String) -> Finding {
        let finding = Finding::new(rule, message).at(self.locate(&failure.key));
        match &failure.help {
            Some(help) => finding.help(help),
            None => finding,
        }
    }

    /// The column with time zones, if the window depends on it.
    fn zone_column(&self) -> Option<&str> {
        self.campaign.zone_column()
    }

    /// An error if the result depends on the time, and the test has none.
    fn check_time(&self, test: &CampaignTest, recipe: &Recipe) -> Option<Finding> {
        let Campaign { brief, window, .. } = self.campaign;
        let reason = match test.at {
            Some(_) => return None,
            None if window.is_some() => "the campaign has a sending window",
            None if uses_date(brief.condition.as_ref(), brief.all_contents(), recipe) => "the texts use `today`",
            None => return None,
        };
        let message = prefix_test_name(test, &format!("`at` is required, because {reason}"));
        let finding = Finding::new(&rules::CAMPAIGN_TEST, message).help("add, for example, `at: 2026-12-01 10:00`");
        Some(finding.at(self.locate(&format!("{}.name", test.path))))
    }

    /// A note if the test limits the cost, and the prices are unknown.
    fn note_unknown_cost(&self, test: &CampaignTest) -> Option<Finding> {
        test.expect.max_cost?;
        let reason = match self.profile.map(|profile| MessagePrices::for_campaign(profile, &self.campaign.brief)) {
            Some(Ok(_)) => return None,
            Some(Err(missing)) => {
                format!("the gateway profile has no price for {}", join_names(missing.iter().map(|c| c.name())))
            }
            None => "a rehearsal has no prices".to_owned(),
        };
        let message = prefix_test_name(test, &format!("`max_cost` was not checked, because {reason}"));
        let finding = Finding::new(&TEST_NOT_RUN, message);
        let help = "choose a gateway whose profile has prices, for example with `--gateway NAME`";
        Some(finding.help(help).at(self.locate(&test.expected_key("max_cost"))))
    }

    /// A finding for each expectation that rows do not meet.
    fn row_findings(&self, test: &CampaignTest, chosen: &BTreeMap<(u64, u32), Vec<TestFailure>>) -> Vec<Finding> {
        let mut failures_by_key: BTreeMap<&str, BTreeMap<u32, &TestFailure>> = BTreeMap::new();
        for ((_, row), failures) in chosen {
            for failure in failures {
                failures_by_key.entry(&failure.key).or_default().insert(*row, failure);
            }
        }
        let create_finding = |rows: BTreeMap<u32, &TestFailure>| {
            let (row, first) = rows.first_key_value()?;
            let others = match rows.len() as u64 - 1 {
                0 => String::new(),
                other_count => {
                    let fail = choose_plural(other_count, "fails", "fail");
                    format!(" (and {} of {} {fail})", format_count(other_count, "more row"), chosen.len())
                }
            };
            let message = prefix_test_name(test, &format!("in row {row}, {}{others}", first.message));
            let help = format!("`preview --rows {row}` shows the message");
            Some(self.failure_finding(&TEST_FAILED, first, message).help(help))
        };
        failures_by_key.into_values().filter_map(create_finding).collect()
    }
}

/// Whether the condition or a text uses the date.
fn uses_date<'c>(
    condition: Option<&NamedTemplate>,
    mut contents: impl Iterator<Item = &'c MessageContent<NamedTemplate>>,
    recipe: &Recipe,
) -> bool {
    let mentions = |source: &str| {
        let text = NamedTemplate { name: String::new(), source: source.to_owned() };
        find_mentions(&text).names.contains("today")
    };
    let in_content = |content: &MessageContent<NamedTemplate>| {
        content.try_map_texts(|text| if mentions(&text.source) { Err(()) } else { Ok(()) }).is_err()
    };
    condition.is_some_and(|condition| mentions(&format!("{{{{ {} }}}}", condition.source)))
        || contents.any(in_content)
        || recipe.list_included_sources().iter().any(|(_, source)| mentions(source))
}

/// Calls `inspect` with the fate of the recipient in a record, and with the index of the variant.
///
/// The index is 0 for an invalid record. It is `None` if `where` or `countries` skips the recipient.
fn with_fate<T>(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    composer: &mut Composer<'_>,
    record: RecordRef<'_>,
    zone: Option<usize>,
    inspect: impl FnOnce(RecipientFate<'_>, Option<usize>) -> T,
) -> T {
    let composed = match composer.compose(record) {
        Ok(composed) => composed,
        Err(failure) if failure.state == RowState::Skipped => {
            return inspect(RecipientFate::Skipped(super::FILTERED), None);
        }
        Err(failure) => return inspect(RecipientFate::Invalid(failure.reason.into_owned()), Some(0)),
    };
    let ValidNumber { phone, .. } = composed.number;
    let arm = composed.arm;
    let zone_cell = zone.map(|column| record.fields.get(column).trim());
    let countries = tested.campaign.brief.allowed_countries(tested.profile);
    if countries.is_some_and(|countries| !countries.contains(find_country(phone))) {
        return inspect(RecipientFate::Skipped(COUNTRY), None);
    }
    let fate = match test.at.and_then(|at| decide_by_time(tested, at, phone, zone_cell)) {
        Some(fate) => fate,
        None if tested.campaign.brief.variant_allocation().is_held_out(phone) => RecipientFate::Skipped(HOLDOUT),
        None => {
            let content = composed.message.content();
            let sms_parts = count_sms_parts(composed.message);
            return inspect(RecipientFate::Message { phone, arm, sms_parts, content: &content }, Some(arm));
        }
    };
    inspect(fate, Some(arm))
}

/// The fate of a recipient who cannot get a message at this time. `None` if the message can be sent. `zone_cell` is the
/// time zone in the recipient's row.
fn decide_by_time(
    tested: &TestedCampaign<'_>,
    at: DateTime,
    phone: Phone,
    zone_cell: Option<&str>,
) -> Option<RecipientFate<'static>> {
    let campaign = tested.campaign;
    let moment: Timestamp = Occurrence::at_local_time(at, &campaign.home_zone())?.at;
    if campaign.deadline().is_some_and(|end| moment >= end) {
        return Some(RecipientFate::Skipped(EXPIRED));
    }
    let zone = zone_of_number(phone, find_country(phone));
    let windows = campaign.windows_for_recipient(tested.profile, zone, zone_cell);
    (!windows.are_open(moment)).then_some(RecipientFate::Waiting)
}

/// The expectations that the fate of a recipient does not meet. `may_quote` lets findings quote texts; it must be false
/// for real recipients, because findings must not show their cells.
fn judge_fate(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    fate: &RecipientFate<'_>,
    may_quote: bool,
) -> Vec<TestFailure> {
    let expect = &test.expect;
    let fail = |key: String, message: String, help: Option<String>| vec![TestFailure { key, message, help }];
    let expect_key = || format!("{}.expect", test.path);
    let key = || if expect.skipped.is_some() { test.expected_key("skipped") } else { expect_key() };
    match (fate, expect.skipped) {
        (RecipientFate::Skipped(reason), Some(expected)) if *reason == expected => Vec::new(),
        (RecipientFate::Skipped(reason), Some(expected)) => {
            fail(key(), format!("the recipient is skipped as `{reason}`, not as `{expected}`"), None)
        }
        (RecipientFate::Skipped(reason), None) => {
            let help = format!("correct the campaign or the test, or expect `skipped: {reason}`");
            fail(key(), format!("the recipient is skipped as `{reason}` and gets no message"), Some(help))
        }
        (RecipientFate::Invalid(reason), _) => fail(key(), format!("the recipient is invalid: {reason}"), None),
        (RecipientFate::Waiting, _) => {
            let message = "the sending window is closed at this time, so the message waits".to_owned();
            fail(format!("{}.at", test.path), message, Some("choose a time at which the window is open".to_owned()))
        }
        (RecipientFate::Message { content, .. }, Some(expected)) => {
            let channels = content.stages.iter().map(|stage| stage.channel().name());
            let message = format!(
                "the recipient gets a message on {}, but must be skipped as `{expected}`",
                join_names(channels)
            );
            fail(key(), message, None)
        }
        (RecipientFate::Message { phone, arm, sms_parts, content }, None) => {
            let mut failures = judge_channels(test, content);
            for text in &expect.texts {
                failures.extend(judge_text(test, content, text, may_quote));
            }
            let size = MessageSize { arm: *arm, sms_parts: *sms_parts };
            failures.extend(judge_cost(tested, test, *phone, size));
            failures
        }
    }
}

fn judge_channels(test: &CampaignTest, content: &MessageContent<Cow<'_, str>>) -> Vec<TestFailure> {
    let Some(expected) = &test.expect.channels else { return Vec::new() };
    let actual: Vec<Channel> = content.stages.iter().map(Stage::channel).collect();
    if actual == *expected {
        return Vec::new();
    }
    let list = |channels: &[Channel]| {
        let names: Vec<&str> = channels.iter().map(|channel| channel.name()).collect();
        format!("`[{}]`", names.join(", "))
    };
    let message = format!("the channels are {}, not {}", list(&actual), list(expected));
    vec![TestFailure { key: test.expected_key("channels"), message, help: None }]
}

fn judge_cost(
    tested: &TestedCampaign<'_>,
    test: &CampaignTest,
    phone: Phone,
    size: MessageSize,
) -> Option<TestFailure> {
    let (max, profile) = (test.expect.max_cost?, tested.profile?);
    let cost = MessagePrices::for_campaign(profile, &tested.campaign.brief).ok()?.message_cost(size, phone);
    let currency = profile.currency.as_ref().map(|currency| format!(" {currency}")).unwrap_or_default();
    (cost > max).then(|| TestFailure {
        key: test.expected_key("max_cost"),
        message: format!("the message can cost {cost}{currency}, but at most {max} is allowed"),
        help: None,
    })
}

/// The expectations that the text on a channel does not meet. `may_quote` lets findings quote the text.
fn judge_text(
    test: &CampaignTest,
    content: &MessageContent<Cow<'_, str>>,
    expected: &ExpectedText,
    may_quote: bool,
) -> Vec<TestFailure> {
    let name = expected.channel.name();
    let fail = |key: &str, message: String, help: Option<String>| TestFailure {
        key: if key.is_empty() { test.expected_key(name) } else { test.expected_key(&format!("{name}.{key}")) },
        message,
        help,
    };
    let Some(stage) = content.stages.iter().find(|stage| stage.channel() == expected.channel) else {
        return vec![fail("", format!("the message has no channel `{name}`"), None)];
    };
    let Some((_, text)) = stage.texts().find(|(field, _)| field.key == "message") else {
        return vec![fail("", format!("the message on `{name}` has no text"), None)];
    };
    let text_help = || may_quote.then(|| format!("the text is `{}`", shorten(text)));
    let mut failures = Vec::new();
    if let Some(expected_value) = &expected.text
        && let Some(difference) =
            describe_difference(expected_value.trim_end_matches('\n'), text.trim_end_matches('\n'))
    {
        let difference = if may_quote { difference } else { "is not the expected one".to_owned() };
        failures.push(fail("text", format!("the text on `{name}` {difference}"), text_help()));
    }
    let parts = measure_sms(text).parts;
    let count = format_count(parts as u64, "part");
    if let Some(expected_value) = expected.parts.filter(|expected_value| *expected_value != parts) {
        failures.push(fail(
            "parts",
            format!("the text on `{name}` has {count} instead of {expected_value}"),
            text_help(),
        ));
    }
    if let Some(max) = expected.max_parts.filter(|max| parts > *max) {
        failures.push(fail("max_parts", format!("the text on `{name}` has {count}, but at most {max}"), text_help()));
    }
    for (index, piece) in expected.contains.iter().enumerate().filter(|(_, piece)| !text.contains(piece.as_str())) {
        let message = format!("the text on `{name}` does not contain {}", quote_piece(piece));
        failures.push(fail(&format!("contains[{index}]"), message, text_help()));
    }
    let unwanted = expected.not_contains.iter().enumerate();
    for (index, piece) in unwanted.filter(|(_, piece)| text.contains(piece.as_str())) {
        let message = format!("the text on `{name}` contains {}", quote_piece(piece));
        failures.push(fail(&format!("not_contains[{index}]"), message, text_help()));
    }
    if let Some(pattern) = expected.matches.as_ref().filter(|pattern| !pattern.is_match(text)) {
        let message = format!("the text on `{name}` does not match `{pattern}`");
        failures.push(fail("matches", message, text_help()));
    }
    failures
}

/// Adds the name of the test to a message about it.
fn prefix_test_name(test: &CampaignTest, message: &str) -> String {
    format!("test `{}`: {message}", test.name)
}

/// A part of a text in backticks, with visible spaces.
fn quote_piece(piece: &str) -> String {
    if piece.trim() == piece { format!("`{piece}`") } else { format!("`\"{piece}\"`") }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The seed of a test: its name, hashed with FNV-1a.
fn hash_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A pseudorandom number for a row, the same in every run: the output function of SplitMix64.
fn hash_row(seed: u64, row: u32) -> u64 {
    let mut bits = seed.wrapping_add(u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The maximum number of differences that are described.
const MAX_DESCRIBED: usize = 3;

/// Describes how `actual` differs from `expected`, as the end of a sentence: `has "-15%" instead of "-10%"`, with
/// backticks. `None` if the texts are equal.
fn describe_difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (expected.split_whitespace().collect(), actual.split_whitespace().collect());
    let words = |words: &[&str]| format!("`{}`", words.join(" "));
    let describe = |operation: &DiffOp| match *operation {
        DiffOp::Equal { .. } => None,
        DiffOp::Delete { old_index, old_len, .. } => Some(format!("lacks {}", words(&old[old_index..][..old_len]))),
        DiffOp::Insert { new_index, new_len, .. } => {
            Some(format!("has the additional {}", words(&new[new_index..][..new_len])))
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => Some(format!(
            "has {} instead of {}",
            words(&new[new_index..][..new_len]),
            words(&old[old_index..][..old_len])
        )),
    };
    let operations = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut differences: Vec<String> = operations.iter().filter_map(describe).collect();
    if differences.is_empty() {
        return Some("differs in spaces or line breaks".to_owned());
    }
    let more = differences.len().saturating_sub(MAX_DESCRIBED);
    differences.truncate(MAX_DESCRIBED);
    if more > 0 {
        differences.push(format!("has {more} more differences"));
    }
    let last = differences.pop()?;
    Some(if differences.is_empty() { last } else { format!("{} and {last}", differences.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_differences_are_described_word_by_word() {
        let expected = "Олена, -10% until Sunday";
        for (actual, difference) in [
            ("Олена, -10% until Sunday", None),
            ("Олена, -15% until Sunday", Some("has `-15%` instead of `-10%`")),
            ("Олена, until Sunday", Some("lacks `-10%`")),
            ("Олена, -10% until Sunday evening", Some("has the additional `evening`")),
            ("Олена,  -10% until Sunday", Some("differs in spaces or line breaks")),
            ("Тарас, -10% on Sunday", Some("has `Тарас,` instead of `Олена,` and has `on` instead of `until`")),
            ("", Some("lacks `Олена, -10% until Sunday`")),
        ] {
            assert_eq!(describe_difference(expected, actual).as_deref(), difference, "{actual}");
        }
        let many = describe_difference("a 1 b 2 c 3 d 4 e 5", "a x b x c x d x e x").unwrap();
        assert!(many.ends_with("and has 2 more differences"), "{many}");
    }
}
