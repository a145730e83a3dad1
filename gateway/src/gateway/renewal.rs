//! Puts a renewed certificate into force while the gateway runs; one that cannot be used changes nothing.

use super::file_watch::Watch;
use crate::downstream::listen::Certificates;
use crate::metrics::edges;
use crate::runtime::Tasks;
use crate::runtime::complaints::SAID_EVERY;
use crate::runtime::timer::late::within;
use crate::secrets::private;
use crate::telemetry::reloads::Reloads;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Files that cannot be used are read again after so long, also where nothing shows that they have changed: who may read them is no part
/// of what they hold.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Reads the files whenever they hold something else. Connections that are open keep what they were secured with.
pub(super) fn follow(certificates: &Arc<Certificates>, reloads: Reloads, tasks: &Tasks) {
    edges::certificate_read(true);
    tell_end(certificates);
    let certificates = certificates.clone();
    tasks.spawn_until_end(async move {
        let unwatched = |error| tracing::warn!(%error, "a renewed certificate is noticed at the next start only");
        let watch = private::off_the_workers(|| Watch::new(&certificates.files()));
        let Ok(mut watch) = watch.map_err(unwatched) else { return };
        let (mut is_refused, mut said) = (false, None::<(String, Instant)>);
        loop {
            let patience = if is_refused { AGAIN_AFTER } else { Duration::MAX };
            let changed = tokio::select! {
                changed = within(patience, watch.changed()) => Some(changed),
                () = certificates.renamed() => None,
            };
            let is_again = matches!(changed, Some(Err(_)));
            match changed {
                Some(Ok(Err(error))) => return unwatched(error),
                Some(_) => {}
                None => watch.set(certificates.files()),
            }
            match private::off_the_workers(|| certificates.reload()) {
                Ok(()) => {
                    is_refused = false;
                    usable(&reloads, certificates.key());
                    tell_end(&certificates);
                    tracing::info!(key = certificates.key(), "certificate renewed");
                }
                // One file may be there before the other.
                Err(why) => {
                    is_refused = true;
                    refused(&reloads, certificates.key(), &why);
                    // A file that is written over and over is wrong in the same way each time.
                    let is_known = |(last, at): &(String, Instant)| *last == why && at.elapsed() < SAID_EVERY;
                    if !is_again && !said.as_ref().is_some_and(is_known) {
                        tracing::warn!(fault = why, "certificate not renewed; the old one stays in force");
                        said = Some((why, Instant::now()));
                    }
                }
            }
        }
    });
}

/// Shows when the certificate that is in force expires.
fn tell_end(certificates: &Certificates) {
    certificates.ends().into_iter().for_each(|at| edges::certificate_ends(certificates.key(), at));
}

/// Stands for the files that a configuration names which was read anew: they may be those of no certificate that is shown.
const READ: &str = "";

/// Shows that the files that a key names can be used.
fn usable(reloads: &Reloads, key: &str) {
    reloads.certificate(READ, None);
    edges::certificate_read(reloads.certificate(key, None));
}

/// Shows why the files that a key names are not in force.
fn refused(reloads: &Reloads, key: &str, why: &str) {
    edges::certificate_read(reloads.certificate(key, Some(why.to_owned())));
}

/// A configuration was read anew: shows that all files can be used that it names, or why some cannot.
pub(super) fn read(reloads: &Reloads, refused: Option<&str>) {
    let known = reloads.now().certificates;
    match refused {
        // Whoever follows the files has said so.
        Some(_) if known.keys().any(|key| key != READ) => {}
        Some(why) => self::refused(reloads, READ, why),
        None if known.is_empty() => {}
        None => {
            reloads.certified();
            edges::certificate_read(true);
        }
    }
}
