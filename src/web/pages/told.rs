//! What somebody orders: only from a page of ours that this very session got, which its origin and its mark prove.

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::response::Response;
use subtle::ConstantTimeEq as _;

use super::Pages;
use super::fields::FormFields;
use super::look::PageRequest;
use super::refusal::PageError;

/// The longest form.
const MAX_FORM_BYTES: usize = 16 * 1024;
/// How long a form may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A form of a page of ours, by whoever has a session.
pub(super) struct VerifiedForm {
    pub(super) look: PageRequest,
    pub(super) fields: FormFields,
}

/// The same by somebody who may decide.
pub(super) struct DecisionForm(pub(super) VerifiedForm);

impl FromRequest<Arc<Pages>> for VerifiedForm {
    type Rejection = Response;

    async fn from_request(request: Request, pages: &Arc<Pages>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let look = PageRequest::from_request_parts(&mut parts, pages).await?;
        let not_ours = || look.respond_to_order(Err(PageError::ForeignRequest));
        if !is_same_origin(&parts.headers, pages.published.as_deref()) {
            return Err(not_ours());
        }
        let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_FORM_BYTES)).await;
        let Ok(Ok(body)) = read else { return Err(not_ours()) };
        let fields = FormFields::parse(&body);
        let shown = fields.get("form").unwrap_or_default();
        if !bool::from(shown.as_bytes().ct_eq(look.csrf_token.as_bytes())) {
            return Err(not_ours());
        }
        Ok(Self { look, fields })
    }
}

impl FromRequest<Arc<Pages>> for DecisionForm {
    type Rejection = Response;

    async fn from_request(request: Request, pages: &Arc<Pages>) -> Result<Self, Response> {
        let told = VerifiedForm::from_request(request, pages).await?;
        match told.look.visitor.decides {
            true => Ok(Self(told)),
            false => Err(told.look.respond_to_order(Err(PageError::NoPermission))),
        }
    }
}

/// Whether a request comes from a page of this door: of the host that it names, or of the origin by which it is published.
fn is_same_origin(headers: &HeaderMap, published: Option<&str>) -> bool {
    let mut origins = headers.get_all(ORIGIN).into_iter();
    let (Some(origin), None) = (origins.next().and_then(|origin| origin.to_str().ok()), origins.next()) else {
        return false;
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    published == Some(origin) || host.is_some_and(|host| origin.strip_prefix("http://") == Some(host))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_own_or_published_origin_is_accepted() {
        let published = Some("https://campaign.example.com");
        for (origins, ours) in [
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
            assert_eq!(is_same_origin(&headers, published), ours, "{origins:?}");
        }
    }
}
