//! Of several names that are given: those that are there, and why the others are not.

use anyhow::anyhow;

use crate::cli::process::Failure;
use crate::cli::process::failure::tell;
use crate::config::fault::printable;
use crate::config::import::{nearest, told};

/// The names that are given, each once.
pub(super) struct Named<'a> {
    pub(super) there: Vec<&'a str>,
    pub(super) missing: Vec<&'a str>,
}

impl<'a> Named<'a> {
    /// Those of `names` that are `known`, and the others.
    pub(super) fn of(names: &'a [String], known: &[String]) -> Self {
        let mut each: Vec<&str> = Vec::new();
        names.iter().for_each(|name| each.extend((!each.contains(&&**name)).then_some(&**name)));
        let (there, missing) = each.into_iter().partition(|name| known.iter().any(|one| one == name));
        Self { there, missing }
    }

    /// Says of each name that is not there so, once all else is done; `what` is a noun with the place, and `left` are the names there now.
    pub(super) fn end(&self, noun: &str, place: &str, left: &[String]) -> Result<(), Failure> {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        let why = |name: &&str| {
            // What has just gone may be what was meant by both.
            let meant = match nearest(name, &left) {
                None => nearest(name, &self.there),
                Some(_) => None,
            };
            let gone = meant.map(|gone| format!(" (`{}` is gone now)", printable(gone))).unwrap_or_default();
            anyhow!("no {noun} `{}` in {place}{gone}{}", printable(name), told(name, &left))
        };
        each(self.missing.iter().map(why).collect())
    }
}

/// Tells what went wrong with several things, each by itself.
pub(super) fn each(mut wrong: Vec<anyhow::Error>) -> Result<(), Failure> {
    let Some(last) = wrong.pop() else { return Ok(()) };
    wrong.iter().for_each(|why| tell(&format!("{why:#}"), 1));
    Err(last.into())
}
