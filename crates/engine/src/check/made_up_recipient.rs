//! A made-up recipient, for tests and previews. Its row is put into a list of its own. This list is read like any
//! other, and the message is composed as usual.
//!
//! If the columns of the list are unknown, the names that texts use count as columns.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::compiled_campaign::{PrepareError, Recipe, TextInputs, prepare_campaign, reader_settings};
use super::exclusions::HOLDOUT;
use campaign_content::audience::{Chunk, ListHeader, RecipientReader, RecordRef, example_mobile_numbers};
use campaign_content::message::Condition;
use campaign_core::domain::{CountrySet, MessageContent, Phone, Region, find_country};
use campaign_core::finding::{Finding, did_you_mean, join_alternatives, rules};
use campaign_ledger::{COUNTRY, RowState};
use campaign_manifest::{Campaign, CampaignBrief, VARIANT};

/// The name of the column with the phone number.
const PHONE: &str = "phone";
/// The number of times that unknown names are added as columns: once for the texts, and once for names that are found
/// only after the first time.
const MAX_ROUNDS: usize = 2;

/// A recipient with the texts of a campaign, compiled for its row.
pub struct MadeUpRecipient {
    brief: CampaignBrief,
    headers: Vec<String>,
    names: Vec<String>,
    /// The given cells by column.
    cells: Vec<Option<String>>,
    phone_column: usize,
    /// The variant in `given`.
    variant: Option<usize>,
    pub(super) recipe: Arc<Recipe>,
}

/// The reason why a recipient cannot be made up.
#[derive(Debug)]
pub enum MadeUpError {
    /// The list has no column, or the campaign no variant, of this name.
    Unknown {
        /// The name in `given`.
        name: String,
        /// The problem.
        message: String,
        /// The remedy.
        help: String,
    },
    /// Problems of the texts.
    Texts(Vec<Finding>),
}

