//! ZIP archive of a workbook, XML events of its parts, and the limits of both.
//!
//! The size of the ZIP directory is checked before the library reads it. quick-xml keeps a whole event in memory: a
//! comment, a run of whitespace, a tag with its attributes. The underlying reader counts the bytes of the current event
//! and fails before the event fills memory. Reader and parser agree on event boundaries, because the count restarts
//! with each call to the parser, not at characters that look like a boundary.

use std::collections::HashMap;
use std::io;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;
use zip::read::ZipFile;

use super::WorkbookError;
use crate::audience::decoding::{MAX_UNPACKED, finding_error};
use crate::audience::list_findings;
use campaign_core::finding::Finding;

/// The maximum number of parts in a workbook.
const MAX_PARTS: u64 = 1 << 15;
/// The maximum size of the directory in bytes.
const MAX_DIRECTORY: u64 = 8 << 20;
/// The beginning of a directory entry.
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// The length of an entry without name, extra fields and comment.
const ENTRY_LENGTH: usize = 46;

/// The parts of a workbook.
pub(super) struct WorkbookArchive<'f, S> {
    pub(super) file: &'f Path,
    zip: ZipArchive<S>,
    /// The index of each part by name, in lower case, because Windows programs ignore case.
    names: HashMap<String, usize>,
}

impl<'f, S: Read + Seek> WorkbookArchive<'f, S> {
    pub(super) fn open(mut input: S, file: &'f Path) -> Result<Self, WorkbookError> {
        input.rewind()?;
        if !is_directory_small(&mut input)? {
            return Err(list_findings::large_workbook(file, "it has too many parts").into());
        }
        input.rewind()?;
        let zip = ZipArchive::new(input)?;
        let names =
            zip.file_names().enumerate().filter_map(|(number, name)| Some((normalize_name(&name.ok()?), number)));
        let names = names.collect();
        Ok(Self { file, zip, names })
    }

    /// The names of all parts, in lower case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    pub(super) fn has_part(&self, part: &str) -> bool {
        self.names.contains_key(&normalize_name(part))
    }

    /// The part with this name, compressed or not. `None` if there is no such part.
    pub(super) fn open_part(&mut self, part: &str) -> Result<Option<ZipFile<'_, S>>, WorkbookError> {
        let Some(number) = self.names.get(&normalize_name(part)) else { return Ok(None) };
        Ok(Some(self.zip.by_index(*number)?))
    }

    /// The XML events of the part with this name. `None` if there is no such part.
    pub(super) fn read_events(&mut self, part: &str) -> Result<Option<XmlEvents<ZipFile<'_, S>>>, WorkbookError> {
        let excess = SizeFindings {
            piece: list_findings::large_workbook(
                self.file,
                &format!("`{part}` contains a text value, tag or comment that is larger than 1 MiB"),
            ),
            part: list_findings::large_workbook(self.file, &format!("`{part}` is larger than 4 GiB when uncompressed")),
        };
        Ok(self.open_part(part)?.map(|entry| XmlEvents::new(entry, excess)))
    }
}

fn normalize_name(name: &str) -> String {
    name.replace('\\', "/").to_ascii_lowercase()
}

