//! What a gateway says of one upstream, and what that means for a person.

use serde::Deserialize;

use crate::config::fault::printable;

/// What it says of one upstream.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) transport: String,
    pub(crate) state: String,
    pub(crate) since_seconds: u64,
    pub(crate) uptime_seconds: Option<u64>,
    pub(crate) downtime_seconds: Option<u64>,
    pub(crate) restarts: u64,
    pub(crate) restarted_for: Option<String>,
    #[serde(default)]
    pub(crate) failed_starts: u64,
    pub(crate) last_error: Option<LastError>,
    pub(crate) cause: Option<String>,
    pub(crate) code: Option<String>,
    #[serde(default)]
    pub(crate) advice: String,
    pub(crate) retry_in_seconds: Option<u64>,
    pub(crate) pid: Option<u32>,
    pub(crate) revision: Option<String>,
    pub(crate) era: Option<String>,
    pub(crate) may_ask: Option<Vec<String>>,
    pub(crate) started_in_seconds: Option<f64>,
    pub(crate) items: Option<Items>,
    pub(crate) login: Option<Login>,
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
    pub(crate) calls: Option<Calls>,
    #[serde(default)]
    pub(crate) client_sessions: usize,
    #[serde(default)]
    pub(crate) stderr: Vec<String>,
    #[serde(default)]
    pub(crate) instances: Vec<Row>,
}

/// What was last wrong with it, though it may be over.
#[derive(Debug, Deserialize)]
pub(crate) struct LastError {
    pub(crate) cause: String,
    pub(crate) code: Option<String>,
    #[serde(default)]
    pub(crate) advice: String,
    pub(crate) ago_seconds: u64,
}

/// The login of a person that it is called with.
#[derive(Debug, Deserialize)]
pub(crate) struct Login {
    pub(crate) principal: Option<String>,
    pub(crate) issuer: String,
    pub(crate) expires_in_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) refreshed: bool,
    #[serde(default)]
    pub(crate) wanted: Vec<String>,
}

/// How much it has to do.
#[derive(Debug, Deserialize)]
pub(crate) struct Calls {
    pub(crate) in_flight: usize,
    pub(crate) queued: usize,
}

/// How much it offers.
#[derive(Debug, Deserialize)]
pub(crate) struct Items {
    pub(crate) tools: usize,
    pub(crate) resources: usize,
    pub(crate) templates: usize,
    pub(crate) prompts: usize,
}

impl Row {
    /// Whether there is somebody who takes calls.
    pub(crate) fn is_up(&self) -> bool {
        matches!(&*self.state, "ready" | "degraded")
    }

    /// Whether it is about to be there or to fail, and nothing is known to be wrong with it so far. One that has crashed is shown as
    /// ending before its cause counts.
    pub(crate) fn is_coming(&self) -> bool {
        matches!(&*self.state, "starting" | "stopping") && self.ailment().is_none()
    }

    /// How many items of the list of this key it offers, where that is known.
    pub(crate) fn offers(&self, key: &str) -> Option<usize> {
        let Items { tools, resources, prompts, .. } = self.items.as_ref()?;
        Some(*match key {
            "resources" => resources,
            "prompts" => prompts,
            _ => tools,
        })
    }

    /// What ails it, and what its own cause advises, which may be nothing. One that is started for the first time is not ailing.
    pub(crate) fn ailment(&self) -> Option<(&str, &str)> {
        let (cause, advice) = match (&*self.state, &self.cause, &self.last_error) {
            // While it is tried again the cause of the last attempt is an error that was.
            ("starting", _, Some(error)) if self.downtime_seconds.is_some_and(|down| error.ago_seconds <= down) => {
                (&error.cause, &error.advice)
            }
            ("failed" | "backing_off" | "degraded", Some(cause), _) => (cause, &self.advice),
            ("failed" | "backing_off" | "degraded", None, Some(error)) => (&error.cause, &error.advice),
            _ => return None,
        };
        let bare = cause.trim().strip_suffix(advice.as_str()).and_then(|rest| rest.strip_suffix("; "));
        Some((bare.filter(|_| !advice.is_empty()).unwrap_or(cause.trim()), advice))
    }

    /// Whether it is a child that has run and said what it had to say.
    fn has_ended(&self) -> bool {
        let code = self.code.as_ref().or_else(|| self.last_error.as_ref()?.code.as_ref());
        code.is_some_and(|code| ["exited", "killed", "pipe_closed", "hung"].contains(&code.as_str()))
    }

