//! The way in, by a link that is good once, and the way out.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use serde_json::json;

use super::Pages;
use super::look::{closed_response, no_session_response, preferred_language};
use super::refusal::PageError;
use super::told::VerifiedForm;
use super::visitors::SESSION_LIFETIME;
use crate::runs::run_blocking;
use crate::web::html::{PageFormat, render};

/// By which browsers say that nobody wants to see the answer yet.
const PURPOSES: [HeaderName; 2] = [HeaderName::from_static("sec-purpose"), HeaderName::from_static("purpose")];

/// Lets somebody in who has a link. The cookie is for this site alone, so the next page is asked for from here and not by a
/// redirect, which would count as one of the site that the link stood on.
pub(super) async fn sign_in(
    State(pages): State<Arc<Pages>>,
    Path(link): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let language = preferred_language(&headers);
    if method != Method::GET || is_prefetch(&headers) {
        return StatusCode::NO_CONTENT.into_response();
    }
    let (visitors, now) = (pages.visitors.clone(), pages.now());
    let entered = run_blocking(move || visitors.use_link(&link, now)).await.map_err(PageError::from);
    let (visitor, session) = match entered.and_then(|entered| Ok(entered?)) {
        Ok(Some(entered)) => entered,
        Ok(None) => return no_session_response(language),
        Err(refusal) => {
            return closed_response(language, &refusal.to_string());
        }
    };
    tracing::info!("{} signed in to the dashboard", visitor.name);
    let page = render(language, PageFormat::Served, "pages/entered.html", &json!({ "name": visitor.name }));
    let Ok(page) = page else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    with_cookie(&pages, Html(page).into_response(), &session, SESSION_LIFETIME.as_secs())
}

/// Ends the session.
pub(super) async fn sign_out(State(pages): State<Arc<Pages>>, told: VerifiedForm) -> Response {
    let (visitors, now, session) = (pages.visitors.clone(), pages.now(), told.look.session.clone());
    match run_blocking(move || visitors.end_session(&session, now)).await {
        Ok(Ok(())) => with_cookie(&pages, no_session_response(told.look.language), "", 0),
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Whether a browser asks before anybody wants to see the answer; that uses no link up.
fn is_prefetch(headers: &HeaderMap) -> bool {
    let says = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("prefetch"));
    PURPOSES.iter().filter_map(|name| headers.get(name)).any(says)
}

fn with_cookie(pages: &Pages, mut answer: Response, session: &str, seconds: i64) -> Response {
    let secure = if pages.is_secure() { "; Secure" } else { "" };
    let name = pages.cookie_name();
    let cookie = format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => {
            answer.headers_mut().insert(SET_COOKIE, cookie);
            answer
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
