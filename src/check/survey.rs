//! The pass over all recipients before the first send: numbers, duplicates, messages, counts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;

use roaring::RoaringBitmap;

use super::clocks::LocalZones;
use super::column::{Column, columns};
use super::empty_cells::{EmptyCells, EmptyUses};
use super::excluded::{DUPLICATE, Excluded, HOLDOUT};
use super::odd::{Comparison, Odd, OddRowsByColumn, Watch, take_in};
use super::opted_out_cells::OptedOutCells;
use super::parallel::{cores, ordered};
use super::prepare::{CompiledCampaign, finding};
use super::recipe::{Composed, Composer, Uncomposed};
use super::repeated_numbers::{self, RepeatedNumbers};
use super::rules;
use super::shapes::Shapes;
use super::unmatched_cells::UnmatchedCells;
use super::zones::Zones;
use crate::audience::{Chunk, Number, Seen, holds_a_row};
use crate::calendar::zone_of_country;
use crate::domain::{Content, CostlyCharacters, Phone, Row, Stage, costly_characters, country_of, sms_text};
use crate::finding::Finding;
use crate::ledger::{LeftOut, State, StateCounts};
use crate::manifest::{Brief, Duplicates, Places};
use crate::message::{BranchFinder, EmptyUse, EmptyUseFinder, FilledMessage, TextProblem};

/// How many messages are kept as examples.
const SHOWN: usize = 3;

/// What a survey has to know besides the campaign.
pub struct Terms<'a> {
    /// The campaign.
    pub brief: &'a Brief,
    /// Whom it leaves out.
    pub excluded: &'a Excluded,
    /// The column with the time zones of its recipients, where its window is on their clocks.
    pub zones: Option<&'a str>,
    /// Whether a window is on the clocks of the numbers' countries.
    pub by_country: bool,
}

/// What is known of all recipients before anything is sent.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Recipients: rows that are neither the header nor blank.
    pub recipients: u64,
    /// The last row with a recipient.
    pub last_row: Row,
    /// The rows with a recipient.
    pub rows: RoaringBitmap,
    /// The rows that are never sent, with the reason.
    pub left_out: LeftOut,
    /// The findings about texts, by the reason of the invalid rows.
    pub failing: BTreeMap<String, Finding>,
    /// Parts of the messages to be sent, as computed here: those of the SMS, one for a message without an SMS.
    pub parts: u64,
    /// The rows that are to be sent to, by their variant and the parts of their SMS.
    pub by_size: RowsBySize,
    /// The rows to be sent to whose message shows an empty cell, by text and column.
    pub empty: Vec<EmptyCells>,
    /// The rows to be sent to whose SMS has more parts because of a few characters, by those.
    pub costly: BTreeMap<Vec<char>, CostlyRows>,
    /// The rows to be sent to whose number gets none of the message's channels, since it is no mobile phone's.
    pub landlines: RoaringBitmap,
    /// The rows to be sent to in whose cells or messages something is odd, by column.
    pub odd: OddRowsByColumn,
    /// Comparisons in texts that no row passed, with their index.
    pub unpassed: Vec<(usize, Comparison)>,
    /// The columns of the list, but for that of the numbers.
    pub columns: Vec<Column>,
    /// The rows with a cell that holds what looks like a row.
    pub rows_within: RoaringBitmap,
    /// The zones of the rows to be sent to.
    pub zones: Zones,
    /// The skipped duplicate rows whose message differs from the one that is sent.
    pub differing: RoaringBitmap,
    /// The rows to be sent to whose cells say that their people opted out, for each such column.
    pub opted_out: Vec<OptedOutCells>,
    /// How many people a new round for everybody would go to.
    pub everybody: u64,
    /// The rows to be sent to by the variant and the branches of conditions that they get.
    pub shapes: Shapes,
    /// The rows to be sent to by the zone of their number's country.
    pub local_zones: LocalZones,
    /// The first messages that would be sent, three at most.
    pub firsts: Vec<First>,
}

/// What a message is billed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Which of the variants it is, counted from 0; 0 where there are none.
    pub arm: usize,
    /// The parts of its SMS; 0 where it has none.
    pub sms_parts: u32,
}

