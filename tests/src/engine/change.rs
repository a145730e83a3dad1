//! What is told outside of any call.

/// A notification, or a question that belongs to no call.
#[derive(Clone, Debug)]
pub struct Change {
    /// The raw id of a question.
    pub id: Option<String>,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: String,
    /// The session that is told alone.
    pub session: Option<String>,
}

impl Change {
    /// A notification; `params` is JSON text.
    #[must_use]
    pub fn new(method: &str, params: &str) -> Change {
        Change { id: None, method: method.into(), params: params.into(), session: None }
    }

    /// As a frame for a legacy peer.
    #[must_use]
    pub fn frame(&self) -> String {
        let id = self.id.as_ref().map(|id| format!("\"id\":{id},")).unwrap_or_default();
        format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{}\",\"params\":{}}}", self.method, self.params)
    }

    /// The resource that it says was updated, if it says that.
    #[must_use]
    pub fn updated_uri(&self) -> Option<String> {
        let params: serde_json::Value = serde_json::from_str(&self.params).ok()?;
        let uri = params["uri"].as_str()?;
        (self.method == "notifications/resources/updated").then(|| uri.to_owned())
    }
}
