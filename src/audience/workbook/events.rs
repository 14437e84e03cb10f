//! XML events of one part of a workbook, each of a bounded length.
//!
//! quick-xml keeps a whole event in memory: a comment, a run of blanks, a tag with its attributes. The reader below it
//! counts the bytes of the current event, and fails before they fill the memory. Both see the same boundaries, since the
//! count starts anew with each call of the parser and not at characters that look like a boundary.

use std::io::{self, BufRead, BufReader, Read};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::WorkbookError;
use crate::audience::decoding::{MAX_UNPACKED, finding_error};
use crate::finding::Finding;

/// The most bytes of one event, or of one element that a library keeps whole.
pub(super) const MAX_PIECE: u64 = 1 << 20;
/// The most elements inside one another.
const MAX_DEPTH: usize = 256;
/// The most bytes of an element's name.
const MAX_NAME: usize = 1 << 10;

/// Reads the events of a part.
pub(super) struct XmlEvents<R> {
    xml: Reader<CountingReader<R>>,
    buffer: Vec<u8>,
    /// How many elements are open.
    depth: usize,
    /// The local name of elements whose content counts as one piece.
    whole: Option<&'static str>,
    /// How many elements were open before the one whose content is being read.
    within: Option<usize>,
}

/// What is said of a part that is too large.
pub(super) struct SizeFindings {
    /// One piece of it has more than [`MOST_PIECE`].
    pub(super) piece: Finding,
    /// All of it has more than [`MOST_UNPACKED`].
    pub(super) part: Finding,
}

impl<R: Read> XmlEvents<R> {
    pub(super) fn new(input: R, excess: SizeFindings) -> Self {
        let input = BufReader::with_capacity(1 << 16, input);
        let xml = Reader::from_reader(CountingReader { input, piece: 0, all: 0, excess });
        Self { xml, buffer: Vec::new(), depth: 0, whole: None, within: None }
    }

    /// The same, in which each element of that local name counts as one piece with all that it contains.
    pub(super) fn with_whole_elements(self, name: &'static str) -> Self {
        Self { whole: Some(name), ..self }
    }

    /// Whether the element that counts as one piece is being read.
    pub(super) fn is_within(&self) -> bool {
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

/// Counts the bytes of the current piece.
struct CountingReader<R> {
    input: BufReader<R>,
    piece: u64,
    all: u64,
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
        if self.all > MAX_UNPACKED {
            return Err(finding_error(self.excess.part.clone()));
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.piece += count as u64;
        self.all += count as u64;
        self.input.consume(count);
    }
}

/// The value of an attribute.
pub(super) fn attribute_value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    find_attribute(element, |key| key == name)
}

/// The value of the first attribute of that local name, whatever its prefix.
pub(super) fn local_attribute_value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    find_attribute(element, |key| key == name || key.strip_suffix(name).is_some_and(|prefix| prefix.ends_with(':')))
}

/// Does not look for attributes that come twice: that takes the square of their number.
fn find_attribute(element: &BytesStart<'_>, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut attributes = element.attributes();
    let attributes = attributes.with_checks(false).map_while(Result::ok);
    let attribute = attributes.into_iter().find(|attribute| wanted(attribute.key.as_ref()))?;
    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::audience::form_trouble as trouble;

    const LONG: usize = 3 << 20;

    fn events(xml: impl Into<Vec<u8>>) -> XmlEvents<io::Cursor<Vec<u8>>> {
        let finding = |what| trouble::large_workbook(Path::new("list.xlsx"), what);
        XmlEvents::new(io::Cursor::new(xml.into()), SizeFindings { piece: finding("piece"), part: finding("part") })
    }

    /// Reads to the end; tells how many events there are, and how much memory the longest took.
    fn read_all(mut events: XmlEvents<io::Cursor<Vec<u8>>>) -> (Result<usize, String>, usize) {
        let mut count = 0;
        let result = loop {
            match events.next_event() {
                Ok(Event::Eof) => break Ok(count),
                Ok(_) => count += 1,
                Err(WorkbookError::Finding(finding)) => break Err(finding.message),
                Err(WorkbookError::Damaged(why)) => break Err(why),
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
            assert!(result.as_ref().is_err_and(|told| told.contains("piece")), "{kind}: {result:?}");
            assert!(memory < 4 << 20, "{kind}: {memory}");
        }
    }

    #[test]
    fn part_of_many_short_events_is_read() {
        let xml = format!("<a>{}</a>", "<b>x</b><!-- y -->".repeat(100_000));
        assert_eq!(read_all(events(xml)).0, Ok(400_002));
    }

    #[test]
    fn whole_element_counts_with_its_content() {
        let cell = |text: usize| format!("<c>{}</c>", "<t>x</t>".repeat(text / 8));
        let within = |text| read_all(events(format!("<a>{}</a>", cell(text).repeat(4))).with_whole_elements("c")).0;
        assert!(within(1 << 19).is_ok());
        assert!(within(LONG).is_err_and(|told| told.contains("piece")));
        // An element of the same name inside does not start the count anew.
        let nested = format!("<a><c>{}</c></a>", "<c></c>x".repeat(LONG / 8));
        assert!(read_all(events(nested).with_whole_elements("c")).0.is_err_and(|told| told.contains("piece")));
        let after = format!("<a>{}{}</a>", cell(8), "<d/>".repeat(LONG / 4));
        assert!(read_all(events(after).with_whole_elements("c")).0.is_ok());
    }

    #[test]
    fn too_deep_elements_are_rejected() {
        let nested = |depth: usize| read_all(events(format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth)))).0;
        assert_eq!(nested(MAX_DEPTH), Ok(2 * MAX_DEPTH));
        assert!(nested(LONG).is_err_and(|told| told.contains("too deep")));
    }

    #[test]
    fn attribute_is_found_among_many() {
        let many: String = (0..20_000).map(|number| format!("a{number}='' ")).collect();
        let mut events = events(format!("<e {many} r:id='x' id='&amp;'/>"));
        let Ok(Event::Empty(element)) = events.next_event() else { panic!("an element") };
        assert_eq!(attribute_value(&element, "id").as_deref(), Some("&"));
        assert_eq!(local_attribute_value(&element, "id").as_deref(), Some("x"));
    }
}
