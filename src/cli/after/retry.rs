//! `campaign retry`: sends rejected rows again, as new messages.

use crate::cli::args::{RetryArgs, RunArgs};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{run, runs};
use crate::delivery::RunFolder;

pub(in crate::cli) async fn retry(context: &Context, args: RetryArgs) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let found = runs::find(context, ledger.as_deref(), &args.run).await?;
    let folder = RunFolder::of(&context.state()?, &found.name());
    let frozen = runs::frozen(&folder)?;
    let file = frozen.campaign_file;
    let gateway = Some(found.gateway.clone());
    let RetryArgs { yes, keep_going, no_wait, error, .. } = args;
    let run_args = RunArgs { yes, keep_going, no_wait, gateway, ..RunArgs::of(file) };
    run::again(context, run_args, found.key, error).await
}
