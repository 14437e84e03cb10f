//! Which account a command is about.

use crate::cli::args::Through;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::finding::list;
use crate::manifest::{Profile, SANDBOX};
use crate::runs::Error;

/// The profile that was named, or the only one that there is.
pub(super) fn chosen(context: &Context, through: &Through) -> Result<Profile, Failure> {
    match through.gateway.as_deref() {
        Some(SANDBOX) => Err(Failure::wrong(
            "the built-in sandbox lives only as long as a run and has no account between runs; start one with \
             `campaign sandbox`, and name the profile that it prints with `--gateway NAME`",
        )),
        Some(name) => Ok(context.profiles().named(name, None, &context.observer)?),
        None => only(context),
    }
}

/// The only profile that there is.
pub(super) fn only(context: &Context) -> Result<Profile, Failure> {
    let gateways = context.profiles().load(None)?;
    let names: Vec<&str> = gateways.names().collect();
    match names[..] {
        [one] => Ok(gateways.profile(one).cloned().map_err(Error::Findings)?),
        [] => Err(Failure::wrong(
            "there is no gateway to ask; write its profile into gateways.yaml, or start `campaign sandbox`, which \
             prints one",
        )),
        _ => Err(Failure::wrong(format!(
            "there are several gateways; say which with `--gateway NAME`: {}",
            list(names.into_iter())
        ))),
    }
}
