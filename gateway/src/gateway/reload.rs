//! Puts another configuration into force while the gateway runs: all of it is read and checked first, and one that is wrong changes
//! nothing.

// Which changed keys only a start takes up.
mod needs_restart;

use super::clients::Kept;
use super::file_watch::Watch;
use super::renewal;
use super::terms;
use super::upstreams::{Changes, Upstreams};
use crate::config::fault::{Fault, Faults, Place, Severity};
use crate::config::{Config, Loaded, source};
use crate::downstream::listen::Leaving;
use crate::metrics::configuration;
use crate::policy::Changed;
use crate::policy::limits::Limits;
use crate::policy::redact::Redact;
use crate::router::config::Pin;
use crate::runtime::Tasks;
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::runtime::system::ServiceManager;
use crate::telemetry::audit;
use crate::telemetry::config::Written;
use crate::telemetry::logging;
use crate::telemetry::reloads::Reloads;
use needs_restart::needs_restart;
use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, Semaphore, oneshot};
use tokio::time::sleep;

/// A watch that could not be kept is tried again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// So long the files are waited for, with those that they name: they may lie on a machine that does not answer.
const READ_MAX: Duration = Duration::from_secs(10);
const PANIC_HINT: &str = "stderr says where; please report it with what was changed last";
const UNREAD_HINT: &str = "see whether the disk answers that they lie on, and the files that `${file:…}` names";

/// Reads the files, the environment and the flags anew.
pub type Read = Arc<dyn Fn() -> Result<Loaded, Faults> + Send + Sync>;

/// What became of a reload.
#[derive(Debug)]
pub(super) enum Outcome {
    /// What was read is in force already, but for what only a start takes up.
    Unchanged { needs_restart: Vec<&'static str> },
    /// It is in force now.
    Applied {
        /// What became of the upstreams.
        upstreams: Changes,
        /// What is said otherwise and only a start takes up.
        needs_restart: Vec<&'static str>,
    },
    /// It cannot be put into force; nothing has changed.
    Refused(Faults),
}

/// Puts configurations into force, one after the other.
pub(super) struct Reloader {
    read: Read,
    /// What the gateway was started with: some of it stays in force to its end.
    started: Config,
    in_force: Mutex<Config>,
    upstreams: Arc<Upstreams>,
    reloads: Reloads,
    complaints: Complaints,
    /// Whether the gateway drains: it takes no other configuration then.
    leaving: Leaving,
    doors: OnceLock<Kept>,
    manager: ServiceManager,
    limits: Limits,
    redact: Redact,
    /// The watch over the files from before anybody is served: what they hold otherwise since then is noticed.
    watch: std::sync::Mutex<io::Result<Option<Watch>>>,
    /// Held while the files are read.
    reading: Arc<Semaphore>,
    /// What the files hold now was not read: a reading before took too long.
    is_unread: AtomicBool,
}

impl Reloader {
    pub(super) fn new(
        read: Read,
        config: Config,
        upstreams: Arc<Upstreams>,
        (leaving, manager, limits, redact): (Leaving, ServiceManager, Limits, Redact),
    ) -> Arc<Self> {
        configuration::reloaded(None);
        configuration::in_force(config.written.number());
        let (reloads, complaints, doors) = (Reloads::default(), Complaints::default(), OnceLock::new());
        reloads.absent(&config.disabled, &config.left_out);
        reloads.signing_key(terms::signing_key_fault(&config));
        let files = watched(&config);
        let watch = (!files.is_empty()).then(|| Watch::new(&files)).transpose().into();
        let (started, in_force) = (config.clone(), Mutex::new(config));
        let reading = Arc::new(Semaphore::new(1));
        Arc::new(Self {
            watch,
            read,
            started,
            in_force,
            upstreams,
            reloads,
            complaints,
            leaving,
            doors,
            manager,
            limits,
            redact,
            reading,
            is_unread: AtomicBool::default(),
        })
    }

    /// What became of the configuration.
    pub(super) fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// What the configuration in force says.
    pub(super) async fn written(&self) -> Written {
        self.in_force.lock().await.written.clone()
    }

    /// Tokens are asked for here.
    pub(super) fn guards(&self, doors: Kept) {
        let _is_first = self.doors.set(doors);
    }

