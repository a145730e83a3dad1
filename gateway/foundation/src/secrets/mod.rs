//! The ground: the secrets of the configuration, and foreign text made safe to show.

// Files that are this user's alone.
pub mod private;
// The secrets of the configuration, and their mask.
pub mod mask;
// Seals bytes as a text that can neither be read nor altered.
pub mod sealer;
// Certificates and keys in files of PEM form.
pub mod pem;
// Foreign text on its way to a terminal: what that would obey, hide or turn round is written out instead.
mod visible;
// Whether a word looks like chance, as tokens and keys do.
mod random;

pub use mask::Secrets;
pub use random::looks_random;
pub use visible::{decoded, visible, visible_json};
pub use visible::{is_hidden, printable};
