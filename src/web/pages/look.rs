//! What a page is asked with, and what comes back. Whoever has no session learns only how to get one.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{ACCEPT_LANGUAGE, COOKIE, HeaderMap};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::Pages;
use super::fields::FormFields;
use super::refusal::{ErrorMessage, PageError};
use super::visitors::Visitor;
use crate::domain::Phone;
use crate::ledger::{Ledger, Run};
use crate::runs::{find_stored_run, run_blocking};
use crate::web::html::{PageFormat, render, render_part};
use crate::web::words::{PageLanguage, PageWords, zone_name};

/// A look at a page by somebody who has a session.
pub(super) struct PageRequest {
    pub(super) pages: Arc<Pages>,
    pub(super) visitor: Visitor,
    pub(super) language: PageLanguage,
    /// What stands behind the `?` of the address.
    pub(super) query: FormFields,
    /// What a form of a page of this session carries.
    pub(super) csrf_token: String,
    /// The secret of the session.
    pub(super) session: String,
    /// On whose clock times are told: this machine's, or of a run its campaign's.
    pub(super) zone: TimeZone,
}

/// What every page of a server shows besides its own.
#[derive(Serialize)]
struct ServedView<'v, V> {
    #[serde(flatten)]
    view: &'v V,
    visitor: &'v str,
    decides: bool,
    form: &'v str,
    /// The zone of the times on it.
    zone: String,
}

/// What was refused, as a page.
#[derive(Serialize)]
struct RefusalView<'w> {
    heading: &'w str,
    told: Option<String>,
    english: Option<String>,
}

impl FromRequestParts<Arc<Pages>> for PageRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, pages: &Arc<Pages>) -> Result<Self, Response> {
        let language = preferred_language(&parts.headers);
        let Some(session) = pages.session_from_headers(&parts.headers) else {
            return Err(match pages.check_sign_ins_readable().await {
                Ok(()) => no_session_response(language),
                Err(why) => closed_response(language, &why),
            });
        };
        let visitor = pages.find_visitor(&session).await;
        if let Err(PageError::Failed(why)) = &visitor {
            return Err(closed_response(language, why));
        }
        match visitor {
            Ok(Some(visitor)) => Ok(Self {
                pages: Arc::clone(pages),
                visitor,
                language,
                query: FormFields::parse(parts.uri.query().unwrap_or_default().as_bytes()),
                csrf_token: csrf_token(&session),
                session,
                zone: TimeZone::system(),
            }),
            Ok(None) if parts.method == Method::GET || parts.method == Method::HEAD => {
                Err(no_session_response(language))
            }
            Ok(None) => Err(StatusCode::FORBIDDEN.into_response()),
            Err(refusal) => Err(bare_refusal(refusal)),
        }
    }
}

impl Pages {
    /// The name of the cookie: over TLS one that no other host can set.
    pub(super) fn cookie_name(&self) -> &'static str {
        if self.is_secure() { "__Host-campaign" } else { "campaign" }
    }

    /// Whether it is reached by TLS alone.
    pub(super) fn is_secure(&self) -> bool {
        self.published.as_deref().is_some_and(|origin| origin.starts_with("https:"))
    }

    /// The secret of a session that a request shows.
    fn session_from_headers(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie_name()).map(|(_, value)| value.to_owned())
    }

    /// Whose session it is, as it stands now.
    pub(super) async fn find_visitor(&self, session: &str) -> Result<Option<Visitor>, PageError> {
        let (visitors, session, now) = (self.visitors.clone(), session.to_owned(), self.now());
        Ok(run_blocking(move || visitors.find_session(&session, now)).await??)
    }

    /// Whether anybody could be let in.
    async fn check_sign_ins_readable(&self) -> Result<(), String> {
        let visitors = self.visitors.clone();
        let proven = run_blocking(move || visitors.prove_readable()).await;
        proven.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.adapters.clock)()
    }
}

/// What the forms of a session carry: it follows from the secret of the session, and tells nothing of it.
fn csrf_token(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::new().chain_update("the forms of ").chain_update(session).finalize())
}

/// The language that a browser wants.
pub(super) fn preferred_language(headers: &HeaderMap) -> PageLanguage {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    PageLanguage::from_accept_language(wanted)
}

/// What who has no session sees.
pub(super) fn no_session_response(language: PageLanguage) -> Response {
    let page = render(language, PageFormat::Served, "pages/stranger.html", &serde_json::json!({}));
    (StatusCode::FORBIDDEN, page.map(Html).map_err(|error| error.to_string())).into_response()
}

