//! What a person orders a running gateway to do.

// `trunkline start NAME…`, `stop`, `restart`, `enable`, `disable`: what a person orders upstreams of a running gateway to do.
pub(crate) mod upstream;
// `trunkline reload`: has a running gateway put its changed configuration into force.
pub(crate) mod reload;
// `trunkline ui`: opens the page of a running gateway by a link that is good once.
pub(crate) mod ui;
