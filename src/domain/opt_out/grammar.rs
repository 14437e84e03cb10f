//! Which replies are opt-outs: every word of a reply has to belong to a phrase of an opt-out, or be a word that changes nothing.
//!
//! One unknown word is enough to leave the decision to a person, so "stop" opts out and "bus stop" does not.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};
use strsim::osa_distance;

use super::english::ENGLISH;
use super::europe::EUROPE;
use super::tokens::{ReplyToken, normalize_table_word, split_tokens};
use super::ukrainian_russian::UKRAINIAN_RUSSIAN;

/// The most parts of a reply that can be an opt-out.
const MAX_TOKENS: usize = 40;
/// How many of the first letters of a word with a typing error must be right.
const FIRST_LETTERS: usize = 3;

/// The words and phrases of opt-outs in some languages.
///
/// A phrase is words in their order; `{name}` is any word of a class, and `,` and `?` are punctuation.
pub(super) struct PhraseTable {
    /// Words with the same part in phrases, by name.
    pub(super) classes: &'static [(&'static str, &'static str)],
    /// Phrases that are clear opt-outs.
    pub(super) opt_outs: &'static [&'static str],
    /// Phrases that are opt-outs in replies to marketing, and can mean an order in replies to service messages.
    pub(super) marketing_opt_outs: &'static [&'static str],
    /// Such phrases that are no opt-outs beside a word about the person, the sender or the messages: "cancel my …".
    pub(super) marketing_words: &'static [&'static str],
    /// Phrases that are no opt-outs, and do not change one beside them.
    pub(super) neutral: &'static [&'static str],
    /// Phrases with which a question is a request.
    pub(super) requests: &'static [&'static str],
    /// Words that can stand anywhere: politeness, anger, emphasis.
    pub(super) polite: &'static str,
    /// Words about the person, the sender and the messages, which can stand beside clear opt-outs.
    pub(super) about: &'static str,
    /// Phrases that look like an opt-out and are none.
    pub(super) exceptions: &'static [&'static str],
    /// Opt-outs of one long word that are known with one typing error.
    pub(super) misspelt: &'static str,
    /// Words that look like such an error and are none.
    pub(super) near_misses: &'static str,
    /// Phrases that a person should read wherever they stand.
    pub(super) review: &'static [&'static str],
    /// The first letters of words that a person should read.
    pub(super) review_stems: &'static str,
}

/// What the built-in words make of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyVerdict {
    /// An opt-out by this phrase, as the tables write it.
    OptOut(String),
    /// An opt-out by this phrase if it answers marketing.
    MarketingOptOut(String),
    /// It looks like an opt-out.
    Unclear,
    Other,
}

/// A word of the tables; some have a fixed number.
type WordId = u16;
const BREAK: WordId = 0;
const QUESTION: WordId = 1;
const UNKNOWN: WordId = 2;

/// One or several words in their order, each one of some.
struct Phrase(Vec<Vec<WordId>>);

/// All languages together.
pub(super) struct Grammar {
    ids: FxHashMap<String, WordId>,
    /// Each word as the tables write it.
    written: Vec<String>,
    /// The phrases of opt-outs: those that are clear, then those in replies to marketing, at last those that stand alone.
    phrases: Vec<Phrase>,
    clear: usize,
    beside_words: usize,
    neutral: Vec<Phrase>,
    requests: Vec<Phrase>,
    exceptions: Vec<Phrase>,
    review: Vec<Phrase>,
    polite: FxHashSet<WordId>,
    about: FxHashSet<WordId>,
    /// Opt-outs of one word.
    commands: FxHashSet<String>,
    misspelt: Vec<String>,
    /// The word STOP in each alphabet.
    stops: Vec<String>,
    near_misses: FxHashSet<String>,
    stems: Vec<String>,
}

pub(super) static GRAMMAR: LazyLock<Grammar> =
    LazyLock::new(|| Grammar::from_tables(&[&ENGLISH, &UKRAINIAN_RUSSIAN, &EUROPE]));

impl Grammar {
    fn from_tables(languages: &[&PhraseTable]) -> Self {
        let mut words = WordTable::default();
        let (mut phrases, mut marketing, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let (mut neutral, mut requests, mut exceptions, mut review) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut polite, mut about) = (FxHashSet::default(), FxHashSet::default());
        for language in languages {
            let mut add = |to: &mut Vec<Phrase>, texts: &[&str]| {
                to.extend(texts.iter().map(|text| words.parse_phrase(text, language.classes)));
            };
            add(&mut phrases, language.opt_outs);
            add(&mut marketing, language.marketing_opt_outs);
            add(&mut alone, language.marketing_words);
            add(&mut neutral, language.neutral);
            add(&mut requests, language.requests);
            add(&mut exceptions, language.exceptions);
            add(&mut review, language.review);
            polite.extend(language.polite.split_whitespace().map(|word| words.word_id(word)));
            about.extend(language.about.split_whitespace().map(|word| words.word_id(word)));
        }
        let clear = phrases.len();
        phrases.extend(marketing);
        let beside_words = phrases.len();
        phrases.extend(alone);
        let table = |words: fn(&PhraseTable) -> &str| {
            languages.iter().flat_map(move |language| words(language).split_whitespace()).map(normalize_table_word)
        };
        let misspelt = table(|language| language.misspelt).collect();
        let near_misses = table(|language| language.near_misses).collect();
        let stems = table(|language| language.review_stems).collect();
        let single: FxHashSet<WordId> = phrases[..clear]
            .iter()
            .filter(|phrase| phrase.0.len() == 1)
            .flat_map(|phrase| phrase.0[0].clone())
            .collect();
        let WordTable { ids, written } = words;
        let commands = ids.iter().filter(|(_, id)| single.contains(id)).map(|(word, _)| word.clone()).collect();
        let stops = ["STOP", "СТОП"].map(normalize_table_word).into();
        Self {
            ids,
            written,
            phrases,
            clear,
            beside_words,
            neutral,
            requests,
            exceptions,
            review,
            polite,
            about,
            commands,
            misspelt,
            stops,
            near_misses,
            stems,
        }
    }

