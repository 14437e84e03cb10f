//! Tests of the tables: all languages have the same messages, and these are the messages that code and templates use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use icu_plurals::PluralCategory;
use regex::Regex;

use super::{PageLanguage, PageWords, SOURCES, Translation, plural_rules};
use campaign_content::audience::PhoneProblem;
use campaign_core::domain::{CANCELLED, CANCELLED_EARLIER, CONSENT_EXPIRED, Channel, EXPIRED, NO_CONSENT, REPLACED};
use campaign_engine::check::{ALREADY_SENT, DUPLICATE, EXCLUDED, FILTERED, HOLDOUT, MIGHT_BE_SENT, REJECTED_IN_RUN};
use campaign_engine::report::RunStatus;
use campaign_ledger::{CAPPED, COUNTRY, OPTED_OUT, RowState};
use campaign_runs::SkipRecord;

/// Kinds with all their words. A kind's messages have the keys `KIND.WORD`.
fn word_kinds() -> BTreeMap<&'static str, Vec<String>> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let channels = || Channel::ALL.iter().map(|channel| channel.name().to_owned()).collect();
    BTreeMap::from([
        ("month", (1..=12).map(|month| month.to_string()).collect()),
        ("calendar", (1..=7).map(|day| day.to_string()).collect()),
        ("channel", channels()),
        ("severity", owned(&["error", "warning", "note"])),
        ("note", owned(&["telegram", "voice", "hlr", "call/otp"])),
        ("reason", skip_reasons()),
        ("skip-reason", owned(&SkipRecord::FIXED_REASONS)),
        ("purpose", owned(&["marketing", "service"])),
        ("resource", owned(&["program", "address", "source"])),
        ("state", owned(&RowState::ALL.map(RowState::name))),
        ("schedule-state", owned(&["armed", "paused", "changed", "damaged"])),
        (
            "action",
            owned(&[
                "stop",
                "pause",
                "resume",
                "suppress",
                "unsuppress",
                "reconcile",
                "retry",
                "test",
                "sent",
                "not-sent",
                "send-again",
            ]),
        ),
        ("outcome", owned(&["begun", "done", "unchanged", "refused", "failed"])),
        ("confirmation", confirmations()),
        ("nav", owned(&["overview", "runs", "schedules", "opt-outs", "replies", "campaigns"])),
        ("language", PageLanguage::ALL.map(|language| language.code().to_owned()).to_vec()),
        ("column", owned(&["campaign", "state", "started", "recipients", "delivered", "read", "failed", "cost"])),
        ("days", owned(&["1", "7", "30", "90"])),
        ("period", owned(&["today", "week"])),
        ("tile", owned(&["sent", "delivered", "read", "failed", "in_doubt", "cost"])),
        ("change", owned(&["found", "not_found", "unresolved", "sent", "not_sent", "send_again", "retry"])),
        ("status", RunStatus::NAMES.map(str::to_owned).to_vec()),
    ])
}

/// The words of the kind `confirmation`: each names a message about the result of an action.
fn confirmations() -> Vec<String> {
    let for_runs = [
        "stop",
        "not-sending",
        "resolve",
        "reconcile",
        "reconcile-partly",
        "reconcile-unclear",
        "reconcile-blind",
        "reconcile-unchanged",
        "reconciling",
        "retry",
        "retry-preparing",
        "test",
        "testing",
    ];
    let others = ["pause", "resume", "suppress", "suppressed", "unsuppress", "not-listed"];
    for_runs.into_iter().chain(others).map(str::to_owned).collect()
}

/// All skip reasons with a fixed text. Reasons that contain a value of the row are not included.
fn skip_reasons() -> Vec<String> {
    let list_reasons = [ALREADY_SENT, MIGHT_BE_SENT, REJECTED_IN_RUN, DUPLICATE, EXCLUDED, HOLDOUT, FILTERED];
    let consent_reasons = [NO_CONSENT, CONSENT_EXPIRED];
    let ledger_reasons = [OPTED_OUT, CAPPED, COUNTRY, CANCELLED, CANCELLED_EARLIER, EXPIRED, REPLACED];
    // Ledgers of earlier versions contain this reason.
    let earlier_reasons = ["more than one number in the cell; give each a row of its own"];
    let fixed = list_reasons.into_iter().chain(consent_reasons).chain(ledger_reasons).chain(earlier_reasons);
    fixed.map(str::to_owned).chain(PhoneProblem::ALL.map(|problem| problem.to_string())).collect()
}

fn message_texts(message: &Translation) -> Vec<&String> {
    match message {
        Translation::Text(text) => vec![text],
        Translation::Counted(forms) => {
            [&forms.one, &forms.few, &forms.many].into_iter().flatten().chain([&forms.other]).collect()
        }
    }
}

fn placeholders_in(text: &str) -> BTreeSet<String> {
    let placeholder = Regex::new(r"\{([a-z_]+)\}").unwrap();
    placeholder.captures_iter(text).map(|captures| captures[1].to_owned()).collect()
}

/// Reads the sources below a folder that use texts: code without tests, and templates.
fn source_texts(folder: &Path) -> Vec<String> {
    let tests = Regex::new(r"#\[cfg\(test\)\]\nmod \w*tests \{").unwrap();
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() {
            texts.extend(source_texts(&entry));
        } else if (name.ends_with(".rs") && name != "table_tests.rs") || name.ends_with(".html") {
            let text = fs::read_to_string(&entry).unwrap();
            texts.push(tests.splitn(&text, 2).next().unwrap().to_owned());
        }
    }
    texts
}

