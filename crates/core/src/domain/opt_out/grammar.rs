//! Grammar of opt-out replies: every word of a reply must belong to an opt-out phrase or be neutral.
//!
//! One unknown word is enough to leave the decision to a person, so "stop" opts out and "bus stop" does not.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};
use strsim::osa_distance;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::phrases::{ENGLISH, EUROPE, UKRAINIAN_RUSSIAN};

/// The maximum number of tokens in an opt-out.
const MAX_TOKENS: usize = 40;
/// The number of letters at the beginning of a misspelt word that must be correct.
const FIRST_LETTERS: usize = 3;

/// The opt-out words and phrases of some languages.
///
/// A phrase is a sequence of words; `{name}` is any word of a class, and `,` and `?` are punctuation.
pub(super) struct PhraseTable {
    /// Classes of words that are interchangeable in phrases, by name.
    pub(super) classes: &'static [(&'static str, &'static str)],
    /// Phrases that are clear opt-outs.
    pub(super) opt_outs: &'static [&'static str],
    /// Phrases that are opt-outs in replies to marketing, but can be about an order in replies to service messages.
    pub(super) marketing_opt_outs: &'static [&'static str],
    /// Like `marketing_opt_outs`, but not opt-outs next to a word about the person, the sender or the messages:
    /// "cancel my …".
    pub(super) marketing_words: &'static [&'static str],
    /// Phrases that are not opt-outs and do not change an opt-out in the same reply.
    pub(super) neutral: &'static [&'static str],
    /// Phrases that turn a question into a request.
    pub(super) requests: &'static [&'static str],
    /// Filler words that can occur anywhere: polite, angry or emphatic.
    pub(super) filler: &'static str,
    /// Words about the person, the sender and the messages, which can accompany clear opt-outs.
    pub(super) about: &'static str,
    /// Phrases that look like an opt-out but are not.
    pub(super) exceptions: &'static [&'static str],
    /// One-word opt-outs that are recognized with one typing error.
    pub(super) misspelt: &'static str,
    /// Words that look like a misspelt opt-out but are not.
    pub(super) near_misses: &'static str,
    /// Phrases that, anywhere in a reply, require a person to read the reply.
    pub(super) review: &'static [&'static str],
    /// The first letters of words that require a person to read the reply.
    pub(super) review_stems: &'static str,
}

/// The verdict of the built-in words on a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyVerdict {
    /// An opt-out by this phrase, as the tables write it.
    OptOut(String),
    /// An opt-out by this phrase if it answers marketing.
    MarketingOptOut(String),
    /// The reply looks like an opt-out.
    Unclear,
    Other,
}

/// The number of a word in the tables. Punctuation and unknown words have fixed numbers.
type WordId = u16;
const BREAK: WordId = 0;
const QUESTION: WordId = 1;
const UNKNOWN: WordId = 2;

/// A sequence of words, with the alternatives for each word.
struct Phrase(Vec<Vec<WordId>>);

