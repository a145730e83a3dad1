//! What one run keeps the next one finds, and nobody else reads.

use super::file::Files;
use super::record::Change;
use super::*;
use crate::protocol::revision::Revision;
use crate::runtime::Scratch;
use crate::secrets::sealer::Sealer;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn sealer(secret: u8) -> Sealer {
    Sealer::new(&[vec![secret; 32]], "trunkline-u1.", b"test")
}

fn place(upstream: &str, client: &str) -> Place {
    Place { upstream: upstream.into(), client: client.into() }
}

fn kept(id: &str) -> Kept {
    let terms = Kept::terms(Revision::V2025_11_25, "{}");
    Kept { terms, id: id.into(), has_wishes: id.ends_with('w'), has_lists: id.ends_with('l') }
}

fn open(upstream: &str, client: &str, id: &str) -> Change {
    Change::Open(place(upstream, client), kept(id))
}

fn over(client: &str, id: &str) -> Change {
    Change::Over(place("up", client), id.into())
}

fn of(upstreams: &[&str]) -> HashSet<Arc<str>> {
    upstreams.iter().map(|name| Arc::from(*name)).collect()
}

fn found(folder: &Path, secret: u8, upstreams: &[&str]) -> Vec<(String, String)> {
    let mut files = Files::new(folder.into());
    let mut all: Vec<_> = files
        .take_over(&sealer(secret), &of(upstreams))
        .into_iter()
        .map(|(place, kept)| (place.client.to_string(), kept.id))
        .collect();
    all.sort();
    all
}

fn pair(client: &str, id: &str) -> (String, String) {
    (client.into(), id.into())
}

#[test]
fn what_a_run_left_open_is_found_by_the_next_alone_and_nothing_can_be_read_in_it() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("a/sessions");
    let mut run = Files::new(folder.clone());
    let changes = [
        open("up", "canary-client", "canary-id"),
        open("up", "two", "w"),
        over("two", "w"),
        open("other", "three", "l"),
    ];
    assert!(run.write(&sealer(1), &changes[..2]) && run.write(&sealer(1), &changes[2..]));
    assert_eq!(found(&folder, 1, &["up", "other"]), [], "the run that has it lives");
    drop(run);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("canary") && text.lines().all(|line| line.starts_with("trunkline-u1.")), "{text}");
    assert_eq!(found(&folder, 2, &["up"]), [], "another key");
    assert_eq!(found(&folder, 1, &["unknown"]), [], "another gateway of this user");
    assert_eq!(found(&folder, 1, &["up", "other"]), [pair("canary-client", "canary-id"), pair("three", "l")]);
    // The run that took it over wrote it down, and has ended.
    assert_eq!(found(&folder, 1, &["up"]), [pair("canary-client", "canary-id")]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_file_that_leaves_nothing_open_goes_and_one_that_others_could_have_written_is_not_read() {
    let scratch = Scratch::new();
    let mut run = Files::new(scratch.0.clone());
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    assert!(run.write(&sealer(1), &[over("never", "1")]) && scratch.names().is_empty());
    assert!(run.write(&sealer(1), &[open("up", "one", "1"), over("one", "1")]));
    assert_eq!(scratch.names().len(), 1);
    run.close(&sealer(1));
    assert!(scratch.names().is_empty());
    assert!(run.write(&sealer(1), &[open("up", "one", "1")]));
    drop(run);
    let file = scratch.0.join(scratch.names().remove(0));
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(found(&scratch.0, 1, &["up"]), [], "others can read it");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o750)).unwrap();
    assert_eq!(found(&scratch.0, 1, &["up"]), [], "the folder is open");
    assert!(!Files::new(scratch.0.clone()).write(&sealer(1), &[open("up", "two", "2")]), "nor is anything written");
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    let aside = scratch.0.join("aside");
    fs::rename(&file, &aside).unwrap();
    symlink(&aside, &file).unwrap();
    assert_eq!(found(&scratch.0, 1, &["up"]), [], "a link");
    fs::remove_file(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    assert_eq!(found(&scratch.0, 1, &["up"]), [pair("one", "1")]);
}

#[test]
fn a_damaged_line_costs_itself_alone_and_too_long_ids_are_not_kept() {
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    let mut run = Files::new(scratch.0.clone());
    let changes = [
        open("up", "one", "1"),
        open("up", "two", "2"),
        open("up", "long", &"x".repeat(4097)),
        open("up", "three", "3"),
    ];
    assert!(run.write(&sealer(1), &changes));
    drop(run);
    let file = scratch.0.join(scratch.names().remove(0));
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let cut = format!("{}\n{}\n{}\nnoise\n", lines[0], &lines[1][..lines[1].len() / 2], lines[2]);
    fs::write(&file, cut).unwrap();
    assert_eq!(found(&scratch.0, 1, &["up"]), [pair("one", "1"), pair("three", "3")]);
}

