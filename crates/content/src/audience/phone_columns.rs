//! Phone columns of a list, and the choice of one number per row.

use super::phones::{PhoneProblem, ValidNumber, parse_number, resembles_number};
use super::reader::{RecordFields, clean_cell};
use super::suggestion::WrongColumn;
use super::{Chunk, parse_phone_number};
use campaign_core::domain::{Phone, Region, find_regions_by_letters};

/// The phone columns, in order of preference; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneColumns {
    first: usize,
    others: Vec<usize>,
    /// The header of the preferred column.
    header: String,
}

impl PhoneColumns {
    /// The phone columns with these indexes, in a list with these headers. `None` if `columns` is empty.
    pub(super) fn from_columns(columns: &[usize], headers: &[String]) -> Option<Self> {
        let (first, others) = columns.split_first()?;
        let header = headers.get(*first).cloned().unwrap_or_default();
        Some(Self { first: *first, others: others.to_vec(), header })
    }

    /// The index of the preferred phone column, from 0.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Whether `column` is a phone column.
    pub fn contains(&self, column: usize) -> bool {
        self.first == column || self.others.contains(&column)
    }

    /// The phone number of a row: the first valid number that might be mobile, or else the first valid number.
    ///
    /// # Errors
    ///
    /// The problem with the first non-empty cell, or [`PhoneProblem::Header`] if the row repeats the header.
    pub fn choose_number(&self, fields: RecordFields<'_>, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
        let mut chosen = parse_number(fields.get(self.first), region);
        for column in &self.others {
            if matches!(chosen, Ok(ValidNumber { landline: false, .. })) {
                break;
            }
            match (parse_number(fields.get(*column), region), chosen) {
                (Ok(number), Err(_)) => chosen = Ok(number),
                (Ok(number), Ok(_)) if !number.landline => chosen = Ok(number),
                (Err(problem), Err(PhoneProblem::Empty)) => chosen = Err(problem),
                _ => {}
            }
        }
        chosen.map_err(|problem| if self.repeats_header(fields) { PhoneProblem::Header } else { problem })
    }

    /// Whether the preferred phone column of a row repeats the header instead of containing a number.
    fn repeats_header(&self, fields: RecordFields<'_>) -> bool {
        /// Longer cells are not converted to lower case, which would take time.
        const MAX_LENGTH: usize = 99;
        let (cell, header) = (fields.get(self.first).trim(), self.header.as_str());
        !cell.is_empty() && (cell == header || cell.len() <= MAX_LENGTH && cell.to_lowercase() == header.to_lowercase())
    }

    /// Like [`Self::choose_number`], but without the type of the number.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::choose_number`].
    pub fn choose_phone(&self, fields: RecordFields<'_>, region: Option<Region>) -> Result<Phone, PhoneProblem> {
        self.choose_number(fields, region).map(|number| number.phone)
    }
}

/// The maximum number of filled cells to check per column.
const MAX_CELLS: usize = 200;

/// Counts of the first filled cells in a column, and of the phone numbers among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PhoneTally {
    /// Cells that are not blank.
    pub(super) filled: usize,
    /// Cells that are valid numbers.
    pub(super) valid: usize,
}

impl PhoneTally {
    /// Counts the filled cells of a column and the valid phone numbers among them.
    pub(super) fn for_column(sample: &Chunk, column: usize, region: Option<Region>) -> Self {
        Self::count_cells(sample, column, |cell| parse_phone_number(cell, region).is_ok())
    }

    /// Counts the filled cells of a column and the numbers among them that are valid in this region.
    ///
    /// Some countries have phone numbers as short as a counter or a price, so short numbers are not counted.
    fn for_region(sample: &Chunk, column: usize, region: Region) -> Self {
        Self::count_cells(sample, column, |cell| {
            resembles_number(cell) && parse_phone_number(cell, Some(region)).is_ok()
        })
    }

    fn count_cells(sample: &Chunk, column: usize, is_valid: impl Fn(&str) -> bool) -> Self {
        let cells = sample.iter().map(|record| record.fields.get(column)).filter(|cell| !cell.trim().is_empty());
        cells.take(MAX_CELLS).fold(Self::default(), |tally, cell| Self {
            filled: tally.filled + 1,
            valid: tally.valid + usize::from(is_valid(cell)),
        })
    }

    /// Whether at least half of the filled cells are phone numbers.
    pub(super) fn is_mostly_phones(self) -> bool {
        self.valid > 0 && self.valid * 2 >= self.filled
    }
}

/// A column of phone numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PhoneColumn {
    /// The column, from 0.
    pub(super) column: usize,
    /// The region that the numbers need, if the campaign does not set one.
    pub(super) region: Option<Region>,
}

