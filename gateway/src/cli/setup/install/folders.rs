//! The folders that `install` makes for the file of a host: they go again where nothing else is in them.

use std::path::{Path, PathBuf};

use crate::config::source::Environment;

/// The folders of a file that are not there yet, the innermost first.
pub(super) fn missing(file: &Path) -> Vec<PathBuf> {
    above(file).into_iter().take_while(|folder| folder.symlink_metadata().is_err()).collect()
}

/// The folders that `install` may have made for a file, the innermost first: those below the folder of the user, of this project, or of
/// the configurations of this user.
pub(super) fn of_install(file: &Path, environment: &Environment) -> Vec<PathBuf> {
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
        assert_eq!(of_install(&file, &environment), [home.join("a/b/c"), home.join("a/b"), home.join("a")]);
        assert!(of_install(Path::new("/elsewhere/x/mcp.json"), &environment).is_empty());
        std::fs::create_dir_all(home.join("a")).unwrap();
        assert_eq!(missing(&file), [home.join("a/b/c"), home.join("a/b")]);
        std::fs::create_dir_all(home.join("a/b/c")).unwrap();
        std::fs::write(home.join("a/kept"), "").unwrap();
        let folders = of_install(&file, &environment);
        assert_eq!(remove(&folders), [&home.join("a/b/c"), &home.join("a/b")]);
        assert!(home.join("a/kept").exists());
    }
}
