//! Loading texts and their includes, and metering their steps.
//!
//! Tera first parses every text on its own, so that each reports its own first syntax error. Other modules check names.
//! For metering, each `{% for … %}` gets a call that spends the steps of an iteration. Each value that is set passes
//! through a filter that rejects long values. The output stays the same.

use std::collections::BTreeMap;
use std::ops::Range;

use tera::{Error, ErrorKind, Tera};

use super::TextProblem;
use super::engine::{FILTERS, FUNCTIONS, KEEP, MAX_STEPS, ROUND, TESTS, WEB_FILTERS};
use super::names::TemplateNames;
use super::outline::{Outline, OutlineAction, OutlineEvent, SetValue};
use super::slips::{SyntaxSlip, SyntaxSlips};
use super::syntax_errors;
use super::tokens::tokenize;
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::{Rule, did_you_mean, rules};

/// The maximum size of a source in bytes.
const MAX_SOURCE_BYTES: usize = 64 * 1024;
/// The maximum number of included texts.
const MAX_LOADED: usize = 16;
/// The maximum number of `elif` tags in a text. Tera recurses over them, so more could overflow the stack.
const MAX_ELIFS: usize = 100;
/// The maximum nesting depth of blocks in a text. Tera recurses over them as well.
const MAX_BLOCK_DEPTH: usize = 4;
/// Bytes of plain text that cost as much as one token.
const BYTES_PER_TOKEN: usize = 64;

/// The maximum number of bytes that tera can copy: it copies a source once for each name in the source.
const MAX_REPEATED: usize = 8 << 20;

/// The names of functions for the current date or time in other languages.
const CLOCK_FUNCTIONS: [&str; 9] =
    ["now", "date", "today", "curdate", "current_date", "current_timestamp", "getdate", "datetime", "time"];
const TODAY_HELP: &str =
    "for the date of the run, write `{{ today }}`, or `{{ today | date }}` for a date with the month name";

/// A function that returns the text that `include` or `extends` names, or the reason why the text cannot be loaded.
pub(super) type TextLoader<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// A parsed text.
#[derive(Clone, Debug)]
pub(super) struct TemplateAnalysis {
    pub(super) text: NamedTemplate,
    pub(super) outline: Outline,
    /// The steps of the text and of the texts that it includes, with one round of each loop.
    pub(super) steps: usize,
}

/// The texts that were loaded for `include` and `extends`, and all problems so far.
pub(super) struct TemplateLibrary<'l> {
    load: &'l mut TextLoader<'l>,
    names: &'l TemplateNames,
    pub(super) loaded: BTreeMap<String, TemplateAnalysis>,
    pub(super) problems: Vec<TextProblem>,
}

/// The reason why a text cannot be included.
struct IncludeError {
    rule: &'static Rule,
    message: String,
}

impl IncludeError {
    fn new(rule: &'static Rule, message: String) -> Self {
        Self { rule, message }
    }
}

impl<'l> TemplateLibrary<'l> {
    pub(super) fn new(load: &'l mut TextLoader<'l>, names: &'l TemplateNames) -> Self {
        Self { load, names, loaded: BTreeMap::new(), problems: Vec::new() }
    }

    /// Parses a text with its includes. `None` if the syntax of the text is wrong.
    pub(super) fn read_text(&mut self, text: &NamedTemplate) -> Option<TemplateAnalysis> {
        self.read_included(text, &mut Vec::new())
    }

    /// The cost in steps of a part of `outline`, given the number of its tokens and bytes and the range of its events.
    pub(super) fn count_steps(&self, outline: &Outline, tokens: usize, bytes: usize, events: Range<usize>) -> usize {
        let steps_of = |name: &str| self.loaded.get(name).map_or(0, |text| text.steps);
        let parent = outline.find_parent().map_or(0, steps_of);
        let events = outline.events[events].iter().map(|event| match &event.action {
            OutlineAction::Include(name) | OutlineAction::Extends(name) => steps_of(name),
            OutlineAction::Function(name) if name == "super" => parent,
            _ => 0,
        });
        events.fold(tokens + bytes / BYTES_PER_TOKEN, usize::saturating_add)
    }

