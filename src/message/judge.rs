//! Compares what texts use with the names there are.
//!
//! The order of a text counts: a variable that it sets is known after that, and one of a loop only
//! within it. An included text sees the variables at the place where it is included.

use crate::finding::{Rule, did_you_mean, join_names, rules};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::engine::{MAX_BYTES, MAX_STEPS};
use super::library::{TemplateAnalysis, TemplateLibrary};
use super::names::{NameMeaning, NameScope, TemplateNames};
use super::outline::{OutlineAction, OutlineEvent, TableLookup, VariableUse};
use super::problem::TextProblem;

/// What has to be at hand when texts are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TemplateNeeds {
    /// Columns that are used by their bare names.
    pub(super) columns: BTreeSet<usize>,
    /// Columns that are used as `recipient["Header"]`.
    pub(super) headers: BTreeSet<usize>,
    /// Whether `recipient` is used with a key that is not known before, so that it needs all.
    pub(super) all_headers: bool,
    /// Vars, by their index.
    pub(super) vars: BTreeSet<usize>,
    /// Tables, by their index.
    pub(super) tables: BTreeSet<usize>,
    /// Whether `row` is used.
    pub(super) row: bool,
}

/// See the module.
pub(super) struct NameChecker<'j> {
    names: &'j TemplateNames,
    library: &'j TemplateLibrary<'j>,
    reach: NameScope,
    pub(super) needs: TemplateNeeds,
    pub(super) problems: Vec<TextProblem>,
}

/// What is wrong with a use of a name.
struct NameProblem {
    rule: &'static Rule,
    message: String,
    help: Option<String>,
}

impl NameProblem {
    fn new(rule: &'static Rule, message: String, help: Option<String>) -> Self {
        Self { rule, message, help }
    }
}

/// Variables that a text defined so far; one set for the text and one for each open loop.
type Scopes = Vec<HashSet<String>>;

impl<'j> NameChecker<'j> {
    pub(super) fn new(names: &'j TemplateNames, library: &'j TemplateLibrary<'j>, reach: NameScope) -> Self {
        Self { names, library, reach, needs: TemplateNeeds::default(), problems: Vec::new() }
    }

    /// Judges a text with everything that it includes.
    pub(super) fn check_text(&mut self, analysis: &TemplateAnalysis) {
        // One that is too long is refused already, and would be walked over and over.
        // What messages do not have may define names that are not seen here.
        let unsupported =
            analysis.outline.events.iter().any(|event| matches!(event.what, OutlineAction::Unsupported(_)));
        if analysis.steps <= MAX_STEPS && !unsupported {
            self.check_within(analysis, HashSet::new(), &mut vec![analysis.text.name.clone()]);
        }
    }

    fn check_within(&mut self, analysis: &TemplateAnalysis, known: HashSet<String>, chain: &mut Vec<String>) {
        let mut scopes: Scopes = vec![known, HashSet::new()];
        // A text that asks whether a name is there may have been written for lists without it.
        let asked: HashSet<&str> = analysis.outline.events.iter().filter_map(asked_name).collect();
        for event in &analysis.outline.events {
            match &event.what {
                OutlineAction::Enter => scopes.push(HashSet::new()),
                OutlineAction::Leave => {
                    scopes.pop();
                }
                OutlineAction::Define { name, global } => {
                    let scope = if *global { scopes.first_mut() } else { scopes.last_mut() };
                    scope.map(|scope| scope.insert(name.clone()));
                }
                OutlineAction::Include(name) => {
                    self.check_include(name, flatten_scopes(&scopes), chain);
                }
                OutlineAction::Extends(name) => {
                    let defined = self.check_include(name, flatten_scopes(&scopes), chain);
                    scopes[0].extend(defined);
                }
                _ => {}
            }
            if let Some(NameProblem { rule, message, help }) = self.check_event(&event.what, &scopes, &asked) {
                let TemplateAnalysis { text, .. } = analysis;
                let help = match help {
                    Some(help) if rule == &rules::UNKNOWN_VARIABLE && is_compared(&text.source, &event.span) => {
                        Some(suggest_quotes(&text.source[event.span.clone()], help))
                    }
                    help => help,
                };
                let problem = TextProblem::new(&text.name, &text.source, event.span.clone(), rule, message);
                self.problems.push(problem.with_help(help));
            }
        }
    }

