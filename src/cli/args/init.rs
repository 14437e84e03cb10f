//! The arguments of `init`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// Name of the campaign: lowercase letters, digits and dashes
    pub(in crate::cli) name: String,
    /// Create the campaign for this recipient list, a CSV file or workbook [default: an example list]
    #[arg(long, value_name = "LIST")]
    pub(in crate::cli) from: Option<PathBuf>,
    /// Read this sheet of the workbook [default: the first visible one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(in crate::cli) sheet: Option<String>,
    /// Read the headers from row N [default: the first nonblank row]
    #[arg(long, value_name = "N", requires = "from", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub(in crate::cli) header_row: Option<u32>,
}
