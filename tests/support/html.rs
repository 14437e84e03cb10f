//! An HTML parser and checks for dashboard pages. The unit tests use them too.

use std::collections::{BTreeMap, BTreeSet};

use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements without an end tag.
const VOID: [&str; 5] = ["meta", "link", "br", "hr", "input"];

/// An element of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The text of the element and its children.
    pub(crate) text: String,
}

/// Elements whose text is separated from the text around them.
const SEPARATED: [&str; 12] = ["td", "th", "div", "p", "dt", "dd", "li", "pre", "h1", "h2", "h3", "h4"];

/// A parsed page.
#[derive(Debug)]
pub(crate) struct Html {
    pub(crate) elements: Vec<Element>,
}

impl Html {
    /// Parses a page; fails if an element is not closed properly.
    pub(crate) fn read(page: &str) -> Self {
        assert!(page.starts_with("<!doctype html>"), "no doctype: {}", &page[..page.len().min(80)]);
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let (mut elements, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
        let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        for token in Tokenizer::new_with_emitter(page, emitter) {
            match token.expect("a text") {
                Token::StartTag(tag) => {
                    let name = utf8(&tag.name);
                    let attributes = tag.attributes.iter().map(|(name, value)| (utf8(name), utf8(value))).collect();
                    let is_void = VOID.contains(&name.as_str());
                    assert!(is_void || !tag.self_closing, "<{name}/> is not an HTML element");
                    elements.push(Element { name, attributes, text: String::new() });
                    open.extend((!is_void).then_some(elements.len() - 1));
                }
                Token::EndTag(tag) => {
                    let last = open.pop().map(|index| elements[index].name.clone());
                    assert_eq!(last.as_deref(), Some(utf8(&tag.name).as_str()), "an end tag does not match");
                    if SEPARATED.contains(&utf8(&tag.name).as_str()) {
                        open.iter().for_each(|index| elements[*index].text.push(' '));
                    }
                }
                Token::String(text) => open.iter().for_each(|index| elements[*index].text.push_str(&utf8(&text))),
                Token::Error(error) => panic!("invalid HTML: {error:?}"),
                Token::Comment(_) | Token::Doctype(_) => {}
            }
        }
        assert!(
            open.is_empty(),
            "not closed: {:?}",
            open.iter().map(|index| &elements[*index].name).collect::<Vec<_>>()
        );
        Self { elements }
    }

    /// Parses a page and checks the requirements of all pages.
    pub(crate) fn sound(page: &str) -> Self {
        let html = Self::read(page);
        html.check_page();
        html
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&Element> {
        self.elements.iter().filter(|element| element.name == name).collect()
    }

    /// The only element of this name.
    pub(crate) fn one(&self, name: &str) -> &Element {
        match self.all(name).as_slice() {
            [one] => one,
            other => panic!("{} elements <{name}>", other.len()),
        }
    }

    pub(crate) fn with_class(&self, class: &str) -> Vec<&Element> {
        let has_class = |element: &&Element| element.attribute("class").split(' ').any(|own| own == class);
        self.elements.iter().filter(has_class).collect()
    }

    fn check_page(&self) {
        assert!(["en", "uk"].contains(&self.one("html").attribute("lang")), "missing or unknown language");
        for once in ["title", "main", "h1"] {
            assert!(!self.one(once).text.trim().is_empty(), "<{once}> is empty");
        }
        let mut level = 0;
        for heading in self.elements.iter().filter(|element| element.name.len() == 2 && element.name.starts_with('h')) {
            let Ok(next) = heading.name[1..].parse::<usize>() else { continue };
            assert!(next <= level + 1, "<h{next}> follows <h{level}>: {}", heading.text.trim());
            level = next;
        }
        let ids: Vec<&str> =
            self.elements.iter().map(|element| element.attribute("id")).filter(|id| !id.is_empty()).collect();
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "duplicate IDs: {ids:?}");
        for element in &self.elements {
            assert!(!["iframe", "object", "embed", "base", "svg:script"].contains(&element.name.as_str()));
            let is_external = element.attribute("src").starts_with("/static/") && element.text.trim().is_empty();
            assert!(element.name != "script" || is_external, "inline script: {}", element.text);
            for (name, value) in &element.attributes {
                assert!(name != "style" && !name.starts_with("on"), "<{} {name}>", element.name);
                let is_url = name == "href" || name == "src" || name == "action" || name == "srcset";
                assert!(!is_url || value.starts_with(['/', '#']), "<{} {name}={value}>", element.name);
                let is_id = name == "aria-labelledby" || name == "aria-describedby" || name == "for";
                let target = if is_id { Some(value.as_str()) } else { value.strip_prefix('#').filter(|_| is_url) };
                assert!(target.is_none_or(|id| ids.contains(&id)), "no element has the ID {value}");
            }
        }
    }
}

impl Element {
    /// An attribute; "" if it is missing.
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// The text with normalized white space.
    pub(crate) fn words(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
