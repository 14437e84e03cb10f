//! Foreign syntax in tags: Word's curly quotes, and operators from SQL and PHP. This module does no I/O.
//!
//! Tera stops at the first error. This module reads on, so that an author can correct all such mistakes at once.

use std::ops::Range;

use super::names::{NameScope, TemplateNames};
use super::syntax_errors::{TAGS, column_reference};
use campaign_core::domain::variable::is_variable;

/// Cyrillic letters that look like Latin letters, in the order of [`LATIN`].
const CYRILLIC: &str = "асеіјкорѕхуАВСЕНІЈКМОРЅТХУ";
/// The Latin letters that the letters in [`CYRILLIC`] look like.
const LATIN: &str = "aceijkopsxyABCEHIJKMOPSTXY";

/// The maximum number of reported slips per text.
const MAX_SLIPS: usize = 20;
/// Tags with a condition, in common spellings.
const CONDITIONAL: [&str; 5] = ["if", "elif", "elseif", "elsif", "unless"];

/// The Latin letter that this Cyrillic letter looks like.
pub fn latin_lookalike(c: char) -> Option<char> {
    CYRILLIC.chars().zip(LATIN.chars()).find_map(|(cyrillic, latin)| (cyrillic == c).then_some(latin))
}

/// The Cyrillic letter that this Latin letter looks like.
pub fn cyrillic_lookalike(c: char) -> Option<char> {
    CYRILLIC.chars().zip(LATIN.chars()).find_map(|(cyrillic, latin)| (latin == c).then_some(cyrillic))
}

/// Syntax that the template language writes differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxSlip {
    /// The bytes of the source.
    pub(super) span: Range<usize>,
    /// The problem.
    pub(super) message: String,
    /// The remedy.
    pub(super) help: String,
}

/// The slips of a source, and corrections of those slips that can be corrected in only one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SyntaxSlips {
    /// The slips, each message once.
    pub(super) slips: Vec<SyntaxSlip>,
    /// The replacements, in the order of their bytes.
    edits: Vec<(Range<usize>, String)>,
}

impl SyntaxSlips {
    /// The slips of a source that tera cannot parse.
    pub(super) fn find(source: &str, names: &TemplateNames) -> Self {
        let mut reader = SlipFinder { source, names, blocks: Vec::new(), found: Self::default() };
        let mut at = 0;
        while let Some(start) = find_opening(source, at) {
            let is_print = source.as_bytes()[start + 1] == b'{';
            let begin = start + 2 + usize::from(source[start + 2..].starts_with('-'));
            let Some((pieces, end)) = split_pieces(source, begin, if is_print { "}}" } else { "%}" }) else { break };
            let inner = source[begin..end].trim_end_matches('-').trim();
            // A column header in braces that is not a valid name gets its own help elsewhere.
            if is_variable(inner) || names.help_for_braced_header(inner).is_none() {
                reader.check_tag(is_print, &pieces);
            }
            at = end + 2;
        }
        reader.found.edits.sort_by_key(|(span, _)| span.start);
        reader.found
    }

    /// Applies all corrections to the source.
    pub(super) fn apply_corrections(&self, source: &str) -> String {
        let (mut corrected, mut copied) = (String::with_capacity(source.len()), 0);
        for (span, instead) in &self.edits {
            corrected += source.get(copied..span.start).unwrap_or_default();
            corrected += instead;
            copied = span.end.max(copied);
        }
        corrected + &source[copied..]
    }

    /// The position in the source that corresponds to a position in the corrected source.
    pub(super) fn original_offset(&self, at: usize) -> usize {
        let (mut corrected, mut original) = (0, 0);
        for (span, instead) in &self.edits {
            let unchanged = span.start.saturating_sub(original);
            if at < corrected + unchanged {
                break;
            }
            if at < corrected + unchanged + instead.len() {
                return span.start;
            }
            (corrected, original) = (corrected + unchanged + instead.len(), span.end);
        }
        original + (at - corrected.min(at))
    }

    /// Whether a slip covers the beginning of these bytes of the source.
    pub(super) fn cover_start_of(&self, span: &Range<usize>) -> bool {
        self.slips
            .iter()
            .any(|slip| slip.span.start <= span.start && span.start < slip.span.end.max(slip.span.start + 1))
    }