/// Whether the directory fits into memory. The archive might declare a wrong number of entries, so all entries are
/// counted, wherever they are.
fn is_directory_small(input: &mut impl Read) -> Result<bool, WorkbookError> {
    let mut block = vec![0; 1 << 18];
    let (mut retained, mut parts, mut bytes) = (0, 0_u64, 0_u64);
    loop {
        let count = input.read(&mut block[retained..])?;
        let ready = retained + count;
        let mut at = 0;
        // An entry that is cut off at the end of a block is found in the next one.
        while ready - at >= ENTRY_LENGTH {
            let Some(position) = find_entry(&block[at..ready - ENTRY_LENGTH + ENTRY.len()]) else {
                at = ready - ENTRY_LENGTH + 1;
                break;
            };
            let entry = &block[at + position..];
            let length_at = |offset: usize| u64::from(u16::from_le_bytes([entry[offset], entry[offset + 1]]));
            parts += 1;
            // The lengths of the name, the extra fields and the comment.
            bytes += ENTRY_LENGTH as u64 + length_at(28) + length_at(30) + length_at(32);
            at += position + ENTRY.len();
        }
        if parts > MAX_PARTS || bytes > MAX_DIRECTORY {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
        block.copy_within(at..ready, 0);
        retained = ready - at;
    }
}

/// The start of the first directory entry in these bytes. `None` if the bytes contain no entry.
fn find_entry(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == ENTRY[0]) {
        if bytes[from + at..].starts_with(&ENTRY) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// The maximum size of an event, or of an element that the library stores whole, in bytes.
pub(super) const MAX_PIECE: u64 = 1 << 20;
/// The maximum nesting depth of elements.
const MAX_DEPTH: usize = 256;
/// The maximum length of an element's name.
const MAX_NAME: usize = 1 << 10;

/// Reads the events of a part.
pub(super) struct XmlEvents<R> {
    xml: Reader<CountingReader<R>>,
    buffer: Vec<u8>,
    /// The number of open elements.
    depth: usize,
    /// The local name of elements whose content counts as one piece.
    whole: Option<&'static str>,
    /// The depth of the element that is being read as one piece, if any.
    within: Option<usize>,
}

/// The findings about a part that is too large.
pub(super) struct SizeFindings {
    /// A piece is larger than [`MAX_PIECE`].
    pub(super) piece: Finding,
    /// The part is larger than [`MAX_UNPACKED`].
    pub(super) part: Finding,
}

impl<R: Read> XmlEvents<R> {
    pub(super) fn new(input: R, excess: SizeFindings) -> Self {
        let input = BufReader::with_capacity(1 << 16, input);
        let xml = Reader::from_reader(CountingReader { input, piece: 0, total: 0, excess });
        Self { xml, buffer: Vec::new(), depth: 0, whole: None, within: None }
    }

    /// Counts each element with this local name, including its content, as one piece.
    pub(super) fn with_whole_elements(self, name: &'static str) -> Self {
        Self { whole: Some(name), ..self }
    }

    /// Whether the reader is inside an element that counts as one piece.
    pub(super) fn is_within_whole_element(&self) -> bool {
        self.within.is_some()
    }

    /// The next event; `Eof` at the end.
    pub(super) fn next_event(&mut self) -> Result<Event<'_>, WorkbookError> {
        self.buffer.clear();
        if self.within.is_none() {
            self.xml.get_mut().piece = 0;
        }
        let event = self.xml.read_event_into(&mut self.buffer).map_err(|error| match error {
            quick_xml::Error::Io(error) => WorkbookError::from_io(&error),
            error => WorkbookError::Damaged(error.to_string()),
        })?;
        match &event {
            Event::Start(element) => {
                if self.depth == MAX_DEPTH || element.name().as_ref().len() > MAX_NAME {
                    return Err(WorkbookError::Damaged("its elements are nested too deeply".to_owned()));
                }
                if self.within.is_none() && self.whole == Some(element.local_name().as_ref()) {
                    self.within = Some(self.depth);
                }
                self.depth += 1;
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.within = self.within.filter(|depth| self.depth > *depth);
            }
            _ => {}
        }
        Ok(event)
    }
}

/// Counts the bytes of the current piece and of the whole part. Reading fails if either is too large.
struct CountingReader<R> {
    input: BufReader<R>,
    piece: u64,
    total: u64,
    excess: SizeFindings,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece > MAX_PIECE {
            return Err(finding_error(self.excess.piece.clone()));
        }
        if self.total > MAX_UNPACKED {
            return Err(finding_error(self.excess.part.clone()));
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.piece += count as u64;
        self.total += count as u64;
        self.input.consume(count);
    }
}

/// The value of the attribute with this name.
pub(super) fn attribute_value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    find_attribute(element, |key| key == name)
}

/// The value of the first attribute with this local name and any prefix.
pub(super) fn local_attribute_value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    find_attribute(element, |key| key == name || key.strip_suffix(name).is_some_and(|prefix| prefix.ends_with(':')))
}

