//! Opt-outs and opt-ins in replies of recipients. This module does no I/O.
//!
//! A built-in opt-out phrase counts only if the rest of the reply is politeness or words about the messages. "Please
//! stop sending me sms" opts out, but "stop by tomorrow" does not. A person must read replies that only look like an
//! opt-out. An opt-in counts only if it is the whole reply.

mod column;
#[cfg(test)]
mod corpus_tests;
mod grammar;
mod phrases;

use std::borrow::Cow;

use super::Purpose;
use grammar::{GRAMMAR, ReplyVerdict, split_plain_words};

pub use column::{OptOutColumn, OptOutState, is_date, read_opt_out_state};

/// The maximum number of words in a configured phrase, and in a reply that only begins with such a phrase.
pub const MAX_OPT_OUT_WORDS: usize = 3;

/// The built-in words that opt in again.
const OPT_IN_WORDS: [&str; 6] = ["START", "UNSTOP", "ПОЧАТИ", "ПІДПИСАТИСЯ", "ПІДПИСАТИСЬ", "ПОДПИСАТЬСЯ"];

/// A word or phrase as configured, and its words in the form in which they are compared.
type ComparedWord = (String, Vec<String>);

/// The known opt-outs and opt-ins, both built-in and configured by the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptOutWords {
    /// The configured words that opt out.
    opt_outs: Vec<ComparedWord>,
    /// The configured words that opt in.
    opt_ins: Vec<ComparedWord>,
}

/// The meaning of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyReading<'w> {
    /// An opt-out, with the word or phrase in the spelling of the tables or of the configuration.
    OptOut(Cow<'w, str>),
    /// An opt-in, with the word in the spelling of the tables or of the configuration.
    OptIn(Cow<'w, str>),
    /// The reply looks like an opt-out but can mean something else.
    Unclear,
    /// Anything else.
    Other,
}

impl<'w> ReplyReading<'w> {
    /// The word or phrase that opts out. `None` if the reply is not a clear opt-out.
    pub fn into_opt_out(self) -> Option<Cow<'w, str>> {
        match self {
            Self::OptOut(phrase) => Some(phrase),
            Self::OptIn(_) | Self::Unclear | Self::Other => None,
        }
    }

    /// Whether the reply is or looks like an opt-out.
    pub fn may_opt_out(&self) -> bool {
        matches!(self, Self::OptOut(_) | Self::Unclear)
    }
}

/// Prepares words for comparison; words without a letter or digit are ignored.
fn prepare_compared_words(words: impl IntoIterator<Item = String>) -> impl Iterator<Item = ComparedWord> {
    let compared = words.into_iter().map(|word| (split_plain_words(&word).collect::<Vec<_>>(), word));
    compared.filter(|(words, _)| !words.is_empty()).map(|(words, word)| (word, words))
}

impl OptOutWords {
    /// Adds words that opt out; words without a letter or digit are ignored.
    #[must_use]
    pub fn with_words(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.opt_outs.extend(prepare_compared_words(words));
        self
    }

    /// Adds words that opt in; words without a letter or digit are ignored.
    #[must_use]
    pub fn with_opt_in_words(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.opt_ins.extend(prepare_compared_words(words));
        self
    }

    /// Counts the words in a text by the rules for configured words.
    pub fn count_words(text: &str) -> usize {
        split_plain_words(text).count()
    }

