//! What pages and the files made of them consist of: one stylesheet, one frame, templates, and messages as phones show them.
//!
//! - `templates`: the templates, compiled once for each language, and how a page is made of one;
//! - `escape`: how every word of others is written into a page;
//! - `phone`: a message as it looks on a phone;
//! - `assets`: the stylesheet and the script that pages of a server load.
//!
//! A page loads nothing from elsewhere and holds no script and no `style` attribute; a file that stands alone carries its
//! stylesheet, and no script belongs to it. Nothing here reads the ledger or decides anything.

mod assets;
mod escape;
mod findings;
mod phone;
mod pieces;
#[cfg(test)]
#[path = "../../../tests/support/html.rs"]
pub(in crate::web) mod read_html;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod served_samples;
mod templates;

pub use assets::{ASSETS, Asset};
pub use findings::FindingView;
pub use phone::{Fallbacks, PhoneView};
pub use pieces::{TextPiece, TextView};
pub use templates::{PageFormat, STYLE, TemplateError, embed_json, render, render_part};
