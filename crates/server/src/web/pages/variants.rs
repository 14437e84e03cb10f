//! The variants of an A/B test: the messages of each, with confidence intervals.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::page_error::PageError;
use super::request::PageRequest;
use super::rows::load_index;
use super::runs::run_path;
use crate::web::charts::Length;
use crate::web::run_page::format_share;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{ACCEPTED_STATES, Proportion, RowFilter, RowIndex, load_copies};
use campaign_ledger::{LedgerError, RowState};

#[derive(Serialize)]
struct VariantsPageView {
    name: String,
    path: String,
    variants: Vec<VariantLine>,
}

/// The messages of a variant.
#[derive(Serialize)]
struct VariantLine {
    name: String,
    /// The path of its rows.
    path: String,
    /// Messages that the gateway accepted.
    sent: u64,
    delivered: Option<ShareRange>,
    read: Option<ShareRange>,
    /// Failed and rejected messages.
    failed: u64,
}

/// A share with its 95 % confidence interval.
#[derive(Serialize)]
struct ShareRange {
    rows: u64,
    text: String,
    /// The interval in words.
    interval: String,
    from: Length,
    length: Length,
}

impl ShareRange {
    /// `None` if the group is empty.
    fn new(request: &PageRequest, successes: u64, total: u64) -> Option<Self> {
        let words = request.words();
        let text = format_share(words, successes, total)?;
        let interval = Proportion { total, successes }.wilson_interval();
        let tenths = |share: f64| words.format_decimal((share * 1_000.0).round() / 10.0);
        let (from, length) = Length::from_range(interval.low, interval.high);
        let (low, high) = (tenths(interval.low), tenths(interval.high));
        let interval = words.say_with("variants.interval", &[("from", &low), ("to", &high)]);
        Some(Self { rows: successes, text, interval, from, length })
    }
}

pub(super) async fn show_variants(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut request, &name).await;
    request.respond("pages/variants.html", view)
}

async fn build_view(request: &mut PageRequest, name: &str) -> Result<VariantsPageView, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let copies = load_copies(request.ledger(), &run).await?;
    let brief = FrozenInputs::from_copies(&copies)?.brief;
    let arms = brief.list_arms();
    let names: Vec<&str> = arms.iter().filter_map(|arm| arm.name).collect();
    if names.is_empty() {
        return Err(PageError::Unknown);
    }
    let path = run_path(&run.name());
    let mut variants = Vec::with_capacity(names.len());
    for variant in names {
        let filter = RowFilter { variant: Some(variant.to_owned()), ..RowFilter::default() };
        let index = load_index(request, &run, &filter).await?;
        variants.push(variant_line(request, &path, variant, &index));
    }
    Ok(VariantsPageView { name: run.name(), path, variants })
}

fn variant_line(request: &PageRequest, path: &str, name: &str, index: &RowIndex) -> VariantLine {
    let count = |state: RowState| index.count(state);
    // The delivered rows of an index include the read ones.
    let sent = ACCEPTED_STATES.into_iter().filter(|state| *state != RowState::Read).map(count).sum();
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("variant", name).finish();
    VariantLine {
        name: name.to_owned(),
        path: format!("{path}/rows?{query}"),
        sent,
        delivered: ShareRange::new(request, count(RowState::Delivered), sent),
        read: ShareRange::new(request, count(RowState::Read), sent),
        failed: count(RowState::Failed) + count(RowState::Rejected),
    }
}
