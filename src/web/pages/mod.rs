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

pub use visitors::{Invited, LINK, Visitors, is_name};

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::TaskTracker;

use self::indexes::Indexes;
use self::opt_outs::OptOutView;
use self::orders::Orders;
use self::run_zones::RunZones;
use self::watched::Watched;
use super::Views;
use crate::runs::Adapters;

/// The most pages that are live at once; others are reloaded.
const LIVE: usize = 128;

/// What pages are made of.
pub struct Pages {
    adapters: Adapters,
    views: Arc<Views>,
    visitors: Visitors,
    orders: Orders,
    watched: Arc<Watched>,
    indexes: Indexes,
    zones: RunZones,
    opt_outs: OptOutView,
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
    pub fn new(adapters: Adapters, views: Arc<Views>, published: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            visitors: Visitors::of(&adapters.state),
            orders: Orders::of(&adapters.state),
            watched: Arc::new(Watched::new(Arc::clone(&adapters.ledger))),
            indexes: Indexes::default(),
            zones: RunZones::default(),
            opt_outs: OptOutView::default(),
            live: Arc::new(Semaphore::new(LIVE)),
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
    let files = Router::new().route("/static/{name}", get(files::file));
    Router::new()
        .route("/", get(front::page))
        .route("/enter/{link}", get(enter::enter))
        .route("/leave", post(enter::leave))
        .route("/runs/{run}", get(run::page))
        .route("/runs/{run}/live", get(live::stream))
        .route("/runs/{run}/rows", get(rows::page))
        .route("/runs/{run}/rows/{row}", get(message::page))
        .route("/runs/{run}/find", post(rows::find))
        .route("/runs/{run}/campaign", get(campaign::page))
        .route("/runs/{run}/preview", get(preview::of_run))
        .route("/runs/{run}/stop", post(decide::stop))
        .route("/runs/{run}/resolve", post(decide::resolve))
        .route("/schedules/{name}/preview", get(preview::of_schedule))
        .route("/schedules/{name}/pause", post(decide::pause))
        .route("/schedules/{name}/resume", post(decide::resume))
        .route("/opt-outs", post(decide::suppress))
        .with_state(pages)
        .merge(files)
}
