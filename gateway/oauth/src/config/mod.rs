//! Checked values about tokens and logins, which `config` makes from the files.

mod credentials;
mod login;

pub use credentials::{ClientCredentials, Credentials, TokenCommand};
pub use login::{Login, Registered};
pub(crate) use trunkline_client::config::{Reach, Remote, Trust};
