//! The text that a cell shows.

use calamine::DataRef;

use super::number_format::NumberFormat;

/// The text that a cell shows, whatever the width of its column; of a number that a wide cell would not show whole, all
/// digits.
pub(super) fn format_cell(value: &DataRef<'_>, format: &NumberFormat) -> String {
    match value {
        DataRef::Empty => String::new(),
        DataRef::String(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(yes) => if *yes { "TRUE" } else { "FALSE" }.to_owned(),
        #[expect(clippy::cast_precision_loss, reason = "a sheet has no other numbers")]
        DataRef::Int(number) => format.format_number(*number as f64),
        DataRef::Float(number) => format.format_number(*number),
        DataRef::DateTime(time) => format.format_time(time),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
    }
}
