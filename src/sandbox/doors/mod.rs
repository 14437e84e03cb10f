//! Where the sandbox meets the world: sockets, HTTP, real time.
//!
//! - `server`: starting, addressing and stopping a [`Sandbox`];
//! - `doorway`: its port, which may be shut; `connections`: the connections that it let in;
//! - `shell`: a request becomes bytes, and an answer leaves whole, late, cut or not at all;
//! - `live`: the platform with its clock (`clock`) and journal under one lock; `ticker`: what is due by itself;
//! - `posting`: webhooks go out; `names`: whether their host is this machine; `local`: who takes them in this process.
//!
//! Nothing here knows what an operation is.

mod clock;
pub(crate) mod connections;
mod doorway;
mod live;
mod local;
pub(crate) mod names;
pub(crate) mod posting;
pub(crate) mod server;
mod shell;
mod ticker;

pub use local::LocalReceiver;
pub use posting::WebhookPolicy;
pub use server::{Sandbox, SandboxSettings};