impl Size {
    /// Its parts: those of its SMS, one where it has none.
    #[must_use]
    pub fn parts(self) -> u64 {
        self.sms_parts.max(1).into()
    }
}

/// Rows by the size of their messages.
pub type RowsBySize = BTreeMap<Size, RoaringBitmap>;

/// Rows whose SMS has more parts because of the same characters.
#[derive(Clone, Debug, Default)]
pub struct CostlyRows {
    /// Which they are.
    pub rows: RoaringBitmap,
    /// The parts that they have more together.
    pub more: u64,
    /// The parts of the first, and those that it would have without them.
    pub first: (usize, usize),
}

impl CostlyRows {
    fn add(&mut self, row: Row, parts: usize, without: usize) {
        if self.rows.is_empty() {
            self.first = (parts, without);
        }
        self.rows.insert(row.get());
        self.more += (parts - without) as u64;
    }
}

/// One message, to be shown as an example.
#[derive(Clone, Debug)]
pub struct First {
    /// Its row.
    pub row: Row,
    /// Its recipient.
    pub phone: Phone,
    /// What it says.
    pub content: Content<Cow<'static, str>>,
}

impl Survey {
    /// Counts by state, as they are before the first send.
    #[must_use]
    pub fn counts(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        let (skipped, invalid) = (self.left_out.count(State::Skipped), self.left_out.count(State::Invalid));
        counts.add(State::Skipped, skipped);
        counts.add(State::Invalid, invalid);
        counts.add(State::Planned, self.recipients - skipped - invalid);
        counts
    }

    /// Counts by state over the rows that `meant` chooses.
    #[must_use]
    pub fn counts_of(&self, meant: impl Fn(Row) -> bool) -> StateCounts {
        let rows: RoaringBitmap = self.rows.iter().filter(|row| meant(Row::new(*row))).collect();
        let mut counts = StateCounts::default();
        for (state, _, left_out) in self.left_out.sets() {
            counts.add(state, left_out.intersection_len(&rows));
        }
        counts.add(State::Planned, rows.len() - counts.total());
        counts
    }

    /// The rows that are to be sent to.
    #[must_use]
    pub fn planned_rows(&self) -> RoaringBitmap {
        &self.rows - self.left_out.rows()
    }

    /// How many messages are to be sent.
    #[must_use]
    pub fn planned(&self) -> u64 {
        self.counts().get(State::Planned)
    }

    /// The parts of the messages to these rows.
    #[must_use]
    pub fn parts_of(&self, rows: &RoaringBitmap) -> u64 {
        self.by_size.iter().map(|(size, sized)| size.parts() * sized.intersection_len(rows)).sum()
    }
}

