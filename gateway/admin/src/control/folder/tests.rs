//! Folders and names of control sockets.

use super::*;
use crate::runtime::Scratch;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn gateways_are_found_by_their_configuration_and_gone_when_they_end() {
    let scratch = Scratch::new();
    // Longer than the path of a socket may be.
    let folders = [scratch.0.join("x".repeat(120)).join("trunkline")];
    let (one, other) = ([scratch.0.join("one.toml")], [scratch.0.join("other.toml")]);
    assert!(running(&folders).is_empty());
    let first = bind(&folders, &one, Mode::Serve).unwrap();
    let second = bind(&folders, &one, Mode::Stdio).unwrap();
    let twin = bind(&folders, &one, Mode::Stdio).unwrap();
    let third = bind(&folders, &other, Mode::Serve).unwrap();
    let found = |files: &[PathBuf]| -> Vec<_> {
        let all = running(&folders);
        all.iter().filter(|one| one.is_of(files)).map(|one| (one.mode, one.pid)).collect()
    };
    let pid = std::process::id();
    assert_eq!(found(&one), [(Mode::Serve, pid), (Mode::Stdio, pid), (Mode::Stdio, pid)]);
    assert_eq!(found(&other), [(Mode::Serve, pid)]);
    assert_eq!(found(&[scratch.0.join("./x/../one.toml")]), [], "there is no folder x");
    fs::create_dir(scratch.0.join("x")).unwrap();
    assert_eq!(found(&[scratch.0.join("./x/../one.toml")]).len(), 3, "the same file");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folders[0]), 0o700);
    fs::set_permissions(&folders[0], PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!((found(&other).len(), mode(&folders[0])), (1, 0o700), "the rights of others are taken away");
    for entry in fs::read_dir(&folders[0]).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    drop((first, second, twin, third));
    assert!(running(&folders).is_empty());
    assert_eq!(fs::read_dir(&folders[0]).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_killed_gateway_has_left_is_removed_and_nothing_else() {
    let scratch = Scratch::new();
    let folders = [scratch.0.clone()];
    let left = format!("{}.serve.1{SUFFIX}", digest(&[]));
    drop(std::os::unix::net::UnixListener::bind(scratch.0.join(&left)).unwrap());
    let link = format!("{}.serve.2{SUFFIX}", digest(&[]));
    let live = std::os::unix::net::UnixListener::bind(scratch.0.join("foreign")).unwrap();
    symlink(scratch.0.join("foreign"), scratch.0.join(&link)).unwrap();
    fs::write(scratch.0.join("file"), "").unwrap();
    assert!(running(&folders).is_empty(), "a link is not followed");
    let bound = bind(&folders, &[], Mode::Serve).unwrap();
    let mut expected = ["file".to_owned(), "foreign".to_owned(), link, bound.name.clone()];
    expected.sort();
    assert_eq!(scratch.names(), expected);
    drop(live);
}

#[tokio::test]
async fn nothing_is_said_to_another_user_who_listens_at_a_socket_of_ours() {
    let scratch = Scratch::new();
    let name = format!("{}.serve.7{SUFFIX}", digest(&[]));
    let socket = scratch.0.join(&name);
    scratch.open_to_all();
    let Some(other) = Scratch::as_another_user(|| std::os::unix::net::UnixListener::bind(&socket).unwrap()) else {
        return;
    };
    // As if it were left by one of ours.
    std::os::unix::fs::chown(&socket, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    let folder = Folder::open(&scratch.0).unwrap();
    assert_eq!(folder.sockets(), std::slice::from_ref(&name));
    assert!(folder.connect(&name).unwrap_err().to_string().contains("another user listens there"));
    assert!(running(std::slice::from_ref(&scratch.0)).is_empty());
    drop(other);
}

#[tokio::test]
async fn a_folder_that_is_a_link_or_nowhere_is_not_used_and_the_next_one_is() {
    let scratch = Scratch::new();
    let (link, next) = (scratch.0.join("link"), scratch.0.join("next"));
    symlink(&scratch.0, &link).unwrap();
    let bound = bind(&[link.clone(), "/proc/none/trunkline".into(), next.clone()], &[], Mode::Serve).unwrap();
    assert!(next.join(&bound.name).exists());
    let refused = bind(&[link], &[], Mode::Serve).unwrap_err().to_string();
    assert!(refused.contains("not a folder; delete it"), "{refused}");
    assert!(bind(&[], &[], Mode::Serve).unwrap_err().to_string().contains(" is set"));
    // One that others may enter is closed to them.
    fs::set_permissions(&next, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(running(std::slice::from_ref(&next)).len(), 1);
    assert_eq!(fs::metadata(&next).unwrap().permissions().mode() & 0o777, 0o700);
    // Another user's: only root can make one, and everybody else finds one.
    let foreign = match rustix::process::geteuid().as_raw() {
        0 => std::os::unix::fs::chown(&next, Some(65_534), None).map(|()| next.as_path()).unwrap(),
        _ => Path::new("/etc"),
    };
    assert!(Folder::open(foreign).unwrap_err().to_string().contains("another user"));
}

#[test]
fn a_lock_or_a_log_that_is_not_this_users_own_file_alone_is_refused_by_name_with_what_to_do() {
    let scratch = Scratch::new();
    let folders = [scratch.0.clone()];
    let (lock, log) = (scratch.0.join(format!("{}.lock", digest(&[]))), scratch.0.join(format!("{}.log", digest(&[]))));
    let refused = |path: &Path, why: &str| {
        let said = match path == lock {
            true => StartLock::try_take(&folders, &[]).map(drop).unwrap_err().to_string(),
            false => start_log(&folders, &[]).map(drop).unwrap_err().to_string(),
        };
        assert!(said.contains(&path.display().to_string()) && said.contains(why), "{said}");
        fs::remove_file(path).unwrap();
    };
    for path in [&lock, &log] {
        fs::write(path, "precious").unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
        refused(path, "others may use it");
        let other = scratch.0.join("other");
        fs::write(&other, "x".repeat(300 * 1024)).unwrap();
        fs::set_permissions(&other, PermissionsExt::from_mode(0o600)).unwrap();
        fs::hard_link(&other, path).unwrap();
        refused(path, "a second name");
        assert_eq!(fs::metadata(&other).unwrap().len(), 300 * 1024, "what is not ours alone is not emptied");
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        refused(path, "no file; delete it");
        // Only root can give a file away.
        fs::write(path, "").unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(path, Some(65_534), None).is_ok() {
            refused(path, "another user; delete it");
        }
    }
    assert!(StartLock::try_take(&folders, &[]).unwrap().is_some() && start_log(&folders, &[]).is_ok());
}