/// The value of the first matching attribute. Repeated attributes are not detected: that would take quadratic time.
fn find_attribute(element: &BytesStart<'_>, matches_name: impl Fn(&str) -> bool) -> Option<String> {
    let mut attributes = element.attributes();
    let attributes = attributes.with_checks(false).map_while(Result::ok);
    let attribute = attributes.into_iter().find(|attribute| matches_name(attribute.key.as_ref()))?;
    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

/// The maximum memory for a workbook in bytes, in addition to the program itself and one row.
pub(super) const MAX_RETAINED: u64 = 192 << 20;

/// The memory that a text uses: its entry in a list, and its allocation.
pub(super) const fn text_size(bytes: usize) -> usize {
    const MIN_ALLOCATION: usize = 32;
    let allocation = (bytes + size_of::<usize>()).next_multiple_of(16);
    size_of::<String>() + if allocation < MIN_ALLOCATION { MIN_ALLOCATION } else { allocation }
}

/// The memory that a workbook is still allowed to use.
pub(super) struct MemoryBudget<'f> {
    file: &'f Path,
    remaining: u64,
}

impl<'f> MemoryBudget<'f> {
    pub(super) fn new(file: &'f Path) -> Self {
        Self { file, remaining: MAX_RETAINED }
    }

    /// Reserves memory for `subject`, or rejects the workbook as too large.
    pub(super) fn reserve(&mut self, bytes: usize, subject: &str) -> Result<(), WorkbookError> {
        match self.remaining.checked_sub(bytes as u64) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => Err(list_findings::large_workbook(self.file, &format!("{subject} need too much memory")).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn entries(count: usize, name_length: u16) -> Vec<u8> {
        let mut entry = [ENTRY.to_vec(), vec![0; ENTRY_LENGTH - 4]].concat();
        entry[28..30].copy_from_slice(&name_length.to_le_bytes());
        entry.resize(ENTRY_LENGTH + usize::from(name_length), b'P');
        entry.repeat(count)
    }

    #[test]
    fn oversized_archive_directory_is_detected() {
        let is_small = |bytes: Vec<u8>| is_directory_small(&mut io::Cursor::new(bytes)).is_ok_and(|small| small);
        assert!(is_small(Vec::new()) && is_small(vec![b'P'; 1 << 20]));
        let max_parts = usize::try_from(MAX_PARTS).unwrap();
        assert!(is_small(entries(max_parts, 10)));
        assert!(!is_small(entries(max_parts + 1, 10)));
        assert!(is_small(entries(120, u16::MAX)));
        assert!(!is_small(entries(140, u16::MAX)));
    }

    #[test]
    fn entry_is_counted_once_wherever_a_block_ends() {
        for shift in 0..100 {
            let bytes = [vec![b'x'; (1 << 18) - shift], entries(2, 0)].concat();
            let mut split = io::Cursor::new(bytes.clone());
            assert!(is_directory_small(&mut split).is_ok_and(|small| small));
            assert_eq!(find_entry(&bytes), Some((1 << 18) - shift));
        }
        let max_parts = usize::try_from(MAX_PARTS).unwrap();
        let is_small = |count| is_directory_small(&mut io::Cursor::new(entries(count, 3))).is_ok_and(|small| small);
        assert!(is_small(max_parts) && !is_small(max_parts + 1));
    }
}

#[cfg(test)]
mod events_tests {
    use std::path::Path;

    use super::*;
    use crate::audience::list_findings;

    const LONG: usize = 3 << 20;

    fn events(xml: impl Into<Vec<u8>>) -> XmlEvents<io::Cursor<Vec<u8>>> {
        let finding = |problem| list_findings::large_workbook(Path::new("list.xlsx"), problem);
        XmlEvents::new(io::Cursor::new(xml.into()), SizeFindings { piece: finding("piece"), part: finding("part") })
    }

    /// Reads to the end. Returns the number of events, and the buffer size that the longest event needed.
    fn read_all(mut events: XmlEvents<io::Cursor<Vec<u8>>>) -> (Result<usize, String>, usize) {
        let mut count = 0;
        let result = loop {
            match events.next_event() {
                Ok(Event::Eof) => break Ok(count),
                Ok(_) => count += 1,
                Err(WorkbookError::Finding(finding)) => break Err(finding.message),
                Err(WorkbookError::Damaged(damage)) => break Err(damage),
            }
        };
        (result, events.buffer.capacity())
    }

    #[test]
    fn event_that_is_too_long_is_rejected() {
        let long = |byte: &str| byte.repeat(LONG / byte.len());
        for (kind, xml) in [
            ("blanks", format!("<a>{}</a>", long(" "))),
            ("text", format!("<a>{}</a>", long("x"))),
            ("comment", format!("<a><!--{}--></a>", long("<b>'"))),
            ("attribute", format!("<a b='{}'/>", long("<>\""))),
            ("attributes", format!("<a {}/>", long("b='' "))),
            ("name", format!("<{}/>", long("a"))),
            ("end tag", format!("<a></{}>", long("a"))),
            ("instruction", format!("<?a {}?><a/>", long("> "))),
            ("cdata", format!("<a><![CDATA[{}]]></a>", long("<b>"))),
            ("doctype", format!("<!DOCTYPE a [{}]><a/>", long("<!ENTITY b 'b'>"))),
            ("reference", format!("<a>&{};</a>", long("b"))),
        ] {
            let (result, memory) = read_all(events(xml));
            assert!(result.as_ref().is_err_and(|error| error.contains("piece")), "{kind}: {result:?}");
            assert!(memory < 4 << 20, "{kind}: {memory}");
        }
    }

    #[test]
    fn part_with_many_short_events_is_read() {
        let xml = format!("<a>{}</a>", "<b>x</b><!-- y -->".repeat(100_000));
        assert_eq!(read_all(events(xml)).0, Ok(400_002));
    }

    #[test]
    fn whole_element_size_includes_its_content() {
        let cell = |text: usize| format!("<c>{}</c>", "<t>x</t>".repeat(text / 8));
        let within = |text| read_all(events(format!("<a>{}</a>", cell(text).repeat(4))).with_whole_elements("c")).0;
        assert!(within(1 << 19).is_ok());
        assert!(within(LONG).is_err_and(|error| error.contains("piece")));
        // A nested element with the same name does not restart the count.
        let nested = format!("<a><c>{}</c></a>", "<c></c>x".repeat(LONG / 8));
        assert!(read_all(events(nested).with_whole_elements("c")).0.is_err_and(|error| error.contains("piece")));
        let after = format!("<a>{}{}</a>", cell(8), "<d/>".repeat(LONG / 4));
        assert!(read_all(events(after).with_whole_elements("c")).0.is_ok());
    }

    #[test]
    fn too_deeply_nested_elements_are_rejected() {
        let nested = |depth: usize| read_all(events(format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth)))).0;
        assert_eq!(nested(MAX_DEPTH), Ok(2 * MAX_DEPTH));
        assert!(nested(LONG).is_err_and(|error| error.contains("too deep")));
    }

