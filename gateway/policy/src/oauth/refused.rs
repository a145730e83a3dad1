//! Why a token is not taken.

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request does not show one as it should.
    Malformed,
    /// It is none that is taken: why.
    Invalid(&'static str),
    /// It was good once.
    Expired,
    /// It is good, and has not all scopes that every token must have.
    Scope,
    /// Whether it is good cannot be told now.
    Unverified,
}

/// It does not say who gave it out, or that is nobody who is known.
pub(super) const UNKNOWN: Refused =
    Refused::Invalid("the token is of none of the authorization servers of this gateway");
/// It is for somebody else.
pub(super) const ELSEWHERE: Refused = Refused::Invalid("the token is for another resource");
/// Its time has not come.
pub(super) const EARLY: Refused = Refused::Invalid("the token is not good yet");
/// It is worth nothing without the proof of a key.
pub(super) const BOUND: Refused =
    Refused::Invalid("the token is bound to a key, whose proof is not asked for here; fetch a bearer token");
