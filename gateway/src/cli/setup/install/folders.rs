//! The folders that `install` makes for the file of a host: they go again where nothing else is in them. How many it has made is kept
//! beside the file, so that no other folder goes.

use std::io;
use std::path::{Path, PathBuf};

use crate::cli::setup::save::put;

use crate::config::source::{Environment, file};

/// The folders of a file that are not there yet, the innermost first.
pub(super) fn missing(file: &Path) -> Vec<PathBuf> {
    above(file).into_iter().take_while(|folder| folder.symlink_metadata().is_err()).collect()
}

/// What keeps how many folders of a file `install` has made.
fn kept(file: &Path) -> PathBuf {
    let mut path = file.to_owned().into_os_string();
    path.push(".trunkline-folders");
    path.into()
}

/// Keeps that `install` has made these folders of a file.
pub(super) fn keep(file: &Path, made: &[PathBuf]) -> io::Result<()> {
    match made.len() {
        0 => Ok(()),
        count => put(&kept(file), format!("{count}\n").as_bytes(), 0o600),
    }
}

/// The folders of a file that `install` has made, as it has kept that, the innermost first. What is kept goes with this.
pub(super) fn made(file: &Path, environment: &Environment) -> Vec<PathBuf> {
    let kept = kept(file);
    let count = match kept.symlink_metadata() {
        Ok(seen) if seen.is_file() => file::read(&kept).ok().and_then(|text| text.trim().parse::<usize>().ok()),
        _ => return Vec::new(),
    };
    if std::fs::remove_file(&kept).is_err() {
        return Vec::new();
    }
    let mut folders = of_user(file, environment);
    folders.truncate(count.unwrap_or_default());
    folders
}

/// The folders that a file has below the folder of the user, of this project, or of the configurations of this user, the innermost first.
fn of_user(file: &Path, environment: &Environment) -> Vec<PathBuf> {
    let named = ["HOME", "XDG_CONFIG_HOME"].iter().filter_map(|name| environment.get(name)).map(PathBuf::from);
    let mut roots: Vec<PathBuf> = named.filter(|root| root.is_absolute()).collect();
    roots.extend(std::env::current_dir());
    let folders: Vec<PathBuf> =
        above(file).into_iter().take_while(|folder| roots.iter().all(|root| root != folder)).collect();
    // A folder that lies in none of them was there before.
    let is_below = folders.last().and_then(|top| top.parent()).is_some_and(|root| roots.iter().any(|one| one == root));
    if is_below { folders } else { Vec::new() }
}

/// Removes folders while they are empty; gives those that are gone. What a link leads to stays.
pub(super) fn remove(folders: &[PathBuf]) -> Vec<&PathBuf> {
    folders.iter().take_while(|folder| std::fs::remove_dir(folder).is_ok()).collect()
}

fn above(file: &Path) -> Vec<PathBuf> {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.ancestors().skip(1).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;

    #[test]
    fn folders_go_while_they_are_empty_up_to_the_one_of_the_user() {
        let scratch = Scratch::new();
        let home = scratch.0.canonicalize().unwrap();
        let environment = Environment::of(&[("HOME", home.to_str().unwrap())]);
        let file = home.join("a/b/c/mcp.json");
        assert_eq!(of_user(&file, &environment), [home.join("a/b/c"), home.join("a/b"), home.join("a")]);
        assert!(of_user(Path::new("/elsewhere/x/mcp.json"), &environment).is_empty());
        std::fs::create_dir_all(home.join("a")).unwrap();
        assert_eq!(missing(&file), [home.join("a/b/c"), home.join("a/b")]);
        std::fs::create_dir_all(home.join("a/b/c")).unwrap();
        std::fs::write(home.join("a/kept"), "").unwrap();
        let folders = of_user(&file, &environment);
        assert_eq!(remove(&folders), [&home.join("a/b/c"), &home.join("a/b")]);
        assert!(home.join("a/kept").exists());
    }

    #[test]
    fn only_what_was_made_goes_and_never_what_lies_above_the_folder_of_the_user() {
        let scratch = Scratch::new();
        let home = scratch.0.canonicalize().unwrap();
        let environment = Environment::of(&[("HOME", home.to_str().unwrap())]);
        let file = home.join("a/b/mcp.json");
        std::fs::create_dir_all(home.join("a/b")).unwrap();
        assert!(made(&file, &environment).is_empty());
        keep(&file, &[]).unwrap();
        assert!(!kept(&file).exists());
        keep(&file, &[home.join("a/b")]).unwrap();
        assert_eq!(made(&file, &environment), [home.join("a/b")]);
        assert!(!kept(&file).exists(), "it is kept once");
        std::fs::write(kept(&file), "99").unwrap();
        assert_eq!(made(&file, &environment), [home.join("a/b"), home.join("a")]);
        std::fs::write(kept(&file), "all").unwrap();
        assert!(made(&file, &environment).is_empty());
    }
}
