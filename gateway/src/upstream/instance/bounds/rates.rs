//! How many calls an upstream and its single tools may have in a time, from all clients together.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::share::{Rate, RateCell};
use crate::metrics::refused;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::value::Key;
use crate::upstream::config::Config;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How far an upstream has come with each rate that is configured for it, whatever instance its calls are of.
pub(crate) struct CallRates {
    whole: Option<RateCell>,
    tools: HashMap<Box<str>, RateCell>,
}

impl CallRates {
    /// Those of an upstream; none where nothing is configured.
    pub(crate) fn of(config: &Config) -> Option<Arc<Self>> {
        let of_tools = config.tool_times.iter();
        let tools = of_tools.filter_map(|(name, own)| Some((name.clone(), RateCell::new(own.call_rate?)))).collect();
        let rates = Self { whole: config.call_rate.map(RateCell::new), tools };
        (rates.whole.is_some() || !rates.tools.is_empty()).then(|| Arc::new(rates))
    }

    /// Refuses a call, prompt or read that is one too many.
    pub(crate) fn refuse(&self, upstream: &str, call: &Call) -> Option<Refusal> {
        if !call.method.is_long() || call.is_notification {
            return None;
        }
        let name =
            (!self.tools.is_empty() && call.method == Method::ToolsCall).then(|| call.params.text(Key::Name)).flatten();
        let tool = name.as_ref().and_then(|name| self.tools.get(&**name));
        // A call that the upstream may not have takes nothing of what its tool may have.
        if let Some(whole) = &self.whole
            && let Err(wait) = whole.has_any()
        {
            return Some(of_upstream(upstream, (whole.rate(), wait)));
        }
        if let (Some(tool), Some(name)) = (tool, name)
            && let Err(wait) = tool.take()
        {
            let (public, Rate { count, .. }) = (call.public.as_deref().unwrap_or(&name), tool.rate());
            let table = format!("upstreams.{upstream}.tools.override.{}", json::quote(&name));
            let most = format!("the tool `{public}` may have {count} calls {}", tool.rate().every());
            return Some(refusal("tool_rate", wait, &format!("{most} (`call_rate` under [{table}])")));
        }
        let whole = self.whole.as_ref()?;
        whole.take().err().map(|wait| of_upstream(upstream, (whole.rate(), wait)))
    }
}

fn of_upstream(upstream: &str, (rate, wait): (Rate, Duration)) -> Refusal {
    let most = format!("the upstream `{upstream}` may have {} calls {}", rate.count, rate.every());
    refusal("upstream_rate", wait, &format!("{most} (`call_rate` under [upstreams.{upstream}])"))
}

fn refusal(full: &'static str, wait: Duration, most: &str) -> Refusal {
    refused(full).increment(1);
    let seconds = wait.as_secs_f32().ceil().max(1.0);
    Refusal::new(Reason::Limited(wait), format!("{most}; try again in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;
    use crate::upstream::config::Times;
    use crate::upstream::tests::rig::{call, config};
    use tokio::time::advance;

    const NEWEST: Revision = Revision::NEWEST_MODERN;

    fn rates(whole: Option<u64>, tools: &[(&str, u64)]) -> Option<Arc<CallRates>> {
        let rate = |count| Rate { count, per: Duration::from_secs(60) };
        let own = |(name, count): &(&str, u64)| {
            (Box::from(*name), Times { call_rate: Some(rate(*count)), ..Times::default() })
        };
        let tool_times = tools.iter().map(own).collect();
        CallRates::of(&Config { call_rate: whole.map(rate), tool_times, ..config() })
    }

    #[test]
    fn where_nothing_is_configured_there_is_nothing_to_look_at() {
        assert!(rates(None, &[]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_and_its_upstream_have_a_rate_each_and_a_refused_call_takes_nothing_of_either() {
        let rates = rates(Some(4), &[("slow", 2)]).unwrap();
        let calls =
            |name: &str| rates.refuse("a", &call(NEWEST, Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}")));
        assert!(calls("slow").is_none() && calls("slow").is_none());
        let refusal = calls("slow").unwrap();
        assert_eq!(refusal.reason, Reason::Limited(Duration::from_secs(30)));
        assert!(refusal.message.starts_with("the tool `slow` may have 2 calls a minute"), "{}", refusal.message);
        assert!(calls("other").is_none() && calls("other").is_none());
        let refusal = calls("other").unwrap();
        assert!(refusal.message.starts_with("the upstream `a` may have 4 calls a minute"), "{}", refusal.message);
        advance(Duration::from_secs(15)).await;
        assert!(rates.refuse("a", &call(NEWEST, Method::ToolsList, "{}")).is_none(), "a list is no call");
        assert!(calls("other").is_none(), "and it has taken nothing");
        advance(Duration::from_secs(15)).await;
        assert!(calls("slow").is_none());
    }
}
