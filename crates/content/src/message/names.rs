//! Names that texts can use, and checks of the names that they do use.
//!
//! The order within a text matters: a variable is known after it is set, and a loop variable only inside the loop. An
//! included text sees the variables that are known where it is included.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::TextProblem;
use super::engine::{MAX_BYTES, MAX_STEPS};
use super::library::{TemplateAnalysis, TemplateLibrary};
use super::outline::{OutlineAction, OutlineEvent, TableLookup, VariableUse};
use super::tables::LookupTable;
use campaign_core::domain::variable::{CAMPAIGN_VARIABLES, ROW_VARIABLES, is_reserved, is_variable};
use campaign_core::domain::{Language, compose_accents};
use campaign_core::finding::{Rule, did_you_mean, join_alternatives, join_names, rules};

/// The maximum number of names in a help text.
const MAX_LISTED: usize = 12;

/// The names that texts can use: columns, vars, tables and built-in names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateNames {
    /// The headers of the file, by column.
    pub headers: Vec<String>,
    /// The template name of each column: the chosen one, or else the header.
    pub names: Vec<String>,
    /// The campaign's constants.
    pub vars: Vec<(String, String)>,
    /// The lookup tables, by name.
    pub tables: Vec<(String, Arc<LookupTable>)>,
    /// The campaign's name.
    pub campaign: String,
    /// The day of the run, `YYYY-MM-DD`.
    pub today: String,
    /// The language of amounts and dates in texts.
    pub language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// The cell of that column.
    Column(usize),
    /// The constant of that index in [`TemplateNames::vars`].
    Var(usize),
    /// The table of that index in [`TemplateNames::tables`].
    Table(usize),
    /// `row`, `recipient`, `campaign` or `today`.
    BuiltIn,
}

/// The scope of a text, which decides the names that it can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameScope {
    /// A text for one recipient, which can use everything.
    Recipient,
    /// A text for the whole campaign, which can use only values that are the same for all recipients.
    Campaign,
}

impl TemplateNames {
    /// All meanings of `name`. Several meanings are a clash. A reserved word of the template language has no meaning
    /// here.
    pub(super) fn find_meanings(&self, name: &str, scope: NameScope) -> Vec<NameMeaning> {
        if is_reserved(name) {
            return Vec::new();
        }
        let columns = self.names.iter().enumerate().filter(|(_, column)| *column == name);
        let columns = columns.map(|(index, _)| NameMeaning::Column(index)).filter(|_| scope == NameScope::Recipient);
        let vars = self.vars.iter().position(|(var, _)| var == name).map(NameMeaning::Var);
        let tables = self.tables.iter().position(|(table, _)| table == name).map(NameMeaning::Table);
        let tables = tables.filter(|_| scope == NameScope::Recipient);
        let is_built_in =
            CAMPAIGN_VARIABLES.contains(&name) || (scope == NameScope::Recipient && ROW_VARIABLES.contains(&name));
        columns.chain(vars).chain(tables).chain(is_built_in.then_some(NameMeaning::BuiltIn)).collect()
    }

    /// The table that `name` refers to, if nothing else has that name.
    pub(super) fn find_table(&self, name: &str, scope: NameScope) -> Option<usize> {
        match self.find_meanings(name, scope).as_slice() {
            [NameMeaning::Table(index)] => Some(*index),
            _ => None,
        }
    }

    /// The columns with exactly this header, or else the columns whose headers differ only in the spelling of accents.
    pub(super) fn find_columns(&self, header: &str) -> Vec<usize> {
        let exact: Vec<usize> = (0..self.headers.len()).filter(|column| self.headers[*column] == header).collect();
        if !exact.is_empty() {
            return exact;
        }
        let composed = compose_accents(header);
        (0..self.headers.len()).filter(|column| compose_accents(&self.headers[*column]) == composed).collect()
    }

