//! The page of `report`: a run as a file, with its numbers as JSON in it.

use std::io::Read;

use roaring::RoaringBitmap;
use serde::Serialize;

use super::messages::{MessageView, collect_run_messages};
use crate::check::CompiledCampaign;
use crate::domain::Row;
use crate::manifest::CampaignBrief;
use crate::runs::Error;
use crate::web::html::{PageFormat, embed_json, render};
use crate::web::run_page::{RunPage, RunPageView};
use crate::web::words::PageLanguage;

/// What a report is made of.
pub struct ReportPage<'r> {
    /// The run.
    pub page: RunPage<'r>,
    /// Its first messages; nothing where nobody knows them any more.
    pub first: Option<&'r FirstMessages>,
}

/// The first messages of a run.
#[derive(Debug, Serialize)]
pub struct FirstMessages {
    messages: Vec<MessageView>,
}

#[derive(Serialize)]
struct ReportPageView<'v> {
    run: RunPageView,
    messages: &'v [MessageView],
    /// The numbers for programs.
    data: String,
}

impl FirstMessages {
    /// The first `most` of a campaign, none of whose rows after `last` has a recipient; these rows are left out.
    ///
    /// # Errors
    /// When the list is damaged.
    pub fn read_first<R: Read>(
        brief: &CampaignBrief,
        mut prepared: CompiledCampaign<R>,
        (left_out, last): (&RoaringBitmap, Row),
        (most, unmasked): (usize, bool),
    ) -> Result<Self, Error> {
        let meant = (Row::FIRST.get()..=last.get()).filter(|row| !left_out.contains(*row));
        let rows: Vec<String> = meant.take(most).map(|row| row.to_string()).collect();
        let messages = match rows.join(",").parse() {
            Ok(rows) => collect_run_messages(&mut prepared, brief, &rows, (most, unmasked))?,
            // Nobody of it gets a message.
            Err(_) => Vec::new(),
        };
        Ok(Self { messages })
    }

    /// That of one row alone, where it has one.
    ///
    /// # Errors
    /// When the list is damaged.
    pub fn read_row<R: Read>(
        brief: &CampaignBrief,
        mut prepared: CompiledCampaign<R>,
        row: Row,
        unmasked: bool,
    ) -> Result<Self, Error> {
        Ok(Self { messages: collect_run_messages(&mut prepared, brief, &row.into(), (1, unmasked))? })
    }
}

/// Makes the page.
///
/// # Errors
/// When the template cannot be filled, which is a bug.
pub fn render_report_page(report: &ReportPage<'_>, language: PageLanguage) -> Result<String, Error> {
    let view = ReportPageView {
        run: report.page.to_view(language),
        messages: report.first.map_or(&[], |first| &first.messages),
        data: embed_json(&report.page.standing.to_report_json()),
    };
    render(language, PageFormat::File, "run/report.html", &view).map_err(|error| Error::Input(error.to_string()))
}
