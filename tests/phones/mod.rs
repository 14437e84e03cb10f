//! Numbers are read as libphonenumber reads them, and whoever stands in a list in many spellings gets one message.

mod golden;
mod kinds;
mod spellings;
