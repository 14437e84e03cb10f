//! The engine that sends a run and keeps the promise never to send a message twice.
