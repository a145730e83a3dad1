//! A notification that belongs to no call.

/// Its method and its parameters (JSON text).
#[derive(Clone, Debug)]
pub struct Change {
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: String,
}

impl Change {
    /// As a frame for a legacy peer.
    #[must_use]
    pub fn frame(&self) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{}}}", self.method, self.params)
    }

    /// The resource that it says was updated, if it says that.
    #[must_use]
    pub fn updated_uri(&self) -> Option<String> {
        let params: serde_json::Value = serde_json::from_str(&self.params).ok()?;
        let uri = params["uri"].as_str()?;
        (self.method == "notifications/resources/updated").then(|| uri.to_owned())
    }
}
