//! The passing of time: what is due happens and webhooks leave, whether or not anybody asks.
//!
//! It decides nothing; `live` says what is due and when to look again.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::live::LivePlatform;
use super::posting::WebhookClient;

/// The least time between two looks at the clock.
const MIN_TICK: Duration = Duration::from_millis(20);

/// Keeps a platform up to date for as long as this is waited for; webhooks on their way end with it.
pub(super) async fn run_clock(live: Arc<LivePlatform>, courier: WebhookClient) {
    let mut under_way = JoinSet::new();
    loop {
        let due = live.take_due_work(courier.max_in_flight() - under_way.len());
        for post in due.posts {
            let (live, courier, webhook) = (Arc::clone(&live), courier.clone(), post.webhook);
            under_way.spawn(async move { live.record_post_outcome(webhook, courier.send(post).await).await });
        }
        if due.more {
            tokio::task::yield_now().await;
            while under_way.try_join_next().is_some() {}
            continue;
        }
        tokio::select! {
            () = live.wait_for_wakeup() => {}
            () = tokio::time::sleep(due.next.unwrap_or(Duration::MAX).max(MIN_TICK)) => {}
            Some(_) = under_way.join_next() => {}
        }
    }
}
