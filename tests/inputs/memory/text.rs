//! Memory limits for text lists, compressed and uncompressed.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::assert_refused;

/// A gzip file with a piece that repeats for this many MiB.
fn gzip(before: &str, piece: &str, mib: usize) -> Vec<u8> {
    let block = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes()).expect("packed");
        packed.finish().expect("packed")
    };
    // A gzip file can have several members. Readers concatenate their contents.
    [block(before), block(&piece.repeat((1 << 20) / piece.len())).repeat(mib)].concat()
}

#[test]
fn list_with_an_oversized_row_is_refused() {
    for (before, piece, words) in [
        ("phone,name\n380501000002,\"", "x", "quote"),
        ("phone,name\n380501000002,", "x", "larger than 1 MiB"),
        ("phone", ",a", "larger than 1 MiB"),
        ("phone,name\n", "\0", ""),
        ("phone,name\n380501000002,\"Ann", "\n", "quote"),
    ] {
        let _case = crate::support::note_on_failure(format!("case: {before}{piece:?}"));
        assert_refused("list.csv", &gzip(before, piece, 300), &[words]);
    }
    assert_refused("list.csv", format!("phone{}\n", ",a".repeat(100_000)).as_bytes(), &["columns"]);
}