/// The opt-out words and phrases of all languages, with their words as numbers.
pub(super) struct Grammar {
    ids: FxHashMap<String, WordId>,
    /// The spelling of each word in the tables.
    spellings: Vec<String>,
    /// The opt-out phrases: first clear ones, then those in replies to marketing, then those that must be alone.
    phrases: Vec<Phrase>,
    /// The end of the clear opt-out phrases in `phrases`.
    clear_end: usize,
    /// The end of the marketing opt-outs in `phrases` that other words can accompany.
    beside_words_end: usize,
    neutral: Vec<Phrase>,
    requests: Vec<Phrase>,
    exceptions: Vec<Phrase>,
    review: Vec<Phrase>,
    filler: FxHashSet<WordId>,
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
        let (mut filler, mut about) = (FxHashSet::default(), FxHashSet::default());
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
            filler.extend(language.filler.split_whitespace().map(|word| words.intern_word(word)));
            about.extend(language.about.split_whitespace().map(|word| words.intern_word(word)));
        }
        let clear_end = phrases.len();
        phrases.extend(marketing);
        let beside_words_end = phrases.len();
        phrases.extend(alone);
        let normalize_words = |words: fn(&PhraseTable) -> &str| {
            languages.iter().flat_map(move |language| words(language).split_whitespace()).map(normalize_table_word)
        };
        let misspelt = normalize_words(|language| language.misspelt).collect();
        let near_misses = normalize_words(|language| language.near_misses).collect();
        let stems = normalize_words(|language| language.review_stems).collect();
        let single: FxHashSet<WordId> = phrases[..clear_end]
            .iter()
            .filter(|phrase| phrase.0.len() == 1)
            .flat_map(|phrase| phrase.0[0].clone())
            .collect();
        let WordTable { ids, spellings } = words;
        let commands = ids.iter().filter(|(_, id)| single.contains(id)).map(|(word, _)| word.clone()).collect();
        let stops = ["STOP", "СТОП"].map(normalize_table_word).into();
        Self {
            ids,
            spellings,
            phrases,
            clear_end,
            beside_words_end,
            neutral,
            requests,
            exceptions,
            review,
            filler,
            about,
            commands,
            misspelt,
            stops,
            near_misses,
            stems,
        }
    }

    /// The built-in one-word opt-out that the text consists of, if any.
    pub(super) fn find_command(&self, text: &str) -> Option<&str> {
        match split_tokens(text, MAX_TOKENS, |_| false).as_slice() {
            [ReplyToken::Word(word)] if self.commands.contains(word) => {
                Some(&self.spellings[usize::from(self.ids[word])])
            }
            _ => None,
        }
    }

    /// The one-word opt-outs that contain a letter or a digit.
    #[cfg(test)]
    pub(super) fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str).filter(|word| word.contains(char::is_alphanumeric))
    }

    /// Classifies a reply.
    pub(super) fn classify_reply(&self, reply: &str) -> ReplyVerdict {
        // A line break at the end of a reply means no more than the end itself.
        let tokens =
            split_tokens(reply.trim(), MAX_TOKENS, |word| self.commands.contains(word) || self.needs_review(word));
        let words: Vec<WordId> = tokens.iter().map(|token| self.find_word_id(token)).collect();
        let is_exception = || {
            let ended = [words.as_slice(), &[BREAK]].concat();
            self.exceptions.iter().any(|phrase| self.contains_phrase(phrase, &ended, false))
        };
        if words.len() <= MAX_TOKENS && !is_exception() {
            let words = self.strip_question_mark(&words);
            let cover = PhraseCover { grammar: self, words: &words };
            if let Some(phrase) = cover.find_first_phrase(self.clear_end, true) {
                return ReplyVerdict::OptOut(phrase);
            }
            // The last phrases are opt-outs only without words about the person, the sender or the messages.
            let beside_words = cover.find_first_phrase(self.beside_words_end, true);
            if let Some(phrase) = beside_words.or_else(|| cover.find_first_phrase(self.phrases.len(), false)) {
                return ReplyVerdict::MarketingOptOut(phrase);
            }
        }
        let must_be_read = |token: &ReplyToken| matches!(token, ReplyToken::Word(word) if self.needs_review(word));
        match tokens.iter().any(must_be_read)
            || self.review.iter().any(|phrase| self.contains_phrase(phrase, &words, true))
        {
            true => ReplyVerdict::Unclear,
            false => ReplyVerdict::Other,
        }
    }

    fn needs_review(&self, word: &str) -> bool {
        self.near_misses.contains(word) || self.stems.iter().any(|stem| word.starts_with(stem.as_str()))
    }

    fn find_word_id(&self, token: &ReplyToken) -> WordId {
        match token {
            ReplyToken::Break => BREAK,
            ReplyToken::Question => QUESTION,
            ReplyToken::Word(word) => {
                let known = self.ids.get(word).or_else(|| self.ids.get(self.find_misspelled_command(word)?));
                known.copied().unwrap_or(UNKNOWN)
            }
        }
    }

    /// The one-word opt-out that this word misspells with a single typing error, if any.
    fn find_misspelled_command(&self, word: &str) -> Option<&str> {
        if self.near_misses.contains(word) {
            return None;
        }
        let begins_alike = |known: &str| known.chars().take(FIRST_LETTERS).eq(word.chars().take(FIRST_LETTERS));
        let mut similar = self.misspelt.iter().filter(|known| begins_alike(known) && osa_distance(word, known) == 1);
        similar.next().or_else(|| self.stops.iter().find(|stop| has_swapped_letters(word, stop))).map(String::as_str)
    }

    /// Removes the question marks of a request such as "can you stop?".
    fn strip_question_mark(&self, words: &[WordId]) -> Vec<WordId> {
        let begin = words.iter().position(|word| !self.is_skipped(*word, false)).unwrap_or(0);
        let is_request = self.requests.iter().any(|phrase| self.find_phrase_ends(phrase, words, begin, false) != 0);
        words.iter().copied().filter(|word| !is_request || *word != QUESTION).collect()
    }

    /// Whether a reply contains a phrase within its first [`MAX_TOKENS`] + 1 words.
    fn contains_phrase(&self, phrase: &Phrase, words: &[WordId], skip_about: bool) -> bool {
        let words = &words[..words.len().min(MAX_TOKENS + 1)];
        (0..words.len()).any(|begin| self.find_phrase_ends(phrase, words, begin, skip_about) != 0)
    }

    /// The possible ends of a phrase that begins at a word, as bits; skipped words can occur within the phrase.
    fn find_phrase_ends(&self, phrase: &Phrase, words: &[WordId], begin: usize, skip_about: bool) -> u64 {
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
                if position > 0 && self.is_skipped(*word, skip_about) {
                    places |= 1 << (index + 1);
                }
            }
            places = next;
        }
        places
    }

    /// The words in `words` that match a phrase, spelled as in the tables.
    fn format_phrase(&self, phrase: &Phrase, words: &[WordId]) -> String {
        let mut rest = words.iter();
        let matching_words = phrase.0.iter().filter_map(|alternatives| rest.find(|word| alternatives.contains(word)));
        matching_words.map(|word| self.spellings[usize::from(*word)].as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Whether a word can be ignored next to or within a phrase. With `skip_about`, this includes words about the
    /// person, the sender and the messages.
    fn is_skipped(&self, word: WordId, skip_about: bool) -> bool {
        word == BREAK || self.filler.contains(&word) || skip_about && self.about.contains(&word)
    }
}

/// Covers a reply with phrases and neutral words.
struct PhraseCover<'g> {
    grammar: &'g Grammar,
    words: &'g [WordId],
}

