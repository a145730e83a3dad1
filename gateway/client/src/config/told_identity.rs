//! How an upstream is told whose call it is.

use http::HeaderName;

/// Where the name of the principal goes with a call; at least one of them is there.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldIdentity {
    /// In this header of the request that bears the call.
    pub header: Option<HeaderName>,
    /// Under this key of the call's `_meta`, of characters that JSON needs not escape.
    pub meta: Option<Box<str>>,
}