    fn push_slip(&mut self, span: Range<usize>, message: String, help: String) {
        if self.slips.len() < MAX_SLIPS
            && !self.slips.iter().any(|slip| (&slip.message, &slip.help) == (&message, &help))
        {
            self.slips.push(SyntaxSlip { span, message, help });
        }
    }
}

/// Finds slips, tag by tag.
struct SlipFinder<'s> {
    source: &'s str,
    names: &'s TemplateNames,
    /// The blocks that are open.
    blocks: Vec<&'s str>,
    found: SyntaxSlips,
}

impl<'s> SlipFinder<'s> {
    fn source_of(&self, piece: &TagPiece) -> &'s str {
        &self.source[piece.span.clone()]
    }

    /// The piece in lower case, if it is a word.
    fn lowercase_word(&self, piece: Option<&TagPiece>) -> Option<String> {
        piece.filter(|piece| piece.kind == PieceKind::Word).map(|piece| self.source_of(piece).to_lowercase())
    }

    /// Records a replacement of bytes and the reason for it.
    fn push_edit(&mut self, span: Range<usize>, replacement: &str, message: String, help: String) {
        self.found.edits.push((span.clone(), replacement.to_owned()));
        self.found.push_slip(span, message, help);
    }

    fn check_tag(&mut self, is_print: bool, pieces: &[TagPiece]) {
        self.check_blanks(pieces);
        pieces
            .iter()
            .filter(|piece| piece.kind == PieceKind::CurlyText)
            .for_each(|piece| self.correct_curly_quotes(piece));
        let pieces: Vec<TagPiece> = pieces.iter().filter(|piece| piece.kind != PieceKind::Blank).cloned().collect();
        let name = if is_print { None } else { Some(self.lowercase_word(pieces.first()).unwrap_or_default()) };
        let name_pieces = match &name {
            Some(name) => self.correct_tag_name(name, &pieces),
            None => 0,
        };
        pieces[name_pieces..].iter().for_each(|piece| self.correct_letters(piece));
        self.quote_compared_words(&pieces[name_pieces..]);
        let has_condition = name.as_deref().is_none_or(|name| CONDITIONAL.contains(&name) || name == "else");
        let is_assignment = name.as_deref().is_some_and(|name| name.starts_with("set"));
        if has_condition || is_assignment {
            self.correct_operators(&pieces[name_pieces..], is_assignment);
        }
    }

    /// Reports blanks other than plain spaces.
    fn check_blanks(&mut self, pieces: &[TagPiece]) {
        for piece in pieces.iter().filter(|piece| piece.kind == PieceKind::Blank) {
            let blank = self.source_of(piece).chars().next().unwrap_or(' ');
            let title = match blank {
                '\u{a0}' => "no-break space",
                '\u{202f}' => "narrow no-break space",
                '\u{200b}' => "zero-width space",
                _ => "non-standard space",
            };
            let message = format!("a {title} (U+{:04X}) is not allowed in a tag", u32::from(blank));
            let help = "in every tag, replace it with an ordinary space".to_owned();
            let replacement = if piece.span.len() == blank.len_utf8() && blank == '\u{200b}' { "" } else { " " };
            self.push_edit(piece.span.clone(), replacement, message, help);
        }
    }

    fn correct_curly_quotes(&mut self, piece: &TagPiece) {
        let source = self.source_of(piece);
        let mut characters = source.chars();
        let (Some(first), Some(_)) = (characters.next(), characters.next_back()) else { return };
        let inner = characters.as_str();
        let quote =
            if inner.contains('"') || "‘’‚".contains(first) && !inner.contains('\'') { '\'' } else { '"' };
        let straight = format!("{quote}{inner}{quote}");
        let message = format!("`{first}` is not allowed in a tag");
        let help = format!("use straight quotes: `{straight}`");
        self.push_edit(piece.span.clone(), &straight, message, help);
    }

    /// The Latin spelling of a word with Cyrillic letters that look like Latin ones. `None` if one of its letters has no
    /// such counterpart, or if the word has no Latin letter and its Latin spelling is not a known name.
    fn find_latin_spelling(&self, piece: &TagPiece) -> Option<String> {
        let source = self.source_of(piece);
        if piece.kind != PieceKind::Word || source.is_ascii() {
            return None;
        }
        let latin: Option<String> =
            source.chars().map(|c| if c.is_ascii() { Some(c) } else { latin_lookalike(c) }).collect();
        let is_mixed = source.contains(|c: char| c.is_ascii_alphabetic());
        let is_name = |name: &str| !self.names.find_meanings(name, NameScope::Recipient).is_empty();
        latin.filter(|latin| is_mixed || is_name(latin))
    }

    /// Quotes words after a comparison or `=` that no name can consist of, such as `Київ` in `city == Київ`.
    fn quote_compared_words(&mut self, pieces: &[TagPiece]) {
        let is_foreign = |slips: &Self, piece: &TagPiece| {
            piece.kind == PieceKind::Word
                && !slips.source_of(piece).is_ascii()
                && slips.find_latin_spelling(piece).is_none()
        };
        for (at, sign) in pieces.iter().enumerate() {
            if !["==", "===", "!=", "<>", "="].contains(&self.source_of(sign)) {
                continue;
            }
            let words = pieces[at + 1..].iter().take_while(|piece| is_foreign(self, piece)).count();
            let Some(last) = words.checked_sub(1).map(|more| &pieces[at + 1 + more]) else { continue };
            let span = pieces[at + 1].span.start..last.span.end;
            let text = &self.source[span.clone()];
            if self.names.find_columns(text).is_empty() {
                let quoted = format!("\"{text}\"");
                let help = format!("if you mean the text `{text}`, write it in quotes: `{quoted}`");
                self.push_edit(span, &quoted, format!("`{text}` is not a name"), help);
            }
        }
    }

    /// Corrects a word with Cyrillic letters that look like Latin ones.
    fn correct_letters(&mut self, piece: &TagPiece) {
        let Some(latin) = self.find_latin_spelling(piece) else { return };
        let source = self.source_of(piece);
        let mut cyrillic: Vec<String> = Vec::new();
        for c in source.chars().filter(|c| !c.is_ascii()) {
            let letter = format!("`{c}`");
            if !cyrillic.contains(&letter) {
                cyrillic.push(letter);
            }
        }
        let letters = if cyrillic.len() == 1 { "letter" } else { "letters" };
        let message = format!("`{source}` contains the Cyrillic {letters} {}", cyrillic.join(" and "));
        let help = format!("write `{latin}` in Latin letters only");
        self.push_edit(piece.span.clone(), &latin, message, help);
    }

    /// Corrects the name of a tag. Returns the number of pieces in the name.
    fn correct_tag_name(&mut self, name: &str, pieces: &[TagPiece]) -> usize {
        let second = self.lowercase_word(pieces.get(1)).unwrap_or_default();
        let has_slash = pieces.first().is_some_and(|first| self.source_of(first) == "/");
        let (count, instead) = match (name, second.as_str()) {
            ("elseif" | "elsif", _) => (1, "elif".to_owned()),
            ("else", "if") => (2, "elif".to_owned()),
            ("end", "if" | "for" | "block" | "filter" | "set" | "raw") => (2, format!("end{second}")),
            ("end", _) if pieces.len() == 1 => match self.blocks.last() {
                Some(block) => (1, format!("end{block}")),
                None => return 1,
            },
            ("", "if" | "for" | "block" | "filter") if has_slash => (2, format!("end{second}")),
            _ => (1, name.to_owned()),
        };
        match instead.strip_prefix("end") {
            Some(_) => drop(self.blocks.pop()),
            None => {
                let block = ["if", "for", "block", "filter"].into_iter().find(|block| *block == instead);
                self.blocks.extend(block);
            }
        }
        let Some(last) = pieces.get(count - 1) else { return 0 };
        let span = pieces[0].span.start..last.span.end;
        let source = &self.source[span.clone()];
        if !source.is_ascii() {
            return 0;
        }
        let has_more = !instead.starts_with("end") && instead != "else";
        let example = if has_more { format!("{{% {instead} … %}}") } else { format!("{{% {instead} %}}") };
        // An unknown tag that resembles no known tag is reported elsewhere.
        if TAGS.contains(&instead.as_str()) && source != instead {
            let message = format!("unknown tag `{source}`");
            self.push_edit(span, &instead, message, format!("write `{instead}`, as in `{example}`"));
        }
        count
    }

    /// Corrects the operators of an expression, except for the first `=` of a tag that sets a value.
    fn correct_operators(&mut self, pieces: &[TagPiece], is_assignment: bool) {
        let mut expects_assignment = is_assignment;
        // For each open bracket, whether it contains arguments.
        let mut brackets: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < pieces.len() {
            let (piece, source) = (&pieces[at], self.source_of(&pieces[at]));
            let count = match piece.kind {
                PieceKind::Word => self.correct_word_operator(&pieces[at..]),
                PieceKind::Sign => {
                    match source {
                        "(" => {
                            let is_call =
                                at > 0 && pieces[at - 1].kind == PieceKind::Word && !self.is_keyword(&pieces[at - 1]);
                            brackets.push(is_call);
                        }
                        "[" | "{" => brackets.push(false),
                        ")" | "]" | "}" => drop(brackets.pop()),
                        "=" if expects_assignment => expects_assignment = false,
                        "=" if brackets.last() == Some(&true) => {}
                        _ => self.correct_symbol_operator(pieces, at),
                    }
                    1
                }
                _ => 1,
            };
            at += count;
        }
    }

    fn is_keyword(&self, piece: &TagPiece) -> bool {
        const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "elif", "elseif"];
        self.lowercase_word(Some(piece)).is_some_and(|word| KEYWORDS.contains(&word.as_str()))
    }

    /// Corrects an operator that is a word. Returns the number of pieces in the operator.
    fn correct_word_operator(&mut self, pieces: &[TagPiece]) -> usize {
        let source = self.source_of(&pieces[0]);
        let word = |at: usize| self.lowercase_word(pieces.get(at)).unwrap_or_default();
        // `none` is also a test of the template language.
        let is_none_test = |at: usize| pieces.get(at).is_some_and(|piece| self.source_of(piece) == "none");
        let is_null = |at: usize| ["null", "none", "empty"].contains(&word(at).as_str()) && !is_none_test(at);
        let is_name = !self.names.find_meanings(source, NameScope::Recipient).is_empty();
        let (count, instead) = match word(0).as_str() {
            "is" if word(1) == "not" && is_null(2) => (3, "!= ''"),
            "is" if is_null(1) => (2, "== ''"),
            "and" if source != "and" && !is_name => (1, "and"),
            "or" if source != "or" && !is_name => (1, "or"),
            "not" if source != "not" && !is_name => (1, "not"),
            "in" if source != "in" && !is_name => (1, "in"),
            "is" if source != "is" && !is_name => (1, "is"),
            "like" if !is_name => {
                let help =
                    "write `is containing(pat=\"…\")`, `is starting_with(pat=\"…\")` or `is ending_with(pat=\"…\")`";
                self.found.push_slip(pieces[0].span.clone(), format!("`{source}` is not an operator"), help.to_owned());
                return 1;
            }
            _ => return 1,
        };
        let span = pieces[0].span.start..pieces[count - 1].span.end;
        let message = format!("`{}` is not an operator", &self.source[span.clone()]);
        let help = match count {
            1 => format!("write `{instead}` in lower case"),
            _ => format!("write `{instead}`; an empty cell is `''`"),
        };
        self.push_edit(span, instead, message, help);
        count
    }

    /// Corrects an operator that is a symbol.
    fn correct_symbol_operator(&mut self, pieces: &[TagPiece], at: usize) {
        let (span, source) = (pieces[at].span.clone(), self.source_of(&pieces[at]));
        if source == "!" {
            // In `{{ name! }}`, the `!` is not a negation.
            let is_negation =
                pieces.get(at + 1).is_some_and(|next| next.kind == PieceKind::Word || self.source_of(next) == "(");
            if !is_negation {
                return;
            }
            let replacement = if self.source[span.end..].starts_with(' ') { "not" } else { "not " };
            self.push_edit(span, replacement, "`!` is not an operator".to_owned(), "write `not`".to_owned());
            return;
        }
        let Some((_, replacement)) = OPERATORS.into_iter().find(|(operator, _)| *operator == source) else { return };
        let is_word = replacement.starts_with(|c: char| c.is_ascii_alphabetic());
        let (before, after) = (&self.source[..span.start], &self.source[span.end..]);
        let space_if = |is_missing: bool| if is_word && is_missing { " " } else { "" };
        let spaced = format!("{}{replacement}{}", space_if(!before.ends_with(' ')), space_if(!after.starts_with(' ')));
        let (message, help) = match (source, at.checked_sub(1).and_then(|left| pieces.get(left)), pieces.get(at + 1)) {
            ("=", Some(left), Some(right)) if [left, right].iter().all(|side| side.kind != PieceKind::Sign) => {
                let right =
                    self.source_of(right).replace(['“', '”', '„', '«', '»'], "\"").replace(['‘', '’', '‚'], "'");
                let left = self.source_of(left);
                let left = column_reference(left).unwrap_or_else(|| left.to_owned());
                ("`=` is not a comparison operator".to_owned(), format!("write `==`, as in `{left} == {right}`"))
            }
            ("=", ..) => ("`=` is not a comparison operator".to_owned(), "write `==`".to_owned()),
            _ => (format!("`{source}` is not an operator"), format!("write `{replacement}`")),
        };
        self.push_edit(span, &spaced, message, help);
    }
}

