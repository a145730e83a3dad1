//! Bounded waits: nothing in a test waits for ever, and what did not happen is named.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

/// How long a step may take on a crowded machine before the test says that it did not happen.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Waits for a future, and panics with a clear text when it takes longer than [`LIMIT`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    within_limit(LIMIT, what, future).await
}

/// Waits for a future, and panics with a clear text when it takes longer than `limit`.
pub async fn within_limit<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("did not happen within {limit:?}: {what}"),
    }
}

/// Asks again and again until `check` says yes; for state that no event announces (`/proc`, an admin page).
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, check: impl FnMut() -> F) -> T {
    until_within(LIMIT, what, check).await
}

/// As [`until`], for what takes its time.
pub async fn until_within<T, F: Future<Output = Option<T>>>(
    limit: Duration,
    what: &str,
    mut check: impl FnMut() -> F,
) -> T {
    within_limit(limit, what, async {
        loop {
            if let Some(value) = check().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    })
    .await
}

/// Waits for all of these at once; what came of each, in their order.
pub async fn all<T>(these: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut open: Vec<_> = these.into_iter().map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        for (one, came) in open.iter_mut().filter(|(_, came)| came.is_none()) {
            if let Poll::Ready(it) = one.as_mut().poll(context) {
                *came = Some(it);
            }
        }
        if open.iter().all(|(_, came)| came.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    open.into_iter().filter_map(|(_, came)| came).collect()
}
