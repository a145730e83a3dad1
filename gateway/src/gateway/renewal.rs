//! Puts a renewed certificate into force while the gateway runs; one that cannot be used changes nothing.

use super::file_watch::Watch;
use crate::downstream::listen::Certificates;
use crate::runtime::Tasks;
use crate::secrets::private;
use std::sync::Arc;

/// Reads the files whenever they hold something else. Connections that are open keep what they were secured with.
pub(super) fn follow(certificates: &Arc<Certificates>, tasks: &Tasks) {
    let certificates = certificates.clone();
    tasks.spawn_until_end(async move {
        let unwatched = |error| tracing::warn!(%error, "a renewed certificate is noticed at the next start only");
        let watch = private::off_the_workers(|| Watch::new(&certificates.files()));
        let Ok(mut watch) = watch.map_err(unwatched) else { return };
        while watch.changed().await.map_err(unwatched).is_ok() {
            match private::off_the_workers(|| certificates.reload()) {
                Ok(()) => tracing::info!("certificate renewed"),
                // One file may be there before the other.
                Err(fault) => tracing::warn!(%fault, "certificate not renewed; the old one stays in force"),
            }
        }
    });
}
