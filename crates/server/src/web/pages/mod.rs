//! Pages of the dashboard: runs during and after sending, and a few decisions about them.
//!
//! - `sign_in`: sign-in links and sessions;
//! - `request`: page requests with a session, forms with a CSRF token, and responses; `page_error`: why a page or an
//!   action failed;
//! - `front`, `run`, `rows` (with the page of a message), `campaign`: the pages;
//! - `caches`: cached readings of the ledger;
//! - `decisions`: actions, each by the rules of its command, and their log.
//!
//! A page cannot do more than a command can. It never approves anything and never fetches a list from elsewhere.

mod caches;
mod campaign;
mod decisions;
mod front;
mod page_error;
mod request;
mod rows;
mod run;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::RunListCache;
use crate::web::html::{ASSETS, Asset};
use caches::{RowIndexCache, RunWatcher, RunZones};
use campaign_runs::Adapters;
use decisions::OrderLog;
use front::OptOutCache;

pub use sign_in::{LINK_LIFETIME, SignInEntry, Visitors, is_name};

/// The largest number of live pages; further ones are reloaded by the browser.
const MAX_LIVE_PAGES: usize = 128;

/// The data from which pages are made.
pub struct Pages {
    adapters: Adapters,
    views: Arc<RunListCache>,
    visitors: Visitors,
    orders: OrderLog,
    watched: Arc<RunWatcher>,
    indexes: RowIndexCache,
    zones: RunZones,
    opt_outs: OptOutCache,
    /// The origin of the server behind a proxy.
    published: Option<String>,
    /// The number of further live pages that are allowed.
    live: Arc<Semaphore>,
    /// Campaigns are loaded one at a time, because each may have a long list.
    looking: Mutex<()>,
    /// Actions in progress.
    work: TaskTracker,
    closing: watch::Sender<bool>,
}

impl Pages {
    /// Pages for a server; `published` is its origin behind a proxy.
    #[must_use]
    pub fn new(adapters: Adapters, views: Arc<RunListCache>, published: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            visitors: Visitors::in_state_folder(&adapters.state),
            orders: OrderLog::in_state_folder(&adapters.state),
            watched: Arc::new(RunWatcher::new(Arc::clone(&adapters.ledger))),
            indexes: RowIndexCache::default(),
            zones: RunZones::default(),
            opt_outs: OptOutCache::default(),
            live: Arc::new(Semaphore::new(MAX_LIVE_PAGES)),
            looking: Mutex::default(),
            work: TaskTracker::new(),
            closing: watch::Sender::new(false),
            adapters,
            views,
            published,
        })
    }

    /// Ends live pages and waits for actions in progress.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        self.work.close();
        self.work.wait().await;
    }
}

/// The routes of the pages, all behind the sign-in.
pub fn routes(pages: Arc<Pages>) -> Router {
    let files = Router::new().route("/static/{name}", get(get_asset));
    Router::new()
        .route("/", get(front::show_front_page))
        .route("/enter/{link}", get(sign_in::sign_in))
        .route("/leave", post(sign_in::sign_out))
        .route("/runs/{run}", get(run::show_run))
        .route("/runs/{run}/live", get(run::stream_run))
        .route("/runs/{run}/rows", get(rows::show_rows))
        .route("/runs/{run}/rows/{row}", get(rows::show_message))
        .route("/runs/{run}/find", post(rows::find_rows))
        .route("/runs/{run}/campaign", get(campaign::show_campaign))
        .route("/runs/{run}/preview", get(campaign::show_run_preview))
        .route("/runs/{run}/stop", post(decisions::stop_run))
        .route("/runs/{run}/resolve", post(decisions::resolve_rows))
        .route("/schedules/{name}/preview", get(campaign::show_schedule_preview))
        .route("/schedules/{name}/pause", post(decisions::pause_schedule))
        .route("/schedules/{name}/resume", post(decisions::resume_schedule))
        .route("/opt-outs", post(decisions::suppress_number))
        .with_state(pages)
        .merge(files)
}

/// Serves an asset. It needs no session, because it is part of the program.
async fn get_asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.file_name() == name) {
        Some(Asset { kind, text, .. }) => {
            let kept = "public, max-age=31536000, immutable";
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, kept)], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
