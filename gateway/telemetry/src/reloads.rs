//! What became of the configuration since the start: how often another one was put into force, and what is wrong with the newest.

use crate::config::LeftOut;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// What is known of the configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reloads(Arc<Mutex<Reload>>);

/// The same, at one moment.
#[derive(Debug, Clone)]
pub struct Reload {
    /// Since when the one in force is.
    pub since: Instant,
    /// How often another one was put into force.
    pub count: u64,
    /// Why the one that the files hold is not in force, and since when that is known.
    pub error: Option<(String, Instant)>,
    /// Why files of certificates are not in force, and since when that is known; by the key that names them.
    pub certificates: BTreeMap<String, (String, Instant)>,
    /// Why no signing key outlives the process.
    pub signing_key: Option<String>,
    /// What they say otherwise and only a start takes up.
    pub needs_restart: Vec<&'static str>,
    /// The upstreams that are switched off.
    pub disabled: Vec<Arc<str>>,
    /// Those that are switched on and left out.
    pub left_out: Vec<LeftOut>,
}

impl Default for Reloads {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Reload {
            since: Instant::now(),
            count: 0,
            error: None,
            certificates: BTreeMap::new(),
            signing_key: None,
            needs_restart: Vec::new(),
            disabled: Vec::new(),
            left_out: Vec::new(),
        })))
    }
}

impl Reloads {
    /// Another one is in force; these keys of it are not.
    pub fn applied(&self, needs_restart: Vec<&'static str>) {
        let mut now = self.lock();
        (now.since, now.count, now.error, now.needs_restart) = (Instant::now(), now.count + 1, None, needs_restart);
    }

    /// Of the one in force these upstreams are switched off, and these left out.
    pub fn absent(&self, disabled: &[Arc<str>], left_out: &[LeftOut]) {
        let mut now = self.lock();
        (now.disabled, now.left_out) = (disabled.to_vec(), left_out.to_vec());
    }

    /// Keeps why no signing key outlives the process.
    pub fn signing_key(&self, fault: Option<String>) {
        self.lock().signing_key = fault;
    }

    /// The files hold what is in force.
    pub fn confirmed(&self) {
        self.lock().error = None;
    }

    /// What the files hold cannot be put into force.
    pub fn refused(&self, why: String) {
        self.lock().error = Some((why, Instant::now()));
    }

    /// The files that a key names are in force, or not, for this reason. Whether those of all keys are.
    pub fn certificate(&self, key: &str, refused: Option<String>) -> bool {
        let certificates = &mut self.lock().certificates;
        match refused {
            Some(why) => _ = certificates.insert(key.to_owned(), (why, Instant::now())),
            None => _ = certificates.remove(key),
        }
        certificates.is_empty()
    }

    /// The files of all certificates are in force.
    pub fn certified(&self) {
        self.lock().certificates.clear();
    }

    /// What is known now.
    pub fn now(&self) -> Reload {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Reload> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