/// Finds the most likely phone column.
///
/// `region` is the region of the campaign. If the campaign has no region, the likely regions are tried as well.
pub(super) fn find_phone_column(sample: &Chunk, headers: &[String], region: Option<Region>) -> Option<PhoneColumn> {
    let find_best = |count: &dyn Fn(usize) -> PhoneTally| {
        (0..headers.len())
            .map(|column| (column, count(column)))
            .filter(|(_, tally)| tally.is_mostly_phones())
            .max_by_key(|&(column, tally)| rank_column(headers, column, tally))
    };
    let in_region = find_best(&|column| PhoneTally::for_column(sample, column, region));
    let in_region = in_region.map(|(column, tally)| (PhoneColumn { column, region: None }, tally));
    let guess_among = |regions: Vec<Region>| -> Vec<(PhoneColumn, PhoneTally)> {
        let guess = |region| {
            let (column, tally) = find_best(&|column| PhoneTally::for_region(sample, column, region))?;
            Some((PhoneColumn { column, region: Some(region) }, tally))
        };
        regions.into_iter().filter_map(guess).collect()
    };
    let guessed = match region {
        Some(_) => None,
        None => {
            list_region_candidates(sample, headers).into_iter().map(guess_among).find(|guessed| !guessed.is_empty())
        }
    };
    let ranked = in_region
        .into_iter()
        .chain(guessed.unwrap_or_default())
        .map(|(found, tally)| (found, (rank_column(headers, found.column, tally), tally.valid)));
    find_highest_ranked(ranked)
}

/// The phone columns other than `found`. Their numbers are valid in the region of `found`, or with a country code if
/// `found` has no region.
pub(super) fn find_other_phone_columns(sample: &Chunk, columns: usize, found: PhoneColumn) -> Vec<usize> {
    let tally = |column| match found.region {
        None => PhoneTally::for_column(sample, column, None),
        Some(region) => PhoneTally::for_region(sample, column, region),
    };
    (0..columns).filter(|&column| column != found.column && tally(column).is_mostly_phones()).collect()
}

/// Whether at least half of the first filled cells of a column resemble phone numbers: they are valid in the region, or
/// need the country code of a likely region.
pub(super) fn resembles_phone_column(sample: &Chunk, column: usize, region: Option<Region>) -> bool {
    let needs_code = |cell: &str| {
        let mut regions = Region::LIKELY_REGIONS.into_iter();
        regions.any(|region| parse_phone_number(cell, Some(region)).is_ok())
    };
    let tally = PhoneTally::count_cells(sample, column, |cell| {
        let cell = clean_cell(cell);
        resembles_number(cell)
            && match parse_phone_number(cell, region) {
                Ok(_) => true,
                Err(problem) => problem == PhoneProblem::National && needs_code(cell),
            }
    });
    tally.is_mostly_phones()
}

/// The column whose header suggests phone numbers although some cells are not phone numbers, or else a column that
/// mixes phone numbers with words.
pub(super) fn find_wrong_column(sample: &Chunk, headers: &[String]) -> Option<WrongColumn> {
    let named = headers.iter().position(|header| is_phone_header(header));
    let has_mostly_words = |column: &usize| {
        let wrong = find_column_problem(sample, headers, *column);
        wrong.is_some_and(|wrong| wrong.problem == PhoneProblem::Words && wrong.cells * 2 >= wrong.filled)
    };
    named.and_then(|column| find_column_problem(sample, headers, column)).or_else(|| {
        let column = (0..headers.len()).find(has_mostly_words)?;
        find_column_problem(sample, headers, column)
    })
}

/// Describes the first sampled cell of a column that is not a phone number, and counts the cells with this problem.
/// `None` if all sampled cells are phone numbers.
fn find_column_problem(sample: &Chunk, headers: &[String], column: usize) -> Option<WrongColumn> {
    let filled = sample.iter().map(|record| record.fields.get(column)).filter(|cell| !cell.trim().is_empty());
    let cells: Vec<&str> = filled.take(MAX_CELLS).collect();
    let (bad_cell, problem) = cells.iter().find_map(|cell| Some((*cell, parse_phone_number(cell, None).err()?)))?;
    let affected = cells.iter().filter(|cell| parse_phone_number(cell, None) == Err(problem)).count();
    let example = (problem == PhoneProblem::Rounded).then(|| bad_cell.trim().to_owned());
    Some(WrongColumn { header: headers[column].clone(), problem, cells: affected, filled: cells.len(), example })
}

/// Ranks a phone column: headers for mobile numbers come first, then headers for phone numbers, then columns with the
/// most numbers, then the leftmost column. Among columns with such headers, the number of cells with phone
/// numbers does not matter.
fn rank_column(headers: &[String], column: usize, tally: PhoneTally) -> (bool, bool, usize, usize) {
    let header = &headers[column];
    let is_named = is_phone_header(header);
    (is_mobile_header(header), is_named, if is_named { 0 } else { tally.valid }, usize::MAX - column)
}

