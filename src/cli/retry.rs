//! `campaign retry`: sends rejected rows again, as new messages.

use super::args::RetryArgs;
use super::context::Context;
use super::failure::Failure;
use super::run;
use crate::delivery::RunFolder;
use crate::runs::{self, Request, RetryScope};

pub(super) async fn retry(context: &Context, args: RetryArgs) -> Result<u8, Failure> {
    let (_, found) = context.named_run(&args.run).await?;
    let file = runs::frozen(&RunFolder::of(&context.state()?, &found.name()))?.campaign_file;
    let RetryArgs { yes, keep_going, no_wait, error, .. } = args;
    let request = Request { keep_going, no_wait, ..Request::default() };
    let scope = RetryScope { run: found.key, error };
    run::retry(context, (&file, found.gateway), (scope, request), yes).await
}