    /// The built-in opt-out of one word that a text is.
    pub(super) fn find_command(&self, text: &str) -> Option<&str> {
        match split_tokens(text, MAX_TOKENS, |_| false).as_slice() {
            [ReplyToken::Word(word)] if self.commands.contains(word) => {
                Some(&self.written[usize::from(self.ids[word])])
            }
            _ => None,
        }
    }

    /// The opt-outs of one word.
    #[cfg(test)]
    pub(super) fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str).filter(|word| word.contains(char::is_alphanumeric))
    }

    /// What a reply is.
    pub(super) fn judge_reply(&self, reply: &str) -> ReplyVerdict {
        let tokens = split_tokens(reply, MAX_TOKENS, |word| self.commands.contains(word) || self.has_stem(word));
        let words: Vec<WordId> = tokens.iter().map(|token| self.read_token(token)).collect();
        let is_exception = || {
            let ended = [words.as_slice(), &[BREAK]].concat();
            self.exceptions.iter().any(|phrase| self.contains_phrase(phrase, &ended, false))
        };
        if words.len() <= MAX_TOKENS && !is_exception() {
            let words = self.without_question(&words);
            let cover = PhraseCover { grammar: self, words: &words };
            if let Some(phrase) = cover.find_first_phrase(self.clear, true) {
                return ReplyVerdict::OptOut(phrase);
            }
            let beside_words = cover.find_first_phrase(self.beside_words, true);
            if let Some(phrase) = beside_words.or_else(|| cover.find_first_phrase(self.phrases.len(), false)) {
                return ReplyVerdict::MarketingOptOut(phrase);
            }
        }
        let stem = |token: &ReplyToken| matches!(token, ReplyToken::Word(word) if self.has_stem(word));
        match tokens.iter().any(stem) || self.review.iter().any(|phrase| self.contains_phrase(phrase, &words, true)) {
            true => ReplyVerdict::Unclear,
            false => ReplyVerdict::Other,
        }
    }

    fn has_stem(&self, word: &str) -> bool {
        self.near_misses.contains(word) || self.stems.iter().any(|stem| word.starts_with(stem.as_str()))
    }

    fn read_token(&self, token: &ReplyToken) -> WordId {
        match token {
            ReplyToken::Break => BREAK,
            ReplyToken::Question => QUESTION,
            ReplyToken::Word(word) => {
                let known = self.ids.get(word).or_else(|| self.ids.get(self.find_misspelt(word)?));
                known.copied().unwrap_or(UNKNOWN)
            }
        }
    }

    /// The opt-out of one word that this word is with one typing error.
    fn find_misspelt(&self, word: &str) -> Option<&str> {
        if self.near_misses.contains(word) {
            return None;
        }
        let begins_alike = |known: &str| known.chars().take(FIRST_LETTERS).eq(word.chars().take(FIRST_LETTERS));
        let mut long = self.misspelt.iter().filter(|known| begins_alike(known) && osa_distance(word, known) == 1);
        long.next().or_else(|| self.stops.iter().find(|stop| is_swapped(word, stop))).map(String::as_str)
    }

    /// A request without its question mark: "can you stop?".
    fn without_question(&self, words: &[WordId]) -> Vec<WordId> {
        let begin = words.iter().position(|word| !self.is_skipped(*word, false)).unwrap_or(0);
        let asks = self.requests.iter().any(|phrase| self.find_phrase_ends(phrase, words, begin, false) != 0);
        words.iter().copied().filter(|word| !asks || *word != QUESTION).collect()
    }

    /// Whether a phrase stands anywhere in a reply.
    fn contains_phrase(&self, phrase: &Phrase, words: &[WordId], about: bool) -> bool {
        let words = &words[..words.len().min(MAX_TOKENS + 1)];
        (0..words.len()).any(|begin| self.find_phrase_ends(phrase, words, begin, about) != 0)
    }

    /// Where a phrase that begins at a word can end, as bits; words that change nothing can stand within it.
    fn find_phrase_ends(&self, phrase: &Phrase, words: &[WordId], begin: usize, about: bool) -> u64 {
        let begins = words.get(begin).zip(phrase.0.first()).is_some_and(|(word, first)| first.contains(word));
        let mut places = u64::from(begins) << begin;
        for (position, alternatives) in phrase.0.iter().enumerate() {
            let mut next = 0;
            for (index, word) in words.iter().enumerate().skip(begin) {
                if places & (1 << index) == 0 {
                    continue;
                }
                if alternatives.contains(word) {
                    next |= 1 << (index + 1);
                }
                if position > 0 && self.is_skipped(*word, about) {
                    places |= 1 << (index + 1);
                }
            }
            places = next;
        }
        places
    }

    /// The words of a phrase that begins at the first of these words, as the tables write them.
    fn write_phrase(&self, phrase: &Phrase, words: &[WordId]) -> String {
        let mut rest = words.iter();
        let found = phrase.0.iter().filter_map(|alternatives| rest.find(|word| alternatives.contains(word)));
        found.map(|word| self.written[usize::from(*word)].as_str()).collect::<Vec<_>>().join(" ")
    }

    fn is_skipped(&self, word: WordId, about: bool) -> bool {
        word == BREAK || self.polite.contains(&word) || about && self.about.contains(&word)
    }
}

