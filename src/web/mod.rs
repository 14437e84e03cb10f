//! The own door of `campaign serve`, for the machine that it runs on and those who look after it.
//!
//! - `health`: whether the process lives and can do its work;
//! - `metrics`: what it counted, and how things stand in the ledger; `views` reads that now and then;
//! - `api`: runs and schedules as JSON, for who has the token;
//! - `pages`: runs and schedules to look at and to decide about, for who was let in.
//!
//! What pages are made of, here and as files:
//!
//! - `words`: the words of pages, in English and Ukrainian;
//! - `html`: the look of a page, and messages as phones show them;
//! - `charts`: the geometry of charts;
//! - `run_page`: a run in numbers and charts, as the report and the page of a run show it;
//! - `files`: what a campaign will say, and what a run came to, as a file that stands alone.
//!
//! It is a router behind a door (`crate::door`), and must not decide anything about runs.

mod api;
pub mod charts;
pub mod files;
mod health;
pub mod html;
mod metrics;
mod pages;
pub mod run_page;
mod views;
pub mod words;

pub use api::{TokenFile, routes as api};
pub use health::{Health, routes as health};
pub use metrics::{MetricsSource, routes as metrics};
pub use pages::{LINK_LIFETIME, Pages, SignInEntry, Visitors, is_name, routes as pages};
pub use views::RunListCache;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use crate::door::Hosts;

/// What a browser lets a page do: use what this door has, and nothing else; no script or style that stands in the page itself.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'";

/// The own door, with what is behind it; it answers those who come by one of its names.
pub fn dashboard_router(behind: Router, hosts: Hosts) -> Router {
    let hosts = Arc::new(hosts);
    behind.fallback(|| async { StatusCode::NOT_FOUND }).layer(middleware::from_fn_with_state(hosts, check_host))
}

/// Answers who comes by a name of this door and from no public address; to all others nothing is here.
async fn check_host(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut answer = match hosts.allows(request.headers()) {
        true => next.run(request).await,
        false => StatusCode::NOT_FOUND.into_response(),
    };
    let headers = answer.headers_mut();
    // What never changes under its name says so itself.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Where it is `no-referrer` a browser says `Origin: null` of a form, by which nobody can tell it from a stranger's.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