    /// The remedy for an unknown name.
    pub(super) fn help_for_name(&self, typed: &str, scope: NameScope) -> String {
        if scope == NameScope::Campaign {
            return self.help_for_constant(typed);
        }
        let known = self.list_bare_names();
        if let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(typed)) {
            return format!("did you mean `{name}`?");
        }
        let header = |header: &&String| !is_variable(header) && simplify_header(header) == simplify_header(typed);
        if let Some(header) = self.headers.iter().find(header) {
            return format!("write `{}`, because this header is not a valid variable name", index_expression(header));
        }
        match did_you_mean(typed, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("use one of these names: {}", shorten_list(&known)),
        }
    }

    fn help_for_constant(&self, typed: &str) -> String {
        if self.names.iter().any(|name| name == typed) || ROW_VARIABLES.contains(&typed) {
            return "use only `vars`, `campaign` and `today`, because this value is the same for all recipients"
                .to_owned();
        }
        let known: Vec<&str> = self.vars.iter().map(|(name, _)| name.as_str()).chain(CAMPAIGN_VARIABLES).collect();
        match did_you_mean(typed, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("use one of these names: {}", shorten_list(&known)),
        }
    }

    /// The remedy for an unknown header in `recipient["typed"]`.
    pub(super) fn help_for_header(&self, typed: &str) -> String {
        if let Some(index) = self.names.iter().position(|name| name == typed) {
            let header = self.headers.get(index).map_or(typed, String::as_str);
            return format!("write `{typed}`, or write `{}` to use the header from the file", index_expression(header));
        }
        match did_you_mean(typed, self.headers.iter().map(String::as_str)) {
            Some(header) => format!("did you mean `{}`?", index_expression(header)),
            None => {
                let headers: Vec<&str> = self.headers.iter().map(String::as_str).collect();
                format!("use one of these headers: {}", shorten_list(&headers))
            }
        }
    }

    /// The remedy for a header between braces that is not a valid variable name.
    pub(super) fn help_for_braced_header(&self, inner: &str) -> Option<String> {
        let header = self.headers.iter().find(|header| *header == inner && !is_variable(header))?;
        Some(format!(
            "write `{{{{ {} }}}}`, because this header is not a valid variable name",
            index_expression(header)
        ))
    }

    fn list_bare_names(&self) -> Vec<&str> {
        let columns = self.names.iter().map(String::as_str).filter(|name| is_variable(name));
        let tables = self.tables.iter().map(|(name, _)| name.as_str());
        columns
            .chain(self.vars.iter().map(|(name, _)| name.as_str()))
            .chain(tables)
            .chain(ROW_VARIABLES)
            .chain(CAMPAIGN_VARIABLES)
            .collect()
    }
}

/// `recipient["header"]`, with quotes that the header does not contain.
fn index_expression(header: &str) -> String {
    let quote = if header.contains('"') { '\'' } else { '"' };
    format!("recipient[{quote}{header}{quote}]")
}

/// Converts a header to the usual form of a name: lower case, with underscores.
fn simplify_header(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).flat_map(char::to_lowercase).collect()
}

fn shorten_list(names: &[&str]) -> String {
    match names.len().checked_sub(MAX_LISTED) {
        None | Some(0) => join_alternatives(names.iter().copied()),
        Some(more) => {
            let first: Vec<String> = names[..MAX_LISTED].iter().map(|name| format!("`{name}`")).collect();
            format!("{} and {more} more", first.join(", "))
        }
    }
}

/// Interns a name, because the context needs the name for every row and copying it would cost more than the cell. Only
/// the few distinct names in texts are kept.
pub(super) fn intern_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = name.to_owned().leak();
    names.insert(name);
    name
}

/// The data that texts need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TemplateNeeds {
    /// Columns that are used by their bare names.
    pub(super) columns: BTreeSet<usize>,
    /// Columns that are used as `recipient["Header"]`, by the header as the text spells it.
    pub(super) headers: BTreeMap<String, usize>,
    /// Whether `recipient` is used with a computed key, so that all headers are needed.
    pub(super) all_headers: bool,
    /// Vars, by their index.
    pub(super) vars: BTreeSet<usize>,
    /// Tables, by their index.
    pub(super) tables: BTreeSet<usize>,
    /// Whether `row` is used.
    pub(super) row: bool,
}

/// Checks the names that texts use, in the order of the text.
pub(super) struct NameChecker<'j> {
    names: &'j TemplateNames,
    library: &'j TemplateLibrary<'j>,
    scope: NameScope,
    pub(super) needs: TemplateNeeds,
    pub(super) problems: Vec<TextProblem>,
}

/// A problem with the use of a name.
struct NameProblem {
    rule: &'static Rule,
    message: String,
    subject: Option<String>,
    help: Option<String>,
}

impl NameProblem {
    fn new(rule: &'static Rule, message: String, help: Option<String>) -> Self {
        Self { rule, message, subject: None, help }
    }

    /// A problem about the variable or column `subject`.
    fn about(rule: &'static Rule, subject: &str, message: String, help: Option<String>) -> Self {
        Self { subject: Some(subject.to_owned()), ..Self::new(rule, message, help) }
    }
}

/// The names of the known variables: inherited and global ones, those of the text, and those of each open loop.
type Scopes = Vec<HashSet<String>>;

