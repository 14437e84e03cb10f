//! Domain vocabulary of messaging: pure values that every other module uses.
//!
//! This module does no I/O and knows neither file formats nor wire formats.

mod amount;
mod channel;
mod characters;
mod language;
mod limits;
mod list;
mod notification;
mod operation;
mod opt_out;
mod phone;
mod receipt;
mod recipient_consent;
mod sms_text;
mod state;
pub mod transliteration;
pub mod variable;
mod variant_allocation;

pub use amount::{Amount, ParseAmountError, choose_plural, format_count, format_thousands};
pub use channel::*;
pub use characters::{compose_accents, is_invisible, list_other_spellings, separate_accents};
pub use language::{Language, find_regions_by_letters};
pub use limits::{Budget, FrequencyCap, Spending};
pub use list::{Delimiter, ListFormat, ParseRowsError, Row, RowSet};
pub use notification::NotificationEvent;
pub use operation::{
    Chain, Endpoint, ExtraProperties, GatewayMessageId, IdRange, LOOPBACK, MessageContent, MessageId, NamedTemplate,
    Operation, OperationKind, OperationOutcome, PermanentError, Purpose, TextSource,
};
pub use opt_out::{
    MAX_OPT_OUT_WORDS, OptOutColumn, OptOutState, OptOutWords, ReplyReading, is_date, read_opt_out_state,
};
pub use phone::{
    Addressee, CountryFinder, CountrySet, FORGOTTEN, ForgottenNumber, ParseRegionError, Phone, Region, find_country,
    intersect_countries,
};
pub use receipt::{DeliveryState, Media, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Status};
pub use recipient_consent::{
    CONSENT_EXPIRED, CONSENT_WORDS, ConsentCells, ConsentPeriod, ConsentRules, ConsentVerdict, NO_CONSENT,
    ParsePeriodError, parse_consent_day,
};
pub use sms_text::{CostlyCharacters, SmsEncoding, SmsSize, find_costly_characters, measure_sms, split_sms};
pub use state::{CANCELLED, CANCELLED_EARLIER, ENDED_EARLY, EXPIRED, FALLBACK_NOT_REPORTED, REPLACED, RowState};
pub use transliteration::{PlainMode, keyboard_replacement};
pub use variant_allocation::VariantAllocation;
