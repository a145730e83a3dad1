//! What became of the configuration since the start, in words: for a person, and as JSON.

use crate::secrets::visible;
use crate::telemetry::config::LeftOut;
use crate::telemetry::reloads::Reload;
use serde::Serialize;

/// What became of the configuration since the start.
#[derive(Serialize)]
pub(super) struct Configuration<'a> {
    in_force_seconds: u64,
    reloads: u64,
    /// Why that of the files is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_ago_seconds: Option<u64>,
    /// Why the files of a certificate are not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_error: Option<&'a str>,
    /// Why no signing key outlives the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_key_error: Option<&'a str>,
    /// What it says otherwise and only a start takes up.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    needs_restart: &'a [&'static str],
    /// The upstreams that are switched off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disabled: Vec<&'a str>,
    /// Those that are switched on and left out, with the reason.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [LeftOut],
}

impl<'a> From<&'a Reload> for Configuration<'a> {
    fn from(reload: &'a Reload) -> Self {
        Self {
            in_force_seconds: reload.since.elapsed().as_secs(),
            reloads: reload.count,
            error: reload.error.as_ref().map(|(why, _)| why.as_str()),
            error_ago_seconds: reload.error.as_ref().map(|(_, at)| at.elapsed().as_secs()),
            certificate_error: reload.certificates.values().next().map(|(why, _)| why.as_str()),
            signing_key_error: reload.signing_key.as_deref(),
            needs_restart: &reload.needs_restart,
            disabled: reload.disabled.iter().map(|name| &**name).collect(),
            left_out: &reload.left_out,
        }
    }
}

/// What became of the configuration since the start, where anything did.
pub(super) fn text(reload: &Reload) -> String {
    let mut out = String::new();
    if reload.count > 0 {
        let (count, since) = (reload.count, reload.since.elapsed().as_secs());
        let noun = if count == 1 { "reload" } else { "reloads" };
        out = format!("configuration  {count} {noun}  in force for {since} s\n");
    }
    if let Some((why, at)) = &reload.error {
        let ago = at.elapsed().as_secs();
        out.push_str(&format!("configuration  not reloaded {ago} s ago: {}\n", visible(why)));
    }
    for (why, at) in reload.certificates.values() {
        let ago = at.elapsed().as_secs();
        out.push_str(&format!("certificate    not renewed {ago} s ago: {}\n", visible(why)));
    }
    if let Some(why) = &reload.signing_key {
        out.push_str(&format!("signing key    not kept: {}\n", visible(why)));
    }
    if !reload.needs_restart.is_empty() {
        out.push_str(&format!("configuration  takes effect at the next start: {}\n", reload.needs_restart.join(", ")));
    }
    if !reload.disabled.is_empty() {
        out.push_str(&format!("configuration  disabled: {}\n", visible(&reload.disabled.join(", "))));
    }
    for LeftOut { name, why, advice } in &reload.left_out {
        out.push_str(&format!("configuration  left out: {name}: {}; {}\n", visible(why), visible(advice)));
    }
    out
}