/// Operators of other languages, each with its counterpart here. Longer operators come before their prefixes.
const OPERATORS: [(&str, &str); 9] = [
    ("===", "=="),
    ("!==", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("<>", "!="),
    ("=<", "<="),
    ("=>", ">="),
    ("&", "and"),
    ("=", "=="),
];
/// Operators of the template language itself, whose parts are not separate operators.
const TEMPLATE_OPERATORS: [&str; 6] = ["==", "!=", ">=", "<=", "//", "**"];

/// The kind of a piece of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Word,
    Text,
    /// A text between curly quotes.
    CurlyText,
    Blank,
    Sign,
}

#[derive(Clone, Debug)]
struct TagPiece {
    kind: PieceKind,
    span: Range<usize>,
}

/// The start of the next tag, after comments and raw text.
fn find_opening(source: &str, mut at: usize) -> Option<usize> {
    loop {
        let start = at + source.as_bytes()[at..].windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))?;
        let rest = &source[start..];
        let is_raw =
            rest.strip_prefix("{%").is_some_and(|tag| tag.trim_start_matches('-').trim_start().starts_with("raw"));
        at = match rest.as_bytes()[1] {
            b'#' => start + rest.find("#}")? + 2,
            b'%' if is_raw => start + rest.find("endraw")?,
            _ => return Some(start),
        };
    }
}

