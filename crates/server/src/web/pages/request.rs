//! Page requests with a session, forms with a CSRF token, and responses. Without a session, only the sign-in page is
//! shown.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::header::{ACCEPT_LANGUAGE, COOKIE, HOST, HeaderMap, ORIGIN, REFERER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::uri::{Authority, PathAndQuery};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Pages;
use super::caches::CampaignTraits;
use super::page_error::{ErrorMessage, PageError};
use super::sign_in::Visitor;
use crate::web::html::{PageFormat, render, render_part};
use crate::web::masking::{mask_all_numbers, mask_recipient};
use crate::web::words::{PageLanguage, PageWords, zone_name};
use campaign_core::domain::Phone;
use campaign_core::finding::mask_numbers;
use campaign_ledger::{Ledger, Run};
use campaign_net::is_loopback_host;
use campaign_runs::{find_stored_run, run_blocking};

/// A request for a page, with a valid session.
pub(super) struct PageRequest {
    pub(super) pages: Arc<Pages>,
    pub(super) visitor: Visitor,
    pub(super) language: PageLanguage,
    /// The query of the URL.
    pub(super) query: FormFields,
    /// The CSRF token of the session.
    pub(super) csrf_token: String,
    /// The secret of the session.
    pub(super) session: String,
    /// The time zone of the page: this machine's, or that of the campaigns on the page.
    pub(super) zone: TimeZone,
    /// The path of the URL.
    path: String,
    /// The run that the page is about, for the search field.
    run: Option<String>,
    /// The title of the campaign of `run`.
    pub(super) title: Option<String>,
    /// Whether the campaign of `run` has variants.
    pub(super) has_variants: bool,
    /// The text of a search without a result, which the search field keeps.
    pub(super) searched: Option<String>,
}

/// The values of a page, and those that every served page has.
#[derive(Serialize)]
struct ServedView<'v, V> {
    #[serde(flatten)]
    view: &'v V,
    visitor: &'v str,
    decides: bool,
    form: &'v str,
    /// The zone of the times on the page.
    zone: String,
    frame: FrameView<'v>,
}

/// The navigation and the search field of a page.
#[derive(Serialize)]
struct FrameView<'v> {
    sections: &'static [Section],
    /// The section of the page; empty if the page belongs to no section.
    section: &'static str,
    /// Whether this is the first page of the section.
    is_top: bool,
    /// The text in the search field.
    searched: &'v str,
    /// The run whose rows the search field searches. `None` on pages without a run.
    run: Option<&'v str>,
    /// The codes of the other languages.
    languages: Vec<&'static str>,
}

/// A section of the navigation.
#[derive(Serialize)]
struct Section {
    name: &'static str,
    path: &'static str,
}

impl Section {
    /// The sections, in the order of the navigation.
    const ALL: &'static [Self] = &[
        Self { name: "overview", path: "/" },
        Self { name: "runs", path: "/runs" },
        Self { name: "schedules", path: "/schedules" },
        Self { name: "opt-outs", path: "/opt-outs" },
        Self { name: "replies", path: "/replies" },
        Self { name: "campaigns", path: "/campaigns" },
    ];

    /// Finds the section that the page at this path belongs to.
    fn from_path(path: &str) -> Option<&'static Self> {
        let first = path.split('/').nth(1).unwrap_or_default();
        Self::ALL.iter().find(|section| section.path.trim_start_matches('/') == first)
    }
}

#[derive(Serialize)]
struct ErrorPageView<'w> {
    heading: &'w str,
    /// Whether the page does not exist. The error page then lists the sections.
    missing: bool,
    message: Option<String>,
    english: Option<String>,
}

impl FromRequestParts<Arc<Pages>> for PageRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, pages: &Arc<Pages>) -> Result<Self, Response> {
        let language = preferred_language(&parts.headers);
        let Some(session) = pages.session_from_headers(&parts.headers) else {
            return Err(match pages.check_sign_ins_readable().await {
                Ok(()) => no_session_response(language),
                Err(problem) => sign_in_unavailable_response(language, &problem),
            });
        };
        let visitor = pages.find_visitor(&session).await;
        if let Err(PageError::Failed(problem)) = &visitor {
            return Err(sign_in_unavailable_response(language, problem));
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
                path: parts.uri.path().to_owned(),
                run: None,
                title: None,
                has_variants: false,
                searched: None,
            }),
            Ok(None) if parts.method == Method::GET || parts.method == Method::HEAD => {
                Err(no_session_response(language))
            }
            Ok(None) => Err(StatusCode::FORBIDDEN.into_response()),
            Err(refusal) => Err(status_only_response(refusal)),
        }
    }
}

