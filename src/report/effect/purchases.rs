//! What people bought, or did otherwise, as a file of a shop tells it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::moment::PurchaseTime;
use super::money::parse_amount;
use crate::audience::{DecodedText, decode_table, parse_phone_number, read_columns, suggest_columns};
use crate::domain::{Amount, Phone, Region, Row};
use crate::finding::{Finding, rules};
use crate::regular_file;

/// A file with a row for each purchase, and how it is read.
#[derive(Clone, Debug)]
pub struct PurchaseFile {
    /// The file.
    pub path: PathBuf,
    /// The header of the numbers; found by what stands in the columns where it is not told.
    pub phone: Option<String>,
    /// The header of the times.
    pub at: String,
    /// The header of the amounts, where they are wanted.
    pub amount: Option<String>,
    /// The region of national numbers.
    pub region: Option<Region>,
    /// The zone of its local times.
    pub zone: TimeZone,
}

/// The purchases of a file.
#[derive(Clone, Debug, Default)]
pub struct Purchases {
    /// Sorted by number.
    list: Vec<Purchase>,
    /// Rows that could not be used: why, how many, and the first of them.
    pub unusable: BTreeMap<&'static str, (u64, Row)>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purchase {
    phone: Phone,
    pub(super) time: PurchaseTime,
    pub(super) amount: Amount,
}

impl Purchases {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, lacks a column, or none of its rows can be used.
    pub fn read_file(file: &PurchaseFile) -> Result<Self, Vec<Finding>> {
        let path = file.path.as_path();
        let opened = || open_table(path, file.region);
        let table = opened()?;
        let again = table.reopen();
        let suggestion = suggest_columns(table, path).map_err(|finding| vec![*finding])?;
        let phone = file.phone.clone().or(suggestion.phone);
        let phone = phone.ok_or_else(|| {
            missing_column(path, "no column contains phone numbers", "name the column with `--phone COLUMN`")
        })?;
        let region = file.region.or(suggestion.region);
        let amounts = file.amount.as_deref();
        let mut purchases = Self::default();
        let headers = [phone.as_str(), file.at.as_str(), amounts.unwrap_or(&file.at)];
        let table = again.map_or_else(opened, Ok)?;
        let found = read_columns(table, path, headers, |row, cells| {
            match parse_purchase(cells, region, amounts.is_some(), &file.zone) {
                Ok(purchase) => purchases.list.push(purchase),
                Err(why) => purchases.unusable.entry(why).or_insert((0, row)).0 += 1,
            }
        });
        let found = found.map_err(|finding| vec![*finding])?;
        if let Some((header, _)) = headers.iter().zip(found).find(|(_, found)| !found) {
            return Err(missing_column(
                path,
                &format!("no column `{header}`"),
                "write the header exactly as in the file",
            ));
        }
        if purchases.list.is_empty() {
            let why =
                purchases.unusable.iter().map(|(why, (rows, first))| format!("{rows} × {why} (first in row {first})"));
            let why: Vec<String> = why.collect();
            return Err(missing_column(
                path,
                &format!("no usable rows: {}", why.join("; ")),
                "use another file or another column",
            ));
        }
        purchases.list.sort_by_key(|purchase| purchase.phone);
        Ok(purchases)
    }

    /// How many can be used.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Those of a person.
    pub(super) fn find_by_phone(&self, phone: Phone) -> &[Purchase] {
        let first = self.list.partition_point(|purchase| purchase.phone < phone);
        let count = self.list[first..].partition_point(|purchase| purchase.phone == phone);
        &self.list[first..first + count]
    }
}

fn parse_purchase(
    [phone, at, paid]: [&str; 3],
    region: Option<Region>,
    has_amounts: bool,
    zone: &TimeZone,
) -> Result<Purchase, &'static str> {
    let phone = parse_phone_number(phone, region).map_err(|_| "no valid phone number")?;
    let moment = PurchaseTime::parse(at, zone).ok_or("no valid time (valid: 2026-12-01 10:00 or 01.12.2026)")?;
    let amount = match has_amounts {
        true => parse_amount(paid).ok_or("no valid amount")?,
        false => Amount::default(),
    };
    Ok(Purchase { phone, time: moment, amount })
}

/// A file in any form of a list; `region` tells encodings apart.
fn open_table(path: &Path, region: Option<Region>) -> Result<DecodedText, Vec<Finding>> {
    let file = regular_file::open(path);
    let file = file.map_err(|error| {
        missing_column(path, &format!("cannot be read: {error}"), "check the path of the purchases file")
    })?;
    decode_table(file, path, region).map_err(|finding| vec![*finding])
}

fn missing_column(path: &Path, what: &str, help: &str) -> Vec<Finding> {
    vec![Finding::new(&rules::PURCHASES_UNUSABLE, format!("`{}`: {what}", path.display())).help(help)]
}
