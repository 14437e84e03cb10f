//! The arguments of `init`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// The campaign's name: lowercase letters, digits and dashes
    pub(in crate::cli) name: String,
    /// A list of recipients (CSV or a workbook) to write the campaign for
    #[arg(long, value_name = "LIST.csv")]
    pub(in crate::cli) from: Option<PathBuf>,
    /// The sheet of a workbook [default: the first visible one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(in crate::cli) sheet: Option<String>,
    /// The row with the headers, as a spreadsheet numbers it [default: the first nonblank row]
    #[arg(long, value_name = "N", requires = "from", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub(in crate::cli) header_row: Option<u32>,
}