impl Pages {
    /// The name of the session cookie. Over TLS, the `__Host-` prefix prevents other hosts from setting the cookie.
    pub(super) fn cookie_name(&self) -> &'static str {
        if self.is_secure() { "__Host-campaign" } else { "campaign" }
    }

    /// Whether the server is reached only over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.published.as_deref().is_some_and(|origin| origin.starts_with("https:"))
    }

    /// Reads the session secret from the session cookie of a request. Returns `None` if the request does not have this
    /// cookie.
    fn session_from_headers(&self, headers: &HeaderMap) -> Option<String> {
        find_cookie(headers, self.cookie_name()).map(str::to_owned)
    }

    /// Finds the visitor of a session, if the session is valid.
    pub(super) async fn find_visitor(&self, session: &str) -> Result<Option<Visitor>, PageError> {
        let (visitors, session, now) = (self.visitors.clone(), session.to_owned(), self.now());
        Ok(run_blocking(move || visitors.find_session(&session, now)).await??)
    }

    /// Fails if the sign-in file cannot be read.
    async fn check_sign_ins_readable(&self) -> Result<(), String> {
        let visitors = self.visitors.clone();
        let readable = run_blocking(move || visitors.check_readable()).await;
        readable.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Whether a request comes from this server's pages.
    pub(super) fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        is_same_origin(headers, self.published.as_deref())
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.adapters.clock)()
    }
}

/// Derives the CSRF token of a session: a hash of the session secret, from which the secret cannot be recovered.
fn csrf_token(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::new().chain_update("the forms of ").chain_update(session).finalize())
}

/// Finds the value of the cookie with this name.
fn find_cookie<'h>(headers: &'h HeaderMap, cookie_name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie_name).map(|(_, value)| value)
}

/// The cookie with the language that the user chose.
const LANGUAGE_COOKIE: &str = "campaign-language";
/// The time for which the choice of a language is kept, in seconds: a year.
const LANGUAGE_LIFETIME: u32 = 31_536_000;

/// Stores the chosen language in a cookie, and redirects to the page that the user came from.
pub(super) async fn choose_language(
    State(pages): State<Arc<Pages>>,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(language) = PageLanguage::ALL.into_iter().find(|language| language.code() == code) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let secure = if pages.is_secure() { "; Secure" } else { "" };
    let code = language.code();
    let cookie =
        format!("{LANGUAGE_COOKIE}={code}; Path=/; Max-Age={LANGUAGE_LIFETIME}; HttpOnly; SameSite=Strict{secure}");
    ([(SET_COOKIE, cookie)], Redirect::to(&referring_path(&headers))).into_response()
}

/// Returns the path and query of the referring page, or `/` if that page is not on this server.
fn referring_path(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let referrer = headers.get(REFERER).and_then(|referer| referer.to_str().ok()?.parse::<Uri>().ok());
    let referrer = referrer.filter(|page| page.authority().map(Authority::as_str) == host && host.is_some());
    let path = referrer.as_ref().and_then(Uri::path_and_query).map(PathAndQuery::as_str);
    // A path that begins with two slashes would name another host, and browsers read `\` as `/`.
    path.filter(|path| path.starts_with('/') && !path.starts_with("//") && !path.contains('\\'))
        .unwrap_or("/")
        .to_owned()
}

/// Returns the language that the user chose, or else the preferred language of the browser.
pub(super) fn preferred_language(headers: &HeaderMap) -> PageLanguage {
    let chosen = find_cookie(headers, LANGUAGE_COOKIE);
    if let Some(language) = PageLanguage::ALL.into_iter().find(|language| Some(language.code()) == chosen) {
        return language;
    }
    let languages = headers.get(ACCEPT_LANGUAGE).and_then(|languages| languages.to_str().ok()).unwrap_or_default();
    PageLanguage::from_accept_language(languages)
}

