//! `campaign init`.
use super::args::InitArgs;
use super::context::Context;
use super::exit::Failure;

pub(super) fn init(_context: &Context, _args: &InitArgs) -> Result<u8, Failure> {
    Ok(0)
}