    #[test]
    fn attribute_is_found_among_many() {
        let attributes: String = (0..20_000).map(|number| format!("a{number}='' ")).collect();
        let mut events = events(format!("<e {attributes} r:id='x' id='&amp;'/>"));
        let Ok(Event::Empty(element)) = events.next_event() else { panic!("an element") };
        assert_eq!(attribute_value(&element, "id").as_deref(), Some("&"));
        assert_eq!(local_attribute_value(&element, "id").as_deref(), Some("x"));
    }
}

#[cfg(test)]
mod budget_tests {
    use super::*;

    #[test]
    fn text_size_is_the_size_of_its_allocation() {
        assert_eq!([text_size(0), text_size(24), text_size(25), text_size(1000)], [56, 56, 72, 1032]);
    }

    #[test]
    fn memory_budget_is_shared_by_all_retained_data() {
        let mut budget = MemoryBudget::new(Path::new("list.xlsx"));
        let half = usize::try_from(MAX_RETAINED / 2).unwrap();
        assert!(budget.reserve(half, "its texts").is_ok() && budget.reserve(half, "its styles").is_ok());
        let Err(WorkbookError::Finding(finding)) = budget.reserve(1, "its sheets") else { panic!("refused") };
        assert!(finding.message.contains("its sheets need too much memory"), "{}", finding.message);
    }
}
