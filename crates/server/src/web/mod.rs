//! The dashboard of `campaign serve`, its JSON API, and its monitoring endpoints.
//!
//! - `endpoints`: runs and schedules as JSON, with a token; `/healthz`, `/readyz` and `/metrics`;
//! - `pages`: runs, schedules and decisions, after sign-in; the cached list of runs.
//!
//! Pages, both served and saved as files:
//!
//! - `words`: texts in English and Ukrainian;
//! - `html`: templates;
//! - `charts`: geometry of charts;
//! - `run_page`: the figures and charts of a run, for the report and the dashboard;
//! - `masking`: phone numbers in texts;
//! - `files`: previews, plans and reports as self-contained files; messages as phones show them.
//!
//! A listener of `campaign_net` serves the router. Code here must not make decisions about runs.

pub mod charts;
mod endpoints;
pub mod files;
pub mod html;
mod masking;
mod pages;
pub mod run_page;
pub mod words;

pub use endpoints::{
    Health, MetricsSource, TokenFile, api_routes as api, health_routes as health, metrics_routes as metrics,
};
pub use pages::{
    LINK_LIFETIME, Pages, RunListCache, SignInEntry, TestNumbers, Visitors, is_visitor_name, routes as pages,
};

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use campaign_net::Hosts;

/// The content security policy: only resources of this server, and no inline scripts or styles.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'";

/// Joins the routers of the dashboard's listener, and adds host allowlists and security headers.
///
/// `app` has the pages and the API. `monitoring` needs no sign-in, so it is not available under the `published` host.
pub fn build_dashboard_router(app: Router, monitoring: Router, listen: SocketAddr, published: Option<&str>) -> Router {
    let check = |hosts| middleware::from_fn_with_state(Arc::new(hosts), check_host_and_add_headers);
    let app = app.fallback(|| async { StatusCode::NOT_FOUND }).layer(check(Hosts::new(listen, published)));
    app.merge(monitoring.route_layer(check(Hosts::new(listen, None))))
}

/// Responds with 404 to requests that the host allowlist does not allow, and adds security headers to every response.
async fn check_host_and_add_headers(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut answer = match hosts.allows(request.headers()) {
        true => next.run(request).await,
        false => StatusCode::NOT_FOUND.into_response(),
    };
    let headers = answer.headers_mut();
    // Immutable content sets its own header.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer`, browsers send `Origin: null` with forms, so requests from other sites could not be
        // detected.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