impl PhraseCover<'_> {
    /// The first opt-out phrase in a cover of the whole reply, spelled as in the tables. Only the first `phrase_count`
    /// phrases are tried. `None` if no cover contains such a phrase.
    fn find_first_phrase(&self, phrase_count: usize, skip_about: bool) -> Option<String> {
        let Self { grammar, words } = self;
        // For each position: whether the words before it can be covered without a phrase, and for covers with phrases,
        // the first phrase and its start.
        let mut plain = vec![false; words.len() + 1];
        let mut with_phrase: Vec<Option<(usize, usize)>> = vec![None; words.len() + 1];
        plain[0] = true;
        for index in 0..words.len() {
            let (covered, first_phrase) = (plain[index], with_phrase[index]);
            if !covered && first_phrase.is_none() {
                continue;
            }
            let neutral =
                grammar.neutral.iter().map(|phrase| grammar.find_phrase_ends(phrase, words, index, skip_about));
            let mut skipped = neutral.fold(0, |all, ends| all | ends);
            if grammar.is_skipped(words[index], skip_about) {
                skipped |= 1 << (index + 1);
            }
            for end in iter_set_bits(skipped) {
                plain[end] |= covered;
                with_phrase[end] = with_phrase[end].or(first_phrase);
            }
            for (number, phrase) in grammar.phrases[..phrase_count].iter().enumerate() {
                for end in iter_set_bits(grammar.find_phrase_ends(phrase, words, index, skip_about)) {
                    with_phrase[end] = with_phrase[end].or(first_phrase).or(Some((number, index)));
                }
            }
        }
        with_phrase[words.len()].map(|(number, begin)| grammar.format_phrase(&grammar.phrases[number], &words[begin..]))
    }
}