    /// Why nothing is to be had of it, for a person; `None` where something is. A gateway that was started for one command, as `is_of_own`
    /// says, is gone with it, so that nobody can look at it or start something in it.
    pub(crate) fn why_not(&self, is_of_own: bool) -> Option<String> {
        let (name, state) = (printable(&self.name), printable(&self.state));
        match self.ailment() {
            Some((cause, _)) if !self.is_up() && cause.is_empty() => Some(format!("upstream `{name}` is {state}")),
            Some((cause, advice)) if !self.is_up() => {
                let advice = match advice {
                    "" if is_of_own && self.has_ended() => {
                        format!("`trunkline tools {name} --log-level info` shows what it writes to stderr")
                    }
                    "" if is_of_own => "run `trunkline doctor`".to_owned(),
                    "" => format!("look at `trunkline status {name}`"),
                    advice => printable(advice),
                };
                Some(format!("upstream `{name}` is {state}: {}; {advice}", printable(cause)))
            }
            None if self.state == "starting" => Some(format!("upstream `{name}` is still starting; try again")),
            None if self.state == "stopped" => {
                Some(format!("upstream `{name}` is stopped; run `trunkline start {name}`"))
            }
            None if !self.is_up() && self.state != "idle" => Some(format!("upstream `{name}` is {state}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        let own = r#""name":"x","transport":"http","since_seconds":1,"restarts":0"#;
        serde_json::from_str(&format!("{{{own},{text}}}")).unwrap()
    }

    #[test]
    fn what_ails_an_upstream_is_told_without_its_advice_and_a_first_start_is_no_ailment() {
        let failed = row(
            r#""state":"failed","cause":"needs login; run `trunkline login x`","advice":"run `trunkline login x`""#,
        );
        assert_eq!(failed.ailment(), Some(("needs login", "run `trunkline login x`")));
        assert_eq!(failed.why_not(false).unwrap(), "upstream `x` is failed: needs login; run `trunkline login x`");
        let again = row(r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"gone","ago_seconds":5}"#);
        assert_eq!(again.ailment(), Some(("gone", "")));
        assert_eq!(again.why_not(false).unwrap(), "upstream `x` is starting: gone; look at `trunkline status x`");
        assert_eq!(again.why_not(true).unwrap(), "upstream `x` is starting: gone; run `trunkline doctor`");
        let child = row(r#""state":"failed","cause":"gone","code":"exited""#);
        let shows = "`trunkline tools x --log-level info` shows what it writes to stderr";
        assert_eq!(child.why_not(true).unwrap(), format!("upstream `x` is failed: gone; {shows}"));
        let ended =
            r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"gone","code":"killed","ago_seconds":5}"#;
        assert_eq!(row(ended).why_not(true).unwrap(), format!("upstream `x` is starting: gone; {shows}"));
        let folder = row(r#""state":"failed","cause":"no folder","code":"directory_not_found""#);
        assert_eq!(folder.why_not(true).unwrap(), "upstream `x` is failed: no folder; run `trunkline doctor`");
        for merely in [
            r#""state":"starting","downtime_seconds":5"#,
            r#""state":"starting","downtime_seconds":5,"cause":"it has not answered yet""#,
            r#""state":"starting","downtime_seconds":5,"last_error":{"cause":"of a life before","ago_seconds":9}"#,
        ] {
            let row = row(merely);
            assert_eq!(row.ailment(), None, "{merely}");
            assert_eq!(row.why_not(false).unwrap(), "upstream `x` is still starting; try again");
        }
        for (state, is_coming, why) in [
            ("stopping", true, Some("upstream `x` is stopping")),
            ("backing_off", false, Some("upstream `x` is backing_off")),
            ("starting", true, Some("upstream `x` is still starting; try again")),
            ("idle", false, None),
            ("ready", false, None),
        ] {
            let row = row(&format!(r#""state":"{state}""#));
            assert_eq!((row.is_coming(), row.why_not(false).as_deref()), (is_coming, why), "{state}");
        }
        assert!(!again.is_coming() && !failed.is_coming(), "it is known what ails them");
        let degraded = row(r#""state":"degraded","cause":"it is silent""#);
        assert_eq!((degraded.ailment(), degraded.why_not(false)), (Some(("it is silent", "")), None), "it takes calls");
    }
}
