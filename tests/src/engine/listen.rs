//! `subscriptions/listen`: the changes that a stateless client asked for, until it goes away.

use crate::engine::change::Change;
use crate::engine::said::Said;
use crate::engine::tasks;
use crate::engine::{Engine, Out, Outlet};
use crate::frame::{Frame, fields};
use crate::journal::What;

/// Serves one listen; it ends only by being cancelled, or when the upstream itself ends.
pub(crate) async fn run(engine: &Engine, frame: &Frame, outlet: &Outlet) -> Said {
    let mut changes = engine.changes.subscribe();
    let filter = frame.param("notifications").map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    let params = format!("{{\"notifications\":{filter}}}");
    let acknowledged = Change::new("notifications/subscriptions/acknowledged", &params);
    outlet.send(Out::Notice(tagged(&acknowledged, frame.id_text()))).await;
    engine.journal.tell(What::Listening(filter.clone())).await;
    while let Ok(change) = changes.recv().await {
        if wanted(&change, &filter) {
            outlet.send(Out::Notice(tagged(&change, frame.id_text()))).await;
        }
    }
    Said::result(format!("{{\"resultType\":\"complete\",\"_meta\":{}}}", tag(frame.id_text())))
}

fn wanted(change: &Change, filter: &str) -> bool {
    let filter: serde_json::Value = serde_json::from_str(filter).unwrap_or_default();
    let asked = |name: &str| filter[name].as_bool().unwrap_or(false);
    match change.method.as_str() {
        tasks::CHANGED => {
            let told: serde_json::Value = serde_json::from_str(&change.params).unwrap_or_default();
            filter["taskIds"].as_array().is_some_and(|ids| ids.contains(&told["taskId"]))
        }
        "notifications/tools/list_changed" => asked("toolsListChanged"),
        "notifications/prompts/list_changed" => asked("promptsListChanged"),
        "notifications/resources/list_changed" => asked("resourcesListChanged"),
        "notifications/resources/updated" => filter["resourceSubscriptions"]
            .as_array()
            .is_some_and(|uris| uris.iter().any(|uri| uri.as_str() == change.updated_uri().as_deref())),
        _ => false,
    }
}

fn tag(id: &str) -> String {
    format!("{{\"io.modelcontextprotocol/subscriptionId\":{id}}}")
}

fn tagged(change: &Change, id: &str) -> String {
    let raw = serde_json::value::RawValue::from_string(change.params.clone()).expect("a change has JSON parameters");
    let mut parts = vec![format!("\"_meta\":{}", tag(id))];
    parts.extend(fields(&raw).iter().map(|(name, value)| format!("\"{name}\":{value}")));
    Change::new(&change.method, &format!("{{{}}}", parts.join(","))).frame()
}
