//! Conditions that keep an upstream from being well while it is up.

/// What can keep an upstream that is up from being well; the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It does not answer when it is asked whether it is there.
    Silent,
    /// It does not read its input.
    Unread,
    /// It fails again and again, and is left alone for a while.
    Failing,
    /// It asked to be left alone for a while.
    Resting,
    /// It refuses the credentials that it is called with.
    Denied,
    /// What it offers could not be read.
    Unlisted,
}