/// The response to a request without a session.
pub(super) fn no_session_response(language: PageLanguage) -> Response {
    sessionless_response(language, StatusCode::FORBIDDEN, "pages/sign_in_required.html", &json!({}))
}

/// Responds with a page that needs no session.
pub(super) fn sessionless_response(
    language: PageLanguage,
    status: StatusCode,
    template: &str,
    view: &Value,
) -> Response {
    match render(language, PageFormat::Served, template, view) {
        Ok(page) => (status, Html(page)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Builds the response to a request while the sign-in file cannot be read, and logs the reason. The response does not
/// reveal any path of this machine.
pub(super) fn sign_in_unavailable_response(language: PageLanguage, problem: &str) -> Response {
    tracing::error!("the dashboard is unavailable: cannot read the sign-in file: {problem}");
    sessionless_response(language, StatusCode::SERVICE_UNAVAILABLE, "pages/sign_in_unavailable.html", &json!({}))
}

/// An error response without a page, for visitors without a session.
fn status_only_response(refusal: PageError) -> Response {
    refusal.into_message(PageWords::in_language(PageLanguage::English)).status.into_response()
}

impl PageRequest {
    pub(super) fn words(&self) -> &'static PageWords {
        PageWords::in_language(self.language)
    }

    pub(super) fn ledger(&self) -> &dyn Ledger {
        self.pages.adapters.ledger.as_ref()
    }

    /// Formats a time in the time zone of the page.
    pub(super) fn format_moment(&self, at: Timestamp) -> String {
        self.words().format_moment(&at.to_zoned(self.zone.clone()))
    }

    /// Formats a time with seconds in the time zone of the page, for events that are close together.
    pub(super) fn format_moment_with_seconds(&self, at: Timestamp) -> String {
        self.words().format_moment_with_seconds(&at.to_zoned(self.zone.clone()))
    }

    /// Formats a time in the time zone of a run. The text names this time zone if it differs from the time zone of the
    /// page.
    pub(super) fn format_moment_in(&self, zone: &TimeZone, at: Timestamp) -> String {
        if zone_name(zone) == zone_name(&self.zone) {
            return self.format_moment(at);
        }
        self.words().format_moment_in_zone(&at.to_zoned(zone.clone()))
    }

    /// Whether phone numbers are shown in full: only to visitors who may make decisions, and only on request.
    pub(super) fn shows_numbers(&self) -> bool {
        self.visitor.decides && self.query.get("numbers") == Some("shown")
    }

    /// Formats a phone number, which is masked unless the page shows full numbers.
    pub(super) fn format_number(&self, phone: Phone) -> String {
        if self.shows_numbers() { format!("+{phone}") } else { phone.format_masked() }
    }

    /// Masks the recipient's phone number in text from the gateway, unless the page shows full numbers. Other long
    /// numbers in such a text can be identifiers, so they are kept if the recipient is known.
    pub(super) fn mask_gateway_text(&self, text: &str, recipient: Option<Phone>) -> String {
        match recipient {
            _ if self.shows_numbers() => text.to_owned(),
            Some(phone) => mask_recipient(text, phone).into_owned(),
            None => mask_numbers(text),
        }
    }

    /// Masks all phone numbers in a text that a person wrote, such as a reply, unless the page shows full numbers.
    pub(super) fn mask_written_text(&self, text: &str, recipient: Option<Phone>) -> String {
        match recipient {
            _ if self.shows_numbers() => text.to_owned(),
            Some(phone) => mask_all_numbers(text, phone),
            None => mask_numbers(text),
        }
    }

    /// Finds a run by a name such as `autumn-sale@3`, and switches the page to the time zone of this run.
    pub(super) async fn find_run(&mut self, name: &str) -> Result<Run, PageError> {
        let (campaign, _) = name.rsplit_once('@').ok_or(PageError::Unknown)?;
        let run = find_stored_run(self.ledger(), campaign, name).await?.ok_or(PageError::Unknown)?;
        let CampaignTraits { zone, title, has_variants } = self.pages.traits.load(self.ledger(), &run).await;
        (self.zone, self.title, self.has_variants) = (zone, title, has_variants);
        self.run = Some(run.name());
        Ok(run)
    }

    /// Fails unless the visitor may make decisions.
    pub(super) fn require_decider(&self) -> Result<(), PageError> {
        if self.visitor.decides { Ok(()) } else { Err(PageError::NoPermission) }
    }

    /// Switches the page to the time zone of these campaigns if all of them have the same time zone.
    pub(super) fn use_common_zone<'z>(&mut self, zones: impl IntoIterator<Item = &'z TimeZone>) {
        let mut zones = zones.into_iter();
        let Some(first) = zones.next() else { return };
        if zones.all(|zone| zone_name(zone) == zone_name(first)) {
            self.zone = first.clone();
        }
    }

    pub(super) fn render_page(&self, template: &str, view: &impl Serialize) -> Result<String, PageError> {
        Ok(render(self.language, PageFormat::Served, template, &self.with_frame(view))?)
    }

    /// Renders a part of a page.
    pub(super) fn render_part(&self, template: &str, view: &impl Serialize) -> Result<String, PageError> {
        Ok(render_part(self.language, template, &self.with_frame(view))?)
    }

    fn with_frame<'v, V>(&'v self, view: &'v V) -> ServedView<'v, V> {
        let zone = zone_name(&self.zone).to_owned();
        let Visitor { name, decides } = &self.visitor;
        let section = Section::from_path(&self.path);
        let frame = FrameView {
            sections: Section::ALL,
            section: section.map_or("", |section| section.name),
            is_top: section.is_some_and(|section| section.path == self.path),
            searched: self.searched.as_deref().unwrap_or_default(),
            run: self.run.as_deref(),
            languages: PageLanguage::ALL
                .into_iter()
                .filter(|other| *other != self.language)
                .map(PageLanguage::code)
                .collect(),
        };
        ServedView { view, visitor: name, decides: *decides, form: &self.csrf_token, zone, frame }
    }

    /// Responds with a rendered page, or with an error page.
    pub(super) fn respond<V: Serialize>(&self, template: &str, view: Result<V, PageError>) -> Response {
        match view.and_then(|view| self.render_page(template, &view)) {
            Ok(page) => Html(page).into_response(),
            Err(refusal) => self.render_error_page(self.words().say("pages.not-available"), refusal),
        }
    }

    /// Responds to an action with a redirect to a confirmation, or with an error page.
    pub(super) fn respond_to_action(&self, result: Result<String, PageError>) -> Response {
        match result {
            Ok(page) => Redirect::to(&page).into_response(),
            Err(refusal) => self.render_error_page(self.words().say("pages.action-failed"), refusal),
        }
    }

    /// Responds with the page for a path that does not exist.
    pub(super) fn respond_not_found(&self) -> Response {
        self.render_error_page(self.words().say("pages.not-found"), PageError::Unknown)
    }

    /// Renders an error page with this heading. For a missing object, the page has a fixed heading instead.
    fn render_error_page(&self, heading: &str, refusal: PageError) -> Response {
        let is_missing = matches!(refusal, PageError::Unknown);
        let heading = if is_missing { self.words().say("pages.not-found") } else { heading };
        let ErrorMessage { status, message, english } = refusal.into_message(self.words());
        match self.render_page("pages/error.html", &ErrorPageView { heading, missing: is_missing, message, english }) {
            Ok(page) => (status, Html(page)).into_response(),
            Err(_) => status.into_response(),
        }
    }
}

/// The maximum size of a form, in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;
/// The time limit for receiving a form.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A form with a valid session and CSRF token.
pub(super) struct VerifiedForm {
    pub(super) request: PageRequest,
    pub(super) fields: FormFields,
}

/// A form from a visitor who may make decisions.
pub(super) struct DecisionForm(pub(super) VerifiedForm);

impl FromRequest<Arc<Pages>> for VerifiedForm {
    type Rejection = Response;

    async fn from_request(request: Request, pages: &Arc<Pages>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let request = PageRequest::from_request_parts(&mut parts, pages).await?;
        let reject_foreign = || request.respond_to_action(Err(PageError::ForeignRequest));
        if !pages.is_same_origin(&parts.headers) {
            return Err(reject_foreign());
        }
        let received = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_FORM_BYTES)).await;
        let Ok(Ok(body)) = received else { return Err(request.respond_to_action(Err(PageError::UnreadableForm))) };
        let fields = FormFields::parse(&body);
        let token = fields.get("form").unwrap_or_default();
        if !bool::from(token.as_bytes().ct_eq(request.csrf_token.as_bytes())) {
            return Err(reject_foreign());
        }
        Ok(Self { request, fields })
    }
}

