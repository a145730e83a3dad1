//! The key that seals logins, where it lies in the keyring of the system: whoever has a copy of our files has nothing that opens them.

use std::path::Path;

/// The key of the logins in this folder of our state, made where there is none yet; else why there is none to be had. Blocks.
#[cfg(not(feature = "keyring"))]
pub fn login_key(_state: &Path) -> Result<Vec<u8>, String> {
    Err("this program was built without it; build it with `--features keyring`, or leave the key out".to_owned())
}

/// The key of the logins in this folder of our state, made where there is none yet; else why there is none to be had. Blocks.
#[cfg(feature = "keyring")]
pub fn login_key(state: &Path) -> Result<Vec<u8>, String> {
    system::login_key(state)
}

#[cfg(feature = "keyring")]
mod system {
    use crate::secrets::private;
    use keyring::v1::{Entry, Error};
    use rustix::fs::{FlockOperation, flock};
    use std::fs::{DirBuilder, File};
    use std::io;
    use std::os::unix::fs::DirBuilderExt;
    use std::path::Path;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    /// What the entry is called, beside the folder that it is for.
    const SERVICE: &str = "trunkline";
    /// A keyring may ask its person for a password first.
    const ANSWER_MAX: Duration = Duration::from_secs(60);
    const KEY_BYTES: usize = 32;

    pub(super) fn login_key(state: &Path) -> Result<Vec<u8>, String> {
        let (tell, told) = channel();
        let state = state.to_owned();
        // The keyring waits in a runtime of its own, which none of ours may be entered by.
        let asked = std::thread::Builder::new().name("keyring".into()).spawn(move || tell.send(read_or_made(&state)));
        asked.map_err(|error| error.to_string())?;
        match told.recv_timeout(ANSWER_MAX) {
            Ok(found) => found,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it has not answered for {} s; unlock it", ANSWER_MAX.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err("it could not be asked".to_owned()),
        }
    }

    /// While it is there no other process makes a key for this folder.
    fn alone(state: &Path) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(state)?;
        let file = private::append(&state.join("keyring.lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn read_or_made(state: &Path) -> Result<Vec<u8>, String> {
        let said = |error: Error| match error {
            Error::NoDefaultStore => {
                let why = Entry::store_status().as_ref().err().map(ToString::to_string).unwrap_or_default();
                format!("there is none that answers ({why}); start one, such as gnome-keyring, or leave the key out")
            }
            error => format!("{error}; unlock it, or leave the key out"),
        };
        let entry = Entry::new(SERVICE, &state.to_string_lossy()).map_err(said)?;
        match entry.get_secret() {
            Err(Error::NoEntry) => {}
            found => return found.map_err(said),
        }
        // Two that find none make one: the second one finds what the first has made.
        let _alone = alone(state).map_err(|error| format!("{}: {error}", state.display()))?;
        match entry.get_secret() {
            Err(Error::NoEntry) => {}
            found => return found.map_err(said),
        }
        let mut key = vec![0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        entry.set_secret(&key).map_err(said)?;
        entry.get_secret().map_err(said)
    }
}

#[cfg(all(test, not(feature = "keyring")))]
mod tests {
    use super::login_key;
    use std::path::Path;

    #[test]
    fn a_program_that_was_built_without_it_says_how_to_build_one_with_it() {
        assert!(login_key(Path::new("/nowhere")).unwrap_err().contains("`--features keyring`"));
    }
}
