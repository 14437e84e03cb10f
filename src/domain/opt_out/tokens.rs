//! The words of a reply, written one way: capitals without accents, with look-alike letters of other alphabets as Latin ones.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most letters of a word that are compared; no word of a table is longer.
const MAX_WORD_LETTERS: usize = 64;
/// Signs that are read as words.
const SIGNS: [char; 7] = ['🛑', '⛔', '🚫', '✋', '🔕', '❌', '🙅'];

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyToken {
    Word(String),
    /// The end of a line, a sentence or a part of one.
    Break,
    Question,
}

/// The words of a text for a comparison with the words of a file: an apostrophe divides words, a repeated letter counts.
pub(super) fn split_plain_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|character: char| !character.is_alphanumeric() && !is_invisible(character));
    words.map(normalize_letters).filter(|word| !word.is_empty())
}

/// The parts of a reply. Letters that stand apart (`S T O P`) are one word if `is_word` knows it.
pub(super) fn split_tokens(text: &str, most: usize, is_word: impl Fn(&str) -> bool) -> Vec<ReplyToken> {
    let (mut tokens, mut word) = (Vec::new(), String::new());
    let end_word = |tokens: &mut Vec<ReplyToken>, word: &mut String| {
        let plain = collapse_repeated_letters(&normalize_letters(&std::mem::take(word)));
        // Only marks without a letter, such as the variation selector of an emoji, are no word.
        tokens.extend((!plain.is_empty()).then_some(ReplyToken::Word(plain)));
    };
    for character in text.chars().map(replace_lunate_sigma).nfkc() {
        match character {
            '\'' | '’' | '‘' | 'ʼ' | '`' => continue,
            letter if letter.is_alphanumeric() || is_invisible(letter) => {
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
        if tokens.len() > most {
            return tokens;
        }
    }
    end_word(&mut tokens, &mut word);
    join_letters(tokens, is_word)
}

/// A word of a table as the words of replies are written.
pub(super) fn normalize_table_word(word: &str) -> String {
    collapse_repeated_letters(&normalize_letters(
        &word.chars().filter(|character| *character != '\'').collect::<String>(),
    ))
}

/// Makes one word of letters that stand apart, if there are three or more and it is a word.
fn join_letters(tokens: Vec<ReplyToken>, is_word: impl Fn(&str) -> bool) -> Vec<ReplyToken> {
    let letter = |token: &ReplyToken| matches!(token, ReplyToken::Word(word) if word.chars().count() == 1 && word.chars().all(char::is_alphabetic));
    let (mut joined, mut rest) = (Vec::new(), tokens.as_slice());
    while let Some(first) = rest.first() {
        let mut end = rest.iter().position(|token| !letter(token) && *token != ReplyToken::Break).unwrap_or(rest.len());
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
        if letter(first) && letters.len() >= 3 && is_word(&word) {
            joined.push(ReplyToken::Word(word));
            rest = &rest[end..];
        } else {
            joined.push(first.clone());
            rest = &rest[1..];
        }
    }
    joined
}

/// A word with each repeated letter once: `STOOOP` and `STOPP` are `STOP`.
fn collapse_repeated_letters(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    letters.dedup();
    letters.into_iter().collect()
}

/// A Greek letter that looks like C; a normal form makes another letter of it.
fn replace_lunate_sigma(character: char) -> char {
    if matches!(character, 'Ϲ' | 'ϲ') { 'C' } else { character }
}

fn normalize_letters(word: &str) -> String {
    let seen = word.chars().map(replace_lunate_sigma).nfkd().filter(|character| !is_invisible(*character));
    seen.flat_map(char::to_uppercase).map(latin_lookalike).take(MAX_WORD_LETTERS).collect()
}

/// Whether a reader does not see the character: marks on letters, and what joins or divides without width.
fn is_invisible(character: char) -> bool {
    is_combining_mark(character)
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
}

/// The Latin capital that a Cyrillic or Greek one looks like; the character itself if there is none.
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
