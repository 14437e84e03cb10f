//! Reading texts and the texts that they include: what one text alone shows.
//!
//! Every text is read by tera once, by itself, so that each tells its own first mistake in grammar;
//! what its names mean is not judged here.

use std::collections::BTreeMap;
use std::ops::Range;

use tera::{ErrorKind, Tera};

use super::engine::{FILTERS, FUNCTIONS, MAX_STEPS, TESTS, WEB_FILTERS};
use super::lex::tokens;
use super::names::Names;
use super::outline::{Event, Outline, What};
use super::problem::TextProblem;
use super::slips::{Slip, Slips};
use super::words;
use crate::domain::Text;
use crate::finding::{Rule, did_you_mean, rules};

/// The longest source in bytes.
const MAX_SOURCE: usize = 64 * 1024;
/// The most texts that are included in all.
const MAX_LOADED: usize = 16;
/// The most `elif` of a text and the deepest nesting of its blocks; tera recurses over both.
const MAX_ELIFS: usize = 100;
const MAX_BLOCK_DEPTH: usize = 4;
/// Bytes of plain text that cost as much as one token.
const BYTES_PER_STEP: usize = 64;

/// The most bytes in which tera may repeat a source: once for each name of a text, filter, test or function in it.
const MAX_REPEATED: usize = 8 << 20;

/// The name of the current-day function in other languages.
const CLOCKS: [&str; 9] =
    ["now", "date", "today", "curdate", "current_date", "current_timestamp", "getdate", "datetime", "time"];
const OF_TODAY: &str = "for the day of the run, write `{{ today }}`, or `{{ today | date }}` for a date with \
    the name of the month";

/// Finds a text by the name in `include` or `extends`, or says why it cannot.
pub(super) type Load<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// A text that has been read.
#[derive(Clone, Debug)]
pub(super) struct Analysis {
    pub(super) text: Text,
    pub(super) outline: Outline,
    /// The steps of the text without the rounds of its loops, with all that it includes.
    pub(super) steps: usize,
}

/// The texts that were read for `include` and `extends`, and what is wrong with any text so far.
pub(super) struct Library<'l> {
    load: &'l mut Load<'l>,
    names: &'l Names,
    pub(super) loaded: BTreeMap<String, Analysis>,
    pub(super) problems: Vec<TextProblem>,
}

/// Why a text cannot be included.
struct Unavailable {
    rule: &'static Rule,
    message: String,
}

impl Unavailable {
    fn new(rule: &'static Rule, message: String) -> Self {
        Self { rule, message }
    }
}

impl<'l> Library<'l> {
    pub(super) fn new(load: &'l mut Load<'l>, names: &'l Names) -> Self {
        Self { load, names, loaded: BTreeMap::new(), problems: Vec::new() }
    }

    /// Reads a text and all that it includes; nothing when its grammar is wrong.
    pub(super) fn read(&mut self, text: &Text) -> Option<Analysis> {
        self.read_within(text, &mut Vec::new())
    }

    /// The steps of a stretch of `outline`, which has so many `tokens` and `bytes` and these events.
    pub(super) fn steps(&self, outline: &Outline, tokens: usize, bytes: usize, events: Range<usize>) -> usize {
        let of = |name: &str| self.loaded.get(name).map_or(0, |text| text.steps);
        let parent = outline.parent().map_or(0, of);
        let events = outline.events[events].iter().map(|event| match &event.what {
            What::Include(name) | What::Extends(name) => of(name),
            What::Function(name) if name == "super" => parent,
            _ => 0,
        });
        events.fold(tokens + bytes / BYTES_PER_STEP, usize::saturating_add)
    }

    /// `chain` holds the names of the texts that are being read, the outermost first.
    fn read_within(&mut self, text: &Text, chain: &mut Vec<String>) -> Option<Analysis> {
        let outline = match read_alone(text, self.names) {
            Ok(outline) => outline,
            Err(problems) => {
                self.problems.extend(problems);
                return None;
            }
        };
        self.problems.extend(outline.events.iter().filter_map(|event| unsupported(text, event)));
        for (name, span) in outline.loads() {
            if let Err(Unavailable { rule, message }) = self.fetch(name, chain) {
                self.problems.push(TextProblem::new(&text.name, &text.source, span, rule, message));
            }
        }
        let steps = self.steps(&outline, outline.tokens, text.source.len(), 0..outline.events.len());
        if steps > MAX_STEPS {
            let message = "the template and the templates that it includes have too many tags".to_owned();
            self.problems.push(TextProblem::new(&text.name, &text.source, 0..0, &rules::TEXT_TOO_LONG, message));
        }
        self.problems.extend(self.unknown_blocks(text, &outline));
        Some(Analysis { text: text.clone(), outline, steps })
    }

