//! Files are edited by one command at a time, and nothing of what others wrote is lost.

use std::os::unix::fs::symlink;

use super::*;
use crate::runtime::Scratch;

#[test]
fn changes_that_are_made_at_once_all_take_effect() {
    let folder = Scratch::new();
    // Neither the file nor its folder is there at first.
    let file = folder.0.join("below/config.toml");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let file = &file;
            scope.spawn(move || {
                let _turns = Turns::take(std::slice::from_ref(file), true).unwrap();
                let edited = Edited::open(file).unwrap();
                edited.write(&format!("{}{number}\n", edited.text()), None).unwrap();
            });
        }
    });
    let mut lines: Vec<String> = fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn what_another_program_wrote_meanwhile_stays() {
    let folder = Scratch::new();
    let (old, new) = (folder.write("old", "a"), folder.0.join("new"));
    let (edited, fresh) = (Edited::open(&old).unwrap(), Edited::open(&new).unwrap());
    for path in [&old, &new] {
        fs::write(path, "theirs").unwrap();
    }
    for edited in [edited, fresh] {
        let refused = edited.write("ours", None).unwrap_err().to_string();
        assert!(refused.contains("has changed meanwhile"), "{refused}");
        assert!(edited.remove().is_err());
        assert_eq!(fs::read_to_string(edited.path()).unwrap(), "theirs");
    }
    assert_eq!(folder.names(), ["new", "old"]);
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let folder = Scratch::new();
    let (pipe, device, gone) = (folder.0.join("pipe"), folder.0.join("device"), folder.0.join("gone"));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    symlink("/dev/zero", &device).unwrap();
    symlink(folder.0.join("nothing"), &gone).unwrap();
    for (path, why) in [(&pipe, "not a regular file"), (&device, "not a regular file"), (&gone, "is a link to a file")]
    {
        let refused = Edited::open(path).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let large = folder.write("large.toml", "");
    let refused = Edited::open(&large).unwrap().write(&"#".repeat(2 << 20), None).unwrap_err().to_string();
    assert!(refused.contains("larger than 1 MiB"), "{refused}");
    assert_eq!(fs::read_to_string(&large).unwrap(), "");
}

#[test]
fn a_byte_order_mark_a_mode_and_a_link_stay() {
    let folder = Scratch::new();
    let file = folder.write("file", "\u{feff}a");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    let (link, backup) = (folder.0.join("link"), folder.0.join("backup"));
    symlink(&file, &link).unwrap();
    let edited = Edited::open(&link).unwrap();
    assert_eq!(edited.text(), "a");
    // A link that someone has put there is not written through.
    symlink(folder.0.join("victim"), &backup).unwrap();
    assert!(edited.write("b", Some(&backup)).is_err());
    assert_eq!(folder.names(), ["backup", "file", "link"]);
    fs::remove_file(&backup).unwrap();
    edited.write("b", Some(&backup)).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}b");
    assert_eq!(fs::read_to_string(&backup).unwrap(), "\u{feff}a");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(is_link(&link));
}

#[test]
fn line_endings_stay_as_they_were() {
    assert_eq!(endings_kept("a\r\nb\r\n", "a\nx\nb\n"), "a\r\nx\r\nb\r\n");
    assert_eq!(endings_kept("a\r\nb", "a\nb\nc\n"), "a\r\nb\r\nc\r\n");
    assert_eq!(endings_kept("a\nb\r\nc\n", "a\nb\nx\nc\n"), "a\nb\r\nx\nc\n");
    assert_eq!(endings_kept("a\nb\n", "a\nx\n"), "a\nx\n");
    assert_eq!(endings_kept("a\r\nb\r\n", ""), "");
}