/// The most likely region in which the numbers of a column are valid.
pub(super) fn guess_region(sample: &Chunk, headers: &[String], column: usize) -> Option<Region> {
    let guess_among = |regions: Vec<Region>| {
        let tallies = regions.into_iter().map(|region| (region, PhoneTally::for_region(sample, column, region)));
        find_highest_ranked(
            tallies.filter(|(_, tally)| tally.is_mostly_phones()).map(|(region, tally)| (region, tally.valid)),
        )
    };
    list_region_candidates(sample, headers).into_iter().find_map(guess_among)
}

/// The other regions that are as likely as `region`: at least as many numbers of the column are valid there, and the
/// letters of the list do not speak against them.
pub(super) fn find_other_regions(sample: &Chunk, headers: &[String], column: usize, region: Region) -> Vec<Region> {
    let count_valid = |region| PhoneTally::for_region(sample, column, region).valid;
    let candidates = list_region_candidates(sample, headers).into_iter().find(|regions| regions.contains(&region));
    let valid = count_valid(region);
    let is_as_likely = |other: &Region| *other != region && count_valid(*other) >= valid;
    candidates.into_iter().flatten().filter(is_as_likely).collect()
}

/// The regions to try for a list without a region: first those where its language is spoken, then all likely ones.
fn list_region_candidates(sample: &Chunk, headers: &[String]) -> [Vec<Region>; 2] {
    let cells =
        sample.iter().take(MAX_CELLS).flat_map(|record| (0..headers.len()).map(move |at| record.fields.get(at)));
    let texts = headers.iter().map(String::as_str).chain(cells);
    [find_regions_by_letters(texts), Region::LIKELY_REGIONS.to_vec()]
}

/// The first candidate with the highest rank.
fn find_highest_ranked<T, R: PartialOrd>(candidates: impl Iterator<Item = (T, R)>) -> Option<T> {
    candidates.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(candidate, _)| candidate)
}

/// Whether a header suggests phone numbers (in Ukrainian, Russian or English) or mobile numbers.
pub(super) fn is_phone_header(header: &str) -> bool {
    const WORDS: [&str; 8] = ["phone", "tel", "viber", "whatsapp", "тел", "номер", "вайбер", "контакт"];
    let lower = header.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word)) || is_mobile_header(header)
}

/// Whether a header suggests mobile numbers, in one of several European languages.
fn is_mobile_header(header: &str) -> bool {
    const WORDS: [&str; 14] = [
        "mobil",
        "cell",
        "celul",
        "handy",
        "gsm",
        "msisdn",
        "komór",
        "komor",
        "móvil",
        "movil",
        "portable",
        "моб",
        "сотов",
        "стільник",
    ];
    let lower = header.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "mob" | "kom")) || WORDS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::Chunk;
    use campaign_core::domain::Row;

    #[test]
    fn first_valid_number_wins_and_landlines_come_last() {
        let (mobile, other, landline) = ("+380501234567", "+380671234567", "+380441234567");
        let headers = ["home", "work", "Mobile"].map(str::to_owned);
        let columns = PhoneColumns::from_columns(&[2, 0, 1], &headers).unwrap();
        for (cells, expected) in [
            ([other, "", mobile], Ok(380_501_234_567)),
            ([other, "", ""], Ok(380_671_234_567)),
            ([other, "", "none"], Ok(380_671_234_567)),
            ([landline, other, landline], Ok(380_671_234_567)),
            (["12", landline, ""], Ok(380_441_234_567)),
            ([landline, "", "+380442345678"], Ok(380_442_345_678)),
            (["12", "none", ""], Err(PhoneProblem::TooShort)),
            (["", "none", ""], Err(PhoneProblem::Letters)),
            (["", "", ""], Err(PhoneProblem::Empty)),
            (["home", "work", " mobile "], Err(PhoneProblem::Header)),
            (["Olena", "", "Mobile phone"], Err(PhoneProblem::Letters)),
            ([other, "", "Mobile"], Ok(380_671_234_567)),
        ] {
            let mut chunk = Chunk::new();
            chunk.reset(3);
            chunk.push(Row::new(2), &csv::StringRecord::from(cells.to_vec()));
            let number = columns.choose_phone(chunk.get(0).unwrap().fields, None).map(Phone::to_u64);
            assert_eq!(number, expected, "{cells:?}");
        }
        assert_eq!(PhoneColumns::from_columns(&[], &headers), None);
    }
}

#[cfg(test)]
mod detection_tests {
    use super::*;
    use campaign_core::domain::Row;