impl<'j> NameChecker<'j> {
    pub(super) fn new(names: &'j TemplateNames, library: &'j TemplateLibrary<'j>, scope: NameScope) -> Self {
        Self { names, library, scope, needs: TemplateNeeds::default(), problems: Vec::new() }
    }

    /// Checks the names in a text and in the texts that it includes.
    pub(super) fn check_text(&mut self, analysis: &TemplateAnalysis) {
        // A text that is too long is already rejected, and checking it would take too many steps. Unsupported
        // constructs can define names that are unknown here.
        let has_unsupported =
            analysis.outline.events.iter().any(|event| matches!(event.action, OutlineAction::Unsupported(_)));
        if analysis.steps <= MAX_STEPS && !has_unsupported {
            self.check_analysis(analysis, HashSet::new(), &mut vec![analysis.text.name.clone()]);
        }
    }

    fn check_analysis(&mut self, analysis: &TemplateAnalysis, known: HashSet<String>, chain: &mut Vec<String>) {
        let mut scopes: Scopes = vec![known, HashSet::new()];
        // A text that tests whether a name exists might be meant for lists without that name.
        let tested_names: HashSet<&str> = analysis.outline.events.iter().filter_map(tested_name).collect();
        for event in &analysis.outline.events {
            match &event.action {
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
            if let Some(NameProblem { rule, message, subject, help }) =
                self.check_event(&event.action, &scopes, &tested_names)
            {
                let TemplateAnalysis { text, .. } = analysis;
                let help = match help {
                    Some(help) if rule == &rules::UNKNOWN_VARIABLE && is_compared(&text.source, &event.span) => {
                        Some(suggest_quotes(&text.source[event.span.clone()], help))
                    }
                    help => help,
                };
                let problem = TextProblem::new(&text.name, &text.source, event.span.clone(), rule, message);
                self.problems.push(TextProblem { subject, ..problem.with_help(help) });
            }
        }
    }

    /// Checks the names in an included text or a parent. Returns the names that the text defines.
    fn check_include(&mut self, name: &str, known: HashSet<String>, chain: &mut Vec<String>) -> HashSet<String> {
        let library = self.library;
        // Cycles are reported when texts are loaded.
        let Some(analysis) = library.loaded.get(name).filter(|_| !chain.iter().any(|open| open == name)) else {
            return HashSet::new();
        };
        chain.push(name.to_owned());
        self.check_analysis(analysis, known, chain);
        chain.pop();
        let defined = analysis.outline.events.iter().filter_map(|event| match &event.action {
            OutlineAction::Define { name, .. } => Some(name.clone()),
            _ => None,
        });
        defined.collect()
    }

    /// Records the names that the event needs, or returns the problem with the event.
    fn check_event(
        &mut self,
        action: &OutlineAction,
        scopes: &Scopes,
        tested_names: &HashSet<&str>,
    ) -> Option<NameProblem> {
        let is_local = |name: &str| scopes.iter().any(|scope| scope.contains(name));
        match action {
            OutlineAction::Use(VariableUse { name, .. })
            | OutlineAction::Ask(name)
            | OutlineAction::Define { name, .. }
                if name.starts_with("__") =>
            {
                let help =
                    Some("use a name that does not start with `__`; names with this prefix are reserved".to_owned());
                Some(NameProblem::about(&rules::UNKNOWN_VARIABLE, name, format!("`{name}` cannot be used"), help))
            }
            OutlineAction::Use(VariableUse { name, .. }) if is_local(name) => None,
            OutlineAction::Key { .. } | OutlineAction::AnyKey if is_local("recipient") => None,
            OutlineAction::Use(VariableUse { name, .. })
                if name == "recipient" && self.scope == NameScope::Recipient =>
            {
                let help = Some("select a column: `recipient[\"Header\"]`".to_owned());
                Some(NameProblem::new(
                    &rules::WHOLE_RECIPIENT,
                    "`recipient` is the whole row, so the message would show every cell".to_owned(),
                    help,
                ))
            }
            OutlineAction::Use(VariableUse { name, lookup, .. })
                if self.names.find_table(name, self.scope).is_some() =>
            {
                self.check_lookup(name, lookup.as_ref())
            }
            OutlineAction::Use(VariableUse { name, dotted: true, .. })
                if !self.names.find_meanings(name, self.scope).is_empty() =>
            {
                let help = Some("remove the dot and the part after it".to_owned());
                Some(NameProblem::about(
                    &rules::UNKNOWN_VARIABLE,
                    name,
                    format!("`{name}` is text, so a dot cannot follow it"),
                    help,
                ))
            }
            OutlineAction::Use(VariableUse { name, optional, .. }) => {
                self.check_variable(name, *optional || tested_names.contains(name.as_str()))
            }
            OutlineAction::Ask(name) if is_local(name) => None,
            OutlineAction::Ask(name) => self.check_variable(name, true),
            OutlineAction::Key { .. } | OutlineAction::AnyKey if self.scope == NameScope::Campaign => {
                self.check_variable("recipient", false)
            }
            OutlineAction::Key { key, optional } => self.check_header(key, *optional),
            OutlineAction::AnyKey => {
                self.needs.all_headers = true;
                None
            }
            // Tera would render the child's blocks without the parent around them.
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

    /// Records that a variable is needed, or returns the problem with its name. An `optional` variable can be unknown.
    fn check_variable(&mut self, name: &str, optional: bool) -> Option<NameProblem> {
        match self.names.find_meanings(name, self.scope).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_name(name, self.scope));
                Some(NameProblem::about(&rules::UNKNOWN_VARIABLE, name, format!("unknown variable `{name}`"), help))
            }
            [meaning] => {
                match meaning {
                    NameMeaning::Column(index) => self.needs.columns.extend([*index]),
                    NameMeaning::Var(index) => self.needs.vars.extend([*index]),
                    NameMeaning::Table(index) => self.needs.tables.extend([*index]),
                    NameMeaning::BuiltIn => self.needs.row |= name == "row",
                }
                None
            }
            // The clash is reported once, where the var is defined.
            meanings if meanings.iter().any(|meaning| matches!(meaning, NameMeaning::Var(_))) => None,
            [_, ..] => {
                let help = Some("give the column another name under `columns`".to_owned());
                Some(NameProblem::new(&rules::NAME_CLASH, format!("`{name}` is ambiguous here"), help))
            }
        }
    }