/// The number and the message of a made-up recipient, or the state and the reason if there is none.
pub type MadeUpOutcome = Result<(Phone, MessageContent<Cow<'static, str>>), (RowState, String)>;

/// The message of a made-up recipient.
#[derive(Debug)]
pub struct MadeUpMessage {
    /// The name of the variant, if there are variants.
    pub variant: Option<String>,
    /// The used columns that are not given.
    pub missing: Vec<String>,
    /// The message, if there is one.
    pub outcome: MadeUpOutcome,
}

/// The row of a made-up recipient.
#[derive(Clone, Debug)]
pub(super) struct MadeUpRow {
    /// The variant that the number was generated for. `None` if the number is given.
    pub(super) arm: Option<usize>,
    /// The cell with the number.
    pub(super) phone: String,
}

impl MadeUpRecipient {
    /// Compiles the texts of a campaign for a row with the given cells, each identified by name or header.
    ///
    /// `header` is the header of the list, if it is known. `today` is the date that texts see. `load` loads a text by
    /// the name in `include` or `extends`.
    ///
    /// # Errors
    /// If a cell is invalid or a text cannot be compiled.
    pub fn compile(
        campaign: &Campaign,
        header: Option<&ListHeader>,
        given: &[(String, String)],
        today: &str,
        load: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, MadeUpError> {
        let brief = &campaign.brief;
        let GivenCells { variant, cells } = GivenCells::from_pairs(brief, given)?;
        let mut columns = RowColumns::new(brief, header, &cells)?;
        let mut rounds = 0;
        loop {
            let brief = columns.adapt_brief(brief);
            let sample =
                example_mobile_numbers(brief.region).next().map(|phone| format!("+{phone}")).unwrap_or_default();
            let list = columns.to_csv(&sample);
            let texts = TextInputs { places: Some(&campaign.places), trims_cells: true, load: &mut *load };
            match prepare_campaign(&brief, list.as_bytes(), Path::new(""), texts, today) {
                Ok(compiled) => {
                    let names = compiled.reader.header().names().to_vec();
                    let RowColumns { headers, cells, phone_column } = columns;
                    return Ok(Self { brief, headers, names, cells, phone_column, variant, recipe: compiled.recipe });
                }
                Err(PrepareError { findings, .. }) => {
                    rounds += 1;
                    let has_new_columns =
                        header.is_none() && rounds <= MAX_ROUNDS && columns.add_unknown_columns(&findings);
                    if !has_new_columns {
                        return Err(MadeUpError::Texts(findings));
                    }
                }
            }
        }
    }

    /// The rows of the recipient: one, or one for each variant if neither the number nor the variant is given. A
    /// generated number is in one of `countries`, if there are any, and in the holdout group only if `must_be_held_out`
    /// is true. If no number fits the variant and the group, any number of the country is used.
    pub(super) fn rows(&self, must_be_held_out: bool, countries: Option<&CountrySet>) -> Vec<MadeUpRow> {
        if let Some(phone) = &self.cells[self.phone_column] {
            return vec![MadeUpRow { arm: None, phone: phone.clone() }];
        }
        let allocation = &self.recipe.allocation;
        let arms = match self.variant {
            Some(arm) => vec![arm],
            None => (0..self.recipe.arms.len()).collect(),
        };
        let is_for = |arm: usize, phone: Phone| {
            allocation.assign_variant(phone) == arm && allocation.is_held_out(phone) == must_be_held_out
        };
        let country = choose_country(self.brief.region, countries);
        let find_fitting_number = |arm| example_mobile_numbers(country).find(|phone| is_for(arm, *phone));
        // A variant without a share, or a campaign without a holdout group, has no such number.
        let any_number = || example_mobile_numbers(country).next();
        arms.into_iter()
            .filter_map(|arm| Some((arm, find_fitting_number(arm).or_else(any_number)?)))
            .map(|(arm, phone)| MadeUpRow { arm: Some(arm), phone: format!("+{phone}") })
            .collect()
    }

    /// Calls `inspect` with the record of a row.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub(super) fn with_record<T>(
        &self,
        row: &MadeUpRow,
        inspect: impl FnOnce(RecordRef<'_>) -> T,
    ) -> Result<T, Vec<Finding>> {
        let columns =
            RowColumns { headers: self.headers.clone(), cells: self.cells.clone(), phone_column: self.phone_column };
        let list = columns.to_csv(&row.phone);
        let mut reader = RecipientReader::open(list.as_bytes(), Path::new(""), &reader_settings(&self.brief))?;
        let mut chunk = Chunk::new();
        reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])?;
        match chunk.iter().next() {
            Some(record) => Ok(inspect(record)),
            None => Err(vec![Finding::new(&rules::RECIPIENTS_EMPTY, "all of the recipient's cells are empty")]),
        }
    }

    /// Composes the recipient's message for each of the recipient's rows. Columns without a given cell are empty.
    /// `countries` are the countries that messages may reach; `None` for all.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub fn compose_messages(&self, countries: Option<&CountrySet>) -> Result<Vec<MadeUpMessage>, Vec<Finding>> {
        let (rows, variants) = (self.rows(false, countries), &self.brief.variants);
        let compose = |row: &MadeUpRow| {
            self.with_record(row, |record| {
                let mut composer = self.recipe.composer();
                let composed = composer.compose(record);
                let used = match &composed {
                    Ok(composed) => self.recipe.arms[composed.arm].used_columns(),
                    Err(_) => BTreeSet::new(),
                };
                let condition = self.recipe.condition.iter().flat_map(Condition::columns);
                let missing = self.missing_columns(&used.into_iter().chain(condition).collect());
                let missing = missing.into_iter().map(str::to_owned).collect();
                let arm = composed.as_ref().map_or(row.arm, |composed| Some(composed.arm));
                let variant = arm.and_then(|arm| variants.get(arm)).map(|variant| variant.name.clone());
                let is_in_excluded_country =
                    |phone| countries.is_some_and(|countries| !countries.contains(find_country(phone)));
                let outcome = match composed {
                    Ok(composed) if is_in_excluded_country(composed.number.phone) => {
                        Err((RowState::Skipped, COUNTRY.to_owned()))
                    }
                    Ok(composed) if self.recipe.allocation.is_held_out(composed.number.phone) => {
                        Err((RowState::Skipped, HOLDOUT.to_owned()))
                    }
                    Ok(composed) => Ok((composed.number.phone, composed.message.content().to_owned_texts())),
                    Err(failure) => Err((failure.state, failure.reason.into_owned())),
                };
                MadeUpMessage { variant, missing, outcome }
            })
        };
        rows.iter().map(compose).collect()
    }

    /// The names of the columns in `used` that have no given cell.
    pub(super) fn missing_columns(&self, used: &BTreeSet<usize>) -> Vec<&str> {
        let is_missing = |column: &&usize| {
            !self.recipe.phones.contains(**column) && self.cells.get(**column).is_none_or(Option::is_none)
        };
        used.iter().filter(is_missing).filter_map(|column| self.names.get(*column).map(String::as_str)).collect()
    }

    /// The index of the column with this name or header.
    pub(super) fn find_column(&self, name: &str) -> Option<usize> {
        let find = |names: &[String]| names.iter().position(|known| known == name);
        find(&self.names).or_else(|| find(&self.headers))
    }
}

/// The country of generated numbers: the region of the list, unless messages may only reach other countries.
fn choose_country(region: Option<Region>, countries: Option<&CountrySet>) -> Option<Region> {
    // Without a region, generated numbers are Ukrainian.
    let home = region.unwrap_or(Region::UKRAINE);
    match countries {
        Some(countries) if !countries.contains(Some(home)) => countries.countries().first().copied(),
        _ => region,
    }
}

/// The cells of a recipient, and its variant.
struct GivenCells {
    variant: Option<usize>,
    cells: Vec<(String, String)>,
}