/// The pieces of a tag and the position of its end. `None` if the tag is not closed.
fn split_pieces(source: &str, begin: usize, end: &str) -> Option<(Vec<TagPiece>, usize)> {
    let (mut pieces, mut at) = (Vec::new(), begin);
    loop {
        let rest = source.get(at..)?;
        let first = rest.chars().next()?;
        if rest.starts_with(end) {
            return Some((pieces, at));
        }
        let (kind, length) = match first {
            ' ' | '\t' | '\r' | '\n' => {
                at += 1;
                continue;
            }
            '\'' | '"' | '`' => (PieceKind::Text, straight_quote_length(rest, first)?),
            '“' | '”' | '„' | '«' | '‘' | '’' | '‚' => match curly_quote_length(rest, first, end) {
                Some(length) => (PieceKind::CurlyText, length),
                None => (PieceKind::Sign, first.len_utf8()),
            },
            c if is_non_ascii_blank(c) => {
                let length = rest.find(|c: char| !is_non_ascii_blank(c)).unwrap_or(rest.len());
                (PieceKind::Blank, length)
            }
            c if c == '_' || c.is_alphanumeric() => {
                let is_inner = |c: char| c == '_' || c.is_alphanumeric();
                (PieceKind::Word, rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len()))
            }
            c => {
                let operators = OPERATORS.iter().map(|(operator, _)| *operator).chain(TEMPLATE_OPERATORS);
                let matching = operators.filter(|operator| rest.starts_with(operator));
                (PieceKind::Sign, matching.map(str::len).max().unwrap_or(c.len_utf8()))
            }
        };
        pieces.push(TagPiece { kind, span: at..at + length });
        at += length;
    }
}

