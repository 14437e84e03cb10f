//! Tests of encodings, compressed files and workbooks.

use std::io::{Cursor, Write as _};

use encoding_rs::{KOI8_U, UTF_8, WINDOWS_1251, WINDOWS_1252};
use proptest::prelude::*;

use super::*;
use crate::audience::{Chunk, ListSettings, RecipientReader};

const UKRAINIAN: &str = "Телефон;Ім'я;Місто\r\n0501234567;Олена;Київ\r\n0671234567;Їжак Ґєнін;Львів\r\n";

fn default_format() -> ListFormat {
    ListFormat::default()
}

fn decode_text(bytes: &[u8], format: &ListFormat) -> Result<(String, Option<String>), Finding> {
    let mut decoded =
        decode(Cursor::new(bytes.to_vec()), Path::new("list.csv"), format, None).map_err(|finding| *finding)?;
    let mut text = String::new();
    match decoded.read_to_string(&mut text) {
        Ok(_) => Ok((text, decoded.format().describe(b','))),
        Err(error) => Err(extract_finding(&error).cloned().unwrap_or_else(|| panic!("{error}"))),
    }
}

fn encode_utf16(text: &str, little_endian: bool) -> Vec<u8> {
    text.encode_utf16().flat_map(|unit| if little_endian { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
}

#[test]
fn text_is_decoded_correctly_from_every_encoding() {
    let windows = WINDOWS_1251.encode(UKRAINIAN).0.into_owned();
    let koi = KOI8_U.encode(UKRAINIAN).0.into_owned();
    let marked = |text: &str| format!("\u{feff}{text}");
    for (bytes, description) in [
        (UKRAINIAN.as_bytes().to_vec(), None),
        (windows, Some("encoding Windows-1251")),
        (koi, Some("encoding KOI8-U")),
        (encode_utf16(&marked(UKRAINIAN), true), Some("encoding UTF-16LE")),
        (encode_utf16(&marked(UKRAINIAN), false), Some("encoding UTF-16BE")),
        (encode_utf16(UKRAINIAN, true), Some("encoding UTF-16LE")),
        (encode_utf16(UKRAINIAN, false), Some("encoding UTF-16BE")),
    ] {
        assert_eq!(
            decode_text(&bytes, &default_format()),
            Ok((UKRAINIAN.to_owned(), description.map(str::to_owned))),
            "{description:?}"
        );
    }
}

#[test]
fn encoding_is_detected_from_a_few_words() {
    for (text, encoding) in [
        ("phone,name\n380501234567,Олена\n", WINDOWS_1251),
        ("phone,name\n380501234567,Іван\n380671234567,Марія\n", WINDOWS_1251),
        ("phone,name\n380501234567,Müller\n380671234567,José Nuñez\n", WINDOWS_1252),
        ("phone,name\n380501234567,Renée\n", WINDOWS_1252),
    ] {
        let bytes = encoding.encode(text).0.into_owned();
        let (read, description) = decode_text(&bytes, &default_format()).unwrap();
        assert_eq!(read, text, "{description:?}");
    }
}

/// The decoded text, and the messages of the warnings.
fn decode_with_hints(bytes: &[u8], hints: EncodingHints) -> (String, Vec<String>) {
    let mut decoded = decode(Cursor::new(bytes.to_vec()), Path::new("list.csv"), &default_format(), hints).unwrap();
    let mut text = String::new();
    decoded.read_to_string(&mut text).unwrap();
    (text, decoded.format().warnings().into_iter().map(|warning| warning.message).collect())
}

#[test]
fn encoding_is_chosen_by_the_country_of_the_recipients() {
    let list = |numbers: [&str; 2], rows: usize| {
        let [no, yes] = numbers.map(|number| format!("{number},Taras,"));
        format!("phone,name,unsubscribed\n{}{yes}так\n", format!("{no}\n").repeat(rows))
    };
    let (abroad, home) = (["48501234567", "+48501234568"], ["380501234567", "+380501234568"]);
    let ukraine = "UA".parse().ok();
    let (none, region) = (EncodingHints::default(), EncodingHints::from(ukraine));
    let country = EncodingHints { country: ukraine, ..none };
    let texts = EncodingHints { is_cyrillic: true, ..none };
    for (numbers, hints, warnings) in [
        (home, none, 1),
        (abroad, country, 1),
        (abroad, texts, 1),
        (home, EncodingHints { country: "DE".parse().ok(), ..texts }, 1),
        (abroad, region, 0),
    ] {
        for rows in [1, 5_000] {
            let list = list(numbers, rows);
            let (text, found) = decode_with_hints(&WINDOWS_1251.encode(&list).0, hints);
            assert!(text == list, "{hints:?}: {}", &text[text.len() - 40..]);
            assert_eq!(found.len(), warnings, "{hints:?}: {found:?}");
            assert!(
                found.iter().all(|warning| warning.contains("Windows-1251: one of its cells says `так`")),
                "{found:?}"
            );
        }
    }
}

#[test]
fn uncertain_encoding_is_reported_with_an_example_cell() {
    for (text, encoding, warnings) in [
        ("phone,name\n380501234567,Олена\n380671234567,Їжак Ґєнін\n", WINDOWS_1251, vec![]),
        ("phone,name\n49301234567,Müller\n49301234568,José Nuñez\n", WINDOWS_1252, vec![]),
        (
            "phone,name\n380501234567,Herr Müller\n380671234567,José Nuñez\n",
            WINDOWS_1252,
            vec!["`list.csv` is probably encoded in Windows-1252: one of its cells says `Herr Müller`"],
        ),
    ] {
        let found = decode_with_hints(&encoding.encode(text).0, EncodingHints::default());
        assert_eq!(found, (text.to_owned(), warnings.into_iter().map(str::to_owned).collect()));
    }
}

#[test]
fn encoding_is_detected_after_40_000_ascii_rows() {
    let mut text = "phone,name\n".to_owned() + &"380501234567,Olena\n".repeat(40_000);
    text += "380501234567,Олена Петренко\n380671234567,Тарас Їжак\n";
    let (read, description) = decode_text(&WINDOWS_1251.encode(&text).0, &default_format()).unwrap();
    assert!(read == text);
    assert_eq!(description.as_deref(), Some("encoding Windows-1251"));
}

#[test]
fn text_with_one_invalid_byte_is_still_read_as_utf_8() {
    let mut bytes = UKRAINIAN.repeat(3).into_bytes();
    bytes.extend_from_slice(b"0501234567;\xd0;x\r\n");
    let decoded = decode(Cursor::new(bytes), Path::new("list.csv"), &default_format(), None).unwrap();
    let settings = ListSettings { region: "UA".parse().ok(), ..ListSettings::default() };
    let settings = ListSettings { columns: vec![("phone".to_owned(), "Телефон".to_owned())], ..settings };
    let mut reader = RecipientReader::open(decoded, Path::new("list.csv"), &settings).unwrap();
    let finding = reader.read_chunk(&mut Chunk::new()).unwrap_err();
    assert_eq!((finding.rule.id, finding.place.unwrap().line_number()), ("recipients-encoding", 10));
}

#[test]
fn campaign_encoding_is_used_unless_provably_wrong() {
    let declared = |encoding| ListFormat { encoding: Some(encoding), ..default_format() };
    let latin = b"phone,name\n380501234567,\xc0\xc1\n";
    assert_eq!(decode_text(latin, &declared(WINDOWS_1251)).unwrap().0, "phone,name\n380501234567,АБ\n");
    assert_eq!(decode_text(latin, &declared(WINDOWS_1252)).unwrap().0, "phone,name\n380501234567,ÀÁ\n");
    for (bytes, encoding) in [
        (UKRAINIAN.as_bytes().to_vec(), WINDOWS_1251),
        (encode_utf16(&format!("\u{feff}{UKRAINIAN}"), true), WINDOWS_1251),
        (encode_utf16(&format!("\u{feff}{UKRAINIAN}"), true), UTF_8),
    ] {
        let finding = decode_text(&bytes, &declared(encoding)).unwrap_err();
        assert_eq!(finding.rule, "recipients-form-of-another");
        assert!(finding.help.unwrap().contains("delete `encoding`"));
    }
    let surrogate = [encode_utf16("phone\n1\n", true), vec![0x00, 0xd8], encode_utf16("\n", true)].concat();
    let finding = decode_text(&surrogate, &declared(encoding_rs::UTF_16LE)).unwrap_err();
    assert_eq!((finding.rule.id, finding.place.unwrap().line_number()), ("recipients-encoding", 3));
}

#[test]
fn decoded_text_declares_the_configured_delimiter() {
    let format = ListFormat { delimiter: Delimiter::new(b'^'), ..default_format() };
    for text in [
        "phone^name\n380501234567^a,b\n",
        "\u{feff}phone^name\n380501234567^a,b\n",
        "sep=,\nphone^name\n380501234567^a,b\n",
    ] {
        let decoded = decode_text(text.as_bytes(), &format).unwrap().0;
        // The decoded text declares its own delimiter.
        for list in [decoded.as_bytes(), decode_text(decoded.as_bytes(), &default_format()).unwrap().0.as_bytes()] {
            let mut reader = RecipientReader::open(list, Path::new("list.csv"), &ListSettings::default()).unwrap();
            let mut chunk = Chunk::new();
            assert!(reader.read_chunk(&mut chunk).unwrap());
            assert_eq!(chunk.get(0).unwrap().fields.get(1), "a,b");
        }
    }
    let ragged = decode_text(b"phone^name\n1\n", &format).unwrap().0;
    let mut reader = RecipientReader::open(ragged.as_bytes(), Path::new("list.csv"), &ListSettings::default()).unwrap();
    let finding = reader.read_chunk(&mut Chunk::new()).unwrap_err();
    assert_eq!(finding.place.unwrap().line_number(), 2, "the delimiter line is not a line of the file");
}

fn compress_gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn compressed_list_is_detected_by_content() {
    let windows = WINDOWS_1251.encode(UKRAINIAN).0.into_owned();
    let zstd = zstd::encode_all(UKRAINIAN.as_bytes(), 3).unwrap();
    let two_members = [compress_gzip(&UKRAINIAN.as_bytes()[..40]), compress_gzip(&UKRAINIAN.as_bytes()[40..])].concat();
    for (bytes, description) in [
        (compress_gzip(UKRAINIAN.as_bytes()), "compressed with gzip"),
        (two_members, "compressed with gzip"),
        (zstd, "compressed with zstd"),
        (compress_gzip(&windows), "compressed with gzip, encoding Windows-1251"),
    ] {
        assert_eq!(decode_text(&bytes, &default_format()), Ok((UKRAINIAN.to_owned(), Some(description.to_owned()))));
    }
    let large = compress_gzip(UKRAINIAN.repeat(5_000).as_bytes());
    for (bytes, rule) in [
        (large[..large.len() / 2].to_vec(), "recipients-unreadable"),
        ([&large[..300], &[0xff; 40], &large[340..]].concat(), "recipients-unreadable"),
        (b"\x1f\x8b\x08\0".to_vec(), "recipients-unreadable"),
        (b"\x28\xb5\x2f\xfd\0\0".to_vec(), "recipients-unreadable"),
        (compress_gzip(&compress_gzip(b"phone\n1\n")), "recipients-not-csv"),
    ] {
        assert_eq!(decode_text(&bytes, &default_format()).unwrap_err().rule, rule);
    }
}

/// A zstd frame with one raw block. `header` follows the magic number.
fn zstd_frame(header: &[u8], content: &[u8]) -> Vec<u8> {
    let block = (u32::try_from(content.len()).unwrap() << 3 | 1).to_le_bytes();
    [b"\x28\xb5\x2f\xfd", header, &block[..3], content].concat()
}

/// A zstd frame that decoders skip.
fn skippable_frame(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    [b"\x53\x2a\x4d\x18", &length[..], content].concat()
}

#[test]
fn compressed_lists_are_read_despite_padding_or_extra_frames() {
    let list = UKRAINIAN.as_bytes();
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let padding = vec![0; 70_000];
    for (bytes, description) in [
        ([compress_gzip(list), padding.clone()].concat(), "compressed with gzip"),
        (
            [compress_gzip(&list[..40]), compress_gzip(b""), compress_gzip(&list[40..]), padding].concat(),
            "compressed with gzip",
        ),
        ([zstd(&list[..40]), zstd(b""), zstd(&list[40..])].concat(), "compressed with zstd"),
        ([skippable_frame(b"size"), zstd(list)].concat(), "compressed with zstd"),
        (
            [zstd(&list[..40]), skippable_frame(b""), zstd(&list[40..]), skippable_frame(b"index")].concat(),
            "compressed with zstd",
        ),
        // The largest allowed window: 128 MiB.
        (zstd_frame(&[0, 17 << 3], list), "compressed with zstd"),
    ] {
        assert_eq!(decode_text(&bytes, &default_format()), Ok((UKRAINIAN.to_owned(), Some(description.to_owned()))));
    }
}

#[test]
fn unreadable_compressed_lists_are_rejected_with_a_reason() {
    let list = UKRAINIAN.as_bytes();
    let zstd = zstd::encode_all(list, 3).unwrap();
    let large = compress_gzip(UKRAINIAN.repeat(5_000).as_bytes());
    for (bytes, reason, help) in [
        (zstd_frame(&[0, 21 << 3], list), "needs 2 GiB of memory", "without `--long`"),
        (zstd_frame(&[0, 17 << 3 | 4], list), "needs 192 MiB of memory", "without `--long`"),
        (
            [skippable_frame(b"size"), zstd_frame(&[0, 21 << 3], list)].concat(),
            "needs more than 128 MiB",
            "without `--long`",
        ),
        (zstd_frame(&[1, 0, 7], list), "zstd dictionary", "without `-D`"),
        (zstd[..zstd.len() - 9].to_vec(), "incomplete zstd file", "download it again"),
        ([&zstd[..], &[0; 9]].concat(), "extra data before or after", "compress it again"),
        ([&zstd[..], b"phone\n"].concat(), "extra data before or after", "compress it again"),
        (large[..large.len() - 3].to_vec(), "incomplete gzip file", "download it again"),
        ([&compress_gzip(list)[..], &large[..large.len() / 2]].concat(), "incomplete gzip file", "download it again"),
        ([&large[..300], &[0xff; 40], &large[340..]].concat(), "a damaged gzip file", "compress the list again"),
        (
            [compress_gzip(list), vec![0; 9], compress_gzip(list)].concat(),
            "extra data before or after",
            "compress it again",
        ),
        ([compress_gzip(list), b"phone\n".to_vec()].concat(), "extra data before or after", "compress it again"),
        ([skippable_frame(b"size"), b"\x04\x22\x4d\x18".to_vec()].concat(), "extra data before", "unpack it"),
    ] {
        let finding = decode_text(&bytes, &default_format()).unwrap_err();
        assert!(finding.message.contains(reason), "{reason}: {}", finding.message);
        assert!(finding.help.as_ref().is_some_and(|remedy| remedy.contains(help)), "{reason}: {:?}", finding.help);
    }
}

#[test]
fn disk_error_is_not_reported_as_a_damaged_compressed_list() {
    struct FailingDisk(Cursor<Vec<u8>>);
    impl Read for FailingDisk {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::from_raw_os_error(5)),
                count => Ok(count),
            }
        }
    }
    impl Seek for FailingDisk {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let lines: String = (0..200_000_u32).map(|line| format!("{}\n", line.wrapping_mul(2_654_435_761))).collect();
    let large = compress_gzip(format!("phone\n{lines}").as_bytes());
    let mut unpacked = decode(FailingDisk(Cursor::new(large)), Path::new("list.csv"), &default_format(), None);
    let message = match &mut unpacked {
        Err(finding) => finding.message.clone(),
        Ok(decoded) => io::copy(decoded, &mut io::sink()).unwrap_err().to_string(),
    };
    assert!(!message.contains("damaged") && !message.contains("incomplete"), "{message}");
}