    /// Parses a text and the texts that it includes. `chain` contains the names of the texts being read, the outermost
    /// first.
    fn read_included(&mut self, text: &NamedTemplate, chain: &mut Vec<String>) -> Option<TemplateAnalysis> {
        let outline = match read_outline(text, self.names) {
            Ok(outline) => outline,
            Err(problems) => {
                self.problems.extend(problems);
                return None;
            }
        };
        self.problems.extend(outline.events.iter().filter_map(|event| check_supported(text, event)));
        for (name, span) in outline.find_loaded_texts() {
            if let Err(IncludeError { rule, message }) = self.load_include(name, chain) {
                self.problems.push(TextProblem::new(&text.name, &text.source, span, rule, message));
            }
        }
        let steps = self.count_steps(&outline, outline.tokens, text.source.len(), 0..outline.events.len());
        if steps > MAX_STEPS {
            let message = "the template and the templates that it includes have too many tags".to_owned();
            self.problems.push(TextProblem::new(&text.name, &text.source, 0..0, &rules::TEXT_TOO_LONG, message));
        }
        self.problems.extend(self.find_unknown_blocks(text, &outline));
        Some(TemplateAnalysis { text: text.clone(), outline, steps })
    }

    fn load_include(&mut self, name: &str, chain: &mut Vec<String>) -> Result<(), IncludeError> {
        if chain.iter().any(|open| open == name) {
            let path = chain.iter().map(|open| format!("`{open}`")).collect::<Vec<_>>().join(", then ");
            return Err(IncludeError::new(
                &rules::INCLUDE_CYCLE,
                format!("`{name}` includes itself: {path}, then `{name}`"),
            ));
        }
        if self.loaded.contains_key(name) {
            return Ok(());
        }
        if name.chars().any(char::is_control) {
            return Err(IncludeError::new(
                &rules::MISSING_INCLUDE,
                "the name of an included template contains a control character".to_owned(),
            ));
        }
        if self.loaded.len() + chain.len() >= MAX_LOADED {
            return Err(IncludeError::new(
                &rules::TEXT_TOO_LONG,
                format!("more than {MAX_LOADED} templates are included"),
            ));
        }
        let source = (self.load)(name).map_err(|reason| {
            IncludeError::new(&rules::MISSING_INCLUDE, format!("cannot include `{name}`: {reason}"))
        })?;
        chain.push(name.to_owned());
        let analysis = self.read_included(&NamedTemplate { name: name.to_owned(), source }, chain);
        chain.pop();
        self.loaded.extend(analysis.map(|analysis| (name.to_owned(), analysis)));
        Ok(())
    }

    /// The problems with outermost blocks of a child that no parent has, which would therefore never be shown.
    fn find_unknown_blocks(&self, text: &NamedTemplate, outline: &Outline) -> Vec<TextProblem> {
        let blocks = |outline: &Outline| {
            let block = |event: &OutlineEvent| {
                if let OutlineAction::Block { name, .. } = &event.action { Some(name.clone()) } else { None }
            };
            outline.events.iter().filter_map(block).collect::<Vec<_>>()
        };
        let mut known = Vec::new();
        let mut parent = outline.find_parent();
        // The limit ends a cycle of parents, which is reported elsewhere.
        for _ in 0..MAX_LOADED {
            let Some(analysis) = parent.and_then(|name| self.loaded.get(name)) else { break };
            known.extend(blocks(&analysis.outline));
            parent = analysis.outline.find_parent();
        }
        if outline.find_parent().is_none_or(|name| !self.loaded.contains_key(name)) {
            return Vec::new();
        }
        let unknown = |event: &OutlineEvent| match &event.action {
            OutlineAction::Block { name, outermost: true } if !known.contains(name) => {
                let message = format!("none of the parent templates has a `{name}` block");
                let help =
                    did_you_mean(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
                Some(
                    TextProblem::new(&text.name, &text.source, event.span.clone(), &rules::UNKNOWN_BLOCK, message)
                        .with_help(help),
                )
            }
            _ => None,
        };
        outline.events.iter().filter_map(unknown).collect()
    }
}

/// Parses a single text without its includes.
fn read_outline(text: &NamedTemplate, names: &TemplateNames) -> Result<Outline, Vec<TextProblem>> {
    let outline = build_bounded_outline(&text.source)
        .map_err(|message| vec![TextProblem::new(&text.name, &text.source, 0..0, &rules::TEXT_TOO_LONG, message)])?;
    // Other errors concern names, which our own check explains better than tera does.
    match find_grammar_error(&text.name, &text.source, names) {
        None => Ok(outline),
        Some(error) => Err(list_grammar_problems(text, names, error)),
    }
}

/// Builds the outline of a source, or returns the limit that the source exceeds.
fn build_bounded_outline(source: &str) -> Result<Outline, String> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(format!("the template is {} bytes long, but at most {MAX_SOURCE_BYTES} are allowed", source.len()));
    }
    let outline = Outline::from_tokens(&tokenize(source));
    if outline.elifs > MAX_ELIFS || outline.block_depth > MAX_BLOCK_DEPTH {
        return Err(format!(
            "the template has more than {MAX_ELIFS} `elif` tags, or more than {MAX_BLOCK_DEPTH} \
            levels of nested blocks"
        ));
    }
    let named = |event: &&OutlineEvent| {
        matches!(
            event.action,
            OutlineAction::Include(_)
                | OutlineAction::Extends(_)
                | OutlineAction::Filter(_)
                | OutlineAction::Test(_)
                | OutlineAction::Function(_)
        )
    };
    if outline.events.iter().filter(named).count() * source.len() > MAX_REPEATED {
        return Err(format!("the template is too large ({} bytes) for the number of tags in it", source.len()));
    }
    Ok(outline)
}

