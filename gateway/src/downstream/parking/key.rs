//! The secrets behind our seals: configured, or one that is made once and kept where only its owner can read it.

use crate::downstream::config::SigningKey;
use crate::secrets::private;
use crate::secrets::sealer::state_key::{FILE, SECRET_BYTES, kept};
use std::path::Path;

pub(crate) use crate::secrets::sealer::state_key::random;

/// The secrets: those that are configured, else that of `folder`, else one that ends with this process. The first seals, all open.
pub(crate) fn find(configured: &[SigningKey], folder: Option<&Path>) -> Vec<Vec<u8>> {
    if !configured.is_empty() {
        return configured.iter().map(|key| key.as_bytes().to_vec()).collect();
    }
    let kept = match folder {
        Some(folder) => private::off_the_workers(|| kept(folder))
            .map_err(|cause| format!("{}: {cause}", folder.join(FILE).display())),
        None => Err("neither XDG_STATE_HOME nor HOME is set".to_owned()),
    };
    let secret = kept.unwrap_or_else(|cause| {
        tracing::warn!(
            %cause,
            "the signing key cannot be kept: what clients carry for us between two requests will mean nothing after a \
             restart, nor to another instance; set server.session.signing_key"
        );
        random::<SECRET_BYTES>().to_vec()
    });
    vec![secret]
}

/// The secrets as [`find`] does, where they outlive this process.
pub(crate) fn lasting(configured: &[SigningKey], folder: Option<&Path>) -> Option<Vec<Vec<u8>>> {
    if !configured.is_empty() {
        return Some(configured.iter().map(|key| key.as_bytes().to_vec()).collect());
    }
    private::off_the_workers(|| kept(folder?).ok()).map(|secret| vec![secret])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn it_is_made_once_kept_and_readable_for_its_owner_alone() {
        let folder = Scratch::new();
        let state = folder.0.join("a/trunkline");
        let first = find(&[], Some(&state));
        assert!(first.len() == 1 && first[0].len() >= SECRET_BYTES && find(&[], Some(&state)) == first);
        assert_eq!((mode(&state), mode(&state.join(FILE))), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
        let configured = ["c", "d"].map(|text| SigningKey::new(text.repeat(32)).unwrap());
        assert_eq!(find(&configured, Some(&state)), ["c", "d"].map(|text| text.repeat(32).into_bytes()));
    }

    #[test]
    fn where_it_cannot_be_kept_each_process_has_its_own() {
        let folder = Scratch::new();
        let file = folder.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_ne!(find(&[], Some(&file)), find(&[], Some(&file)));
        assert_ne!(find(&[], None), find(&[], None));
    }
}