    fn sample(rows: &[[&str; 3]]) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.reset(3);
        for (row, cells) in (2..).zip(rows) {
            chunk.push(Row::new(row), &csv::StringRecord::from(cells.to_vec()));
        }
        chunk
    }

    fn find_column(rows: &[[&str; 3]], headers: [&str; 3]) -> Option<(usize, Option<String>)> {
        let found = find_phone_column(&sample(rows), &headers.map(str::to_owned), None)?;
        Some((found.column, found.region.map(|region| region.to_string())))
    }

    #[test]
    fn phone_column_is_found_by_content() {
        let international = [["1", "Олена", "+380501234567"], ["2", "Іван", "380671234567"]];
        assert_eq!(find_column(&international, ["id", "phone", "note"]), Some((2, None)));
        let national = [["0501234567", "Олена", "1"], ["067 123 45 67", "Іван", ""]];
        assert_eq!(find_column(&national, ["a", "b", "c"]), Some((0, Some("UA".into()))));
        assert_eq!(find_column(&[["1", "Олена", "Київ"]], ["phone", "b", "c"]), None);
        assert_eq!(find_column(&[["12345678", "29.12.2026", "1000000001"]], ["phone", "b", "c"]), None);
        assert_eq!(find_column(&[], ["phone", "b", "c"]), None);
    }

    #[test]
    fn letters_of_a_list_decide_between_regions() {
        let guess = |rows: &[[&str; 3]], headers: [&str; 3]| {
            let (sample, headers) = (sample(rows), headers.map(str::to_owned));
            let found = find_phone_column(&sample, &headers, None).expect("a phone column");
            let region = found.region.expect("a region");
            let others = find_other_regions(&sample, &headers, found.column, region);
            (region.to_string(), others.iter().map(Region::to_string).collect::<Vec<_>>())
        };
        let romanian = [["Ion", "0722 123 456", "Iași"], ["Ana", "0733 123 456", "Cluj"]];
        assert_eq!(guess(&romanian, ["Nume", "Telefon", "Oraș"]), ("RO".into(), vec![]));
        // One landline of another form does not outweigh the letters.
        let polish = [["Łódź", "601 123 456", ""], ["Gdańsk", "602 123 456", ""], ["Poznań", "(0-22) 123 45 67", ""]];
        assert_eq!(guess(&polish, ["Miasto", "Telefon", ""]).0, "PL");
        let ukrainian = [["Олена", "0501234567", "Київ"]];
        assert_eq!(guess(&ukrainian, ["name", "phone", "city"]), ("UA".into(), vec![]));
        // Without such letters, the other regions are named.
        let (region, others) = guess(&[["Olena", "0501234567", ""]], ["name", "phone", ""]);
        assert!(region == "UA" && others.contains(&"FR".to_owned()), "{region} {others:?}");
    }

    #[test]
    fn header_decides_between_two_phone_columns() {
        let rows = [["+380441234567", "+380501234567", ""], ["+380441234567", "+380671234567", ""]];
        assert_eq!(find_column(&rows, ["office", "Мобільний", "c"]), Some((1, None)));
        assert_eq!(find_column(&rows, ["a", "b", "c"]), Some((0, None)));
        // If both columns have phone headers, the first is chosen even if some of its cells are empty or contain two
        // numbers.
        let rows = [["+380501234567, +380441234567", "+380671234567", ""], ["+380501234568", "+380671234568", ""]];
        assert_eq!(find_column(&rows, ["Телефон", "Телефон 2", "c"]), Some((0, None)));
        assert_eq!(find_column(&rows, ["a", "b", "c"]), Some((1, None)));
    }

    #[test]
    fn mobile_header_is_preferred_to_phone_header() {
        let rows = [["+380441234567", "Olena", "+380501234567"], ["+380441234568", "Ivan", "+380671234567"]];
        for (phone, mobile) in [
            ("Телефон", "Мобільний"),
            ("Телефон", "Моб. телефон"),
            ("Телефон", "Мобильный телефон"),
            ("Телефон", "Сотовый"),
            ("Telefon", "Handy"),
            ("Telefon", "Mobil"),
            ("Telefon", "Tel. kom."),
            ("Telefon", "Telefon komórkowy"),
            ("phone_home", "phone_mobile"),
            ("Phone", "Cell"),
            ("phone", "GSM"),
        ] {
            assert_eq!(find_column(&rows, [phone, "name", mobile]), Some((2, None)), "{phone}, {mobile}");
            assert_eq!(find_column(&rows, [mobile, "name", phone]), Some((0, None)), "{mobile}, {phone}");
        }
        let international_and_national = [["+380441234567", "Olena", "050 123 45 67"]];
        let ukraine = Some("UA".into());
        assert_eq!(find_column(&international_and_national, ["Телефон", "Ім'я", "Мобільний"]), Some((2, ukraine)));
    }
}
