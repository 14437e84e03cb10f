//! The messaging platform as a port, and its JSON API.
