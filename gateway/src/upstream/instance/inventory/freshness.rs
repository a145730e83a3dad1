//! Until when lists may be taken for unchanged, as their upstream said when it was asked.

use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Nothing is taken for unchanged longer than this.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Of each list, until when its upstream holds it for unchanged. Told anew with each read, also with one that finds nothing
/// new.
#[derive(Debug, Default)]
pub struct Fresh(Mutex<[Option<Instant>; 4]>);

impl Fresh {
    /// How long the list that a method asks for will still be unchanged; nothing where its upstream does not say.
    pub fn left(&self, method: &Method) -> Duration {
        let until = place(method).and_then(|at| self.lock()[at]);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// The list was read, or (`None`) was said to have changed, whatever was said before.
    pub fn read(&self, method: &Method, until: Option<Instant>) {
        if let Some(at) = place(method) {
            self.lock()[at] = until;
        }
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Instant>; 4]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until when a page that was just read holds.
pub(crate) fn until(page: &Object) -> Option<Instant> {
    let raw = page.get(crate::protocol::value::Key::TtlMs)?;
    let told: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    let most = LONGEST.as_millis() as f64;
    (told > 0.0).then(|| Instant::now() + Duration::from_millis(told.min(most) as u64))
}

fn place(method: &Method) -> Option<usize> {
    Some(match method {
        Method::ToolsList => 0,
        Method::PromptsList => 1,
        Method::ResourcesList => 2,
        Method::TemplatesList => 3,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_runs_out_and_ends_where_something_changed() {
        let page = |text: &str| until(&Object::parse(text.to_owned().into()).unwrap());
        let fresh = Fresh::default();
        fresh.read(&Method::ToolsList, page(r#"{"ttlMs":9e3}"#));
        fresh.read(&Method::PromptsList, page(r#"{"ttlMs":1e300}"#));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(fresh.left(&Method::ToolsList), Duration::from_secs(5));
        assert_eq!(fresh.left(&Method::PromptsList), LONGEST - Duration::from_secs(4));
        assert_eq!(fresh.left(&Method::ResourcesList), Duration::ZERO);
        fresh.read(&Method::PromptsList, None);
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!([Method::ToolsList, Method::PromptsList].map(|list| fresh.left(&list)), [Duration::ZERO; 2]);
        for odd in [r#"{"ttlMs":-1}"#, r#"{"ttlMs":"9"}"#, r#"{"ttlMs":null}"#, "{}"] {
            assert_eq!(page(odd), None, "{odd}");
        }
    }
}