/// The positions of the set bits.
fn iter_set_bits(bits: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |place| bits & (1 << place) != 0)
}

/// Whether `word` is `correct` with two neighbouring letters swapped, such as `STPO`. Other mistakes in a short word
/// can give another word: `SHOP`.
fn has_swapped_letters(word: &str, correct: &str) -> bool {
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
    /// The first spelling of each word.
    spellings: Vec<String>,
}

impl Default for WordTable {
    fn default() -> Self {
        let ids = [(",", BREAK), ("?", QUESTION)].map(|(sign, id)| (sign.to_owned(), id));
        // The numbers `BREAK`, `QUESTION` and `UNKNOWN` have no spelling.
        Self { ids: ids.into_iter().collect(), spellings: vec![String::new(); 3] }
    }
}

impl WordTable {
    /// Returns the id of a word, and adds the word if it is new.
    fn intern_word(&mut self, word: &str) -> WordId {
        let is_sign = !word.contains(char::is_alphanumeric);
        let key = if is_sign { word.to_owned() } else { normalize_table_word(word) };
        let next = WordId::try_from(self.spellings.len()).unwrap_or(UNKNOWN);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.spellings.push(word.to_owned());
        }
        id
    }

    /// Parses a phrase of a table and numbers its words; `{name}` becomes all words of the class.
    fn parse_phrase(&mut self, text: &str, classes: &[(&str, &str)]) -> Phrase {
        let mut words = Vec::new();
        for part in text.split_whitespace() {
            let class = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            let class_words = |name| classes.iter().find(|(known, _)| *known == name).map_or("", |(_, words)| words);
            let alternatives = class.map_or(part, class_words).split_whitespace();
            words.push(alternatives.map(|word| self.intern_word(word)).collect());
        }
        Phrase(words)
    }
}

/// The maximum number of letters that are compared; no word of a table is longer.
const MAX_WORD_LETTERS: usize = 64;
/// Emoji that are read as words.
const SIGNS: [char; 7] = ['🛑', '⛔', '🚫', '✋', '🔕', '❌', '🙅'];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyToken {
    Word(String),
    /// The end of a line, sentence or clause.
    Break,
    Question,
}

/// The words of a text, for comparison with configured words and opt-in words. Apostrophes are ignored, and repeated
/// letters are kept.
pub(super) fn split_plain_words(text: &str) -> impl Iterator<Item = String> {
    let is_in_word =
        |character: char| character.is_alphanumeric() || is_ignored_in_word(character) || is_apostrophe(character);
    let words = text.split(move |character| !is_in_word(character));
    words.map(|word| normalize_letters(&word.replace(is_apostrophe, ""))).filter(|word| !word.is_empty())
}

/// Whether a character is typed as an apostrophe. In a word, it is ignored: `від’єднати` is often typed without it.
fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '’' | '‘' | 'ʼ' | '`')
}