    /// Reloads on SIGHUP, and whenever the files hold something else, until `tasks` end.
    pub(super) fn follow(self: &Arc<Self>, tasks: &Tasks) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let this = self.clone();
        let first = std::mem::replace(&mut *self.watch.lock().unwrap_or_else(PoisonError::into_inner), Ok(None));
        tasks.spawn_until_end(async move {
            let mut watch = first.inspect_err(unwatched).ok().flatten();
            let mut is_lost = watch.is_none() && this.is_of_files().await;
            loop {
                let changed = async {
                    match &mut watch {
                        Some(watch) => watch.changed().await,
                        None if is_lost => {
                            sleep(AGAIN_AFTER).await;
                            Ok(())
                        }
                        None => pending().await,
                    }
                };
                let (is_asked, failed) = tokio::select! {
                    _ = hangup.recv() => (true, None),
                    changed = changed => (false, changed.err()),
                    () = this.can_be_read() => (false, None),
                };
                if let Some(error) = failed {
                    unwatched(&error);
                    (watch, is_lost) = (None, true);
                    continue;
                }
                if is_lost {
                    match this.watch().await {
                        // A folder that was gone may be back, with something else in it.
                        Ok(Some(found)) => {
                            tracing::info!("configuration watched again");
                            watch = Some(found);
                        }
                        // A signal is heeded where nothing can be watched, too.
                        _ if is_asked => {}
                        _ => continue,
                    }
                }
                this.read_anew(is_asked).await;
                let files = watched(&*this.in_force.lock().await);
                is_lost = watch.is_none() && !files.is_empty();
                if let Some(watch) = &mut watch {
                    watch.set(files);
                }
            }
        });
        Ok(())
    }

    /// Resolves where files were not read that can be read now: the reading that took too long is over.
    async fn can_be_read(&self) {
        if !self.is_unread.load(Ordering::Relaxed) {
            return pending().await;
        }
        sleep(AGAIN_AFTER).await;
        // It never closes.
        let _is_over = self.reading.acquire().await;
    }

    async fn is_of_files(&self) -> bool {
        !watched(&*self.in_force.lock().await).is_empty()
    }

    /// `None` where there is no file to watch.
    async fn watch(&self) -> io::Result<Option<Watch>> {
        let files = watched(&*self.in_force.lock().await);
        if files.is_empty() { Ok(None) } else { Watch::new(&files).map(Some) }
    }

    /// Reads the configuration anew because somebody asks for that, and puts it into force.
    pub(super) async fn reload(self: &Arc<Self>) -> Outcome {
        self.read_anew(true).await
    }

    /// What was begun is finished, also where nobody waits for the outcome any more.
    async fn read_anew(self: &Arc<Self>, is_asked: bool) -> Outcome {
        let (this, (told, outcome)) = (self.clone(), oneshot::channel());
        self.upstreams.tasks().spawn(async move {
            this.manager.reloading();
            let outcome = this.reload_whole(is_asked).await;
            this.manager.ready();
            // Whoever asked may have gone.
            let _ = told.send(outcome);
        });
        // The runtime ends only after the gateway.
        outcome.await.unwrap_or(Outcome::Unchanged { needs_restart: Vec::new() })
    }

    async fn reload_whole(&self, is_asked: bool) -> Outcome {
        // One after the other.
        let mut in_force = self.in_force.lock().await;
        if self.leaving.is_asked() {
            tracing::info!("draining; the configuration is not read anew");
            return Outcome::Unchanged { needs_restart: Vec::new() };
        }
        let loaded = self.read_files(files(&in_force)).await;
        let outcome =
            match loaded.and_then(|loaded| match self.doors.get().and_then(|doors| doors.opened(&loaded.config)) {
                Some(fault) => Err(Faults(vec![fault])),
                None => Ok(loaded),
            }) {
                Ok(Loaded { config, warnings, .. }) if config == *in_force => {
                    self.certificate(&warnings);
                    Outcome::Unchanged { needs_restart: needs_restart(&self.started, &config) }
                }
                Ok(Loaded { config, warnings, .. }) => {
                    self.certificate(&warnings);
                    let applied = self.apply(&in_force, &config).await;
                    *in_force = config;
                    applied
                }
                Err(faults) => Outcome::Refused(faults),
            };
        self.show(&outcome, is_asked);
        outcome
    }