#[test]
fn the_end_of_an_older_session_does_not_take_away_the_one_that_was_opened_in_its_place() {
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    let mut run = Files::new(scratch.0.clone());
    let changes = [open("up", "one", "old"), open("up", "one", "new"), over("one", "old")];
    assert!(run.write(&sealer(1), &changes));
    drop(run);
    assert_eq!(found(&scratch.0, 1, &["up"]), [pair("one", "new")]);
}

#[test]
fn an_id_as_long_as_a_token_is_kept_and_of_a_longer_one_that_it_was_there() {
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    let (long, longer) = ("x".repeat(4096), "x".repeat(4097));
    assert_eq!((Kept::id_of(&long), Kept::id_of(&longer)), (&*long, ""));
    let mut run = Files::new(scratch.0.clone());
    assert!(run.write(&sealer(1), &[open("up", "one", &long), open("up", "two", Kept::id_of(&longer))]));
    drop(run);
    assert_eq!(found(&scratch.0, 1, &["up"]), [pair("one", &long), pair("two", "")]);
}

#[test]
fn a_file_is_bounded_and_what_was_opened_last_is_kept() {
    let scratch = Scratch::new();
    fs::set_permissions(&scratch.0, PermissionsExt::from_mode(0o700)).unwrap();
    let mut run = Files::new(scratch.0.clone());
    for _ in 0..5 {
        let changes: Vec<_> = (0..8000).map(|number| open("up", &format!("c{number}"), "1")).collect();
        assert!(run.write(&sealer(1), &changes));
        assert_eq!(scratch.names().len(), 1);
    }
    assert!(fs::metadata(scratch.0.join(&scratch.names()[0])).unwrap().len() < 8 << 20);
    let more: Vec<_> = (8000..9000).map(|number| open("up", &format!("c{number}"), "1")).collect();
    assert!(run.write(&sealer(1), &more));
    drop(run);
    let found = found(&scratch.0, 1, &["up"]);
    assert_eq!(found.len(), 8192);
    assert!(found.contains(&pair("c8999", "1")));
    // Files that nobody takes over are few, and go at last.
    for number in 0..80 {
        let path = scratch.0.join(format!("{number:016x}.sessions"));
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }
    let old = fs::File::options().write(true).open(scratch.0.join("0000000000000007.sessions")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(8 * 24 * 60 * 60)).unwrap();
    drop(old);
    self::found(&scratch.0, 1, &["up"]);
    assert!(scratch.names().len() <= 65 && !scratch.0.join("0000000000000007.sessions").exists());
}

#[tokio::test(start_paused = true)]
async fn a_client_finds_its_own_once_and_what_nobody_comes_for_is_given_up() {
    let scratch = Scratch::new();
    let store = |idle| {
        let secrets: Secrets = Box::new(|| Some(vec![vec![1; 32]]));
        KeptSessions::new(&scratch.0, secrets, Duration::from_secs(idle))
    };
    let (before, up) = (store(60), Arc::<str>::from("up"));
    let tasks = crate::runtime::Tasks::new();
    tasks.spawn(before.clone().keep(tasks.clone()));
    for (client, id) in [("one", "1"), ("two", "2"), ("three", "3")] {
        before.put(&place("up", client), kept(id));
    }
    before.gone(&place("up", "three"), "3");
    tasks.end();
    tasks.ended().await;
    drop(before);
    let (after, tasks) = (store(60), crate::runtime::Tasks::new());
    after.is_of(&up);
    tasks.spawn(after.clone().keep(tasks.clone()));
    assert_eq!(after.take(&place("up", "one")).await, Some(Earlier::Kept(kept("1"))));
    assert_eq!(after.take(&place("up", "one")).await, None, "once");
    assert_eq!(after.take(&place("up", "three")).await, None, "it was over");
    assert_eq!(after.left_over(&up).await, [(place("up", "two"), kept("2"))]);
    assert_eq!(after.take(&place("up", "two")).await, Some(Earlier::GivenUp));
    assert_eq!(kept("2").revision(), Some(Revision::V2025_11_25));
    tasks.end();
    tasks.ended().await;
}
