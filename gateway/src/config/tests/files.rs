//! Files that references name: links and root's own are taken, pipes, devices and large ones are not; what is doubtful is told.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::config::source::Environment;
use crate::config::{Inputs, load};
use crate::runtime::Scratch;

/// A header's value that stands in a file, or the fault; and the doubts.
fn read(folder: &Scratch, path: &Path) -> (Result<String, String>, Vec<String>) {
    let text = format!(
        "[upstreams.a]\nurl = \"https://h.example/\"\nheaders = {{ X-Of = \"${{file:{}}}\" }}\n",
        path.display()
    );
    let files = vec![folder.write("a.toml", &text)];
    match load(Inputs { files, environment: Environment::of(&[]), ..Inputs::default() }) {
        Ok(loaded) => {
            let crate::upstream::config::Transport::Http(remote) = &loaded.config.upstreams[0].transport else {
                panic!("it has a URL")
            };
            let value = remote.headers["x-of"].to_str().unwrap().to_owned();
            (Ok(value), loaded.doubts.iter().map(|doubt| doubt.text.clone()).collect())
        }
        Err(faults) => (Err(faults.to_string()), Vec::new()),
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_link_to_a_file_is_read_and_a_pipe_a_device_and_a_large_file_are_not() {
    let folder = Scratch::new();
    set_mode(&folder.0, 0o755);
    let token = folder.write("token", "the canary\n");
    set_mode(&token, 0o600);
    let (link, pipe) = (folder.0.join("link"), folder.0.join("pipe"));
    symlink(&token, &link).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(read(&folder, &token), (Ok("the canary".to_owned()), vec![]));
    assert_eq!(read(&folder, &link), (Ok("the canary".to_owned()), vec![]));
    let dangling = folder.0.join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let large = folder.write("large", &"x".repeat((64 << 10) + 1));
    for (path, why) in [
        (pipe.as_path(), "not a regular file"),
        (Path::new("/dev/zero"), "not a regular file"),
        (folder.0.as_path(), "it is a folder"),
        (large.as_path(), "larger than 64 KiB"),
        (Path::new("/no/such/file"), "no such file"),
        (dangling.as_path(), "it is a link to a file that is not there"),
        (&token.join("x"), "a part of its path is a file and no folder"),
    ] {
        let fault = read(&folder, path).0.unwrap_err();
        assert!(fault.contains("error[unreadable-file]") && fault.contains(why), "{fault}");
    }
}

#[test]
fn only_a_file_that_may_not_be_read_is_advised_to_be_let_read() {
    use crate::config::source::file::Unreadable;
    for (why, what) in [
        (Unreadable::Denied, Some("`ls -l`")),
        (Unreadable::Folder, Some("name a file")),
        (Unreadable::TooLarge(1 << 20), Some("no configuration is so large")),
        (Unreadable::NotText, Some("UTF-8")),
        (Unreadable::Special, Some("name an empty one")),
        (Unreadable::Dangling, Some("let it lead to a file")),
        (Unreadable::InFile, Some("move that file away")),
        (Unreadable::Missing, None),
    ] {
        let advice = why.advice();
        assert_eq!(advice.is_some(), what.is_some(), "{why}");
        assert!(advice.is_none_or(|advice| advice.contains(what.unwrap())), "{why}: {advice:?}");
    }
    let folder = Scratch::new();
    let fault = crate::config::import::file(&folder.0).unwrap_err();
    assert_eq!(fault.hint.as_deref(), Unreadable::Folder.advice_for_host(), "{fault}");
}

#[test]
fn who_else_may_write_or_read_the_file_is_told() {
    let folder = Scratch::new();
    set_mode(&folder.0, 0o755);
    let token = folder.write("token", "the canary");
    for (mode, said) in [
        (0o600, None),
        (0o640, None),
        (0o644, Some("every user can read it")),
        (0o620, Some("other users can write it")),
    ] {
        set_mode(&token, mode);
        let doubts = read(&folder, &token).1;
        assert_eq!(doubts.len(), usize::from(said.is_some()), "{mode:o}: {doubts:?}");
        assert!(doubts.iter().zip(said).all(|(doubt, said)| doubt.contains(said)), "{mode:o}: {doubts:?}");
    }
    set_mode(&token, 0o600);
    set_mode(&folder.0, 0o775);
    assert!(read(&folder, &token).1[0].contains("other users can write its folder"));
    set_mode(&folder.0, 0o1777);
    assert_eq!(read(&folder, &token).1, [""; 0], "nobody can take it away there");
}

#[test]
fn who_else_could_approve_tools_is_told() {
    let folder = Scratch::new();
    set_mode(&folder.0, 0o755);
    let approved = folder.write("approved.jsonl", "");
    let doubts = |pin: &str| {
        let text = format!("[catalog]\npin = \"{pin}\"\napproved = \"{}\"\n", approved.display());
        let files = vec![folder.write("a.toml", &text)];
        let loaded = load(Inputs { files, environment: Environment::of(&[]), ..Inputs::default() }).unwrap();
        loaded.doubts.iter().map(|doubt| doubt.text.clone()).collect::<Vec<_>>()
    };
    for (mode, said) in
        [(0o644, None), (0o602, Some("approved.jsonl: other users can write it")), (0o664, Some("write"))]
    {
        set_mode(&approved, mode);
        let all = doubts("hold");
        assert_eq!(all.len(), usize::from(said.is_some()), "{mode:o}: {all:?}");
        assert!(all.iter().zip(said).all(|(doubt, said)| doubt.contains(said)), "{mode:o}: {all:?}");
    }
    assert_eq!(doubts("off"), [""; 0], "nothing is asked of it");
    set_mode(&approved, 0o644);
    set_mode(&folder.0, 0o777);
    assert!(doubts("warn")[0].contains("other users can write its folder"));
}

#[test]
fn what_references_are_filled_in_with_is_secret() {
    let folder = Scratch::new();
    let token = folder.write("token", "canary-of-a-file");
    let text = format!(
        "[upstreams.a]\ncommand = \"${{PROGRAM}}\"\ncwd = \"${{HOME}}\"\nargs = [\"${{SHORT}}\", \"--api-key=canary-of-a-key\"]\n\
         env = {{ A = \"${{ONE}}\", B = \"${{file:{}}}\", MY_TOKEN = \"canary-of-a-name\", C = \"not-a-secret\" }}\n\
         [[auth.tokens]]\nname = \"a\"\ntoken = \"canary-of-a-client\"\n",
        token.display()
    );
    let environment = Environment::of(&[
        ("PROGRAM", "/bin/sh"),
        ("HOME", "/home/not-a-secret"),
        ("SHORT", "short"),
        ("ONE", "canary-of-a-variable"),
    ]);
    let files = vec![folder.write("a.toml", &text)];
    let loaded = load(Inputs { files, environment, ..Inputs::default() }).unwrap_or_else(|faults| panic!("{faults}"));
    let said = "canary-of-a-file canary-of-a-key canary-of-a-variable canary-of-a-name canary-of-a-client";
    assert_eq!(loaded.config.secrets.masked(said), ["[secret]"; 5].join(" "));
    let plain = "/bin/sh /home/not-a-secret short not-a-secret";
    assert_eq!(loaded.config.secrets.masked(plain), plain);
}