/// A reply that phrases and neutral words may cover.
struct PhraseCover<'g> {
    grammar: &'g Grammar,
    words: &'g [WordId],
}

impl PhraseCover<'_> {
    /// The first of these phrases in a cover of the whole reply, as the tables write it; nothing if there is no cover with one.
    fn find_first_phrase(&self, phrases: usize, about: bool) -> Option<String> {
        let Self { grammar, words } = self;
        // For each place: whether the words before it are covered without a phrase, and the first phrase of a cover with
        // one, with the place where it begins.
        let mut plain = vec![false; words.len() + 1];
        let mut with_phrase: Vec<Option<(usize, usize)>> = vec![None; words.len() + 1];
        plain[0] = true;
        for index in 0..words.len() {
            let (covered, found) = (plain[index], with_phrase[index]);
            if !covered && found.is_none() {
                continue;
            }
            let neutral = grammar.neutral.iter().map(|phrase| grammar.find_phrase_ends(phrase, words, index, about));
            let mut skipped = neutral.fold(0, |all, ends| all | ends);
            if grammar.is_skipped(words[index], about) {
                skipped |= 1 << (index + 1);
            }
            for end in set_bits(skipped) {
                plain[end] |= covered;
                with_phrase[end] = with_phrase[end].or(found);
            }
            for (number, phrase) in grammar.phrases[..phrases].iter().enumerate() {
                for end in set_bits(grammar.find_phrase_ends(phrase, words, index, about)) {
                    with_phrase[end] = with_phrase[end].or(found).or(Some((number, index)));
                }
            }
        }
        with_phrase[words.len()].map(|(number, begin)| grammar.write_phrase(&grammar.phrases[number], &words[begin..]))
    }
}

/// The places whose bits are set.
fn set_bits(bits: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |place| bits & (1 << place) != 0)
}

/// Whether two neighbouring letters of a word are swapped: no other word looks like `STPO`.
fn is_swapped(word: &str, correct: &str) -> bool {
    sort_letters(word) == sort_letters(correct) && osa_distance(word, correct) == 1
}

fn sort_letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// The words of the tables, numbered.
struct WordTable {
    ids: FxHashMap<String, WordId>,
    /// Each word as it is written first.
    written: Vec<String>,
}

impl Default for WordTable {
    fn default() -> Self {
        let ids = [(",", BREAK), ("?", QUESTION)].map(|(sign, id)| (sign.to_owned(), id));
        Self { ids: ids.into_iter().collect(), written: vec![String::new(); 3] }
    }
}

impl WordTable {
    fn word_id(&mut self, word: &str) -> WordId {
        let is_sign = !word.contains(char::is_alphanumeric);
        let key = if is_sign { word.to_owned() } else { normalize_table_word(word) };
        let next = WordId::try_from(self.written.len()).unwrap_or(UNKNOWN);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.written.push(word.to_owned());
        }
        id
    }

    fn parse_phrase(&mut self, text: &str, classes: &[(&str, &str)]) -> Phrase {
        let mut words = Vec::new();
        for part in text.split_whitespace() {
            let class = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            let of_class = |name| classes.iter().find(|(known, _)| *known == name).map_or("", |(_, words)| words);
            let alternatives = class.map_or(part, of_class).split_whitespace();
            words.push(alternatives.map(|word| self.word_id(word)).collect());
        }
        Phrase(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_has_words() {
        let grammar = &*GRAMMAR;
        let lists = [&grammar.phrases, &grammar.neutral, &grammar.requests, &grammar.exceptions, &grammar.review];
        for (index, phrase) in lists.into_iter().flatten().enumerate() {
            assert!(
                !phrase.0.is_empty() && phrase.0.iter().all(|words| !words.is_empty()),
                "phrase {index} names no class"
            );
        }
        assert!(grammar.phrases.len() > 100 && grammar.misspelt.iter().all(|word| grammar.commands.contains(word)));
    }
}