/// What everybody sees while the file of those who may look cannot be read. It tells strangers no path of this machine.
pub(super) fn closed_response(language: PageLanguage, why: &str) -> Response {
    tracing::error!("the dashboard is closed: cannot read the dashboard sign-ins: {why}");
    let page = render(language, PageFormat::Served, "pages/closed.html", &serde_json::json!({}));
    (StatusCode::SERVICE_UNAVAILABLE, page.map(Html).map_err(|error| error.to_string())).into_response()
}

/// A refusal that needs no session to be told.
fn bare_refusal(refusal: PageError) -> Response {
    refusal.to_message(PageWords::in_language(PageLanguage::English)).status.into_response()
}

impl PageRequest {
    pub(super) fn words(&self) -> &'static PageWords {
        PageWords::in_language(self.language)
    }

    pub(super) fn ledger(&self) -> &dyn Ledger {
        self.pages.adapters.ledger.as_ref()
    }

    /// A moment, on the clock of the page.
    pub(super) fn format_moment(&self, at: Timestamp) -> String {
        self.words().format_moment(&at.to_zoned(self.zone.clone()))
    }

    /// A moment in the time zone of a run, with the zone if it differs from that of the page.
    pub(super) fn format_moment_in(&self, zone: &TimeZone, at: Timestamp) -> String {
        if zone_name(zone) == zone_name(&self.zone) {
            return self.format_moment(at);
        }
        self.words().format_moment_in_zone(&at.to_zoned(zone.clone()))
    }

    /// Whether numbers are shown whole: to who decides, and only where they asked.
    pub(super) fn shows_numbers(&self) -> bool {
        self.visitor.decides && self.query.get("numbers") == Some("shown")
    }

    /// A number as it is shown to them.
    pub(super) fn format_number(&self, phone: Phone) -> String {
        if self.shows_numbers() { format!("+{phone}") } else { phone.format_masked() }
    }

    /// Words of others, in which a number is shown as it is shown to them elsewhere.
    pub(super) fn mask_text(&self, text: &str, of: Option<Phone>) -> String {
        match of.filter(|_| !self.shows_numbers()) {
            Some(phone) => phone.hide_in_text(text, &phone.format_masked()).into_owned(),
            None => text.to_owned(),
        }
    }

    /// The run of a name such as `autumn-sale@3`; from then on times are told by its clock.
    pub(super) async fn find_run(&mut self, name: &str) -> Result<Run, PageError> {
        let (campaign, _) = name.rsplit_once('@').ok_or(PageError::Unknown)?;
        let run = find_stored_run(self.ledger(), (campaign, name)).await?.ok_or(PageError::Unknown)?;
        self.zone = self.pages.zones.zone_of_run(self.ledger(), &run).await;
        Ok(run)
    }

    /// A page of a template.
    pub(super) fn render_page(&self, template: &str, view: &impl Serialize) -> Result<String, PageError> {
        Ok(render(self.language, PageFormat::Served, template, &self.with_frame(view))?)
    }

    /// A part of a page, of a template of its own.
    pub(super) fn render_part(&self, template: &str, view: &impl Serialize) -> Result<String, PageError> {
        Ok(render_part(self.language, template, &self.with_frame(view))?)
    }

    fn with_frame<'v, V>(&'v self, view: &'v V) -> ServedView<'v, V> {
        let zone = zone_name(&self.zone).to_owned();
        let Visitor { name, decides } = &self.visitor;
        ServedView { view, visitor: name, decides: *decides, form: &self.csrf_token, zone }
    }

    /// The answer: a page of this template, or why there is none.
    pub(super) fn respond<V: Serialize>(&self, template: &str, view: Result<V, PageError>) -> Response {
        match view.and_then(|view| self.render_page(template, &view)) {
            Ok(page) => Html(page).into_response(),
            Err(refusal) => self.render_refusal(self.words().say("pages.not-shown"), refusal),
        }
    }

    /// The answer to an order: back to a page that tells what was done, or why it was not.
    pub(super) fn respond_to_order(&self, done: Result<String, PageError>) -> Response {
        match done {
            Ok(page) => Redirect::to(&page).into_response(),
            Err(refusal) => self.render_refusal(self.words().say("pages.refused"), refusal),
        }
    }

    /// A page that tells why another cannot be shown or an order was not done, under this heading; what does not exist has a
    /// heading of its own.
    fn render_refusal(&self, heading: &str, refusal: PageError) -> Response {
        let nothing = matches!(refusal, PageError::Unknown);
        let heading = if nothing { self.words().say("pages.nothing-here") } else { heading };
        let ErrorMessage { status, told, english } = refusal.to_message(self.words());
        match self.render_page("pages/refused.html", &RefusalView { heading, told, english }) {
            Ok(page) => (status, Html(page)).into_response(),
            Err(_) => status.into_response(),
        }
    }
}
