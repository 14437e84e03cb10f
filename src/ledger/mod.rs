//! The durable truth of every message.
