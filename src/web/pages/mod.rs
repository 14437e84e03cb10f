//! The pages of `campaign serve`: runs to look at while they are sent and afterwards, and a few decisions about them.
//!
//! - `visitors`: who may look, by links that let somebody in once;
//! - `look`: what a page is asked with, and what comes back: nobody gets a page without a session;
//! - `told`: what somebody orders: from a page of ours, with the session's own mark;
//! - `enter`: the way in and out;
//! - `front`, `run`, `rows`, `message`, `campaign`, `preview`: a page each;
//! - `live`: the parts of a run's page, made anew as it goes on; `watched` reads a run once for all who look;
//! - `decide`: the decisions, each by the rules of its command; `orders` keeps who gave them;
//! - `files`: the stylesheet and the script.
//!
//! A page decides nothing that a command would not, never approves, and never fetches a list from elsewhere.

mod campaign;
mod decide;
mod enter;
mod fields;
mod files;
mod front;
mod indexes;
mod live;
mod look;
mod message;
mod opt_outs;
mod orders;
mod preview;
mod refusal;
mod remembered;
mod rows;
mod run;
mod run_zones;
mod told;
mod visitors;
mod watched;

pub use visitors::{LINK_LIFETIME, SignInEntry, Visitors, is_name};

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::TaskTracker;

use self::indexes::RowIndexCache;
use self::opt_outs::OptOutCache;
use self::orders::OrderLog;
use self::run_zones::RunZones;
use self::watched::RunWatcher;
use super::RunListCache;
use crate::runs::Adapters;

/// The most pages that are live at once; others are reloaded.
const MAX_LIVE_PAGES: usize = 128;

/// What pages are made of.
pub struct Pages {
    adapters: Adapters,
    views: Arc<RunListCache>,
    visitors: Visitors,
    orders: OrderLog,
    watched: Arc<RunWatcher>,
    indexes: RowIndexCache,
    zones: RunZones,
    opt_outs: OptOutCache,
    /// The origin by which the door is reached through a proxy.
    published: Option<String>,
    /// How many pages may be live besides those that are.
    live: Arc<Semaphore>,
    /// One campaign is looked at after another: each may be a long list.
    looking: Mutex<()>,
    /// What somebody ordered and is not through.
    work: TaskTracker,
    closing: watch::Sender<bool>,
}

impl Pages {
    /// Pages over what a server has; `published` is the origin by which it is reached through a proxy.
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

    /// Ends what is live, and waits for what was ordered.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        self.work.close();
        self.work.wait().await;
    }
}

/// The pages; who has no session gets none of them.
pub fn routes(pages: Arc<Pages>) -> Router {
    let files = Router::new().route("/static/{name}", get(files::get_asset));
    Router::new()
        .route("/", get(front::show_front_page))
        .route("/enter/{link}", get(enter::sign_in))
        .route("/leave", post(enter::sign_out))
        .route("/runs/{run}", get(run::show_run))
        .route("/runs/{run}/live", get(live::stream_run))
        .route("/runs/{run}/rows", get(rows::show_rows))
        .route("/runs/{run}/rows/{row}", get(message::show_message))
        .route("/runs/{run}/find", post(rows::find_rows))
        .route("/runs/{run}/campaign", get(campaign::show_campaign))
        .route("/runs/{run}/preview", get(preview::show_run_preview))
        .route("/runs/{run}/stop", post(decide::stop_run))
        .route("/runs/{run}/resolve", post(decide::resolve_rows))
        .route("/schedules/{name}/preview", get(preview::show_schedule_preview))
        .route("/schedules/{name}/pause", post(decide::pause_schedule))
        .route("/schedules/{name}/resume", post(decide::resume_schedule))
        .route("/opt-outs", post(decide::suppress_number))
        .with_state(pages)
        .merge(files)
}
