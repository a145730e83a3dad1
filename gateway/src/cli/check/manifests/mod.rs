//! Kubernetes manifests: the gateways that they would start.

// One object, as far as it matters here.
mod object;
// The objects of a stream, and what ConfigMaps and Secrets among them hold.
mod objects;
// The variables of a container: those that are known, and stand-ins for the others.
mod variables;
// Which containers run the gateway, with which files and which variables.
mod gateways;

pub(super) use gateways::{Gateway, gateways, is_stream};
