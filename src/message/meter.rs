//! Puts the counting of steps into a template's source.
//!
//! `{% for … %}` gets a call that spends the steps of a round, and a value that is set passes a
//! filter that refuses it when it is too long. What a text prints stays the same.

use super::engine::{KEEP, ROUND};
use super::library::{TemplateAnalysis, TemplateLibrary};
use super::outline::SetValue;

/// A source with its counting.
#[derive(Clone, Debug)]
pub(super) struct MeteredSource {
    pub(super) source: String,
    /// Bytes of the author's source before which something was put in, and how long that is.
    inserted: Vec<(usize, usize)>,
}

impl MeteredSource {
    /// The metered source of a text.
    pub(super) fn from_analysis(analysis: &TemplateAnalysis, library: &TemplateLibrary<'_>) -> Self {
        let outline = &analysis.outline;
        let mut pieces = Vec::new();
        for round in &outline.loops {
            let steps = library.count_steps(outline, round.tokens, round.body.len(), round.events.clone());
            let dash = if round.trims { "-" } else { "" };
            pieces.push((round.body.start, format!("{{{{ {ROUND}(cost={}) {dash}}}}}", steps.max(1))));
        }
        for kept in &outline.kept {
            match kept {
                SetValue::Value(value) => {
                    pieces.push((value.start, "(".to_owned()));
                    pieces.push((value.end, format!(")|{KEEP}")));
                }
                SetValue::Block(at) => pieces.push((*at, format!("|{KEEP}"))),
            }
        }
        pieces.sort_by_key(|(at, _)| *at);
        let (mut source, mut copied) = (String::new(), 0);
        for (at, piece) in &pieces {
            source.push_str(&analysis.text.source[copied..*at]);
            source.push_str(piece);
            copied = *at;
        }
        source.push_str(&analysis.text.source[copied..]);
        Self { source, inserted: pieces.into_iter().map(|(at, piece)| (at, piece.len())).collect() }
    }

    /// The byte of the author's source for one of the metered source.
    pub(super) fn original_offset(&self, offset: usize) -> usize {
        let mut before = 0;
        for &(at, length) in &self.inserted {
            if offset < at + before {
                break;
            }
            if offset < at + before + length {
                return at;
            }
            before += length;
        }
        offset - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NamedTemplate;
    use crate::message::names::TemplateNames;

    #[test]
    fn metered_source_maps_back_to_the_original() {
        let source = "{% set a = b -%} {% for c in a -%} x{{ c }}{% endfor %}{% set d %}e{% endset %}é";
        let (names, mut load) = (TemplateNames::default(), |_: &str| Err(String::new()));
        let mut library = TemplateLibrary::new(&mut load, &names);
        let analysis = library.read_text(&NamedTemplate { name: "t".into(), source: source.into() }).unwrap();
        let metered = MeteredSource::from_analysis(&analysis, &library);
        let expected = "{% set a =( b )|__kept-%} {% for c in a -%}{{ __round(cost=3) -}} x{{ c }}{% endfor %}\
                        {% set d |__kept%}e{% endset %}é";
        assert_eq!(metered.source, expected);
        for word in ["set a", "b ", "c in", "x{{", "endfor", "set d", "endset", "é"] {
            let (from, to) = (metered.source.find(word).unwrap(), source.find(word).unwrap());
            assert_eq!(metered.original_offset(from), to, "{word}");
        }
    }
}