/// The length of a text in straight quotes, including the quotes.
fn straight_quote_length(rest: &str, quote: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    loop {
        match characters.next()? {
            (at, c) if c == quote => return Some(at + c.len_utf8()),
            (_, '\\') => drop(characters.next()),
            _ => {}
        }
    }
}

/// The length of a text in curly quotes, including the quotes, if the text ends within the tag.
fn curly_quote_length(rest: &str, quote: char, end: &str) -> Option<usize> {
    let closing = if "‘’‚".contains(quote) { "’‘'" } else { "”“»\"" };
    let tag = &rest[..rest.find(end)?];
    let inner = tag.char_indices().skip(1);
    inner.filter(|(_, c)| closing.contains(*c)).map(|(at, c)| at + c.len_utf8()).next()
}

/// Whether a character is a blank that tera does not skip.
fn is_non_ascii_blank(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::names;

    fn find_slips(source: &str) -> (Vec<String>, String) {
        let slips = SyntaxSlips::find(source, &names());
        let reported = slips.slips.iter().map(|slip| format!("{}; {}", slip.message, slip.help)).collect();
        (reported, slips.apply_corrections(source))
    }

    #[test]
    fn all_slips_are_found_and_corrected() {
        let table = [
            (
                "{% if code = 'x' %}a{% elseif code==='y' && shop %}b{% end if %}",
                "{% if code == 'x' %}a{% elif code=='y' and shop %}b{% endif %}",
                4 + 1,
            ),
            (
                "{{ code | default(value=“friend”, boolean=true) }}",
                "{{ code | default(value=\"friend\", boolean=true) }}",
                1,
            ),
            ("{% if code != ‘’ %}x{% endif %}", "{% if code != '' %}x{% endif %}", 1),
            ("{{\u{a0}code\u{a0}}}", "{{ code }}", 1),
            ("{{ cоde }}", "{{ code }}", 1),
            ("{{ code = 'x' AND Note IS NOT NULL }}", "{{ code == 'x' and Note != '' }}", 3),
            ("{{ code <> 'x' OR NOT (Note IS NULL) }}", "{{ code != 'x' or not (Note == '') }}", 4),
            ("{% if !code||Note %}x{% endif %}", "{% if not code or Note %}x{% endif %}", 2),
            ("{% IF code %}x{% ELSE %}y{% end %}", "{% if code %}x{% else %}y{% endif %}", 3),
            ("{% if code %}x{% else if Note %}y{% /if %}", "{% if code %}x{% elif Note %}y{% endif %}", 2),
            ("{% set a = code = 'x' %}", "{% set a = code == 'x' %}", 1),
            ("{% if code == Київ %}x{% endif %}", "{% if code == \"Київ\" %}x{% endif %}", 1),
            ("{{ code = Біла Церква }}", "{{ code == \"Біла Церква\" }}", 2),
        ];
        for (source, corrected, count) in table {
            let (reported, result) = find_slips(source);
            assert_eq!((result.as_str(), reported.len()), (corrected, count), "{source}: {reported:?}");
        }
        assert!(find_slips("{{ cоde }}").0[0].contains("Cyrillic letter `о`"));
        assert!(find_slips("{% if code LIKE 'x%' %}").0[0].contains("containing"));
    }

    #[test]
    fn valid_syntax_is_not_a_slip() {
        for source in [
            "plain = text && “quotes” {# {{ a = b }} “ #}",
            "{% set a = 'x' %}{{ a }}",
            "{{ code | default(value='a = b && c', boolean=true) }}",
            "{% if code == 'x' and not (Note != '') or code is defined %}x{% elif Note %}y{% else %}z{% endif %}",
            "{% raw %}{{ a = b }}{% endraw %}{{ code | round(method=\"ceil\", precision=1) }}",
            "{% for a in code | split(pat=',') %}{{ a }}{% endfor %}{% include 'x' %}",
            "{{ recipient[\"Ім'я\"] }}{{- 'місто' ~ \"«»\" -}}",
            "{{ імʼя }}",
            "{{ code! }}{% endFoo %}",
        ] {
            assert_eq!(find_slips(source), (Vec::new(), source.to_owned()), "{source}");
        }
        for unclosed in ["{{ code = '", "{{ “", "{% if a =", "{", "{%", "{{ Ім'я }}"] {
            assert_eq!(find_slips(unclosed).1, unclosed, "{unclosed}");
        }
    }

    #[test]
    fn corrected_positions_map_to_the_source() {
        let source = "{{ code = 'x' && Note < 5 }}";
        let slips = SyntaxSlips::find(source, &names());
        let corrected = slips.apply_corrections(source);
        let place = |word: &str| slips.original_offset(corrected.find(word).unwrap());
        for word in ["code", "'x'", "Note", "5", "}}"] {
            assert_eq!(Some(place(word)), source.find(word), "{word}");
        }
        assert_eq!(Some(place("and")), source.find("&&"));
    }
}