proptest! {
    #[test]
    fn utf_8_is_unchanged_for_any_chunk_size(text in "[a-z,\"\n їЇ😀\u{feff}]{0,80}", size in 1_usize..9) {
        struct SmallReads(Cursor<Vec<u8>>, usize);
        impl Read for SmallReads {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let size = buffer.len().min(self.1);
                self.0.read(&mut buffer[..size])
            }
        }
        let input = SmallReads(Cursor::new(text.clone().into_bytes()), size);
        let detected = Arc::new(DetectedFormat::default());
        let mut passed = Vec::new();
        let (file, format) = (Path::new("list.csv"), &default_format());
        let source = DecodingSource { file, format, hints: None.into(), has_campaign: true, packed: None };
        let mut decoder = TextDecoder::new(input, text.as_bytes(), source, detected).unwrap();
        let mut buffer = [0; 5];
        loop {
            let count = decoder.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            passed.extend_from_slice(&buffer[..count]);
        }
        prop_assert_eq!(passed, text.into_bytes());
    }

    #[test]
    fn decoder_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300), magic in 0_usize..7) {
        let magic: &[u8] = [&b""[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"sep=;\n"][magic];
        bytes.splice(0..0, magic.iter().copied());
        let _ = decode_text(&bytes, &default_format());
    }
}
