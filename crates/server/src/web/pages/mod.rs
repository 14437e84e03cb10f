//! Pages of the dashboard: runs during and after sending, and a few decisions about them.
//!
//! - `sign_in`: sign-in links and sessions;
//! - `request`: page requests with a session, forms with a CSRF token, and responses; `page_error`: why a page or an
//!   action failed;
//! - `overview` with `activity`, `runs`, `schedules`, `opt_outs` (with replies), `campaigns`: the sections;
//! - `run` (with the variants of an A/B test, and downloads of the rows), `rows` (with the page of a message),
//!   `campaign`: the pages of a run;
//! - `search`: finds runs, messages and campaigns from every page;
//! - `caches`: cached reads of the ledger, also for the endpoints;
//! - `confirm`: pages that say what an action does; `decisions`: actions, under the rules of the corresponding
//!   commands, and their log; `sending`: preview and start of a retry or a test message.
//!
//! A page cannot do more than a command can. It never approves anything and never fetches a list from elsewhere.

mod activity;
mod caches;
mod campaign;
mod confirm;
mod decisions;
mod opt_outs;
mod overview;
mod page_error;
mod request;
mod rows;
mod run;
mod runs;
mod schedules;
mod search;
mod sending;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::web::html::{ASSETS, Asset};
use activity::ActivityCache;
use caches::{CampaignTraitsCache, ListedFiguresCache, RowIndexCache, RunWatcher};
use campaign_engine::delivery::Interrupt;
use campaign_runs::Adapters;
use decisions::ActionLog;
use opt_outs::OptOutCache;
use request::PageRequest;

pub use caches::RunListCache;
pub use sending::TestNumbers;
pub use sign_in::{LINK_LIFETIME, SignInEntry, Visitors, is_visitor_name};

/// The number of the signal that asks a server to end.
const SIGTERM: u8 = 15;
/// The maximum number of live pages. Other pages show changes only after a reload.
const MAX_LIVE_PAGES: usize = 128;

/// The state that all pages share.
pub struct Pages {
    adapters: Adapters,
    run_list: Arc<RunListCache>,
    visitors: Visitors,
    action_log: ActionLog,
    run_watcher: Arc<RunWatcher>,
    indexes: RowIndexCache,
    traits: CampaignTraitsCache,
    figures: ListedFiguresCache,
    activity: ActivityCache,
    opt_outs: OptOutCache,
    /// The phone numbers that may get test messages.
    test_numbers: TestNumbers,
    /// The origin of the server behind a proxy.
    published: Option<String>,
    /// Permits for live pages.
    live_pages: Arc<Semaphore>,
    /// Locked while a campaign is checked. Campaigns are checked one at a time, because each might have a long list.
    checking: Mutex<()>,
    /// Locked while a download is prepared. Downloads are prepared one at a time, because each might fill the disk.
    exporting: Mutex<()>,
    /// Actions in progress.
    actions: TaskTracker,
    /// The interrupt of retries that this server sends.
    sending: watch::Sender<Interrupt>,
    /// Whether the server is shutting down, so that live pages end.
    closing: watch::Sender<bool>,
}

impl Pages {
    /// Creates the pages of a server; `published` is the server's public origin if the server is behind a proxy.
    pub fn new(
        adapters: Adapters,
        run_list: Arc<RunListCache>,
        published: Option<String>,
        test_numbers: TestNumbers,
    ) -> Arc<Self> {
        Arc::new(Self {
            visitors: Visitors::in_state_folder(&adapters.state),
            action_log: ActionLog::in_state_folder(&adapters.state),
            run_watcher: Arc::new(RunWatcher::new(Arc::clone(&adapters.ledger))),
            indexes: RowIndexCache::default(),
            traits: CampaignTraitsCache::default(),
            figures: ListedFiguresCache::default(),
            activity: ActivityCache::default(),
            opt_outs: OptOutCache::default(),
            live_pages: Arc::new(Semaphore::new(MAX_LIVE_PAGES)),
            checking: Mutex::default(),
            exporting: Mutex::default(),
            actions: TaskTracker::new(),
            sending: watch::Sender::new(Interrupt::None),
            closing: watch::Sender::new(false),
            adapters,
            run_list,
            test_numbers,
            published,
        })
    }

    /// Ends live pages, stops retries once the messages in flight are done, and waits for actions in progress.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        self.sending.send_replace(Interrupt::Graceful(SIGTERM));
        self.actions.close();
        self.actions.wait().await;
    }
}

/// The routes of the pages. All routes require a session, except those for sign-in, language choice and assets.
pub fn routes(pages: Arc<Pages>) -> Router {
    let files = Router::new().route("/static/{name}", get(get_asset));
    Router::new()
        .route("/", get(overview::show_overview))
        .route("/enter/{link}", get(sign_in::show_sign_in).post(sign_in::sign_in))
        .route("/leave", post(sign_in::sign_out))
        .route("/language/{code}", get(request::choose_language))
        .route("/search", get(search::show_search).post(search::search))
        .route("/runs", get(runs::show_runs))
        .route("/runs/{run}", get(run::show_run))
        .route("/runs/{run}/live", get(run::stream_run))
        .route("/runs/{run}/rows", get(rows::show_rows))
        .route("/runs/{run}/rows/{row}", get(rows::show_message))
        .route("/runs/{run}/export", get(run::export_rows))
        .route("/runs/{run}/find", post(search::search_run))
        .route("/runs/{run}/variants", get(run::show_variants))
        .route("/runs/{run}/campaign", get(campaign::show_campaign))
        .route("/runs/{run}/preview", get(campaign::show_run_preview))
        .route("/runs/{run}/stop", get(confirm::confirm_stop).post(decisions::stop_run))
        .route("/runs/{run}/resolve", get(confirm::confirm_resolve).post(decisions::resolve_rows))
        .route("/runs/{run}/test", get(sending::confirm_test).post(sending::send_test))
        .route("/runs/{run}/retry", get(sending::confirm_retry).post(sending::retry_run))
        .route("/runs/{run}/reconcile", get(confirm::confirm_reconcile).post(decisions::reconcile_run))
        .route("/schedules", get(schedules::show_schedules))
        .route("/schedules/{name}/preview", get(campaign::show_schedule_preview))
        .route("/schedules/{name}/pause", get(confirm::confirm_pause).post(decisions::pause_schedule))
        .route("/schedules/{name}/resume", get(confirm::confirm_resume).post(decisions::resume_schedule))
        .route("/opt-outs", get(opt_outs::show_opt_outs).post(decisions::suppress_number))
        .route("/opt-outs/add", post(confirm::confirm_suppression))
        .route("/opt-outs/remove", post(confirm::confirm_removal))
        .route("/opt-outs/removed", post(decisions::remove_opt_out))
        .route("/replies", get(opt_outs::show_replies))
        .route("/campaigns", get(campaign::show_campaigns))
        .route("/{*path}", any(show_missing_page))
        .with_state(pages)
        .merge(files)
}

/// Shows the page for a path that does not exist. A request without a session gets a bare 404 response instead.
async fn show_missing_page(request: Result<PageRequest, Response>) -> Response {
    request.map_or_else(|_| StatusCode::NOT_FOUND.into_response(), |request| request.respond_not_found())
}

/// Serves an asset. Assets need no session, because they are part of the program.
async fn get_asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.file_name() == name) {
        Some(Asset { kind, text, .. }) => {
            let cached = "public, max-age=31536000, immutable";
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, cached)], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
