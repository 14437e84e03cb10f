//! Bars that lie: a row for each, with its words and its number beside it, so that the chart is its own table.

use serde::Serialize;

use super::Length;

/// One bar.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// What it is of.
    pub label: String,
    /// Whether the label is in the words of somebody else.
    pub foreign: bool,
    /// What is said of it besides.
    pub note: Option<String>,
    /// How much, exactly.
    pub value: u64,
    /// The class of the stylesheet.
    pub class: &'static str,
    /// How long it is.
    pub length: Length,
    /// How deep it stands below another one.
    pub depth: u8,
}

/// A piece of a bar that has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BarSegment {
    /// What it is of, exactly as much.
    pub label: String,
    /// How much.
    pub value: u64,
    /// The class of the stylesheet.
    pub class: &'static str,
    /// Where it begins.
    pub from: Length,
    /// How long it is.
    pub length: Length,
}

impl Bar {
    /// A bar of this much.
    #[must_use]
    pub fn new(label: impl Into<String>, value: u64, class: &'static str) -> Self {
        Self { label: label.into(), foreign: false, note: None, value, class, length: Length::default(), depth: 0 }
    }

    /// The same below another one.
    #[must_use]
    pub fn with_depth(self, depth: u8) -> Self {
        Self { depth, ..self }
    }

    /// The same with something said of it.
    #[must_use]
    pub fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// The same in words of somebody else.
    #[must_use]
    pub fn with_foreign_label(self) -> Self {
        Self { foreign: true, ..self }
    }
}

/// Gives bars their lengths: that of `whole` is the chart's, or that of the longest where nothing is named.
#[must_use]
pub fn scale_bars(bars: Vec<Bar>, whole: Option<u64>) -> Vec<Bar> {
    let whole = whole.or(bars.iter().map(|bar| bar.value).max()).unwrap_or_default();
    bars.into_iter().map(|bar| Bar { length: Length::from_share(bar.value, whole), ..bar }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn longest_bar_fills_the_chart(values in proptest::collection::vec(any::<u64>(), 1..20)) {
            let drawn = scale_bars(values.iter().map(|value| Bar::new("x", *value, "c")).collect(), None);
            let longest = drawn.iter().map(|bar| bar.length).max().unwrap();
            prop_assert_eq!(longest, if values.iter().all(|value| *value == 0) { Length(0) } else { Length(1_000) });
            for one in &drawn {
                prop_assert!(drawn.iter().all(|other| one.value < other.value || one.length >= other.length));
            }
        }
    }
}
