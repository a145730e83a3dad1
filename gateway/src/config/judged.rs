//! What there is of a file, also where it has syntax faults.

use std::path::Path;

use super::fault::Fault;
use super::import::{self, Format, Unread};
use super::source::node::{Names, Origin, Source};
use super::source::torn::{self, Gaps, Torn};
use super::source::{json, toml, yaml};

/// What there is of a file.
pub(super) struct Judged {
    pub(super) source: Option<Source>,
    /// What is doubtful of it where it is a host's.
    pub(super) doubts: Vec<Fault>,
    /// Why it was not read, or not all of it.
    pub(super) faults: Vec<Fault>,
    /// What was not read.
    pub(super) gaps: Gaps,
}

impl Judged {
    /// The file at `path`; `draft` is its text where that is not written yet.
    pub(super) fn of(path: &Path, draft: Option<&String>) -> Self {
        let text = match draft.map_or_else(|| import::text(path), |draft| Ok(draft.clone())) {
            Ok(text) => text,
            Err(fault) => return Self::nothing(*fault),
        };
        match import::parsed(path, &text) {
            (format, Ok(root)) => {
                let (source, doubts) = import::source(path, text, root, format);
                Self { source: Some(source), doubts, faults: Vec::new(), gaps: Gaps::default() }
            }
            (format, Err(unread)) => match torn(&text, format) {
                Some(torn) => Self::of_torn(path, &text, torn, format),
                None => Self::nothing(unread.fault(path.display().to_string(), &text, format)),
            },
        }
    }

    fn nothing(fault: Fault) -> Self {
        Self { source: None, doubts: Vec::new(), faults: vec![fault], gaps: Gaps::everything() }
    }

    fn of_torn(path: &Path, text: &str, torn: Torn<Unread>, format: Format) -> Self {
        let Torn { text: left, root, gaps, faults } = torn;
        let fault = |(unread, part): (Unread, std::ops::Range<usize>)| {
            // Its own line as it is written, and blanks where an earlier fault stands.
            let own = text.get(part.clone()).unwrap_or_default();
            // What was put behind its end is no part of the file.
            let behind = left.get(part.end..text.len()).unwrap_or_default();
            let around = (left.get(..part.start).unwrap_or_default(), behind);
            let seen = [around.0, own, around.1].concat();
            unread.fault_beside_others(path.display().to_string(), (&seen, text), format)
        };
        let faults = faults.into_iter().map(fault).collect();
        // Of what is not well written only the values that were read tell what is a key.
        let names = Names::of(&root);
        let source = Source {
            origin: Origin::File(path.to_owned()),
            text: left,
            root,
            imported: Vec::new(),
            left_out: Vec::new(),
            names,
        };
        let (source, doubts) = import::taken(source, format != Format::Toml || gaps.is_of_codex());
        Self { source: Some(source), doubts, faults, gaps }
    }
}

/// What can be read of a text with syntax faults; `None` where nothing can.
fn torn(text: &str, format: Format) -> Option<Torn<Unread>> {
    match format {
        Format::Toml => Some(torn::of_toml(text, toml::parse(text).err()?).map(Unread::from)),
        Format::Json => {
            let first = json::parse(text).err().filter(|first| !first.is_without_servers)?;
            Some(torn::of_json(text, first).map(Unread::from))
        }
        Format::Yaml => {
            let first = yaml::parse(text).err().filter(|first| !first.is_without_servers)?;
            Some(torn::of_yaml(text, first).map(Unread::from))
        }
    }
}