impl FromRequest<Arc<Pages>> for DecisionForm {
    type Rejection = Response;

    async fn from_request(request: Request, pages: &Arc<Pages>) -> Result<Self, Response> {
        let form = VerifiedForm::from_request(request, pages).await?;
        match form.request.visitor.decides {
            true => Ok(Self(form)),
            false => Err(form.request.respond_to_action(Err(PageError::NoPermission))),
        }
    }
}

/// Whether a request comes from this server's pages: its origin is the published origin or, over plain HTTP, the
/// requested host. If there is a published origin, plain HTTP is accepted only for hosts of this machine.
fn is_same_origin(headers: &HeaderMap, published: Option<&str>) -> bool {
    let mut origins = headers.get_all(ORIGIN).into_iter();
    let (Some(origin), None) = (origins.next().and_then(|origin| origin.to_str().ok()), origins.next()) else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_plain_origin = |host: &str| {
        let is_local = || host.parse().is_ok_and(|authority: Authority| is_loopback_host(authority.host()));
        origin.strip_prefix("http://") == Some(host) && (published.is_none() || is_local())
    };
    published == Some(origin) || host.is_some_and(is_plain_origin)
}

/// The fields of a form or a query, in the order of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Parses a URL-encoded form or query.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Returns the trimmed value of a field, or `None` if the field is missing or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(field, _)| field == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

