//! The vocabulary of messaging: pure values that every other room speaks in.
//!
//! Nothing here does I/O, knows a file format or a wire format.

mod addressee;
mod allotment;
mod amount;
mod approver;
mod budget;
mod cap;
mod chain;
mod channel;
mod content;
mod costly;
mod endpoint;
mod id;
pub(crate) mod latin;
mod list_form;
mod occasion;
mod operation;
mod opt_out;
mod outcome;
mod phone;
mod plain;
mod purpose;
mod receipt;
mod region;
mod row;
mod state;
mod status;
mod text;
pub mod variable;

pub use addressee::{Addressee, FORGOTTEN, ForgottenNumber};
pub use allotment::Allotment;
pub use amount::{Amount, NoAmount};
pub use approver::{ApproverKey, NoApproverKey};
pub use budget::{Budget, Spending};
pub use cap::Cap;
pub use chain::Chain;
pub use channel::*;
pub use content::{Content, Extra, Text, TextSource};
pub use costly::{CostlyCharacters, costly_characters};
pub use endpoint::{Endpoint, LOOPBACK};
pub use id::{IdRange, MessageId, MsgId};
pub use list_form::{Delimiter, ListForm};
pub use occasion::Occasion;
pub use operation::{Operation, OperationKind};
pub use opt_out::{MOST_OPT_OUT_WORDS, OptOutWords};
pub use outcome::Outcome;
pub use phone::Phone;
pub use plain::{Plain, instead};
pub use purpose::Purpose;
pub use receipt::{Media, Receipt, ReceiptSource, RecipientReply, ReportedChannel};
pub use region::{ParseRegionError, Region, country_of};
pub use row::{ParseRowsError, Row, RowSet};
pub use state::{CANCELLED, ENDED_EARLY, EXPIRED, FALLBACK_NOT_REPORTED, State};
pub use status::{Arrival, Status};
pub use text::{Encoding, SmsText, sms_text, split_sms};