    fn fetch(&mut self, name: &str, chain: &mut Vec<String>) -> Result<(), Unavailable> {
        if chain.iter().any(|open| open == name) {
            let way = chain.iter().map(|open| format!("`{open}`")).collect::<Vec<_>>().join(", then ");
            return Err(Unavailable::new(
                &rules::INCLUDE_CYCLE,
                format!("`{name}` includes itself: {way}, then `{name}`"),
            ));
        }
        if self.loaded.contains_key(name) {
            return Ok(());
        }
        if name.chars().any(char::is_control) {
            return Err(Unavailable::new(
                &rules::MISSING_INCLUDE,
                "the name of an included template contains a control character".to_owned(),
            ));
        }
        if self.loaded.len() + chain.len() >= MAX_LOADED {
            return Err(Unavailable::new(
                &rules::TEXT_TOO_LONG,
                format!("more than {MAX_LOADED} templates are included"),
            ));
        }
        let source = (self.load)(name)
            .map_err(|why| Unavailable::new(&rules::MISSING_INCLUDE, format!("cannot include `{name}`: {why}")))?;
        chain.push(name.to_owned());
        let analysis = self.read_within(&Text { name: name.to_owned(), source }, chain);
        chain.pop();
        self.loaded.extend(analysis.map(|analysis| (name.to_owned(), analysis)));
        Ok(())
    }

    /// Outermost blocks of a child that its parents do not have: nobody would see them.
    fn unknown_blocks(&self, text: &Text, outline: &Outline) -> Vec<TextProblem> {
        let blocks = |outline: &Outline| {
            let block =
                |event: &Event| if let What::Block { name, .. } = &event.what { Some(name.clone()) } else { None };
            outline.events.iter().filter_map(block).collect::<Vec<_>>()
        };
        let mut known = Vec::new();
        let mut parent = outline.parent();
        // The count ends a circle of parents, which is told elsewhere.
        for _ in 0..MAX_LOADED {
            let Some(analysis) = parent.and_then(|name| self.loaded.get(name)) else { break };
            known.extend(blocks(&analysis.outline));
            parent = analysis.outline.parent();
        }
        if outline.parent().is_none_or(|name| !self.loaded.contains_key(name)) {
            return Vec::new();
        }
        let unknown = |event: &Event| match &event.what {
            What::Block { name, outermost: true } if !known.contains(name) => {
                let message = format!("none of the parent templates has a block `{name}`");
                let help =
                    did_you_mean(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
                Some(
                    TextProblem::new(&text.name, &text.source, event.span.clone(), &rules::UNKNOWN_BLOCK, message)
                        .help(help),
                )
            }
            _ => None,
        };
        outline.events.iter().filter_map(unknown).collect()
    }
}

/// Reads a text by itself.
fn read_alone(text: &Text, names: &Names) -> Result<Outline, Vec<TextProblem>> {
    let outline = outline_within_bounds(&text.source)
        .map_err(|message| vec![TextProblem::new(&text.name, &text.source, 0..0, &rules::TEXT_TOO_LONG, message)])?;
    // Other errors are about names, which are judged against more than tera knows.
    match wrong_grammar(&text.name, &text.source, names) {
        None => Ok(outline),
        Some(wrong) => Err(grammar_problems(text, names, wrong)),
    }
}

/// The outline of a source that tera can read without exhausting the machine, or how it is too long.
fn outline_within_bounds(source: &str) -> Result<Outline, String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("the template has {} bytes, but at most {MAX_SOURCE} are allowed", source.len()));
    }
    let outline = Outline::of(&tokens(source));
    if outline.elifs > MAX_ELIFS || outline.block_depth > MAX_BLOCK_DEPTH {
        return Err(format!(
            "the template has more than {MAX_ELIFS} `elif` tags, or more than {MAX_BLOCK_DEPTH} \
            levels of nested blocks"
        ));
    }
    let named = |event: &&Event| {
        matches!(event.what, What::Include(_) | What::Extends(_) | What::Filter(_) | What::Test(_) | What::Function(_))
    };
    if outline.events.iter().filter(named).count() * source.len() > MAX_REPEATED {
        return Err(format!("the template is too large ({} bytes) for the number of tags in it", source.len()));
    }
    Ok(outline)
}