    /// Records the table that a lookup uses. Returns the problem with the lookup, if there is one.
    fn check_lookup(&mut self, name: &str, lookup: Option<&TableLookup>) -> Option<NameProblem> {
        let index = self.names.find_table(name, self.scope)?;
        self.needs.tables.insert(index);
        let (_, table) = self.names.tables.get(index)?;
        let problem = |message: String, help: String| Some(NameProblem::new(&rules::DATA_LOOKUP, message, Some(help)));
        let columns = || table.columns.iter().map(String::as_str);
        let advice = format!(
            "write `{name}[COLUMN].{}`, where COLUMN is the list column that selects the row",
            columns().next_back().unwrap_or("column")
        );
        match lookup {
            None => problem(format!("`{name}` is a whole table, so the message would show every row"), advice),
            Some(TableLookup { column: None, optional: false, .. }) => problem(
                format!("`{name}[…]` is a whole row of the table"),
                format!("{advice}; the table has the columns {}", join_names(columns())),
            ),
            Some(TableLookup { column: Some(column), .. }) if !table.has_column(column) => {
                let help = match did_you_mean(column, columns()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of the table's columns: {}", join_names(columns())),
                };
                problem(format!("the table `{name}` has no column `{column}`"), help)
            }
            Some(TableLookup { key: Some(key), optional: false, .. }) if !table.has_row(key) => {
                let help = match did_you_mean(key, table.rows.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add a row to the table, or use another key".to_owned(),
                };
                problem(format!("the table `{name}` has no row with the key `{key}`"), help)
            }
            Some(_) => None,
        }
    }

    /// Records that a header is needed, or returns the problem with the header. An `optional` header can be unknown.
    fn check_header(&mut self, header: &str, optional: bool) -> Option<NameProblem> {
        match self.names.find_columns(header).as_slice() {
            [] if optional => None,
            [] => {
                let help = Some(self.names.help_for_header(header));
                Some(NameProblem::about(
                    &rules::UNKNOWN_COLUMN,
                    header,
                    format!("no column has the header `{header}`"),
                    help,
                ))
            }
            [column] => {
                self.needs.headers.insert(header.to_owned(), *column);
                None
            }
            [_, ..] => {
                let help = Some("rename one of these columns in the list".to_owned());
                Some(NameProblem::new(&rules::NAME_CLASH, format!("several columns have the header `{header}`"), help))
            }
        }
    }
}

