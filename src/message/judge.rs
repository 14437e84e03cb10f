//! Compares what texts use with the names there are.
//!
//! The order of a text counts: a variable that it sets is known after that, and one of a loop only
//! within it. An included text sees the variables at the place where it is included.

use crate::finding::{Rule, did_you_mean, list_all, rules};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::engine::{MAX_BYTES, MAX_STEPS};
use super::library::{Analysis, Library};
use super::names::{Meaning, Names, Reach};
use super::outline::{Event, Lookup, Use, What};
use super::problem::TextProblem;

/// What has to be at hand when texts are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
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
pub(super) struct Judge<'j> {
    names: &'j Names,
    library: &'j Library<'j>,
    reach: Reach,
    pub(super) needs: Needs,
    pub(super) problems: Vec<TextProblem>,
}

/// What is wrong with a use of a name.
struct Complaint {
    rule: &'static Rule,
    message: String,
    help: Option<String>,
}

impl Complaint {
    fn new(rule: &'static Rule, message: String, help: Option<String>) -> Self {
        Self { rule, message, help }
    }
}

/// Variables that a text defined so far; one set for the text and one for each open loop.
type Scopes = Vec<HashSet<String>>;

impl<'j> Judge<'j> {
    pub(super) fn new(names: &'j Names, library: &'j Library<'j>, reach: Reach) -> Self {
        Self { names, library, reach, needs: Needs::default(), problems: Vec::new() }
    }

    /// Judges a text with everything that it includes.
    pub(super) fn text(&mut self, analysis: &Analysis) {
        // One that is too long is refused already, and would be walked over and over.
        // What messages do not have may define names that are not seen here.
        let unsupported = analysis.outline.events.iter().any(|event| matches!(event.what, What::Unsupported(_)));
        if analysis.steps <= MAX_STEPS && !unsupported {
            self.walk(analysis, HashSet::new(), &mut vec![analysis.text.name.clone()]);
        }
    }

    fn walk(&mut self, analysis: &Analysis, known: HashSet<String>, chain: &mut Vec<String>) {
        let mut scopes: Scopes = vec![known, HashSet::new()];
        // A text that asks whether a name is there may have been written for lists without it.
        let asked: HashSet<&str> = analysis.outline.events.iter().filter_map(asked_name).collect();
        for event in &analysis.outline.events {
            match &event.what {
                What::Enter => scopes.push(HashSet::new()),
                What::Leave => {
                    scopes.pop();
                }
                What::Define { name, global } => {
                    let scope = if *global { scopes.first_mut() } else { scopes.last_mut() };
                    scope.map(|scope| scope.insert(name.clone()));
                }
                What::Include(name) => {
                    self.load(name, all(&scopes), chain);
                }
                What::Extends(name) => {
                    let defined = self.load(name, all(&scopes), chain);
                    scopes[0].extend(defined);
                }
                _ => {}
            }
            if let Some(Complaint { rule, message, help }) = self.wrong(&event.what, &scopes, &asked) {
                let Analysis { text, .. } = analysis;
                let help = match help {
                    Some(help) if rule == &rules::UNKNOWN_VARIABLE && is_compared(&text.source, &event.span) => {
                        Some(in_quotes(&text.source[event.span.clone()], help))
                    }
                    help => help,
                };
                let problem = TextProblem::new(&text.name, &text.source, event.span.clone(), rule, message);
                self.problems.push(problem.help(help));
            }
        }
    }

    /// Judges an included text or a parent; gives the names that it defines for itself.
    fn load(&mut self, name: &str, known: HashSet<String>, chain: &mut Vec<String>) -> HashSet<String> {
        let library = self.library;
        // A circle is told where texts are read.
        let Some(analysis) = library.loaded.get(name).filter(|_| !chain.iter().any(|open| open == name)) else {
            return HashSet::new();
        };
        chain.push(name.to_owned());
        self.walk(analysis, known, chain);
        chain.pop();
        let defined = analysis.outline.events.iter().filter_map(|event| match &event.what {
            What::Define { name, .. } => Some(name.clone()),
            _ => None,
        });
        defined.collect()
    }

    /// Notes what is needed, or says what is wrong.
    fn wrong(&mut self, what: &What, scopes: &Scopes, asked: &HashSet<&str>) -> Option<Complaint> {
        let local = |name: &str| scopes.iter().any(|scope| scope.contains(name));
        match what {
            What::Use(Use { name, .. }) | What::Ask(name) | What::Define { name, .. } if name.starts_with("__") => {
                let help = Some("use a name that does not start with `__`; these names are reserved".to_owned());
                Some(Complaint::new(&rules::UNKNOWN_VARIABLE, format!("`{name}` cannot be used"), help))
            }
            What::Use(Use { name, .. }) if local(name) => None,
            What::Key { .. } | What::AnyKey if local("recipient") => None,
            What::Use(Use { name, .. }) if name == "recipient" && self.reach == Reach::Recipient => {
                let help = Some("select a column: `recipient[\"Header\"]`".to_owned());
                Some(Complaint::new(
                    &rules::WHOLE_RECIPIENT,
                    "`recipient` is the whole row, so the message would show every cell".to_owned(),
                    help,
                ))
            }
            What::Use(Use { name, lookup, .. }) if self.names.table(name, self.reach).is_some() => {
                self.looked_up(name, lookup.as_ref())
            }
            What::Use(Use { name, dotted: true, .. }) if !self.names.meanings(name, self.reach).is_empty() => {
                let help = Some("remove the dot and the part after it".to_owned());
                Some(Complaint::new(
                    &rules::UNKNOWN_VARIABLE,
                    format!("`{name}` is text, so a dot cannot follow it"),
                    help,
                ))
            }
            What::Use(Use { name, optional, .. }) => self.variable(name, *optional || asked.contains(name.as_str())),
            What::Ask(name) if local(name) => None,
            What::Ask(name) => self.variable(name, true),
            What::Key { .. } | What::AnyKey if self.reach == Reach::Campaign => self.variable("recipient", false),
            What::Key { key, optional } => self.header(key, *optional),
            What::AnyKey => {
                self.needs.all_headers = true;
                None
            }
            // Tera would give the child's blocks without the parent around them.
            What::Include(name)
                if self.library.loaded.get(name).is_some_and(|text| text.outline.parent().is_some()) =>
            {
                let help = Some("include the parent template, or extend it here".to_owned());
                Some(Complaint::new(
                    &rules::UNSUPPORTED,
                    format!("`{name}` extends another template, so it cannot be included"),
                    help,
                ))
            }
            _ => None,
        }
    }

