//! Tests of the reply reader against the labelled corpus in `tests/opt_outs/replies`.

use sha2::{Digest as _, Sha256};

use super::{OptOutWords, ReplyReading};
use crate::domain::Purpose;

const CORPUS: &str = include_str!("../../../../../tests/opt_outs/replies/corpus.csv");

/// The minimum percentage of clear opt-outs that must be found.
const MIN_RECALL: [(&str, usize); 2] = [("known", 97), ("held_out", 95)];
/// The minimum percentage of ambiguous replies that a person must see.
const MIN_SHOWN: usize = 90;

/// A reply of the corpus to a message with one purpose.
struct LabelledReply {
    reply: String,
    purpose: Purpose,
    label: String,
    set: String,
}

fn load_corpus() -> Vec<LabelledReply> {
    let mut reader = csv::Reader::from_reader(CORPUS.as_bytes());
    let records = reader.records().map(|record| record.expect("a record of the corpus"));
    let labelled = records.flat_map(|record| {
        let purposes = match &record[1] {
            "any" => vec![Purpose::Marketing, Purpose::Service],
            purpose => vec![Purpose::from_name(purpose).expect("a purpose")],
        };
        let [reply, label, set] = [0, 2, 4].map(|column| record[column].to_owned());
        let with_purpose =
            move |purpose| LabelledReply { reply: reply.clone(), purpose, label: label.clone(), set: set.clone() };
        purposes.into_iter().map(with_purpose).collect::<Vec<_>>()
    });
    labelled.collect()
}

fn classify_labelled_reply(labelled: &LabelledReply) -> ReplyReading<'static> {
    static WORDS: std::sync::LazyLock<OptOutWords> = std::sync::LazyLock::new(OptOutWords::default);
    WORDS.classify_reply(&labelled.reply, labelled.purpose)
}

#[test]
fn clear_opt_outs_are_recognized_for_every_purpose() {
    for reply in [
        "please stop",
        "stop sending me sms",
        "remove me",
        "unsub",
        "Відпишіть мене",
        "отпишите меня",
        "не пишіть",
        "Не надсилайте більше",
        "ARRÊT",
        "STOPP",
        "BAJA",
        "S T O P",
        "🛑",
        "Usuń mnie",
        "Usuń mój numer",
        "Nie pisz do mnie",
        "Wypisuję się",
        "Zrezygnuj",
    ] {
        for purpose in [Purpose::Marketing, Purpose::Service] {
            let is_opt_out = OptOutWords::default().classify_reply(reply, purpose).into_opt_out().is_some();
            assert!(is_opt_out, "{reply} ({})", purpose.name());
        }
    }
    for (reply, purpose) in
        [("Скасувати", Purpose::Marketing), ("Скасувати", Purpose::Service), ("Cancel", Purpose::Service)]
    {
        assert!(
            OptOutWords::default().classify_reply(reply, purpose).into_opt_out().is_none(),
            "{reply} ({})",
            purpose.name()
        );
    }
}

/// The number of replies in a set with a label, and the ones that meet a condition.
fn filter_replies<'c>(
    corpus: &'c [LabelledReply],
    set: &str,
    label: &str,
    holds: impl Fn(&LabelledReply) -> bool,
) -> (usize, Vec<&'c LabelledReply>) {
    let all: Vec<&LabelledReply> =
        corpus.iter().filter(|labelled| labelled.set == set && labelled.label == label).collect();
    (all.len(), all.into_iter().filter(|labelled| holds(labelled)).collect())
}

fn opts_out(labelled: &LabelledReply) -> bool {
    classify_labelled_reply(labelled).into_opt_out().is_some()
}

/// Lists replies of the known set, one per line. Held-out replies are not shown.
fn list_replies(set: &str, replies: &[&LabelledReply]) -> String {
    let replies = replies.iter().map(|labelled| format!("{:?} ({})", labelled.reply, labelled.purpose.name()));
    if set == "known" { replies.collect::<Vec<_>>().join("\n") } else { String::new() }
}

#[test]
fn corpus_is_split_by_hash() {
    let corpus = load_corpus();
    assert!(corpus.len() > 900, "{}", corpus.len());
    for labelled in &corpus {
        let even = Sha256::digest(&labelled.reply)[0].is_multiple_of(2);
        assert_eq!(labelled.set, if even { "known" } else { "held_out" }, "{:?}", labelled.reply);
        assert!(["opt_out", "ambiguous", "other"].contains(&labelled.label.as_str()), "{}", labelled.label);
    }
}

#[test]
fn ambiguous_and_other_replies_never_opt_out() {
    let corpus = load_corpus();
    for (set, _) in MIN_RECALL {
        for label in ["ambiguous", "other"] {
            let (all, wrong) = filter_replies(&corpus, set, label, opts_out);
            assert!(
                wrong.is_empty(),
                "{} of {all} {label} replies ({set}) opt out\n{}",
                wrong.len(),
                list_replies(set, &wrong)
            );
        }
    }
}

#[test]
fn corpus_opt_outs_reach_the_minimum_recall() {
    let corpus = load_corpus();
    for (set, min_recall) in MIN_RECALL {
        let (all, missed) = filter_replies(&corpus, set, "opt_out", |labelled| !opts_out(labelled));
        let found = all - missed.len();
        assert!(found * 100 >= all * min_recall, "{found} of {all} ({set})\n{}", list_replies(set, &missed));
    }
}

#[test]
fn ambiguous_and_missed_replies_are_shown_for_review() {
    let corpus = load_corpus();
    for (set, _) in MIN_RECALL {
        let is_hidden = |labelled: &LabelledReply| classify_labelled_reply(labelled) == ReplyReading::Other;
        let (all, missed) = filter_replies(&corpus, set, "ambiguous", is_hidden);
        assert!(
            (all - missed.len()) * 100 >= all * MIN_SHOWN,
            "{} of {all} ambiguous replies ({set}) are not shown\n{}",
            missed.len(),
            list_replies(set, &missed)
        );
        let (all, silent) = filter_replies(&corpus, set, "opt_out", is_hidden);
        assert!(
            silent.len() * 100 <= all * 3,
            "{} of {all} opt-outs ({set}) are neither recognized nor shown\n{}",
            silent.len(),
            list_replies(set, &silent)
        );
        let (all, noise) = filter_replies(&corpus, set, "other", |labelled| !is_hidden(labelled));
        assert!(noise.len() * 2 <= all, "{} of {all} other replies ({set}) are shown", noise.len());
    }
}
