//! placeholder
pub mod peers;
