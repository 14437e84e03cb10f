//! What changed between the list that a run froze and the list of now.

use std::hash::{Hash as _, Hasher as _};
use std::io::{self, BufReader, Read};
use std::path::Path;

use rustc_hash::FxHasher;

use crate::audience::{Chunk, RecipientReader};
use crate::check::reader_settings;
use crate::manifest::CampaignBrief;
use crate::report::{format_count, format_thousands};

/// The header of a list, and a hash of each of its records in ascending order.
struct ListContent {
    headers: Vec<String>,
    records: Vec<u64>,
}

/// How a list changed, in words; each list is read as its campaign says.
pub(super) fn describe_list_changes(
    before: (io::Result<impl Read>, &CampaignBrief),
    now: (io::Result<impl Read>, &CampaignBrief),
) -> String {
    let (Some(before), Some(now)) = (ListContent::read(before), ListContent::read(now)) else {
        return "different content".to_owned();
    };
    if before.headers != now.headers {
        return "different columns".to_owned();
    }
    match now.count_differences(&before) {
        (0, 0) => "different order or format of rows".to_owned(),
        (added, 0) => format!("{} added", format_count(added, "row")),
        (0, removed) => format!("{} removed", format_count(removed, "row")),
        (added, removed) => format!("{} added, {} removed", format_count(added, "row"), format_thousands(removed)),
    }
}

/// Whether two lists say the same of everybody but in these rows, whose people were forgotten in the first.
pub(super) fn is_same_except(
    before: (io::Result<impl Read>, &CampaignBrief),
    now: (io::Result<impl Read>, &CampaignBrief),
    forgotten: &[u32],
) -> bool {
    let (Some(before), Some(now)) = (read_hashed_rows(before), read_hashed_rows(now)) else { return false };
    let same = |((row, hash), (other, another)): (&HashedRow, &HashedRow)| {
        row == other && (hash == another || forgotten.contains(row))
    };
    let (ours, theirs) = (&before.1, &now.1);
    before.0 == now.0 && ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// A row, and a hash of its record.
type HashedRow = (u32, u64);

/// The header of a list, and its records in their order; nothing where it cannot be read to its end.
fn read_hashed_rows((list, brief): (io::Result<impl Read>, &CampaignBrief)) -> Option<(Vec<String>, Vec<HashedRow>)> {
    let list = BufReader::with_capacity(1 << 16, list.ok()?);
    // What is wrong with it is not told here, nor where.
    let mut reader = RecipientReader::open(list, Path::new(""), &reader_settings(brief)).ok()?;
    let headers = reader.header().headers().to_vec();
    let (mut records, mut chunk) = (Vec::new(), Chunk::new());
    while reader.read_chunk(&mut chunk).ok()? {
        records.extend(chunk.iter().map(|record| {
            let mut hasher = FxHasher::default();
            record.fields.iter().for_each(|cell| cell.hash(&mut hasher));
            (record.row.get(), hasher.finish())
        }));
    }
    Some((headers, records))
}

impl ListContent {
    /// Nothing where it cannot be read to its end.
    fn read(list: (io::Result<impl Read>, &CampaignBrief)) -> Option<Self> {
        let (headers, records) = read_hashed_rows(list)?;
        let mut records: Vec<u64> = records.into_iter().map(|(_, hash)| hash).collect();
        records.sort_unstable();
        Some(Self { headers, records })
    }

    /// How many records this has and the other has not, and the other way round; one that stands there twice is two.
    fn count_differences(&self, other: &Self) -> (u64, u64) {
        let (mut new, mut gone) = (0, 0);
        let (mut here, mut there) = (self.records.iter().peekable(), other.records.iter().peekable());
        loop {
            match (here.peek(), there.peek()) {
                (None, None) => return (new, gone),
                (Some(one), Some(another)) if one == another => {
                    here.next();
                    there.next();
                }
                (Some(one), another) if another.is_none_or(|another| one < another) => {
                    new += 1;
                    here.next();
                }
                _ => {
                    gone += 1;
                    there.next();
                }
            }
        }
    }
}