/// Splits a reply into tokens. Separate letters (`S T O P`) become one word if `is_word` accepts it.
///
/// Stops as soon as there are more than `max_tokens` tokens, without joining letters.
pub(super) fn split_tokens(text: &str, max_tokens: usize, is_word: impl Fn(&str) -> bool) -> Vec<ReplyToken> {
    let (mut tokens, mut word) = (Vec::new(), String::new());
    let end_word = |tokens: &mut Vec<ReplyToken>, word: &mut String| {
        let plain = collapse_repeated_letters(&normalize_letters(&std::mem::take(word)));
        // Marks without a letter, such as the variation selector of an emoji, are not a word.
        tokens.extend((!plain.is_empty()).then_some(ReplyToken::Word(plain)));
    };
    for character in text.chars().map(replace_lunate_sigma).nfkc() {
        match character {
            apostrophe if is_apostrophe(apostrophe) => continue,
            letter if letter.is_alphanumeric() || is_ignored_in_word(letter) => {
                word.push(letter);
                continue;
            }
            _ => end_word(&mut tokens, &mut word),
        }
        match character {
            '?' => tokens.push(ReplyToken::Question),
            '\n' | '.' | ',' | '!' | ';' | ':' | '…' | '–' | '—' => tokens.push(ReplyToken::Break),
            sign if SIGNS.contains(&sign) => tokens.push(ReplyToken::Word(sign.to_string())),
            _ => {}
        }
        if tokens.len() > max_tokens {
            return tokens;
        }
    }
    end_word(&mut tokens, &mut word);
    join_letters(tokens, is_word)
}

/// Normalizes a word of a table in the same way as the words of replies.
pub(super) fn normalize_table_word(word: &str) -> String {
    collapse_repeated_letters(&normalize_letters(
        &word.chars().filter(|character| *character != '\'').collect::<String>(),
    ))
}

/// Joins three or more separate letters into a word, if `is_word` accepts the word.
fn join_letters(tokens: Vec<ReplyToken>, is_word: impl Fn(&str) -> bool) -> Vec<ReplyToken> {
    let is_letter = |token: &ReplyToken| match token {
        ReplyToken::Word(word) => word.chars().count() == 1 && word.chars().all(char::is_alphabetic),
        ReplyToken::Break | ReplyToken::Question => false,
    };
    let (mut joined, mut rest) = (Vec::new(), tokens.as_slice());
    while let Some(first) = rest.first() {
        let mut end =
            rest.iter().position(|token| !is_letter(token) && *token != ReplyToken::Break).unwrap_or(rest.len());
        while end > 0 && rest[end - 1] == ReplyToken::Break {
            end -= 1;
        }
        let letters: Vec<&str> = rest[..end]
            .iter()
            .filter_map(|token| match token {
                ReplyToken::Word(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        let word = collapse_repeated_letters(&letters.concat());
        if is_letter(first) && letters.len() >= 3 && is_word(&word) {
            joined.push(ReplyToken::Word(word));
            rest = &rest[end..];
        } else {
            joined.push(first.clone());
            rest = &rest[1..];
        }
    }
    joined
}

/// Reduces each run of a repeated letter to a single letter: `STOOOP` and `STOPP` become `STOP`.
fn collapse_repeated_letters(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    letters.into_iter().collect()
}

/// Replaces a Greek letter that looks like C and that normalization would change to another letter.
fn replace_lunate_sigma(character: char) -> char {
    if matches!(character, 'Ϲ' | 'ϲ') { 'C' } else { character }
}

fn normalize_letters(word: &str) -> String {
    let letters = word.chars().map(replace_lunate_sigma).nfkd().filter(|character| !is_ignored_in_word(*character));
    letters.flat_map(char::to_uppercase).map(latin_lookalike).take(MAX_WORD_LETTERS).collect()
}

/// Whether a character in a word is ignored: combining marks, joiners and zero-width separators. Other invisible
/// characters end the word.
fn is_ignored_in_word(character: char) -> bool {
    is_combining_mark(character)
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
}

/// The basic Latin capital that this capital or digit looks like; otherwise the character itself.
pub(super) fn latin_lookalike(capital: char) -> char {
    match capital {
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' => 'C',
        'Е' | 'Ё' | 'Ε' => 'E',
        'Н' | 'Η' => 'H',
        'І' | 'Ї' | 'Ӏ' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' | '0' | 'Ø' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'У' | 'Υ' => 'Y',
        'Х' | 'Χ' => 'X',
        'Ζ' => 'Z',
        'Ł' => 'L',
        other => other,
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
                "phrase {index} has no words"
            );
        }
        assert!(grammar.phrases.len() > 100 && grammar.misspelt.iter().all(|word| grammar.commands.contains(word)));
    }
}