/// Collects the keys and the kinds that the code and the templates use.
fn requested_keys() -> (BTreeSet<String>, BTreeSet<String>) {
    let key = Regex::new(r#"(?:\.(?:say|say_with|count)\(\s*"|\b(?:say|count)\(key=")([a-z0-9_.-]+)""#).unwrap();
    let kind = Regex::new(r#"(?:\.item_name\(\s*"|\bkind\(of=")([a-z0-9_-]+)""#).unwrap();
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut keys, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for text in
        [crate_folder.join("src/web"), crate_folder.join("../../src")].iter().flat_map(|folder| source_texts(folder))
    {
        keys.extend(key.captures_iter(&text).map(|captures| captures[1].to_owned()));
        kinds.extend(kind.captures_iter(&text).map(|captures| captures[1].to_owned()));
    }
    (keys, kinds)
}

#[test]
fn tables_parse_and_have_unique_keys() {
    let key = Regex::new(r#"(?m)^"?([a-z][^:"]*)"?:"#).unwrap();
    for (language, source) in PageLanguage::ALL.into_iter().zip(SOURCES) {
        let keys: Vec<&str> = key.captures_iter(source).map(|captures| captures.get(1).unwrap().as_str()).collect();
        let unique: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(keys.len(), unique.len(), "{language:?}");
        assert_eq!(PageWords::in_language(language).messages().len(), keys.len(), "{language:?} cannot be read");
    }
}

#[test]
fn languages_have_the_same_messages_and_placeholders() {
    // Whether each message is counted, and its placeholders.
    let table_shape = |language| -> BTreeMap<&String, (bool, BTreeSet<String>)> {
        let shape = |message: &Translation| {
            let all = message_texts(message).into_iter().flat_map(|text| placeholders_in(text));
            (matches!(message, Translation::Counted(_)), all.filter(|place| place != "count").collect())
        };
        PageWords::in_language(language).messages().iter().map(|(key, message)| (key, shape(message))).collect()
    };
    let english = table_shape(PageLanguage::English);
    for language in PageLanguage::ALL {
        let other = table_shape(language);
        let keys = |shape: &BTreeMap<&String, _>| shape.keys().map(|key| (*key).clone()).collect::<BTreeSet<_>>();
        let differing: Vec<_> = keys(&english).symmetric_difference(&keys(&other)).cloned().collect();
        assert!(differing.is_empty(), "{language:?}: only in one language: {differing:?}");
        assert_eq!(english, other, "{language:?}");
    }
}

#[test]
fn plural_messages_have_exactly_the_needed_forms() {
    use PluralCategory::{Few, Many, One, Other, Two, Zero};
    for language in PageLanguage::ALL {
        let words = PageWords::in_language(language);
        let expected: Vec<PluralCategory> = plural_rules(language).categories().collect();
        for (key, message) in words.messages() {
            let Translation::Counted(forms) = message else { continue };
            for category in [Zero, One, Two, Few, Many, Other] {
                let (has, needs) = (forms.for_category(category).is_some(), expected.contains(&category));
                assert_eq!(has, needs, "{language:?}: `{key}`, {category:?}");
            }
            let all: BTreeSet<_> = message_texts(message).into_iter().map(|text| placeholders_in(text)).collect();
            assert_eq!(all.len(), 1, "{language:?}: `{key}` has different placeholders in its forms");
            assert!(
                all.iter().all(|places| places.contains("count")),
                "{language:?}: `{key}` does not contain the number"
            );
        }
    }
}

#[test]
fn texts_are_trimmed_and_placeholders_well_formed() {
    let placeholder = Regex::new(r"\{[a-z_]+\}").unwrap();
    for language in PageLanguage::ALL {
        for (key, message) in PageWords::in_language(language).messages() {
            for text in message_texts(message) {
                let braces = text.matches(['{', '}']).count();
                assert!(!text.trim().is_empty() && text.trim() == text, "{language:?}: `{key}`");
                let placeholders = placeholder.find_iter(text).count();
                assert_eq!(braces, 2 * placeholders, "{language:?}: `{key}`");
            }
        }
    }
}

#[test]
fn requested_keys_exist_and_no_key_is_unused() {
    let (requested, requested_kinds) = requested_keys();
    let existing: BTreeSet<&String> = PageWords::in_language(PageLanguage::English).messages().keys().collect();
    let missing: Vec<&String> = requested.iter().filter(|key| !existing.contains(key)).collect();
    assert!(missing.is_empty(), "used, but in no table: {missing:?}");
    let kinds = word_kinds();
    for kind in &requested_kinds {
        let words = kinds.get(kind.as_str()).unwrap_or_else(|| panic!("the words of the kind `{kind}` are unknown"));
        let missing: Vec<&String> = words.iter().filter(|word| !existing.contains(&format!("{kind}.{word}"))).collect();
        assert!(missing.is_empty(), "`{kind}` has no word for {missing:?}");
    }
    let items_of_kind = |key: &str| {
        let (kind, word) = key.split_once('.').unwrap_or_default();
        requested_kinds.contains(kind) && kinds.get(kind).is_some_and(|words| words.iter().any(|known| known == word))
    };
    let unused: Vec<_> = existing.iter().filter(|key| !requested.contains(**key) && !items_of_kind(key)).collect();
    assert!(unused.is_empty(), "in the tables, but never used: {unused:?}");
}
