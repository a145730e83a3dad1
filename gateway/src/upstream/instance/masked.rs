//! What an upstream tells, on its way to clients: no secret is quoted in it.

use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::value::Object;
use crate::runtime::aside;
use crate::secrets::mask::{self, Kept};

/// An error in which no secret is quoted.
pub(crate) fn without_secrets(error: RpcError) -> RpcError {
    let masked = aside(mask::cost(error.raw().len()), || mask::masked_json(error.raw(), Kept::Top));
    masked.map_or(error, RpcError::from_raw)
}

/// The parameters of a notification on its way to clients, in which no secret is quoted.
pub fn notification(params: Object) -> Object {
    match aside(mask::cost(params.raw().len()), || mask::masked_json(params.raw(), Kept::Notification)) {
        Some(masked) => Object::parse(masked).unwrap_or_default(),
        None => params,
    }
}
