//! Phone numbers: parsed like libphonenumber, and recognized as one recipient in every spelling.

mod golden;
mod kinds;
mod spellings;