    /// Classifies a reply to a message with this purpose.
    ///
    /// Some opt-outs, such as CANCEL, can mean an order or an appointment in replies to service messages.
    pub fn classify_reply(&self, reply: &str, purpose: Purpose) -> ReplyReading<'_> {
        if let Some(word) = self.find_configured_word(reply) {
            return ReplyReading::OptOut(word.into());
        }
        let verdict = match GRAMMAR.classify_reply(reply) {
            ReplyVerdict::OptOut(phrase) => return ReplyReading::OptOut(phrase.into()),
            ReplyVerdict::MarketingOptOut(phrase) if purpose.is_marketing() => {
                return ReplyReading::OptOut(phrase.into());
            }
            ReplyVerdict::MarketingOptOut(_) | ReplyVerdict::Unclear => ReplyReading::Unclear,
            ReplyVerdict::Other => ReplyReading::Other,
        };
        self.find_opt_in_word(reply).map_or(verdict, |word| ReplyReading::OptIn(word.into()))
    }

    /// The opt-in word that the reply consists of, if any.
    pub fn find_opt_in_word(&self, reply: &str) -> Option<&str> {
        let reply: Vec<String> = split_plain_words(reply).take(MAX_OPT_OUT_WORDS + 1).collect();
        let is_built_in = |word: &&&str| split_plain_words(word).eq(reply.iter().cloned());
        let built_in = OPT_IN_WORDS.iter().find(is_built_in).copied();
        built_in.or_else(|| self.opt_ins.iter().find(|(_, words)| *words == reply).map(|(word, _)| word.as_str()))
    }

    /// The configured word or built-in one-word opt-out that covers another word, which is therefore redundant.
    pub fn find_covering_word(&self, word: &str) -> Option<&str> {
        self.find_configured_word(word).or_else(|| GRAMMAR.find_command(word))
    }

    /// The configured word that a reply consists of, or that a short reply begins with.
    fn find_configured_word(&self, reply: &str) -> Option<&str> {
        let longest = self.opt_outs.iter().map(|(_, words)| words.len()).max()?;
        let reply: Vec<String> = split_plain_words(reply).take(longest.max(MAX_OPT_OUT_WORDS) + 1).collect();
        let is_match =
            |words: &Vec<String>| reply == *words || reply.len() <= MAX_OPT_OUT_WORDS && reply.starts_with(words);
        self.opt_outs.iter().find(|(_, words)| is_match(words)).map(|(word, _)| word.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::grammar::latin_lookalike;
    use super::*;

    fn is_opt_out(reply: &str) -> bool {
        OptOutWords::default().classify_reply(reply, Purpose::Marketing).into_opt_out().is_some()
    }

    #[test]
    fn line_break_at_the_end_does_not_change_the_meaning() {
        for reply in ["Stop 🛑no", "Stop no", "STOP", "Ні", "Дякую"] {
            let (words, ended) = (OptOutWords::default(), format!("\n{reply} \n"));
            let [plain, ended] = [reply, &ended].map(|reply| words.classify_reply(reply, Purpose::Marketing));
            assert_eq!(plain, ended, "{reply}");
        }
    }

    #[test]
    fn stop_replies_are_opt_outs_but_other_sentences_are_not() {
        for reply in [
            "STOP",
            " sTop!!! ",
            "Stop. Thank you",
            "stop it now",
            "Please stop",
            "stop sending me sms",
            "opt-out",
            "🛑",
            "🛑\u{fe0f}",
            "STOP ⛔\u{fe0f}",
            "🛑 STOP",
            "S T O P",
            "s. t. o. p.",
            "s\u{200b}top",
            "С\u{301}ТОП",
            "St0p",
            "сtop",
            "SТОП",
            "«Стоп»",
            "cancel please",
            "Відпишіть мене",
            "не пишіть",
            "отпишите меня",
            "ARRÊT",
            "ΔΙΑΚΟΠΗ",
        ] {
            assert!(is_opt_out(reply), "{reply:?}");
        }
        for reply in [
            "",
            "  ",
            "...",
            "yes",
            "Please do not stop sending",
            "I will stop by at five",
            "Cancel my order",
            "nonstop",
            "не стоп",
            "Стоп це було дуже смачно",
            "Opt in",
            "stop?",
            "stop calling, sms me",
            "stop texting, call me",
            "don't call me, text me",
            "відпишіть мені",
            "відпишіть будь ласка мені",
        ] {
            assert!(!is_opt_out(reply), "{reply:?}");
        }
    }

    #[test]
    fn ambiguous_cancel_words_do_not_opt_out_of_service_messages() {
        let words = OptOutWords::default();
        let classify = |reply, purpose| words.classify_reply(reply, purpose);
        for (reply, phrase) in [("Cancel", "CANCEL"), ("відміна", "ВІДМІНА"), ("END", "END"), ("CANCELLA", "CANCELLA")]
        {
            assert_eq!(classify(reply, Purpose::Marketing), ReplyReading::OptOut(phrase.into()));
            assert_eq!(classify(reply, Purpose::Service), ReplyReading::Unclear);
        }
        assert_eq!(classify("Скасувати", Purpose::Marketing), ReplyReading::Unclear);
        assert_eq!(classify("stop", Purpose::Service), ReplyReading::OptOut("STOP".into()));
    }

    #[test]
    fn configured_word_matches_with_any_apostrophe_or_none() {
        let words = OptOutWords::default().with_words(["від'єднати".to_owned()]);
        for reply in ["від'єднати", "Від’єднати", "відʼєднати", "від`єднати!", "відєднати мене"]
        {
            let reading = words.classify_reply(reply, Purpose::Service);
            assert_eq!(reading, ReplyReading::OptOut("від'єднати".into()), "{reply}");
        }
        assert_eq!(OptOutWords::count_words("don't ' stop"), 2);
    }

    #[test]
    fn opt_in_must_be_the_whole_reply() {
        let words = OptOutWords::default().with_opt_in_words(["Хочу знову".to_owned(), " … ".to_owned()]);
        let classify = |reply| words.classify_reply(reply, Purpose::Marketing);
        for (reply, word) in [
            ("START", "START"),
            (" start! ", "START"),
            ("unstop", "UNSTOP"),
            ("Почати.", "ПОЧАТИ"),
            ("подписаться", "ПОДПИСАТЬСЯ"),
            ("хочу, знову", "Хочу знову"),
        ] {
            assert_eq!(classify(reply), ReplyReading::OptIn(word.into()), "{reply}");
        }
        for reply in ["start tomorrow?", "Please do not start", "когда начать", "", "хочу", "STOP START", "RESTART"]
        {
            assert!(!matches!(classify(reply), ReplyReading::OptIn(_)), "{reply}");
        }
        assert_eq!(classify("stop"), ReplyReading::OptOut("STOP".into()));
    }

    #[test]
    fn opt_out_phrase_is_reported_in_canonical_form() {
        for (reply, phrase) in [
            ("cтоп, дякую", "СТОП"),
            ("opt-out", "OPT OUT"),
            ("stop spamming me", "STOP SPAMMING"),
            ("будь ласка, не шліть мені смс", "НЕ ШЛІТЬ СМС"),
            ("unsubcribe", "UNSUBSCRIBE"),
        ] {
            let words = OptOutWords::default();
            assert_eq!(words.classify_reply(reply, Purpose::Marketing), ReplyReading::OptOut(phrase.into()));
        }
    }

    #[test]
    fn configured_words_opt_out_at_the_start_of_short_replies() {
        let words = OptOutWords::default().with_words(["Godi".to_owned(), "не пишіть".to_owned(), " … ".to_owned()]);
        let find_opt_out = |reply| words.classify_reply(reply, Purpose::Service).into_opt_out();
        assert_eq!(find_opt_out("GODI").as_deref(), Some("Godi"));
        assert_eq!(find_opt_out("Godi, my friend").as_deref(), Some("Godi"));
        assert_eq!(find_opt_out("Godi, my dear friend"), None);
        assert_eq!(find_opt_out("НЕ ПИШІТЬ нам").as_deref(), Some("не пишіть"));
        assert_eq!((find_opt_out("STOP"), find_opt_out(""), find_opt_out("хочу")), (Some("STOP".into()), None, None));
        assert_eq!(
            (
                words.find_covering_word("Стоп"),
                words.find_covering_word("GODI now"),
                words.find_covering_word("cancel")
            ),
            (Some("СТОП"), Some("Godi"), None)
        );
    }

    /// The spellings of a letter: unchanged, in the other case, or as a homoglyph.
    fn disguise_letter(letter: char) -> Vec<char> {
        let same = (' '..='\u{52f}')
            .filter(|other| latin_lookalike(*other) == latin_lookalike(letter) && other.is_alphabetic());
        let same: Vec<char> = same.chain([letter]).collect();
        let lower =
            same.iter().flat_map(|letter| letter.to_lowercase()).filter(|lower| lower.to_uppercase().count() == 1);
        same.iter().copied().chain(lower).collect()
    }

    proptest! {
        #[test]
        fn each_command_is_found_in_any_spelling(
            chosen in any::<prop::sample::Index>(), picks in prop::collection::vec(any::<prop::sample::Index>(), 64),
            before in "[ .,!\"«(-]{0,4}", behind in "[ .,!\"»)-]{0,4}",
        ) {
            let all: Vec<&str> = GRAMMAR.commands().collect();
            let word = chosen.get(&all);
            let written: String = word.chars().zip(&picks).map(|(letter, pick)| *pick.get(&disguise_letter(letter))).collect();
            let reply = format!("{before}{written}{behind}");
            prop_assert!(is_opt_out(&reply), "{:?} for {}", reply, word);
        }

        #[test]
        fn opt_out_with_an_unknown_word_is_left_for_review(word in "[qxz]{3,9}", before: bool) {
            let reply = if before { format!("{word} stop") } else { format!("stop {word}") };
            let words = OptOutWords::default();
            prop_assert_eq!(words.classify_reply(&reply, Purpose::Marketing), ReplyReading::Unclear);
        }

        #[test]
        fn any_reply_can_be_classified(reply in "\\PC{0,400}") {
            let _ = is_opt_out(&reply);
        }
    }
}
