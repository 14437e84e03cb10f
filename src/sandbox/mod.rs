//! The emulated gateway; it shares no wire types with the client in `gateway`.
