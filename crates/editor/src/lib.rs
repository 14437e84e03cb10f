//! What editors show while a campaign is being written: findings, explanations, completions and definitions.
//!
//! An [`EditorSession`] holds the open documents and answers the requests of the Language Server Protocol. It reads
//! lists, templates and profiles through the loaders of the other crates, with the unsaved texts in place of the files.
//! It writes nothing, and uses neither the ledger nor the network. `campaign lsp` reads and writes the protocol's
//! messages.
//!
//! Checking a list takes time. [`EditorSession::refresh`] therefore returns [`ListCheck`]s, which another thread runs,
//! and which stop once the text changes.

mod completion;
mod diagnostics;
mod drafts;
mod explanation;
mod kind;
mod names;
mod position;
mod session;
mod template_cursor;
mod yaml_outline;

pub use drafts::{ListCheck, ListOutcome};
pub use position::ColumnUnit;
pub use session::EditorSession;
