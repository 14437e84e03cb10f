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
use super::fields::Fields;
use super::refusal::{Message, Refusal};
use super::visitors::Visitor;
use crate::domain::Phone;
use crate::ledger::{Ledger, Run};
use crate::runs::{blocking, find_stored};
use crate::web::html::{Form, render, render_part};
use crate::web::words::{Language, Words, zone_name};

/// A look at a page by somebody who has a session.
pub(super) struct Look {
    pub(super) pages: Arc<Pages>,
    pub(super) visitor: Visitor,
    pub(super) language: Language,
    /// What stands behind the `?` of the address.
    pub(super) query: Fields,
    /// What a form of a page of this session carries.
    pub(super) mark: String,
    /// The secret of the session.
    pub(super) session: String,
    /// On whose clock times are told: this machine's, or of a run its campaign's.
    pub(super) zone: TimeZone,
}

/// What every page of a server shows besides its own.
#[derive(Serialize)]
struct Served<'v, V> {
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

impl FromRequestParts<Arc<Pages>> for Look {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, pages: &Arc<Pages>) -> Result<Self, Response> {
        let language = language(&parts.headers);
        let Some(session) = pages.session_in(&parts.headers) else {
            return Err(match pages.prove_open().await {
                Ok(()) => stranger(language),
                Err(why) => closed(language, &why),
            });
        };
        let visitor = pages.visitor(&session).await;
        if let Err(Refusal::Failed(why)) = &visitor {
            return Err(closed(language, why));
        }
        match visitor {
            Ok(Some(visitor)) => Ok(Self {
                pages: Arc::clone(pages),
                visitor,
                language,
                query: Fields::read(parts.uri.query().unwrap_or_default().as_bytes()),
                mark: mark(&session),
                session,
                zone: TimeZone::system(),
            }),
            Ok(None) if parts.method == Method::GET || parts.method == Method::HEAD => Err(stranger(language)),
            Ok(None) => Err(StatusCode::FORBIDDEN.into_response()),
            Err(refusal) => Err(refused_to_anybody(refusal)),
        }
    }
}

impl Pages {
    /// The name of the cookie: over TLS one that no other host can set.
    pub(super) fn cookie(&self) -> &'static str {
        if self.is_secure() { "__Host-campaign" } else { "campaign" }
    }

    /// Whether it is reached by TLS alone.
    pub(super) fn is_secure(&self) -> bool {
        self.published.as_deref().is_some_and(|origin| origin.starts_with("https:"))
    }

    /// The secret of a session that a request shows.
    fn session_in(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie()).map(|(_, value)| value.to_owned())
    }

    /// Whose session it is, as it stands now.
    pub(super) async fn visitor(&self, session: &str) -> Result<Option<Visitor>, Refusal> {
        let (visitors, session, now) = (self.visitors.clone(), session.to_owned(), self.now());
        Ok(blocking(move || visitors.of_session(&session, now)).await??)
    }

    /// Whether anybody could be let in.
    async fn prove_open(&self) -> Result<(), String> {
        let visitors = self.visitors.clone();
        let proven = blocking(move || visitors.prove_readable()).await;
        proven.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.adapters.clock)()
    }
}

/// What the forms of a session carry: it follows from the secret of the session, and tells nothing of it.
fn mark(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::new().chain_update("the forms of ").chain_update(session).finalize())
}

/// The language that a browser wants.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    Language::of_accept_language(wanted)
}

/// What who has no session sees.
pub(super) fn stranger(language: Language) -> Response {
    let page = render(language, Form::Served, "pages/stranger.html", &serde_json::json!({}));
    (StatusCode::FORBIDDEN, page.map(Html).map_err(|error| error.to_string())).into_response()
}

/// What everybody sees while the file of those who may look cannot be read. It tells strangers no path of this machine.
pub(super) fn closed(language: Language, why: &str) -> Response {
    tracing::error!("the dashboard is closed: cannot read the dashboard sign-ins: {why}");
    let page = render(language, Form::Served, "pages/closed.html", &serde_json::json!({}));
    (StatusCode::SERVICE_UNAVAILABLE, page.map(Html).map_err(|error| error.to_string())).into_response()
}

