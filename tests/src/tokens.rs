//! The token check: proves that a commit changes only names, or only prose.
//!
//! [`lexer`] splits a file into tokens, [`normal`] removes the differences that rustfmt may introduce, [`table`] holds the renames,
//! [`compare`] matches two files, [`facts`] lists what comments no longer mention, [`tree`] reads commits, [`check`] combines them.

pub mod check;
pub mod compare;
pub mod facts;
pub mod lexer;
pub mod normal;
pub mod runs;
pub mod table;
pub mod tree;
