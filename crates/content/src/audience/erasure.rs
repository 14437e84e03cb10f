//! Erasure of recipients from a list: their rows stay, without their data.

use std::io::{self, Read, Write};
use std::path::Path;

use roaring::RoaringBitmap;

use super::columns;
use super::columns::ListSettings;
use super::records::RecordReader;
use campaign_core::domain::FORGOTTEN;

/// Writes a list without the data of these rows: a placeholder replaces their numbers, and their other cells are empty.
/// `open` opens the list from its beginning each time.
///
/// # Errors
/// If the list cannot be read or written, or does not have the columns of these settings.
pub fn write_without_rows<R: Read>(
    open: impl Fn() -> io::Result<R>,
    file: &Path,
    settings: &ListSettings,
    rows: &RoaringBitmap,
    mut out: impl Write,
) -> io::Result<()> {
    let mut records = RecordReader::open(open()?, file).map_err(|finding| unreadable(&finding.message))?;
    let phone = columns::name_columns(records.header(), settings).phone();
    let phone = phone.ok_or_else(|| unreadable("it has no phone column"))?;
    let (columns, delimiter) = (records.header().headers.len(), records.header().delimiter.to_byte());
    let mut cells = vec![delimiter; columns.saturating_sub(1)];
    cells.splice(phone..phone, FORGOTTEN.bytes());
    let (mut list, mut copied) = (open()?, 0);
    while let Some((row, span)) = records.next_span().map_err(|finding| unreadable(&finding.message))? {
        if !rows.contains(row.get()) {
            continue;
        }
        copy_bytes(&mut list, span.start - copied, &mut out)?;
        let mut raw = Vec::new();
        list.by_ref().take(span.end - span.start).read_to_end(&mut raw)?;
        let text = raw.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        out.write_all(&cells)?;
        out.write_all(&raw[text..])?;
        copied = span.end;
    }
    io::copy(&mut list, &mut out)?;
    out.flush()
}

fn copy_bytes(list: &mut impl Read, bytes: u64, out: &mut impl Write) -> io::Result<()> {
    match io::copy(&mut list.take(bytes), out)? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn unreadable(reason: &str) -> io::Error {
    io::Error::other(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remove_rows(list: &str, rows: &[u32]) -> String {
        let settings = ListSettings { columns: Vec::new(), region: None, may_be_empty: true };
        let mut left = Vec::new();
        let open = || Ok(list.as_bytes());
        write_without_rows(open, Path::new("list.csv"), &settings, &rows.iter().copied().collect(), &mut left).unwrap();
        String::from_utf8(left).unwrap()
    }

    #[test]
    fn forgotten_rows_are_blanked_and_other_bytes_kept() {
        for (list, rows, expected) in [
            ("phone,name\n1,A\n2,B\n3,C\n", &[3][..], "phone,name\n1,A\nforgotten,\n3,C\n"),
            ("phone\n1\n2", &[2, 3], "phone\nforgotten\nforgotten"),
            (
                "\u{feff}name;phone;x\r\nA;1;\r\n\r\nB;2;y\r\n",
                &[4],
                "\u{feff}name;phone;x\r\nA;1;\r\n\r\n;forgotten;\r\n",
            ),
            ("sep=;\nphone;name\n1;A\n2;B\n", &[2], "sep=;\nphone;name\nforgotten;\n2;B\n"),
            ("phone,name\n\"1\",\"A\nB\"\"C\"\n\n2,B\n", &[2], "phone,name\nforgotten,\n\n2,B\n"),
            ("phone,name\n\n  \n1,A\n", &[4], "phone,name\n\n  \nforgotten,\n"),
            ("phone,name\n1,A\n", &[], "phone,name\n1,A\n"),
        ] {
            assert_eq!(remove_rows(list, rows), expected, "{list:?}");
        }
    }

    #[test]
    fn forgotten_rows_are_erased_anywhere_in_a_long_list() {
        let line = |row: u32, name: &str| format!("{},{name}\n", 380_501_000_000 + u64::from(row));
        let list = (2..30_000).map(|row| line(row, "Person")).collect::<String>();
        let left = remove_rows(&format!("phone,name\n{list}"), &[2, 15_000, 29_999]);
        let mut lines = left.lines().zip(1_u32..).skip(1);
        assert!(lines.all(|(text, row)| (text == "forgotten,") == [2, 15_000, 29_999].contains(&row)));
    }
}