/// Looks at every recipient.
///
/// # Errors
/// When the file is damaged, or when its rows break a bound of the campaign.
pub fn survey<R: Read + Send>(prepared: &mut CompiledCampaign<R>, terms: &Terms<'_>) -> Result<Survey, Vec<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    let (phone_column, delimiter) = (reader.header().phone(), reader.delimiter());
    let stages = terms.brief.contents().flat_map(|content| &content.stages);
    let watch = Watch::of(recipe, stages.flat_map(Stage::texts).map(|(_, text)| text));
    let zones = terms.zones.map(|name| {
        let column = reader.header().column(name);
        column.ok_or_else(|| vec![rules::zone_column(name, reader.header())])
    });
    let zones = zones.transpose()?;
    let used = recipe.columns().into_iter().chain(zones).collect();
    let columns = columns(reader.header(), &used);
    let opted_out = OptedOutCells::of_columns(&columns);
    let unmatched = UnmatchedCells::of(terms.brief, reader.header());
    let skips_duplicates = terms.brief.duplicates != Duplicates::Allow;
    let mut damage = None;
    let produce = || {
        let mut chunk = Chunk::new();
        match reader.read_chunk(&mut chunk) {
            Ok(true) => Some(chunk),
            Ok(false) => None,
            Err(finding) => {
                damage = Some(*finding);
                None
            }
        }
    };
    let examine = |(composer, finders, branches): &mut Examiner<'_>, chunk: Chunk| {
        let examined: Vec<Examination> = chunk
            .iter()
            .map(|record| {
                let Composed { number: Number { phone, landline }, arm, message } = composer.compose(record)?;
                let parts = sms_parts(message);
                // A message of one part cannot be shorter.
                let costly = message.billed_text().filter(|_| parts > 1).and_then(costly_characters);
                let landline = landline && message.channels().all(|channel| channel.facts().mobile);
                let cell = |column| recipe.cell(record.fields, column);
                let empty = finders[arm].find(record.row, cell);
                let branches = branches[arm].as_mut().map_or(0, |finder| finder.find(record.row, cell));
                let odd = watch.look(record.fields, message, !empty.is_empty());
                let hash = if skips_duplicates { repeated_numbers::hash_of(message) } else { 0 };
                let held_out = recipe.allotment.holds_out(phone);
                Ok(Sendable { phone, arm, sms_parts: parts, costly, landline, empty, branches, odd, hash, held_out })
            })
            .collect();
        let within = chunk.iter().filter(|record| holds_a_row(record.fields, phone_column, delimiter));
        let within: Vec<Row> = within.map(|record| record.row).collect();
        (chunk, examined, within)
    };
    let mut tally = Tally { opted_out, unmatched, ..Tally::default() };
    let mut composer = recipe.composer();
    ordered(
        cores(),
        produce,
        || (recipe.composer(), recipe.empty_use_finders(), recipe.branch_finders()),
        examine,
        |(chunk, examined, within)| {
            tally.rows_within.extend(within.iter().map(|row| row.get()));
            for (record, examined) in chunk.iter().zip(examined) {
                if let Err(uncomposed) = &examined {
                    tally.unmatched.add(record.fields, &uncomposed.reason);
                }
                let Some(phone) = tally.add(terms, record.row, examined) else { continue };
                tally.local_zones.add(record.row, phone);
                tally.opted_out.iter_mut().for_each(|cells| cells.add(record.row, record.fields));
                let cell = zones.map(|zones| record.fields.get(zones).trim());
                if let Some(cell) = cell {
                    tally.zones.add(record.row, cell);
                }
                if cell.is_some() || terms.by_country {
                    let country = Some(phone).filter(|_| terms.by_country).and_then(country_of);
                    tally.zones.count(country.and_then(|country| zone_of_country(&country)), cell);
                }
                if tally.firsts.len() < SHOWN
                    && let Ok(Composed { message, .. }) = composer.compose(record)
                {
                    tally.firsts.push(First { row: record.row, phone, content: message.content().owned() });
                }
            }
            ControlFlow::Continue(())
        },
    );
    match damage {
        Some(finding) => Err(vec![finding]),
        None => {
            let empty = tally.empty.cells(&recipe.empty_use_finders());
            tally.finish(terms.brief, (columns, empty, recipe.places.as_ref()), watch.unpassed())
        }
    }
}

/// What a worker examines records with.
type Examiner<'r> = (Composer<'r>, Vec<EmptyUseFinder<'r>>, Vec<Option<BranchFinder<'r>>>);

/// What a worker found out about one record: what would be sent, or why nothing can be.
type Examination = Result<Sendable, Uncomposed>;

/// A record that can be sent to.
struct Sendable {
    phone: Phone,
    /// Which of the variants it is.
    arm: usize,
    /// The parts of its SMS; 0 when it has none.
    sms_parts: u32,
    /// The characters that make its SMS longer.
    costly: Option<CostlyCharacters>,
    /// Whether its number gets none of its channels.
    landline: bool,
    /// The empty cells that its message shows.
    empty: Vec<EmptyUse>,
    /// The branches of conditions that it takes.
    branches: u64,
    /// What is odd of it.
    odd: Vec<Odd>,
    /// What its message says.
    hash: u64,
    /// Whether its recipient gets nothing, to compare with.
    held_out: bool,
}

#[derive(Default)]
struct Tally {
    recipients: u64,
    rows: RoaringBitmap,
    seen: Seen,
    left_out: LeftOut,
    failing: BTreeMap<String, TextProblem>,
    by_size: RowsBySize,
    empty: EmptyUses,
    costly: BTreeMap<Vec<char>, CostlyRows>,
    landlines: RoaringBitmap,
    rows_within: RoaringBitmap,
    zones: Zones,
    opted_out: Vec<OptedOutCells>,
    odd: OddRowsByColumn,
    everybody: u64,
    shapes: Shapes,
    local_zones: LocalZones,
    firsts: Vec<First>,
    /// The first row whose number stands in an earlier one.
    repeated: Option<(Row, Phone)>,
    repeated_numbers: RepeatedNumbers,
    unmatched: UnmatchedCells,
}

