//! One server for both eras, on the official SDK.

use crate::content;
use crate::questions::{Context, complete, is_stateless, typed};
use crate::tools::{self, Given, is_required};
use rmcp::model::*;
use rmcp::service::{NotificationContext, Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// A list that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tools,
    Prompts,
}

/// What all connections share: the lists that change, and who must be told.
pub struct World {
    extra: [AtomicBool; 2],
    sessions: Mutex<Vec<Peer<RoleServer>>>,
    told: broadcast::Sender<Kind>,
}

impl Default for World {
    fn default() -> Self {
        Self { extra: Default::default(), sessions: Mutex::default(), told: broadcast::Sender::new(16) }
    }
}

impl World {
    pub fn has(&self, kind: Kind) -> bool {
        self.extra[kind as usize].load(Ordering::Acquire)
    }

    pub async fn change(&self, kind: Kind) {
        self.extra[kind as usize].fetch_xor(true, Ordering::AcqRel);
        let _nobody_listens = self.told.send(kind);
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for session in sessions {
            let _gone = match kind {
                Kind::Tools => session.notify_tool_list_changed().await,
                Kind::Prompts => session.notify_prompt_list_changed().await,
            };
        }
    }
}

/// The server of one connection.
pub struct Dual(pub Arc<World>);

fn answers(given: &impl serde::Serialize) -> Value {
    serde_json::to_value(given).map_or(Value::Null, |all| all["inputResponses"].clone())
}

#[expect(deprecated, reason = "handshake clients subscribe so")]
impl ServerHandler for Dual {
    fn get_info(&self) -> ServerConfig {
        typed(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "subscribe": true }, "logging": {}, "completions": {},
            },
            "serverInfo": { "name": "conformance-rust", "version": "1.0.0" },
        }))
        .expect("it is one")
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(context.peer);
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: Context) -> Result<ListToolsResult, ErrorData> {
        complete(json!({ "tools": tools::list(self.0.has(Kind::Tools)) }))
    }

    // With it the SDK holds headers of parameters against the call.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let all = tools::list(self.0.has(Kind::Tools));
        typed(all.as_array()?.iter().find(|tool| tool["name"] == name)?.clone()).ok()
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let answers = answers(&request);
        let state = serde_json::to_value(&request).ok().and_then(|all| Some(all["requestState"].as_str()?.to_owned()));
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let given = Given { arguments, answers, state };
        let result = tools::call(&request.name, given, &context, &self.0).await?;
        match is_required(&result) {
            true => typed(result).map(CallToolResponse::InputRequired),
            false => complete(result).map(CallToolResponse::Complete),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        complete(json!({ "resources": content::resources() }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(json!({ "resourceTemplates": content::templates() }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(found) = content::read(&request.uri) else {
            let (said, data) = (format!("there is no {}", request.uri), json!({ "uri": request.uri }));
            return Err(ErrorData::resource_not_found(said, Some(data)));
        };
        complete(json!({ "contents": [found] })).map(ReadResourceResponse::Complete)
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut told = self.0.told.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                kind = told.recv() => {
                    let _gone = match kind {
                        Ok(Kind::Tools) => context.sink().notify_tool_list_changed().await,
                        Ok(Kind::Prompts) => context.sink().notify_prompt_list_changed().await,
                        Err(_) => return Ok(()),
                    };
                }
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        complete(json!({ "prompts": content::prompts(self.0.has(Kind::Prompts)) }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let answers = answers(&request);
        let given = serde_json::to_value(&request.arguments).unwrap_or_default();
        if request.name == "test_input_required_result_prompt" && is_stateless(&context) {
            let result = tools::prompt(&answers, &context)?;
            return match is_required(&result) {
                true => typed(result).map(GetPromptResponse::InputRequired),
                false => complete(result).map(GetPromptResponse::Complete),
            };
        }
        match content::prompt(&request.name, &given) {
            Some(found) => complete(found).map(GetPromptResponse::Complete),
            None => Err(ErrorData::invalid_params(format!("no prompt {}", request.name), None)),
        }
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let words = ["paris", "park", "party", "testing"];
        let values: Vec<_> = words.into_iter().filter(|word| word.starts_with(&request.argument.value)).collect();
        complete(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }))
    }
}