    /// Judges an included text or a parent; gives the names that it defines for itself.
    fn check_include(&mut self, name: &str, known: HashSet<String>, chain: &mut Vec<String>) -> HashSet<String> {
        let library = self.library;
        // A circle is told where texts are read.
        let Some(analysis) = library.loaded.get(name).filter(|_| !chain.iter().any(|open| open == name)) else {
            return HashSet::new();
        };
        chain.push(name.to_owned());
        self.check_within(analysis, known, chain);
        chain.pop();
        let defined = analysis.outline.events.iter().filter_map(|event| match &event.what {
            OutlineAction::Define { name, .. } => Some(name.clone()),
            _ => None,
        });
        defined.collect()
    }

    /// Notes what is needed, or says what is wrong.
    fn check_event(&mut self, what: &OutlineAction, scopes: &Scopes, asked: &HashSet<&str>) -> Option<NameProblem> {
        let local = |name: &str| scopes.iter().any(|scope| scope.contains(name));
        match what {
            OutlineAction::Use(VariableUse { name, .. })
            | OutlineAction::Ask(name)
            | OutlineAction::Define { name, .. }
                if name.starts_with("__") =>
            {
                let help = Some("use a name that does not start with `__`; these names are reserved".to_owned());
                Some(NameProblem::new(&rules::UNKNOWN_VARIABLE, format!("`{name}` cannot be used"), help))
            }
            OutlineAction::Use(VariableUse { name, .. }) if local(name) => None,
            OutlineAction::Key { .. } | OutlineAction::AnyKey if local("recipient") => None,
            OutlineAction::Use(VariableUse { name, .. })
                if name == "recipient" && self.reach == NameScope::Recipient =>
            {
                let help = Some("select a column: `recipient[\"Header\"]`".to_owned());
                Some(NameProblem::new(
                    &rules::WHOLE_RECIPIENT,
                    "`recipient` is the whole row, so the message would show every cell".to_owned(),
                    help,
                ))
            }
            OutlineAction::Use(VariableUse { name, lookup, .. })
                if self.names.find_table(name, self.reach).is_some() =>
            {
                self.check_lookup(name, lookup.as_ref())
            }
            OutlineAction::Use(VariableUse { name, dotted: true, .. })
                if !self.names.find_meanings(name, self.reach).is_empty() =>
            {
                let help = Some("remove the dot and the part after it".to_owned());
                Some(NameProblem::new(
                    &rules::UNKNOWN_VARIABLE,
                    format!("`{name}` is text, so a dot cannot follow it"),
                    help,
                ))
            }
            OutlineAction::Use(VariableUse { name, optional, .. }) => {
                self.check_variable(name, *optional || asked.contains(name.as_str()))
            }
            OutlineAction::Ask(name) if local(name) => None,
            OutlineAction::Ask(name) => self.check_variable(name, true),
            OutlineAction::Key { .. } | OutlineAction::AnyKey if self.reach == NameScope::Campaign => {
                self.check_variable("recipient", false)
            }
            OutlineAction::Key { key, optional } => self.check_header(key, *optional),
            OutlineAction::AnyKey => {
                self.needs.all_headers = true;
                None
            }
            // Tera would give the child's blocks without the parent around them.
            OutlineAction::Include(name)
                if self.library.loaded.get(name).is_some_and(|text| text.outline.find_parent().is_some()) =>
            {
                let help = Some("include the parent template, or extend it here".to_owned());
                Some(NameProblem::new(
                    &rules::UNSUPPORTED,
                    format!("`{name}` extends another template, so it cannot be included"),
                    help,
                ))
            }
            _ => None,
        }
    }

