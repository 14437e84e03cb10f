//! `/api/runs`, `/api/runs/NAME` and `/api/schedules` as JSON, for who has the token. Nothing can be changed here.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, routing::get};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::Views;
use crate::manifest::KeySource;
use crate::report::{RunList, damaged_runs_json, run_entry_json, run_json};
use crate::runs::{Adapters, ArmedView, armed_views};

/// The fewest characters of a token.
const SHORTEST: usize = 16;

/// The file with the token, which is read anew whenever somebody asks.
#[derive(Clone, Debug)]
pub struct TokenFile(KeySource);

impl TokenFile {
    /// The token in this file.
    ///
    /// # Errors
    /// When the file cannot be read, can be read by others, or holds no token; the text never has any part of it.
    pub fn open(path: PathBuf) -> Result<Self, String> {
        let file = Self(KeySource::File(path));
        file.read().map(|_| file)
    }

    fn read(&self) -> Result<SecretString, String> {
        let token = self.0.read("the token", &|_| None)?;
        match token.expose_secret().len() {
            SHORTEST.. => Ok(token),
            _ => Err(format!("the token in {} is shorter than {SHORTEST} characters; create a longer one", self.0)),
        }
    }

    /// Whether somebody shows the token as it is now.
    fn opens(&self, shown: Option<&HeaderValue>) -> bool {
        let shown = shown.and_then(|value| value.to_str().ok()?.split_once(' '));
        let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else { return false };
        match self.read() {
            Ok(token) => token.expose_secret().as_bytes().ct_eq(shown.trim().as_bytes()).into(),
            Err(why) => {
                tracing::warn!("access to /api is denied: {why}");
                false
            }
        }
    }
}

/// Runs and schedules, for who has the token.
pub fn routes(views: Arc<Views>, adapters: Adapters, token: TokenFile) -> Router {
    let schedules = Router::new().route("/api/schedules", get(schedules)).with_state(adapters);
    Router::new()
        .route("/api/runs", get(list))
        .route("/api/runs/{name}", get(one))
        .with_state(views)
        .merge(schedules)
        .route_layer(middleware::from_fn_with_state(Arc::new(token), admit))
}

async fn admit(State(token): State<Arc<TokenFile>>, request: Request, next: Next) -> Response {
    if token.opens(request.headers().get(AUTHORIZATION)) {
        return next.run(request).await;
    }
    let mut refused = told(StatusCode::UNAUTHORIZED, &json!({ "error": "the token is missing or wrong" }));
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

async fn list(State(views): State<Arc<Views>>) -> Response {
    match read(&views).await {
        Ok(list) => {
            let runs: Vec<Value> = list.views.iter().map(run_entry_json).collect();
            let mut object = json!({ "runs": runs });
            if !list.damaged.is_empty() {
                object["damaged"] = damaged_runs_json(&list.damaged);
            }
            told(StatusCode::OK, &object)
        }
        Err(refused) => refused,
    }
}

async fn one(State(views): State<Arc<Views>>, Path(name): Path<String>) -> Response {
    let list = match read(&views).await {
        Ok(list) => list,
        Err(refused) => return refused,
    };
    let views = &list.views;
    if let Some(damaged) = list.damaged.iter().find(|damaged| damaged.name == name) {
        let why = format!("the run cannot be read: {}", damaged.error.damage());
        return told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": why }));
    }
    // By a campaign's name alone its latest run, the latest live one if there is any; the latest is first.
    let of_name = || views.iter().filter(|view| view.run.campaign == name);
    let latest = || of_name().find(|view| view.run.live).or_else(|| of_name().next());
    match views.iter().find(|view| view.run.name() == name).or_else(latest) {
        Some(view) => told(StatusCode::OK, &run_json(view)),
        None => told(StatusCode::NOT_FOUND, &json!({ "error": "the run does not exist" })),
    }
}

async fn schedules(State(adapters): State<Adapters>) -> Response {
    match armed_views(&adapters).await {
        Ok(armed) => {
            let armed: Vec<Value> = armed.iter().map(ArmedView::json).collect();
            told(StatusCode::OK, &json!({ "schedules": armed }))
        }
        Err(error) => {
            tracing::warn!("the active schedules cannot be read for /api: {error}");
            told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "the active schedules cannot be read" }))
        }
    }
}

async fn read(views: &Views) -> Result<Arc<RunList>, Response> {
    let why = match views.latest().await {
        Ok(Some(runs)) => return Ok(runs),
        Ok(None) => "the runs are being read; try again in a moment".to_owned(),
        Err(error) => {
            tracing::warn!("the ledger cannot be read for /api: {error}");
            "the ledger cannot be read".to_owned()
        }
    };
    Err(told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": why })))
}

fn told(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
