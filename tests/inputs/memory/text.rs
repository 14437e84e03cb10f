//! Lists as text, packed and as they are.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::is_refused;

/// A list that goes on so for so many MiB, packed by gzip.
fn gzip(before: &str, piece: &str, mib: usize) -> Vec<u8> {
    let block = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes()).expect("packed");
        packed.finish().expect("packed")
    };
    // A file of several members is read as one.
    [block(before), block(&piece.repeat((1 << 20) / piece.len())).repeat(mib)].concat()
}

#[test]
fn list_with_one_endless_row_is_refused() {
    for (before, piece, words) in [
        ("phone,name\n380501000002,\"", "x", "quote"),
        ("phone,name\n380501000002,", "x", "larger than 1 MiB"),
        ("phone", ",a", "larger than 1 MiB"),
        ("phone,name\n", "\0", ""),
        ("phone,name\n380501000002,\"Ann", "\n", "quote"),
    ] {
        let _case = crate::support::telling(format!("case: {before}{piece:?}"));
        is_refused("list.csv", &gzip(before, piece, 300), &[words]);
    }
    is_refused("list.csv", format!("phone{}\n", ",a".repeat(100_000)).as_bytes(), &["columns"]);
}
