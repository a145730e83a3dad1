//! Bounded waits: nothing in a test waits for ever, and what did not happen is named.

use std::future::Future;
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