/// The problems with vars that clash with another name or are longer than a message.
pub(super) fn check_vars(names: &TemplateNames, scope: NameScope) -> Vec<TextProblem> {
    let problem = |(name, value): &(String, String)| {
        let new_problem =
            |rule, message| TextProblem::new(&format!("vars.{name}"), value, 0..value.len(), rule, message);
        let meanings = names.find_meanings(name, scope);
        if let Some(other) = meanings.iter().find(|meaning| !matches!(meaning, NameMeaning::Var(_))) {
            let other = match other {
                NameMeaning::BuiltIn => "a built-in value",
                NameMeaning::Table(_) => "a table",
                NameMeaning::Column(_) | NameMeaning::Var(_) => "a column",
            };
            let help = "rename the constant, or rename the column under `columns`".to_owned();
            return Some(
                new_problem(&rules::NAME_CLASH, format!("`{name}` is the name of both a constant and {other}"))
                    .with_help(help),
            );
        }
        (value.len() > MAX_BYTES).then(|| {
            new_problem(&rules::TEXT_TOO_LONG, format!("the constant `{name}` is longer than {MAX_BYTES} bytes"))
        })
    };
    names.vars.iter().filter_map(problem).collect()
}

/// Whether the name follows `==` or `!=`, like a word that is meant as text.
fn is_compared(source: &str, span: &Range<usize>) -> bool {
    let before = source[..span.start].trim_end();
    ["==", "!="].iter().any(|sign| before.ends_with(sign))
}

/// The remedy for an unknown name in a comparison; `help` suggests other names.
fn suggest_quotes(name: &str, help: String) -> String {
    let quotes = format!("if you mean the text `{name}`, write it in quotes: `'{name}'`");
    if help.starts_with("use one of these names") {
        format!("{quotes}; otherwise, {help}")
    } else if help.ends_with('?') {
        format!("{help} Or, {quotes}")
    } else {
        format!("{help}; or, {quotes}")
    }
}

fn tested_name(event: &OutlineEvent) -> Option<&str> {
    if let OutlineAction::Ask(name) = &event.action { Some(name) } else { None }
}

/// All names of all scopes.
fn flatten_scopes(scopes: &Scopes) -> HashSet<String> {
    scopes.iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> TemplateNames {
        TemplateNames {
            headers: ["phone", "First name", "Ім'я", "code"].map(String::from).to_vec(),
            names: ["phone", "First name", "first", "code"].map(String::from).to_vec(),
            vars: vec![("shop".into(), "Olena".into()), ("code".into(), "x".into())],
            campaign: "autumn".into(),
            today: "2026-11-21".into(),
            ..TemplateNames::default()
        }
    }

    #[test]
    fn name_lookup_returns_every_meaning() {
        let all = |name| names().find_meanings(name, NameScope::Recipient);
        assert_eq!(all("first"), [NameMeaning::Column(2)]);
        assert_eq!(all("shop"), [NameMeaning::Var(0)]);
        assert_eq!(all("row"), [NameMeaning::BuiltIn]);
        assert_eq!(all("code"), [NameMeaning::Column(3), NameMeaning::Var(1)]);
        assert_eq!(all("nothing"), []);
        assert_eq!(names().find_meanings("first", NameScope::Campaign), []);
        assert_eq!(names().find_meanings("row", NameScope::Campaign), []);
        assert_eq!(names().find_meanings("today", NameScope::Campaign), [NameMeaning::BuiltIn]);
    }

    #[test]
    fn help_suggests_the_probable_name() {
        let names = names();
        let table = [
            (names.help_for_name("frist", NameScope::Recipient), "did you mean `first`?"),
            (names.help_for_name("first_name", NameScope::Recipient), "write `recipient[\"First name\"]`"),
            (names.help_for_name("zzzzz", NameScope::Recipient), "use one of these names: `phone`, `first`,"),
            (names.help_for_name("first", NameScope::Campaign), "the same for all recipients"),
            (names.help_for_name("shpo", NameScope::Campaign), "did you mean `shop`?"),
            (names.help_for_header("Frist name"), "did you mean `recipient[\"First name\"]`?"),
            (names.help_for_header("first"), "write `first`, or write `recipient[\"Ім'я\"]`"),
            (names.help_for_header("zzzzz"), "use one of these headers: `phone`, `First name`"),
        ];
        for (help, expected) in table {
            assert!(help.contains(expected), "`{help}` does not say `{expected}`");
        }
        assert!(names.help_for_braced_header("Ім'я").is_some_and(|help| help.contains("{{ recipient[\"Ім'я\"] }}")));
    }

    #[test]
    fn long_list_of_suggested_names_is_truncated() {
        let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let names = TemplateNames { headers: names.clone(), names, ..TemplateNames::default() };
        assert!(names.help_for_header("zzzzz").ends_with("`c11` and 8 more"));
    }
}
