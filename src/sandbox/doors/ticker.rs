//! The passing of time: what is due happens and webhooks leave, whether or not anybody asks.
//!
//! It decides nothing; `live` says what is due and when to look again.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::live::Live;
use super::posting::Courier;

/// The least time between two looks at the clock.
const APART: Duration = Duration::from_millis(20);

/// Keeps a platform up to date for as long as this is waited for; webhooks on their way end with it.
pub(super) async fn keep_time(live: Arc<Live>, courier: Courier) {
    let mut under_way = JoinSet::new();
    loop {
        let due = live.keep_up(courier.at_a_time() - under_way.len());
        for post in due.posts {
            let (live, courier, webhook) = (Arc::clone(&live), courier.clone(), post.webhook);
            under_way.spawn(async move { live.posted(webhook, courier.bring(post).await).await });
        }
        if due.more {
            tokio::task::yield_now().await;
            while under_way.try_join_next().is_some() {}
            continue;
        }
        tokio::select! {
            () = live.stirred() => {}
            () = tokio::time::sleep(due.next.unwrap_or(Duration::MAX).max(APART)) => {}
            Some(_) = under_way.join_next() => {}
        }
    }
}
