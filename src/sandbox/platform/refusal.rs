//! The errors of one operation, in the gateway's words.

use std::borrow::Cow;

/// Why one operation is refused: the `error` of its item (contract 7).
///
/// The texts without a field's name are the platform's; the others are this sandbox's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationError(Cow<'static, str>);

impl OperationError {
    /// The sender name is missing or not well-formed.
    pub(crate) const ALPHA_NAME: OperationError = OperationError(Cow::Borrowed("Error in Alpha-name"));
    /// The text of an SMS is missing or blank.
    pub(crate) const SMS_TEXT: OperationError = OperationError(Cow::Borrowed("Please enter SMS text"));
    /// The phone is missing or no number that can be called.
    pub(crate) const PHONE: OperationError = OperationError(Cow::Borrowed("Please enter valid receiver phone number"));
    /// No message has the identifier that was asked for.
    pub(crate) const NOT_FOUND: OperationError = OperationError(Cow::Borrowed("Message not found"));
    /// The account has no way to WhatsApp.
    pub(crate) const NO_ROUTE: OperationError = OperationError(Cow::Borrowed("No route"));
    /// The balance is below what has to be reserved.
    pub(crate) const NO_MONEY: OperationError = OperationError(Cow::Borrowed("Not enough money"));
    /// The account has as many templates as it may have.
    pub(crate) const TOO_MANY_TEMPLATES: OperationError = OperationError(Cow::Borrowed("Too many templates"));

    /// The scenario's own words.
    pub(crate) fn custom(error: &str) -> Self {
        OperationError(error.to_owned().into())
    }

    /// A required field is missing or blank.
    pub(crate) fn missing_field(field: &str) -> Self {
        OperationError(format!("Please enter {field}").into())
    }

    /// A field has a value that it cannot have.
    pub(crate) fn invalid_field(field: &str) -> Self {
        OperationError(format!("Error in {field}").into())
    }

    /// The text of the error.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The text of the error, taken out.
    pub(crate) fn into_message(self) -> Cow<'static, str> {
        self.0
    }
}
