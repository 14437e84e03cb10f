//! Message texts: templates become what one recipient gets.