/// The first syntax error of a source.
struct GrammarError {
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

fn find_grammar_error(name: &str, source: &str, names: &TemplateNames) -> Option<GrammarError> {
    let error = Tera::new().add_raw_template(name, source).err()?;
    let ErrorKind::SyntaxError(report) = error.kind() else { return None };
    let (message, help) = syntax_errors::explain_syntax(report, source, names);
    Some(GrammarError { span: syntax_errors::error_span(report), message, help })
}

/// The syntax errors of a text: all slips, and the first error that is not a slip.
fn list_grammar_problems(text: &NamedTemplate, names: &TemplateNames, first: GrammarError) -> Vec<TextProblem> {
    let slips = SyntaxSlips::find(&text.source, names);
    let rest = if slips.slips.is_empty() {
        Some(first)
    } else {
        let place = |error: GrammarError| {
            let span = slips.original_offset(error.span.start)..slips.original_offset(error.span.end);
            GrammarError { span, ..error }
        };
        // Tera parsed the text only up to the first mistake, so the size of the rest has not been checked yet.
        let corrected = slips.apply_corrections(&text.source);
        let error =
            build_bounded_outline(&corrected).ok().and_then(|_| find_grammar_error(&text.name, &corrected, names));
        error.map(place)
    };
    let rest = rest.filter(|error| !slips.cover_start_of(&error.span));
    let slips = slips.slips.into_iter().map(|SyntaxSlip { span, message, help }| (span, message, Some(help)));
    let rest = rest.map(|GrammarError { span, message, help }| (span, message, help));
    let problem = |(span, message, help): (Range<usize>, String, Option<String>)| {
        TextProblem::new(&text.name, &text.source, span, &rules::TEXT_SYNTAX, message).with_help(help)
    };
    slips.chain(rest).map(problem).collect()
}

/// Returns a problem if the event uses something that messages do not support.
fn check_supported(text: &NamedTemplate, event: &OutlineEvent) -> Option<TextProblem> {
    let problem = |rule, message| TextProblem::new(&text.name, &text.source, event.span.clone(), rule, message);
    let unknown = |rule, kind: &str, name: &str, known: &[&str]| {
        // A longer form of a known name, such as `uppercase` for `upper` or `length_of` for `length`.
        let longer = known
            .iter()
            .copied()
            .filter(|known| known.len() > 3 && name.starts_with(known))
            .max_by_key(|known| known.len());
        let is_clock = kind == "function" && CLOCK_FUNCTIONS.contains(&name.to_lowercase().as_str());
        let help = match did_you_mean(name, known.iter().copied()).or(longer) {
            _ if is_clock => TODAY_HELP.to_owned(),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of the available {kind}s: {}", known.join(", ")),
        };
        Some(problem(rule, format!("unknown {kind} `{name}`")).with_help(help))
    };
    match &event.action {
        OutlineAction::Filter(name) if WEB_FILTERS.contains(&name.as_str()) => {
            let help = "remove the filter; messages need no escaping".to_owned();
            Some(
                problem(
                    &rules::UNKNOWN_FILTER,
                    format!("the filter `{name}` is for web pages, but a message is plain text"),
                )
                .with_help(help),
            )
        }
        OutlineAction::Filter(name) if !FILTERS.contains(&name.as_str()) => {
            unknown(&rules::UNKNOWN_FILTER, "filter", name, &FILTERS)
        }
        OutlineAction::Test(name) if !TESTS.contains(&name.as_str()) => {
            unknown(&rules::UNKNOWN_TEST, "test", name, &TESTS)
        }
        OutlineAction::Function(name) if !FUNCTIONS.contains(&name.as_str()) => {
            unknown(&rules::UNKNOWN_FUNCTION, "function", name, &FUNCTIONS)
        }
        OutlineAction::StraySuper => Some(problem(
            &rules::UNKNOWN_FUNCTION,
            "`super()` can be used only in a block, where it inserts the content of the parent block".to_owned(),
        )),
        OutlineAction::Unsupported(construct) => {
            let help = "use `for`, `if`, `set` or `include` instead".to_owned();
            Some(problem(&rules::UNSUPPORTED, format!("templates do not support {construct}")).with_help(help))
        }
        _ => None,
    }
}

/// A source with inserted calls that count its steps.
#[derive(Clone, Debug)]
pub(super) struct MeteredSource {
    pub(super) source: String,
    /// The byte positions in the author's source at which text was inserted, each with the length of that text.
    inserted: Vec<(usize, usize)>,
}

impl MeteredSource {
    /// The metered source of a text.
    pub(super) fn from_analysis(analysis: &TemplateAnalysis, library: &TemplateLibrary<'_>) -> Self {
        let outline = &analysis.outline;
        let mut pieces = Vec::new();
        for round in &outline.loops {
            let steps = library.count_steps(outline, round.tokens, round.body.len(), round.events.clone());
            let dash = if round.trims { "-" } else { "" };
            pieces.push((round.body.start, format!("{{{{ {ROUND}(cost={}) {dash}}}}}", steps.max(1))));
        }
        for set_value in &outline.set_values {
            match set_value {
                SetValue::Value(value) => {
                    pieces.push((value.start, "(".to_owned()));
                    pieces.push((value.end, format!(")|{KEEP}")));
                }
                SetValue::Block(at) => pieces.push((*at, format!("|{KEEP}"))),
            }
        }
        pieces.sort_by_key(|(at, _)| *at);
        let (mut source, mut copied) = (String::new(), 0);
        for (at, piece) in &pieces {
            source.push_str(&analysis.text.source[copied..*at]);
            source.push_str(piece);
            copied = *at;
        }
        source.push_str(&analysis.text.source[copied..]);
        Self { source, inserted: pieces.into_iter().map(|(at, piece)| (at, piece.len())).collect() }
    }