/// A refusal that needs no session to be told.
fn refused_to_anybody(refusal: Refusal) -> Response {
    refusal.message(Words::of(Language::English)).status.into_response()
}

impl Look {
    pub(super) fn words(&self) -> &'static Words {
        Words::of(self.language)
    }

    pub(super) fn ledger(&self) -> &dyn Ledger {
        self.pages.adapters.ledger.as_ref()
    }

    /// A moment, on the clock of the page.
    pub(super) fn moment(&self, at: Timestamp) -> String {
        self.words().moment(&at.to_zoned(self.zone.clone()))
    }

    /// A moment in the time zone of a run, with the zone if it differs from that of the page.
    pub(super) fn moment_on(&self, zone: &TimeZone, at: Timestamp) -> String {
        if zone_name(zone) == zone_name(&self.zone) {
            return self.moment(at);
        }
        self.words().moment_in_zone(&at.to_zoned(zone.clone()))
    }

    /// Whether numbers are shown whole: to who decides, and only where they asked.
    pub(super) fn shows_numbers(&self) -> bool {
        self.visitor.decides && self.query.get("numbers") == Some("shown")
    }

    /// A number as it is shown to them.
    pub(super) fn number(&self, phone: Phone) -> String {
        if self.shows_numbers() { format!("+{phone}") } else { phone.masked() }
    }

    /// Words of others, in which a number is shown as it is shown to them elsewhere.
    pub(super) fn text(&self, text: &str, of: Option<Phone>) -> String {
        match of.filter(|_| !self.shows_numbers()) {
            Some(phone) => phone.hidden_in(text, &phone.masked()).into_owned(),
            None => text.to_owned(),
        }
    }

    /// The run of a name such as `autumn-sale@3`; from then on times are told by its clock.
    pub(super) async fn run(&mut self, name: &str) -> Result<Run, Refusal> {
        let (campaign, _) = name.rsplit_once('@').ok_or(Refusal::Unknown)?;
        let run = find_stored(self.ledger(), (campaign, name)).await?.ok_or(Refusal::Unknown)?;
        self.zone = self.pages.zones.of(self.ledger(), &run).await;
        Ok(run)
    }

    /// A page of a template.
    pub(super) fn page(&self, template: &str, view: &impl Serialize) -> Result<String, Refusal> {
        Ok(render(self.language, Form::Served, template, &self.served(view))?)
    }

    /// A part of a page, of a template of its own.
    pub(super) fn part(&self, template: &str, view: &impl Serialize) -> Result<String, Refusal> {
        Ok(render_part(self.language, template, &self.served(view))?)
    }

    fn served<'v, V>(&'v self, view: &'v V) -> Served<'v, V> {
        let zone = zone_name(&self.zone).to_owned();
        let Visitor { name, decides } = &self.visitor;
        Served { view, visitor: name, decides: *decides, form: &self.mark, zone }
    }

    /// The answer: a page of this template, or why there is none.
    pub(super) fn answer<V: Serialize>(&self, template: &str, view: Result<V, Refusal>) -> Response {
        match view.and_then(|view| self.page(template, &view)) {
            Ok(page) => Html(page).into_response(),
            Err(refusal) => self.refused(self.words().say("pages.not-shown"), refusal),
        }
    }

    /// The answer to an order: back to a page that tells what was done, or why it was not.
    pub(super) fn done(&self, done: Result<String, Refusal>) -> Response {
        match done {
            Ok(page) => Redirect::to(&page).into_response(),
            Err(refusal) => self.refused(self.words().say("pages.refused"), refusal),
        }
    }

    /// A page that tells why another cannot be shown or an order was not done, under this heading; what does not exist has a
    /// heading of its own.
    fn refused(&self, heading: &str, refusal: Refusal) -> Response {
        let nothing = matches!(refusal, Refusal::Unknown);
        let heading = if nothing { self.words().say("pages.nothing-here") } else { heading };
        let Message { status, told, english } = refusal.message(self.words());
        match self.page("pages/refused.html", &RefusalView { heading, told, english }) {
            Ok(page) => (status, Html(page)).into_response(),
            Err(_) => status.into_response(),
        }
    }
}
