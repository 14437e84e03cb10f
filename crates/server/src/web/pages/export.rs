//! Downloads of the rows of a run with full phone numbers, as CSV or as a workbook.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, unfold};

use super::page_error::{InvalidInput, PageError};
use super::request::PageRequest;
use super::rows::{RowQuery, load_index};
use campaign_engine::report::{MAX_SHEET_ROWS, ResultsTarget, RunResults, is_owned};
use campaign_ledger::{LedgerError, Run};
use campaign_manifest::CampaignPath;
use campaign_runs::run_blocking;
use roaring::RoaringBitmap;

/// The size of a chunk of a download, in bytes.
const CHUNK_BYTES: usize = 1 << 16;

/// The formats of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportFormat {
    Csv,
    Workbook,
}

impl ExportFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Workbook => "xlsx",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Workbook => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }
}

/// Exports exactly the rows that the rows page shows with the same filters.
pub(super) async fn export_rows(mut request: PageRequest, Path(name): Path<String>) -> Response {
    match open_export(&mut request, &name).await {
        Ok(response) => response,
        Err(refusal) => request.respond_to_order(Err(refusal)),
    }
}

async fn open_export(request: &mut PageRequest, name: &str) -> Result<Response, PageError> {
    request.require_decider()?;
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let query = RowQuery::from_request(request)?;
    let format = match request.query.get("format") {
        None | Some("csv") => ExportFormat::Csv,
        Some("xlsx") => ExportFormat::Workbook,
        Some(_) => return Err(PageError::Unknown),
    };
    let rows = load_index(request, &run, &query.filter).await?.rows(query.state);
    if format == ExportFormat::Workbook && rows.len() >= u64::from(MAX_SHEET_ROWS) {
        return Err(PageError::InvalidInput(InvalidInput::Sheet));
    }
    let state = query.state.map(|state| format!("-{}", state.name())).unwrap_or_default();
    let file_name = format!("{}{state}.{}", run.name(), format.extension());
    let by = &request.visitor.name;
    tracing::info!("{by} downloads {} rows of {name}", rows.len());
    let file = {
        let _lock = request.pages.exporting.lock().await;
        write_export(request, &run, rows, format).await?
    };
    let headers = [
        (CONTENT_TYPE, format.media_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{file_name}\"")),
    ];
    Ok((headers, Body::from_stream(stream_file(file))).into_response())
}

/// Writes rows to an unnamed temporary file, and returns the file, rewound to the start.
async fn write_export(
    request: &PageRequest,
    run: &Run,
    rows: RoaringBitmap,
    format: ExportFormat,
) -> Result<File, PageError> {
    let ledger = request.ledger();
    let results = RunResults::open(ledger, run, is_owned(ledger, run).await?).await?.with_rows(rows);
    match format {
        ExportFormat::Csv => {
            let mut out = BufWriter::new(tempfile::tempfile()?);
            results.write_csv(&mut out).await?;
            out.flush()?;
            let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        }
        ExportFormat::Workbook => {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("rows.xlsx");
            results.write_file(&ResultsTarget::new(CampaignPath::anywhere(path.clone()), Vec::new())).await?;
            // The open file remains readable after its folder is deleted.
            Ok(File::open(path)?)
        }
    }
}

/// Streams the content of a file in chunks.
fn stream_file(file: File) -> impl Stream<Item = io::Result<Bytes>> {
    unfold(Some(file), |file| async move {
        let mut file = file?;
        let read = run_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let length = file.read(&mut chunk)?;
            chunk.truncate(length);
            Ok::<_, io::Error>((chunk, file))
        });
        match read.await {
            Ok(Ok((chunk, file))) => (!chunk.is_empty()).then(|| (Ok(Bytes::from(chunk)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error.to_string())), None)),
        }
    })
}