    /// The offset in the author's source that corresponds to an offset in the metered source.
    pub(super) fn original_offset(&self, offset: usize) -> usize {
        let mut before = 0;
        for &(at, length) in &self.inserted {
            if offset < at + before {
                break;
            }
            if offset < at + before + length {
                return at;
            }
            before += length;
        }
        offset - before
    }
}

/// A compiled text.
#[derive(Clone, Debug)]
pub(super) struct MeteredText {
    pub(super) text: NamedTemplate,
    pub(super) metered: MeteredSource,
}

/// All compiled texts by their template key.
pub(super) type MeteredTexts = BTreeMap<String, MeteredText>;

/// The template key of the text with this index. No included text can have such a key.
pub(super) fn template_key(index: usize) -> String {
    format!("\0{index}")
}

/// The text and the bytes that an error refers to, if the error names a text.
pub(super) fn error_place<'s>(error: &Error, metered: &'s MeteredTexts) -> Option<(&'s NamedTemplate, Range<usize>)> {
    let (ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report)) = error.kind() else { return None };
    let text = metered.get(report.filename())?;
    let Range { start, end } = report.span().range;
    Some((&text.text, text.metered.original_offset(start)..text.metered.original_offset(end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::names::TemplateNames;
    use campaign_core::domain::NamedTemplate;

    #[test]
    fn metered_source_maps_back_to_the_original() {
        let source = "{% set a = b -%} {% for c in a -%} x{{ c }}{% endfor %}{% set d %}e{% endset %}é";
        let (names, mut load) = (TemplateNames::default(), |_: &str| Err(String::new()));
        let mut library = TemplateLibrary::new(&mut load, &names);
        let analysis = library.read_text(&NamedTemplate { name: "t".into(), source: source.into() }).unwrap();
        let metered = MeteredSource::from_analysis(&analysis, &library);
        let expected = "{% set a =( b )|__kept-%} {% for c in a -%}{{ __round(cost=3) -}} x{{ c }}{% endfor %}\
                        {% set d |__kept%}e{% endset %}é";
        assert_eq!(metered.source, expected);
        for word in ["set a", "b ", "c in", "x{{", "endfor", "set d", "endset", "é"] {
            let (from, to) = (metered.source.find(word).unwrap(), source.find(word).unwrap());
            assert_eq!(metered.original_offset(from), to, "{word}");
        }
    }
}