/// The first mistake in the grammar of a source: its bytes, what is wrong, and what to do.
struct WrongGrammar {
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

fn wrong_grammar(name: &str, source: &str, names: &Names) -> Option<WrongGrammar> {
    let error = Tera::new().add_raw_template(name, source).err()?;
    let ErrorKind::SyntaxError(report) = error.kind() else { return None };
    let (message, help) = words::syntax(report, source, names);
    Some(WrongGrammar { span: words::span(report), message, help })
}

/// The mistakes in the grammar of a text: all slips, and the first other one.
fn grammar_problems(text: &Text, names: &Names, first: WrongGrammar) -> Vec<TextProblem> {
    let slips = Slips::of(&text.source, names);
    let rest = if slips.slips.is_empty() {
        Some(first)
    } else {
        let place = |wrong: WrongGrammar| {
            let span = slips.original(wrong.span.start)..slips.original(wrong.span.end);
            WrongGrammar { span, ..wrong }
        };
        // Tera read the text only up to its first slip, so the rest has not been checked for size.
        let corrected = slips.corrected(&text.source);
        let wrong = outline_within_bounds(&corrected).ok().and_then(|_| wrong_grammar(&text.name, &corrected, names));
        wrong.map(place)
    };
    let rest = rest.filter(|wrong| !slips.stand_at(&wrong.span));
    let slips = slips.slips.into_iter().map(|Slip { span, message, help }| (span, message, Some(help)));
    let rest = rest.map(|WrongGrammar { span, message, help }| (span, message, help));
    let problem = |(span, message, help): (Range<usize>, String, Option<String>)| {
        TextProblem::new(&text.name, &text.source, span, &rules::TEXT_SYNTAX, message).help(help)
    };
    slips.chain(rest).map(problem).collect()
}

/// What a text asks of the language that messages do not have.
fn unsupported(text: &Text, event: &Event) -> Option<TextProblem> {
    let problem = |rule, message| TextProblem::new(&text.name, &text.source, event.span.clone(), rule, message);
    let unknown = |rule, kind: &str, name: &str, known: &[&str]| {
        // `uppercase` for `upper`, `length_of` for `length`.
        let longer = known
            .iter()
            .copied()
            .filter(|known| known.len() > 3 && name.starts_with(known))
            .max_by_key(|known| known.len());
        let is_clock = kind == "function" && CLOCKS.contains(&name.to_lowercase().as_str());
        let help = match did_you_mean(name, known.iter().copied()).or(longer) {
            _ if is_clock => OF_TODAY.to_owned(),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of the available {kind}s: {}", known.join(", ")),
        };
        Some(problem(rule, format!("unknown {kind} `{name}`")).help(help))
    };
    match &event.what {
        What::Filter(name) if WEB_FILTERS.contains(&name.as_str()) => {
            let help = "remove the filter; messages need no escaping".to_owned();
            Some(
                problem(
                    &rules::UNKNOWN_FILTER,
                    format!("the filter `{name}` is for web pages, but a message is plain text"),
                )
                .help(help),
            )
        }
        What::Filter(name) if !FILTERS.contains(&name.as_str()) => {
            unknown(&rules::UNKNOWN_FILTER, "filter", name, &FILTERS)
        }
        What::Test(name) if !TESTS.contains(&name.as_str()) => unknown(&rules::UNKNOWN_TEST, "test", name, &TESTS),
        What::Function(name) if !FUNCTIONS.contains(&name.as_str()) => {
            unknown(&rules::UNKNOWN_FUNCTION, "function", name, &FUNCTIONS)
        }
        What::StraySuper => Some(problem(
            &rules::UNKNOWN_FUNCTION,
            "`super()` can be used only in a block, where it inserts the parent's block".to_owned(),
        )),
        What::Unsupported(what) => {
            let help = "use `for`, `if`, `set` or `include` instead".to_owned();
            Some(problem(&rules::UNSUPPORTED, format!("templates do not support {what}")).help(help))
        }
        _ => None,
    }
}