    fn check_variable(&mut self, name: &str, optional: bool) -> Option<NameProblem> {
        match self.names.find_meanings(name, self.reach).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_name(name, self.reach));
                Some(NameProblem::new(&rules::UNKNOWN_VARIABLE, format!("unknown variable `{name}`"), help))
            }
            [one] => {
                match one {
                    NameMeaning::Column(index) => self.needs.columns.extend([*index]),
                    NameMeaning::Var(index) => self.needs.vars.extend([*index]),
                    NameMeaning::Table(index) => self.needs.tables.extend([*index]),
                    NameMeaning::Ours => self.needs.row |= name == "row",
                }
                None
            }
            // Told once, at the var.
            meanings if meanings.iter().any(|meaning| matches!(meaning, NameMeaning::Var(_))) => None,
            [_, ..] => {
                let help = Some("give the column another name under `columns`".to_owned());
                Some(NameProblem::new(&rules::NAME_CLASH, format!("`{name}` is ambiguous here"), help))
            }
        }
    }

    /// Notes a table that is looked into, or says what is wrong with that.
    fn check_lookup(&mut self, name: &str, lookup: Option<&TableLookup>) -> Option<NameProblem> {
        let index = self.names.find_table(name, self.reach)?;
        self.needs.tables.insert(index);
        let (_, table) = self.names.tables.get(index)?;
        let new = |message: String, help: String| Some(NameProblem::new(&rules::DATA_LOOKUP, message, Some(help)));
        let columns = || table.columns.iter().map(String::as_str);
        let written = format!(
            "write `{name}[COLUMN].{}`, where COLUMN is the list's column that selects the row",
            columns().next_back().unwrap_or("column")
        );
        match lookup {
            None => new(format!("`{name}` is a whole table, so the message would show every row"), written),
            Some(TableLookup { column: None, optional: false, .. }) => new(
                format!("`{name}[…]` is a whole row of the table"),
                format!("{written}; the columns of the table are {}", join_names(columns())),
            ),
            Some(TableLookup { column: Some(column), .. }) if columns().all(|known| known != column) => {
                let help = match did_you_mean(column, columns()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("use one of the columns of the table: {}", join_names(columns())),
                };
                new(format!("the table `{name}` has no column `{column}`"), help)
            }
            Some(TableLookup { key: Some(key), optional: false, .. }) if !table.rows.contains_key(key) => {
                let help = match did_you_mean(key, table.rows.keys().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "add a row to the table, or use another key".to_owned(),
                };
                new(format!("the table `{name}` has no row `{key}`"), help)
            }
            Some(_) => None,
        }
    }

    fn check_header(&mut self, header: &str, optional: bool) -> Option<NameProblem> {
        match self.names.find_columns(header).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_header(header));
                Some(NameProblem::new(&rules::UNKNOWN_COLUMN, format!("no column has the header `{header}`"), help))
            }
            [column] => {
                self.needs.headers.insert(*column);
                None
            }
            [_, ..] => {
                Some(NameProblem::new(&rules::NAME_CLASH, format!("several columns have the header `{header}`"), None))
            }
        }
    }
}

/// Vars that clash with another name, and those that are longer than a message.
pub(super) fn check_vars(names: &TemplateNames, reach: NameScope) -> Vec<TextProblem> {
    let problem = |(name, value): &(String, String)| {
        let new = |rule, message| TextProblem::new(&format!("vars.{name}"), value, 0..value.len(), rule, message);
        let meanings = names.find_meanings(name, reach);
        if let Some(other) = meanings.iter().find(|meaning| !matches!(meaning, NameMeaning::Var(_))) {
            let other = match other {
                NameMeaning::Ours => "a built-in value",
                NameMeaning::Table(_) => "a table",
                NameMeaning::Column(_) | NameMeaning::Var(_) => "a column",
            };
            let help = "rename the constant, or rename the column under `columns`".to_owned();
            return Some(
                new(&rules::NAME_CLASH, format!("`{name}` is the name of a constant and also of {other}"))
                    .with_help(help),
            );
        }
        (value.len() > MAX_BYTES)
            .then(|| new(&rules::TEXT_TOO_LONG, format!("the constant `{name}` is longer than {MAX_BYTES} bytes")))
    };
    names.vars.iter().filter_map(problem).collect()
}

/// Whether the name at those bytes stands behind `==` or `!=`, as a word does that is meant as a text.
fn is_compared(source: &str, span: &Range<usize>) -> bool {
    let before = source[..span.start].trim_end();
    ["==", "!="].iter().any(|sign| before.ends_with(sign))
}

/// The remedy for an unknown name in a comparison; `help` names similar names.
fn suggest_quotes(name: &str, help: String) -> String {
    let quotes = format!("for the text `{name}`, write `'{name}'` in quotes");
    if help.starts_with("use one of these names") {
        format!("{quotes}; otherwise, {help}")
    } else if help.ends_with('?') {
        format!("{help} Or, {quotes}")
    } else {
        format!("{help}; or, {quotes}")
    }
}

fn asked_name(event: &OutlineEvent) -> Option<&str> {
    if let OutlineAction::Ask(name) = &event.what { Some(name) } else { None }
}

/// All names of all scopes.
fn flatten_scopes(scopes: &Scopes) -> HashSet<String> {
    scopes.iter().flatten().cloned().collect()
}
