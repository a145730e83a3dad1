//! What reads configuration files here, as plain functions: see [`crate::fuzzing`].

use super::fault::Fault;
use super::import;
pub use super::import::Format;
use super::load::check;
use super::read::Reading;
use super::source::{Environment, expand};

/// A text with its references filled in, where no variable and no file is there.
pub fn expanded(text: &str) -> Option<String> {
    struct Nothing;
    impl expand::Lookup for Nothing {
        fn variable(&self, name: &str) -> Result<Option<String>, String> {
            Ok(name.starts_with('A').then(|| "${B}".to_owned()))
        }
        fn file(&self, _path: &str) -> Result<String, String> {
            Err("there is none".to_owned())
        }
    }
    expand::expand(text, &Nothing).ok()
}

/// What is wrong with a text that is a configuration file; the configuration is checked whole where it can be read.
pub fn faults(text: &str, format: Format) -> Vec<Fault> {
    let root = match format.parse(text) {
        Ok(root) => root,
        Err(unread) => return vec![unread.fault("file".to_owned(), text, format)],
    };
    let (source, said) = import::source("file".as_ref(), text.to_owned(), root, format);
    let reading = Reading::new(vec![source], Environment::default(), said);
    let _config = check(&reading);
    reading.into_faults()
}
