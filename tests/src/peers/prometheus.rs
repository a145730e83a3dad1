//! A Prometheus that scrapes a gateway each second, and is asked what it makes of that.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::client::http;
use crate::gateway::{Gateway, free_port};
use crate::peers::or_skip;
use crate::process;
use crate::scratch::Scratch;
use crate::within::until;

const PROGRAM: &str = "/usr/bin/prometheus";

/// A running Prometheus.
pub struct Prometheus {
    url: String,
    child: Child,
    _scratch: Scratch,
}

impl Prometheus {
    /// Starts it with rules and one target, whose series have the labels `namespace` and `job`; or nothing where it is not installed, and
    /// then the reason stands on stderr.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it is not installed.
    pub async fn scraping(gateway: &Gateway, rules: &str) -> Option<Prometheus> {
        let found = std::path::Path::new(PROGRAM).exists();
        or_skip(&found.then_some(()).ok_or_else(|| "Prometheus is not installed (Debian: prometheus)".to_owned()))?;
        let (scratch, port) = (Scratch::new(), free_port());
        let target = gateway.admin.trim_start_matches("http://");
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: [{rules:?}]\n\
             scrape_configs:\n- job_name: mcp\n  static_configs: [{{ targets: [{target:?}], labels: {{ namespace: tools }} }}]\n"
        );
        let file = scratch.file("prometheus.yml", &config);
        let child = Command::new(PROGRAM)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", scratch.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--enable-feature=exemplar-storage")
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("Prometheus starts");
        let prometheus = Prometheus { url: format!("http://127.0.0.1:{port}"), child, _scratch: scratch };
        until("Prometheus is ready", || async {
            let answer = http::exchange(&format!("{}/-/ready", prometheus.url), "GET", &[], "").await;
            (answer.status == 200).then_some(())
        })
        .await;
        Some(prometheus)
    }

    /// What an expression gives now: one value for each series, or why it gives none.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(expression))).await;
        match answer["data"]["result"].as_array() {
            Some(series) => Ok(series.clone()),
            None => Err(answer.to_string()),
        }
    }

    /// The ids of traces that it keeps as exemplars of this series.
    pub async fn traces(&self, selector: &str) -> Vec<String> {
        let path = format!("/api/v1/query_exemplars?query={}&start=0&end=9999999999", encoded(selector));
        let answer = self.get(&path).await;
        let series = answer["data"].as_array().cloned().unwrap_or_default();
        let exemplars = series.iter().flat_map(|one| one["exemplars"].as_array().cloned().unwrap_or_default());
        exemplars.filter_map(|one| Some(one["labels"]["trace_id"].as_str()?.to_owned())).collect()
    }

    /// The names of the alerts that fire now.
    pub async fn firing(&self) -> BTreeSet<String> {
        let answer = self.get("/api/v1/alerts").await;
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.filter_map(|alert| Some(alert["labels"]["alertname"].as_str()?.to_owned())).collect()
    }

    /// The values of a label among series of this selector.
    pub async fn label_values(&self, selector: &str, label: &str) -> Vec<String> {
        let answer = self.get(&format!("/api/v1/label/{label}/values?match[]={}", encoded(selector))).await;
        let values = answer["data"].as_array().cloned().unwrap_or_default();
        values.iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
    }

    /// The name and the expression of each alert that it evaluates, and what went wrong with that, if anything did.
    pub async fn alerts(&self) -> Vec<(String, String, String)> {
        let answer = self.get("/api/v1/rules").await;
        let groups = answer["data"]["groups"].as_array().cloned().unwrap_or_default();
        let rules = groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
        let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
        rules.map(|rule| (text(&rule, "name"), text(&rule, "query"), text(&rule, "lastError"))).collect()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = http::exchange(&format!("{}{path}", self.url), "GET", &[], "").await;
        serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {answer:?}"))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        if let Some(pid) = self.child.id() {
            process::signal(pid, "TERM");
        }
    }
}

/// Percent-encoded, for a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