impl Tally {
    /// Takes a record in; gives back its number when it is to be sent to.
    fn add(&mut self, terms: &Terms<'_>, row: Row, examined: Examination) -> Option<Phone> {
        self.recipients += 1;
        self.rows.insert(row.get());
        let Sendable { phone, arm, sms_parts, costly, landline, empty, branches, odd, hash, held_out } = match examined
        {
            Ok(examined) => examined,
            Err(Uncomposed { state, reason, problem }) => {
                self.left_out.insert(row, state, &reason);
                if let Some(problem) = problem {
                    self.failing.entry(reason.into_owned()).or_insert(*problem);
                }
                return None;
            }
        };
        let opted_out = terms.excluded.opted_out.contains(phone);
        let repeated = terms.brief.duplicates != Duplicates::Allow && !self.seen.insert(phone);
        self.everybody += u64::from(!repeated && !opted_out && !held_out);
        if let Some(reason) = terms.excluded.reason(row, phone) {
            self.left_out.insert(row, State::Skipped, reason);
            return None;
        }
        if repeated {
            self.repeated.get_or_insert((row, phone));
            self.repeated_numbers.skipped(row, phone, hash);
            self.left_out.insert(row, State::Skipped, DUPLICATE);
            return None;
        }
        // Last of all reasons: who is compared with are those who would have got a message.
        if held_out {
            self.left_out.insert(row, State::Skipped, HOLDOUT);
            return None;
        }
        if terms.brief.duplicates != Duplicates::Allow {
            self.repeated_numbers.sent(phone, hash);
        }
        if landline {
            self.landlines.insert(row.get());
        }
        if let Some(CostlyCharacters { characters, parts, without }) = costly {
            self.costly.entry(characters).or_default().add(row, parts, without);
        }
        take_in(&mut self.odd, row, odd);
        self.empty.add(row, arm, empty);
        self.shapes.add(row, arm, branches);
        self.by_size.entry(Size { arm, sms_parts }).or_default().insert(row.get());
        Some(phone)
    }

    fn finish(
        self,
        brief: &Brief,
        (columns, empty, places): (Vec<Column>, Vec<EmptyCells>, Option<&Places>),
        unpassed: Vec<(usize, Comparison)>,
    ) -> Result<Survey, Vec<Finding>> {
        let parts = self.by_size.iter().map(|(size, rows)| size.parts() * rows.len()).sum();
        let Self { unmatched, .. } = self;
        let failing = self.failing.into_iter().map(|(reason, problem)| {
            let finding = unmatched.with_cells(finding(problem, places), &reason);
            (reason, finding)
        });
        let survey = Survey {
            recipients: self.recipients,
            last_row: self.rows.max().map_or(Row::HEADER, Row::new),
            rows: self.rows,
            left_out: self.left_out,
            failing: failing.collect(),
            parts,
            by_size: self.by_size,
            empty,
            costly: self.costly,
            landlines: self.landlines,
            rows_within: self.rows_within,
            zones: self.zones,
            differing: self.repeated_numbers.differing,
            opted_out: self.opted_out,
            everybody: self.everybody,
            shapes: self.shapes,
            local_zones: self.local_zones,
            firsts: self.firsts,
            odd: self.odd,
            unpassed,
            columns,
        };
        let mut findings: Vec<Finding> = rules::duplicate_number(brief, self.repeated).into_iter().collect();
        findings.extend(rules::too_many_invalid(brief, &survey));
        findings.extend(rules::nobody_meant(brief, &survey));
        findings.extend(rules::no_text_chosen(brief, &survey, &unmatched));
        if findings.is_empty() {
            findings = rules::of_failing_texts(brief, &survey);
        }
        if findings.is_empty() { Ok(survey) } else { Err(findings) }
    }
}

/// The parts of a message's SMS; 0 when it has none.
pub(crate) fn sms_parts(message: FilledMessage<'_>) -> u32 {
    message.billed_text().map_or(0, |text| u32::try_from(sms_text(text).parts).unwrap_or(u32::MAX))
}
