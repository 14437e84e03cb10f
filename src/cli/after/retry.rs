//! `campaign retry`: sends rejected rows again, as new messages.

use crate::cli::args::RetryArgs;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::run;
use crate::delivery::RunFolder;
use crate::runs::{self, Request, RetryScope};

pub(in crate::cli) async fn retry(context: &Context, args: RetryArgs) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let found = runs::find(ledger.as_deref(), &args.run).await?;
    let file = runs::frozen(&RunFolder::of(&context.state()?, &found.name()))?.campaign_file;
    let RetryArgs { yes, keep_going, no_wait, error, .. } = args;
    let request = Request { keep_going, no_wait, ..Request::default() };
    let scope = RetryScope { run: found.key, error };
    run::retry(context, (&file, found.gateway), (scope, request), yes).await
}