/// Encodes a segment of a URL path.
pub(super) fn encode_path_segment(word: &str) -> String {
    form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>().replace('+', "%20").replace("%40", "@")
}

#[cfg(test)]
mod origin_tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_local_or_published_origin_is_accepted() {
        let published = Some("https://campaign.example.com");
        for (origins, accepted) in [
            (vec!["http://127.0.0.1:8040"], true),
            (vec!["https://campaign.example.com"], true),
            (vec![], false),
            (vec!["null"], false),
            (vec!["http://127.0.0.1:8041"], false),
            (vec!["https://127.0.0.1:8040"], false),
            (vec!["http://localhost:8040"], false),
            (vec!["http://evil.example"], false),
            (vec!["http://campaign.example.com"], false),
            (vec!["http://127.0.0.1:8040", "http://evil.example"], false),
        ] {
            let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("127.0.0.1:8040"))]);
            for origin in &origins {
                headers.append(ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            assert_eq!(is_same_origin(&headers, published), accepted, "{origins:?}");
        }
    }

    #[test]
    fn published_host_is_not_accepted_over_plain_http() {
        let published = Some("https://campaign.example.com");
        for (host, published, accepted) in [
            ("campaign.example.com", published, false),
            ("Campaign.example.com:80", published, false),
            ("localhost:8040", published, true),
            ("[::1]:8040", published, true),
            ("10.0.0.5:8040", None, true),
        ] {
            let origin = HeaderValue::from_str(&format!("http://{host}")).unwrap();
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).unwrap()), (ORIGIN, origin)]);
            assert_eq!(is_same_origin(&headers, published), accepted, "{host}");
        }
    }
}

#[cfg(test)]
mod form_tests {
    use super::*;

    #[test]
    fn form_fields_are_decoded_as_browsers_encode_them() {
        let fields = FormFields::parse("why=%D1%82%D0%B0%D0%BA+&empty=&why=2&count=%203".as_bytes());
        assert_eq!((fields.get("why"), fields.get("count")), (Some("так"), Some("3")));
        assert_eq!((fields.get("empty"), fields.get("none")), (None, None));
        assert_eq!(encode_path_segment("autumn-sale@3"), "autumn-sale@3");
        assert_eq!(encode_path_segment("a b/?c"), "a%20b%2F%3Fc");
    }
}
