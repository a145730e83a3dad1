//! The secrets behind our seals: configured, or one that is made once and kept where only its owner can read it.

use crate::config::SigningKey;
use crate::secrets::private;
use crate::secrets::sealer::state_key::{FILE, SECRET_BYTES, find_fault, kept};
use std::path::Path;

pub(crate) use crate::secrets::sealer::state_key::random;

/// The secrets: the configured ones, the one of `folder`, or one that ends with this process. The first seals, all open.
pub fn find(configured: &[SigningKey], folder: Option<&Path>) -> Vec<Vec<u8>> {
    lasting(configured, folder).unwrap_or_else(|| vec![random::<SECRET_BYTES>().to_vec()])
}

/// The secrets as [`find`] gives them, if they outlive this process.
pub fn lasting(configured: &[SigningKey], folder: Option<&Path>) -> Option<Vec<Vec<u8>>> {
    read(configured, folder).ok()
}

/// The reason that no secret outlives this process. The start asks for it, and makes the key.
pub fn fault(configured: &[SigningKey], folder: Option<&Path>) -> Option<String> {
    read(configured, folder).err()
}

/// The same for `doctor`: nothing is made or moved.
pub fn look(configured: &[SigningKey], folder: Option<&Path>) -> Option<String> {
    let folder = folder.filter(|_| configured.is_empty())?;
    find_fault(folder).map(|cause| format!("{}: {cause}", folder.join(FILE).display()))
}

fn read(configured: &[SigningKey], folder: Option<&Path>) -> Result<Vec<Vec<u8>>, String> {
    if !configured.is_empty() {
        return Ok(configured.iter().map(|key| key.as_bytes().to_vec()).collect());
    }
    let folder = folder.ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    let kept = private::off_the_workers(|| kept(folder));
    kept.map(|secret| vec![secret]).map_err(|cause| format!("{}: {cause}", folder.join(FILE).display()))
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
        assert!(fault(&[], Some(&file)).is_some_and(|cause| cause.contains(FILE)) && fault(&[], None).is_some());
        assert!(look(&[], Some(&file)).is_some_and(|cause| cause.contains(FILE)));
    }
}