impl GivenCells {
    /// Separates the variant from the cells, if the campaign has variants and a variant is given.
    fn from_pairs(brief: &CampaignBrief, pairs: &[(String, String)]) -> Result<Self, MadeUpError> {
        let is_variant = |(name, _): &&(String, String)| name == VARIANT && !brief.variants.is_empty();
        let cells = pairs.iter().filter(|cell| !is_variant(cell)).cloned().collect();
        let Some((_, value)) = pairs.iter().find(is_variant) else { return Ok(Self { variant: None, cells }) };
        match brief.variants.iter().position(|variant| variant.name == value.trim()) {
            Some(arm) => Ok(Self { variant: Some(arm), cells }),
            None => Err(MadeUpError::Unknown {
                name: VARIANT.to_owned(),
                message: format!("the campaign has no variant `{value}`"),
                help: format!("use {}", join_alternatives(brief.variants.iter().map(|variant| variant.name.as_str()))),
            }),
        }
    }
}

/// The columns of a made-up row.
struct RowColumns {
    headers: Vec<String>,
    cells: Vec<Option<String>>,
    phone_column: usize,
}

impl RowColumns {
    /// Creates the columns from the list's header or, if the header is unknown, from the campaign and the given cells.
    fn new(
        brief: &CampaignBrief,
        header: Option<&ListHeader>,
        pairs: &[(String, String)],
    ) -> Result<Self, MadeUpError> {
        let mut columns = match header {
            Some(header) => Self::with_headers(header.headers().to_vec(), header.phone()),
            None => {
                let mut headers: Vec<String> = Vec::new();
                for (_, header) in &brief.columns {
                    if !headers.contains(header) {
                        headers.push(header.clone());
                    }
                }
                let phone_header =
                    brief.columns.iter().find(|(name, _)| name == PHONE).map(|(_, header)| header.as_str());
                let phone = phone_header.unwrap_or(PHONE);
                let column = headers.iter().position(|header| header == phone).unwrap_or_else(|| {
                    headers.push(phone.to_owned());
                    headers.len() - 1
                });
                Self::with_headers(headers, column)
            }
        };
        for (name, cell) in pairs {
            let in_list = header.and_then(|header| header.find_column(name));
            let mapped_header =
                brief.columns.iter().find(|(known, _)| known == name).map_or(name, |(_, header)| header);
            let position = columns.headers.iter().position(|column_header| column_header == mapped_header);
            let column = match (in_list.or(position), header) {
                _ if name == PHONE => columns.phone_column,
                (Some(column), _) => column,
                (None, None) => columns.add_column(name),
                (None, Some(header)) => return Err(unknown_column_error(name, header)),
            };
            columns.cells[column] = Some(cell.clone());
        }
        Ok(columns)
    }

    fn with_headers(headers: Vec<String>, phone_column: usize) -> Self {
        Self { cells: vec![None; headers.len()], headers, phone_column }
    }

    fn add_column(&mut self, header: &str) -> usize {
        self.headers.push(header.to_owned());
        self.cells.push(None);
        self.headers.len() - 1
    }

    /// Adds the unknown names in findings as columns. Returns whether all findings are about unknown names and a column
    /// was added.
    fn add_unknown_columns(&mut self, findings: &[Finding]) -> bool {
        let unknown_name_rules = [&rules::UNKNOWN_VARIABLE, &rules::UNKNOWN_COLUMN];
        let mut added = false;
        for finding in findings {
            let Some(name) = finding.subject.as_deref().filter(|_| unknown_name_rules.contains(&finding.rule)) else {
                return false;
            };
            if !self.headers.iter().any(|header| header == name) {
                self.add_column(name);
                added = true;
            }
        }
        added
    }

    /// A copy of the campaign that uses this row's phone column and allows an empty list.
    fn adapt_brief(&self, brief: &CampaignBrief) -> CampaignBrief {
        let mut brief = CampaignBrief { may_be_empty: true, ..brief.clone() };
        let header = &self.headers[self.phone_column];
        if header != PHONE && !brief.columns.iter().any(|(name, _)| name == PHONE) {
            brief.columns.push((PHONE.to_owned(), header.clone()));
        }
        brief
    }

    /// A CSV list that contains only this row, with `phone` in the phone column.
    fn to_csv(&self, phone: &str) -> String {
        let cells = self.cells.iter().enumerate().map(|(column, cell)| match column {
            column if column == self.phone_column => phone,
            _ => cell.as_deref().unwrap_or_default(),
        });
        let mut list = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
        // Writing to memory cannot fail, and both records have the same number of cells.
        let written = list.write_record(&self.headers).and_then(|()| list.write_record(cells));
        let bytes = written.ok().and_then(|()| list.into_inner().ok()).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }
}

fn unknown_column_error(name: &str, header: &ListHeader) -> MadeUpError {
    let known = header.names().iter().map(String::as_str);
    let help = match did_you_mean(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of the columns: {}", join_alternatives(known)),
    };
    MadeUpError::Unknown { name: name.to_owned(), message: format!("the list has no column `{name}`"), help }
}