    /// Reads the files, and those that they name, beside the workers and within a bounded time.
    async fn read_files(&self, files: Vec<PathBuf>) -> Result<Loaded, Faults> {
        let because = |why: &str, hint: &str| {
            let text = format!("the files of the configuration {why}");
            Err(Faults(vec![Fault::error("unreadable", text).hint(hint)]))
        };
        let unread = |why: &str| {
            self.is_unread.store(true, Ordering::Relaxed);
            because(why, UNREAD_HINT)
        };
        let Ok(held) = self.reading.clone().try_acquire_owned() else { return unread("are still being read") };
        self.is_unread.store(false, Ordering::Relaxed);
        let read = self.read.clone();
        let reading = move || {
            let _held = held;
            let read = || lost(&files).map_or_else(|| read(), |fault| Err(Faults(vec![fault])));
            catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| because("made Trunkline itself fail", PANIC_HINT))
        };
        let late = || unread(&format!("could not be read within {} s", READ_MAX.as_secs()));
        self.upstreams.tasks().beside(READ_MAX, reading).await.unwrap_or_else(late)
    }

    /// What is wrong with the files of the certificate keeps nothing else from being put into force.
    fn certificate(&self, warnings: &[Fault]) {
        let Some(fault) = warnings.iter().find(|fault| fault.kind == Fault::CERTIFICATE) else {
            return renewal::read(&self.reloads, None);
        };
        let place = shown(std::slice::from_ref(fault));
        let why = format!("{place}: {}", fault.label.as_deref().unwrap_or_default());
        renewal::read(&self.reloads, Some(&why));
        if let Some(more) = self.complaints.take(Fault::CERTIFICATE) {
            let more = left_unsaid(more);
            tracing::warn!(more, "certificate not renewed; the rest of the configuration is read: {why}");
        }
    }

    async fn apply(&self, before: &Config, now: &Config) -> Outcome {
        // What was a secret a moment ago is still quoted by whoever was told it.
        now.secrets.and(&before.secrets).keep();
        let changed = self.doors.get().map(|doors| doors.set(now)).unwrap_or_default();
        if let Some(router) = self.upstreams.router() {
            // Those who may see something else are told.
            changed.iter().for_each(|Changed { grants, before }| router.regranted(grants, before.as_ref()));
            router.set_pins(&now.catalog.pins);
        }
        logging::set_level(&now.log);
        self.limits.set(&now.limits);
        self.redact.set(&now.redact);
        configuration::in_force(now.written.number());
        self.reloads.absent(&now.disabled, &now.left_out);
        let upstreams = self.upstreams.set(&now.upstreams, now.server.shutdown_grace).await;
        if let Some(doors) = self.doors.get() {
            doors.settled();
        }
        Outcome::Applied { upstreams, needs_restart: needs_restart(&self.started, now) }
    }

    fn show(&self, outcome: &Outcome, is_asked: bool) {
        match outcome {
            Outcome::Unchanged { .. } => {
                self.reloads.confirmed();
                configuration::reloaded(Some("unchanged"));
                audit::configuration("unchanged");
                tracing::info!("configuration read anew; it is in force already");
            }
            Outcome::Applied { upstreams, needs_restart } => {
                self.reloads.applied(needs_restart.clone());
                configuration::reloaded(Some("applied"));
                audit::configuration("applied");
                let [added, changed, removed] =
                    [&upstreams.added, &upstreams.changed, &upstreams.removed].map(|names| names.join(", "));
                let unchanged = upstreams.unchanged;
                tracing::info!(added, changed, removed, unchanged, "configuration reloaded");
                if !needs_restart.is_empty() {
                    let keys = needs_restart.join(", ");
                    tracing::warn!(keys, "changed keys that take effect at the next start only");
                }
            }
            Outcome::Refused(faults) => {
                self.reloads.refused(shown(&faults.0));
                configuration::reloaded(Some("refused"));
                audit::configuration("refused");
                // A file that is rewritten over and over is wrong in the same way each time.
                let kind = faults.0.first().map_or("", |fault| fault.kind);
                let unsaid = self.complaints.take(kind);
                if unsaid.is_none() && !is_asked {
                    return;
                }
                let more = unsaid.and_then(left_unsaid);
                for Fault { kind, text, place, label, hint, .. } in &faults.0 {
                    let place = place.as_ref().map(ToString::to_string);
                    tracing::error!(kind, place, label, hint, more, "configuration not reloaded: {text}");
                }
            }
        }
    }
}

/// Changes go unnoticed from now on.
fn unwatched(error: &io::Error) {
    tracing::warn!(%error, "configuration not watched for now; after a change run `trunkline reload` or send SIGHUP");
}

/// The files of the configuration.
fn files(config: &Config) -> Vec<PathBuf> {
    config.admin.control.iter().flat_map(|control| control.files.clone()).collect()
}

/// The files that are watched: those of the configuration, and the one with the tools that were approved.
fn watched(config: &Config) -> Vec<PathBuf> {
    let pins = &config.catalog.pins;
    let approved = pins.file.iter().filter(|_| pins.pin != Pin::Off).cloned();
    files(config).into_iter().chain(approved).collect()
}

/// A file that is gone or holds nothing is one that is about to be written, or could not be: nobody ends all upstreams and tokens in this
/// way, and the demo comes in no configuration's place.
fn lost(files: &[PathBuf]) -> Option<Fault> {
    files.iter().find_map(|file| match source::file::read(file) {
        Ok(text) if text.trim().is_empty() => {
            let fault = Fault::error("empty-file", format!("{} is empty", file.display()));
            Some(fault.hint("write a comment into it where no upstream is meant"))
        }
        Err(why) if !file.exists() => {
            Some(Fault::error("unreadable", format!("cannot read {}: {why}", file.display())))
        }
        _ => None,
    })
}

/// The first fault, and how many more there are.
fn shown(faults: &[Fault]) -> String {
    let first = faults.iter().find(|fault| fault.severity == Severity::Error);
    let Some(Fault { text, place, .. }) = first.or(faults.first()) else { return String::new() };
    let place = place.as_ref().map(|place: &Place| format!("{place}: ")).unwrap_or_default();
    match faults.len() {
        0 | 1 => format!("{place}{text}"),
        more => format!("{place}{text} (and {} more)", more - 1),
    }
}
