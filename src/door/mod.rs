//! The doors of our servers: listening, connections within limits, a graceful end.
//!
//! axum's own server knows no limit on heads, silence or the number of connections. A server here is a router of axum
//! behind a door: [`listen`] binds it, so that a failure is told before anything runs, and [`serve`] lets connections in
//! until its shutdown comes, then has the requests under way answered. A handler finds who asks as
//! `Extension<SocketAddr>`, reads a body with a limit and a time-out of its own, and answers sooner than a connection may
//! be silent.
//!
//! It must not look into a request.

mod connections;
mod hosts;
mod listening;
mod reach;
mod silence;

pub(crate) use connections::{ConnectionLimits, Connections, serve_connections};
pub(crate) use hosts::Hosts;
pub(crate) use listening::{BACKLOG, accept_connection, bind_socket, connectable_address, listen};
pub(crate) use reach::is_public;
