//! Checked values about tokens and logins, which `config` makes from the files.

// The origin of a token.
mod credentials;
// The login of a person.
mod login;

pub use credentials::{ClientCredentials, Credentials, TokenCommand};
pub use login::{Login, Registered};
pub(crate) use trunkline_client::config::{Reach, Remote, Trust};
