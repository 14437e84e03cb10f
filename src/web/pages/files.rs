//! The stylesheet and the script of the pages, each under a name that tells what it holds.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};

use crate::web::html::{ASSETS, Asset};

/// A file; anybody gets it, since whoever installs the program has it.
pub(super) async fn get_asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.file_name() == name) {
        Some(Asset { kind, text, .. }) => {
            let kept = "public, max-age=31536000, immutable";
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, kept)], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
