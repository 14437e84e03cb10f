//! Command-line arguments of `init`, `check`, `explain`, `preview`, `sandbox` and `demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::results::{PAGE_FILE, PAGE_HEADING, PageArgs};
use campaign_core::domain::RowSet;
use campaign_runs::draft::{EXAMPLES, ExampleCampaign, find_example};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Name of the campaign: lowercase letters, digits and dashes
    pub(crate) name: String,
    /// Create the campaign for this recipient list, a CSV file or workbook [default: an example list]
    #[arg(long, value_name = "LIST")]
    pub(crate) from: Option<PathBuf>,
    /// Read this sheet of the workbook [default: the first visible one]
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) sheet: Option<String>,
    /// Read the headers from row N [default: the first nonblank row]
    #[arg(long, value_name = "N", requires = "from", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub(crate) header_row: Option<u32>,
    /// Create a complete campaign for a common task, with a sample list and texts in Ukrainian and English
    #[arg(
        long,
        value_name = "EXAMPLE",
        value_parser = example_parser(),
        conflicts_with_all = ["from", "sheet", "header_row"]
    )]
    pub(crate) example: Option<&'static ExampleCampaign>,
}

/// Creates a parser for example names, which shells can complete.
fn example_parser() -> impl TypedValueParser<Value = &'static ExampleCampaign> {
    PossibleValuesParser::new(EXAMPLES.iter().map(|example| PossibleValue::new(example.name).help(example.summary)))
        .try_map(|name| find_example(&name).ok_or("unknown example"))
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Campaign files
    #[arg(required = true, id = "campaigns", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) list: FetchOption,
    /// Ask the gateway whether it accepts the key and sender names, and whether the balance is sufficient
    #[arg(long)]
    pub(crate) online: bool,
    /// Check the campaign against this gateway instead of its own gateway
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run only the tests in the campaign files, without the ledger
    #[arg(long, conflicts_with = "online")]
    pub(crate) tests_only: bool,
    /// Choose how findings are printed
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<Format>,
    /// Print all settings in effect and their origins as YAML, without reading the list
    #[arg(long, conflicts_with_all = ["online", "format", "strict", "tests_only"])]
    pub(crate) show_settings: bool,
    /// Correct mistakes that have exactly one remedy, such as missing quotes, after showing the changes
    ///
    /// Only remedies that cannot change who gets what are applied. All other mistakes are reported as usual.
    #[arg(long, conflicts_with_all = ["format", "tests_only", "show_settings"])]
    pub(crate) fix: bool,
    /// Write the corrections without asking
    #[arg(short, long, requires = "fix")]
    pub(crate) yes: bool,
}

/// The permission to fetch a list that is not a file.
#[derive(Debug, Args)]
pub(crate) struct FetchOption {
    /// Fetch the list if it comes from a program, URL, query or earlier run
    ///
    /// Use this option only with a campaign file that you trust: the file decides which programs are started and which
    /// hosts are contacted.
    #[arg(long)]
    pub(crate) fetch: bool,
}

/// How `check` prints findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    Text,
    /// One JSON object, as --json prints it
    Json,
    /// Annotations for a GitHub workflow
    Github,
    /// A SARIF 2.1.0 log
    Sarif,
    /// JUnit XML with a test case for each test in the campaign files
    Junit,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Rule to explain, such as empty-cell; findings show it in brackets [default: list all rules]
    pub(crate) rule: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PreviewArgs {
    /// Campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) selection: PreviewedRows,
    #[command(flatten)]
    pub(crate) list: FetchOption,
    /// Preview the campaign for this gateway instead of its own
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Option<String>,
    /// Write an HTML file that shows the messages as they look on a phone
    #[arg(id = PAGE_FILE, long = "html", value_name = "FILE", help_heading = PAGE_HEADING)]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// The rows that `preview` shows.
#[derive(Debug, Args)]
pub(crate) struct PreviewedRows {
    /// Show the first N messages to be sent (for specific rows, use --rows)
    ///
    /// Without --first or --rows, the first rows are shown, including those without a message: 3 rows, 20 with --html,
    /// all with --json.
    #[arg(long, value_name = "N", conflicts_with = "rows", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) first: Option<u32>,
    /// Show these rows, for example 2-6,60 (for the first N messages, use --first)
    ///
    /// Rows are numbered as in a spreadsheet: the header is row 1.
    #[arg(long, value_name = "ROWS")]
    pub(crate) rows: Option<RowSet>,
    /// Show the message for a made-up recipient with these cells, for example "first_name=Olena,plan=gold"
    ///
    /// Only the list's header is read. Columns that are not given are empty. A cell can contain commas: the first cell
    /// of "city=Kyiv, Lviv,plan=gold" is "Kyiv, Lviv".
    #[arg(
        long,
        value_name = "CELLS",
        value_parser = parse_given_cells,
        conflicts_with_all = ["first", "rows", PAGE_FILE, "fetch"]
    )]
    pub(crate) given: Option<PreviewedCells>,
}

/// The cells of a made-up recipient, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreviewedCells(pub(crate) Vec<(String, String)>);

/// Parses `NAME=CELL,NAME=CELL`. A part without `=` continues the cell before it, including the comma.
fn parse_given_cells(text: &str) -> Result<PreviewedCells, String> {
    let mut cells: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), cells.last_mut()) {
            (Some((name, cell)), _) if !name.trim().is_empty() => {
                cells.push((name.trim().to_owned(), cell.trim().to_owned()));
            }
            (None, Some((_, cell))) => {
                cell.push(',');
                cell.push_str(part.trim_end());
            }
            (None, None) if text.trim().is_empty() => {}
            _ => return Err("write each cell as `COLUMN=VALUE`, for example `first_name=Olena,plan=gold`".to_owned()),
        }
    }
    Ok(PreviewedCells(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_cells_can_contain_commas_and_equals_signs() {
        let parse = |text: &str| parse_given_cells(text).map(|PreviewedCells(cells)| cells);
        let cells = |cells: &[(&str, &str)]| -> Result<Vec<(String, String)>, String> {
            Ok(cells.iter().map(|(name, cell)| ((*name).to_owned(), (*cell).to_owned())).collect())
        };
        assert_eq!(parse("first_name=Олена, plan = gold"), cells(&[("first_name", "Олена"), ("plan", "gold")]));
        assert_eq!(parse("city=Kyiv, Lviv,plan="), cells(&[("city", "Kyiv, Lviv"), ("plan", "")]));
        assert_eq!(parse("link=https://x.example/?a=b"), cells(&[("link", "https://x.example/?a=b")]));
        assert_eq!(parse(""), cells(&[]));
        for wrong in ["gold", "=gold", "gold,plan=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// Listen on this address; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:8025", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Accept this API key [default: sandbox; required if other machines can connect]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Use this scenario, which defines accounts, prices, delays and faults
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Log every event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Send the statuses of messages that have no `hook` to this URL, as if it were set in the first account's API
    /// settings
    #[arg(long, value_name = "URL")]
    pub(crate) notify: Option<String>,
    /// Send webhooks to any host, not only to this machine
    #[arg(long)]
    pub(crate) any_hook: bool,
    /// Print the sandbox's assumptions that go beyond the gateway contract, and exit
    #[arg(long)]
    pub(crate) assumptions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// New or empty folder for the demo files [default: campaign-demo]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Do not wait for Enter between steps, and do not open a browser
    #[arg(long)]
    pub(crate) fast: bool,
}