    fn variable(&mut self, name: &str, optional: bool) -> Option<Complaint> {
        match self.names.meanings(name, self.reach).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_name(name, self.reach));
                Some(Complaint::new(&rules::UNKNOWN_VARIABLE, format!("unknown variable `{name}`"), help))
            }
            [one] => {
                match one {
                    Meaning::Column(index) => self.needs.columns.extend([*index]),
                    Meaning::Var(index) => self.needs.vars.extend([*index]),
                    Meaning::Table(index) => self.needs.tables.extend([*index]),
                    Meaning::Ours => self.needs.row |= name == "row",
                }
                None
            }
            // Told once, at the var.
            meanings if meanings.iter().any(|meaning| matches!(meaning, Meaning::Var(_))) => None,
            [_, ..] => {
                let help = Some("give the column another name under `columns`".to_owned());
                Some(Complaint::new(&rules::NAME_CLASH, format!("`{name}` is ambiguous here"), help))
            }
        }
    }

    /// Notes a table that is looked into, or says what is wrong with that.
    fn looked_up(&mut self, name: &str, lookup: Option<&Lookup>) -> Option<Complaint> {
        let index = self.names.table(name, self.reach)?;
        self.needs.tables.insert(index);
        let (_, table) = self.names.tables.get(index)?;
        let new = |message: String, help: String| Some(Complaint::new(&rules::DATA_LOOKUP, message, Some(help)));
        let columns = || table.columns.iter().map(String::as_str);
        let written = format!(
            "write `{name}[COLUMN].{}`, where COLUMN is the list's column that selects the row",
            columns().next_back().unwrap_or("column")
        );
        match lookup {
            None => new(format!("`{name}` is a whole table, so the message would show every row"), written),
            Some(Lookup { column: None, optional: false, .. }) => new(
                format!("`{name}[…]` is a whole row of the table"),
                format!("{written}; the columns of the table are {}", list_all(columns())),
            ),
            Some(Lookup { column: Some(column), .. }) if columns().all(|known| known != column) => {
                let help = match did_you_mean(column, columns()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("use one of the columns of the table: {}", list_all(columns())),
                };
                new(format!("the table `{name}` has no column `{column}`"), help)
            }
            Some(Lookup { key: Some(key), optional: false, .. }) if !table.rows.contains_key(key) => {
                let help = match did_you_mean(key, table.rows.keys().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "add a row to the table, or use another key".to_owned(),
                };
                new(format!("the table `{name}` has no row `{key}`"), help)
            }
            Some(_) => None,
        }
    }

    fn header(&mut self, header: &str, optional: bool) -> Option<Complaint> {
        match self.names.columns_of(header).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_header(header));
                Some(Complaint::new(&rules::UNKNOWN_COLUMN, format!("no column has the header `{header}`"), help))
            }
            [column] => {
                self.needs.headers.insert(*column);
                None
            }
            [_, ..] => {
                Some(Complaint::new(&rules::NAME_CLASH, format!("several columns have the header `{header}`"), None))
            }
        }
    }
}

/// Vars that clash with another name, and those that are longer than a message.
pub(super) fn wrong_vars(names: &Names, reach: Reach) -> Vec<TextProblem> {
    let problem = |(name, value): &(String, String)| {
        let new = |rule, message| TextProblem::new(&format!("vars.{name}"), value, 0..value.len(), rule, message);
        let meanings = names.meanings(name, reach);
        if let Some(other) = meanings.iter().find(|meaning| !matches!(meaning, Meaning::Var(_))) {
            let other = match other {
                Meaning::Ours => "a built-in value",
                Meaning::Table(_) => "a table",
                Meaning::Column(_) | Meaning::Var(_) => "a column",
            };
            let help = "rename the constant, or rename the column under `columns`".to_owned();
            return Some(
                new(&rules::NAME_CLASH, format!("`{name}` is the name of a constant and also of {other}")).help(help),
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
fn in_quotes(name: &str, help: String) -> String {
    let quotes = format!("for the text `{name}`, write `'{name}'` in quotes");
    if help.starts_with("use one of these names") {
        format!("{quotes}; otherwise, {help}")
    } else if help.ends_with('?') {
        format!("{help} Or, {quotes}")
    } else {
        format!("{help}; or, {quotes}")
    }
}

fn asked_name(event: &Event) -> Option<&str> {
    if let What::Ask(name) = &event.what { Some(name) } else { None }
}

/// All names of all scopes.
fn all(scopes: &Scopes) -> HashSet<String> {
    scopes.iter().flatten().cloned().collect()
}
