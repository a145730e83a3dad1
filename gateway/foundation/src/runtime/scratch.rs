//! A folder for one test.

use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A new folder of this user alone; it goes with all that is in it when it is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates the folder.
    #[allow(clippy::new_without_default)] // each one is another folder
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trunkline-unit-{}-{number}", std::process::id()));
        // Left by a run that was killed and had the same pid.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path).expect("a folder can be made here");
        Self(path)
    }

    /// Writes a file in it: its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the folder takes files");
        path
    }

    /// Lets other users in, and to what is in it.
    pub fn open_to_all(&self) {
        for path in self.names().iter().map(|name| self.0.join(name)).chain([self.0.clone()]) {
            fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("it is ours");
        }
    }

    /// Does something in a thread that is another user's; `None` where only root could have such a one.
    pub fn as_another_user<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
        let other = Uid::from_raw(65_534);
        let act = || set_thread_res_uid(other, other, other).is_ok().then(act);
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| std::thread::scope(|scope| scope.spawn(act).join().expect("it ends well"))).flatten()
    }

    /// The names of what is in it, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
