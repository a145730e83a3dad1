//! What there is of a text with syntax faults.

use std::ops::Range;

use super::gaps::Gaps;
use crate::config::source::node::Node;

/// So many syntax faults of one file are told.
pub(super) const FAULTS_MAX: usize = 20;

/// What there is of a text with syntax faults.
pub(crate) struct Torn<F> {
    /// The text with blanks in place of what was left out: all else stands where it stood.
    pub(crate) text: String,
    pub(crate) root: Node,
    pub(crate) gaps: Gaps,
    /// At least one, in the order of the text, each with what was left out for it.
    pub(crate) faults: Vec<(F, Range<usize>)>,
}

impl<F> Torn<F> {
    /// With the fault `first` in it, before anything is left out.
    pub(super) fn new(text: &str, first: F) -> Self {
        Self { text: text.to_owned(), root: Node::default(), gaps: Gaps::default(), faults: vec![(first, 0..0)] }
    }

    /// Leaves out what the last fault stands in.
    pub(super) fn leave_out(&mut self, part: Range<usize>) {
        self.text = blanked(&self.text, part.start, part.end);
        self.faults.last_mut().into_iter().for_each(|(_, own)| *own = part.clone());
    }

    /// With the faults in the order of the text, which need not be that in which they are found.
    pub(super) fn sorted(mut self, at: impl Fn(&F) -> usize) -> Self {
        self.faults.sort_by_key(|(fault, _)| at(fault));
        self
    }

    /// With the faults as something else.
    pub(crate) fn map<G>(self, turn: impl Fn(F) -> G) -> Torn<G> {
        let faults = self.faults.into_iter().map(|(fault, part)| (turn(fault), part)).collect();
        Torn { text: self.text, root: self.root, gaps: self.gaps, faults }
    }

    /// Nothing can be read but the faults: the last one stands in what was left out already, unless it is the first.
    pub(super) fn given_up(mut self) -> Self {
        if self.faults.len() > 1 {
            self.faults.pop();
        }
        Self { root: Node::default(), gaps: Gaps::everything(), ..self }
    }
}

/// The text with blanks from `from` to `to`; the lines stay.
fn blanked(text: &str, from: usize, to: usize) -> String {
    let (before, part, behind) = (text.get(..from), text.get(from..to), text.get(to..));
    let blank = |byte: u8| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' };
    let part: String = part.unwrap_or_default().bytes().map(blank).collect();
    [before.unwrap_or_default(), &part, behind.unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_in_the_order_of_the_text_whichever_was_found_first() {
        let mut torn = Torn::new("abc", 2);
        torn.faults.push((1, 0..1));
        assert_eq!(torn.sorted(|at| *at).faults, [(1, 0..1), (2, 0..0)]);
    }
}
