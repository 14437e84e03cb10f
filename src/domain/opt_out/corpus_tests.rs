//! The reader of replies against the labelled corpus of `tests/opt_outs/replies`.

use sha2::{Digest as _, Sha256};

use super::{OptOutWords, ReplyReading};
use crate::domain::Purpose;

const CORPUS: &str = include_str!("../../../tests/opt_outs/replies/corpus.csv");

/// The least part of the clear opt-outs that is found, in percent.
const RECALL: [(&str, usize); 2] = [("known", 97), ("held_out", 95)];
/// The least part of the ambiguous replies that a person is shown, in percent.
const SHOWN: usize = 90;

/// A reply of the corpus to a message with one purpose.
struct Labelled {
    reply: String,
    purpose: Purpose,
    label: String,
    set: String,
}

fn corpus() -> Vec<Labelled> {
    let mut reader = csv::Reader::from_reader(CORPUS.as_bytes());
    let records = reader.records().map(|record| record.expect("a record of the corpus"));
    let labelled = records.flat_map(|record| {
        let purposes = match &record[1] {
            "any" => vec![Purpose::Marketing, Purpose::Service],
            one => vec![Purpose::from_name(one).expect("a purpose")],
        };
        let [reply, label, set] = [0, 2, 4].map(|column| record[column].to_owned());
        let of = move |purpose| Labelled { reply: reply.clone(), purpose, label: label.clone(), set: set.clone() };
        purposes.into_iter().map(of).collect::<Vec<_>>()
    });
    labelled.collect()
}

fn reading(labelled: &Labelled) -> ReplyReading<'static> {
    static WORDS: std::sync::LazyLock<OptOutWords> = std::sync::LazyLock::new(OptOutWords::default);
    WORDS.read(&labelled.reply, labelled.purpose)
}

#[test]
fn clear_opt_outs_are_read_for_every_purpose() {
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
    ] {
        for purpose in [Purpose::Marketing, Purpose::Service] {
            let reading = OptOutWords::default().read(reply, purpose).opt_out().is_some();
            assert!(reading, "{reply} ({})", purpose.name());
        }
    }
    for (reply, purpose) in
        [("Скасувати", Purpose::Marketing), ("Скасувати", Purpose::Service), ("Cancel", Purpose::Service)]
    {
        assert!(OptOutWords::default().read(reply, purpose).opt_out().is_none(), "{reply} ({})", purpose.name());
    }
}

/// The replies of a set with a label, and those of them that a condition holds for.
fn share<'c>(
    corpus: &'c [Labelled],
    set: &str,
    label: &str,
    holds: impl Fn(&Labelled) -> bool,
) -> (usize, Vec<&'c Labelled>) {
    let all: Vec<&Labelled> = corpus.iter().filter(|labelled| labelled.set == set && labelled.label == label).collect();
    (all.len(), all.into_iter().filter(|labelled| holds(labelled)).collect())
}

fn opts_out(labelled: &Labelled) -> bool {
    reading(labelled).opt_out().is_some()
}

/// The replies of the known set; those that are held out are not shown.
fn shown(set: &str, replies: &[&Labelled]) -> String {
    let replies = replies.iter().map(|labelled| format!("{:?} ({})", labelled.reply, labelled.purpose.name()));
    if set == "known" { replies.collect::<Vec<_>>().join("\n") } else { String::new() }
}

#[test]
fn corpus_is_divided_by_a_hash() {
    let corpus = corpus();
    assert!(corpus.len() > 900, "{}", corpus.len());
    for labelled in &corpus {
        let even = Sha256::digest(&labelled.reply)[0].is_multiple_of(2);
        assert_eq!(labelled.set, if even { "known" } else { "held_out" }, "{:?}", labelled.reply);
        assert!(["opt_out", "ambiguous", "other"].contains(&labelled.label.as_str()), "{}", labelled.label);
    }
}

#[test]
fn no_other_or_ambiguous_reply_opts_anyone_out() {
    let corpus = corpus();
    for (set, _) in RECALL {
        for label in ["ambiguous", "other"] {
            let (all, wrong) = share(&corpus, set, label, opts_out);
            assert!(
                wrong.is_empty(),
                "{} of {all} {label} replies ({set}) opt out\n{}",
                wrong.len(),
                shown(set, &wrong)
            );
        }
    }
}

#[test]
fn clear_opt_outs_are_found() {
    let corpus = corpus();
    for (set, least) in RECALL {
        let (all, missed) = share(&corpus, set, "opt_out", |labelled| !opts_out(labelled));
        let found = all - missed.len();
        assert!(found * 100 >= all * least, "{found} of {all} ({set})\n{}", shown(set, &missed));
    }
}

#[test]
fn ambiguous_and_missed_replies_are_shown_to_a_person() {
    let corpus = corpus();
    for (set, _) in RECALL {
        let hidden = |labelled: &Labelled| reading(labelled) == ReplyReading::Other;
        let (all, missed) = share(&corpus, set, "ambiguous", hidden);
        assert!(
            (all - missed.len()) * 100 >= all * SHOWN,
            "{} of {all} ambiguous replies ({set}) are not shown\n{}",
            missed.len(),
            shown(set, &missed)
        );
        let (all, silent) = share(&corpus, set, "opt_out", hidden);
        assert!(
            silent.len() * 100 <= all * 3,
            "{} of {all} opt-outs ({set}) are neither taken nor shown\n{}",
            silent.len(),
            shown(set, &silent)
        );
        let (all, noise) = share(&corpus, set, "other", |labelled| !hidden(labelled));
        assert!(noise.len() * 2 <= all, "{} of {all} other replies ({set}) are shown", noise.len());
    }
}
