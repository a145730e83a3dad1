//! How many calls an upstream and its single tools may have in a time, from all clients together.

use super::divided_rate::{DividedRate, Taken};
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::share::Rate;
use crate::metrics::refused;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::upstream::config::Config;
use std::collections::HashMap;
use std::sync::Arc;

/// How far an upstream has come with each rate that is configured for it, whatever instance its calls are of.
pub(crate) struct CallRates {
    whole: Option<DividedRate>,
    tools: HashMap<Box<str>, DividedRate>,
}

impl CallRates {
    /// Those of an upstream; none where nothing is configured.
    pub(crate) fn of(config: &Config) -> Option<Arc<Self>> {
        let of_tools = config.tool_times.iter();
        let tools = of_tools.filter_map(|(name, own)| Some((name.clone(), DividedRate::new(own.call_rate?)))).collect();
        let rates = Self { whole: config.call_rate.map(DividedRate::new), tools };
        (rates.whole.is_some() || !rates.tools.is_empty()).then(|| Arc::new(rates))
    }

    /// Refuses a call, prompt or read that is one too many.
    pub(crate) fn refuse(&self, upstream: &str, call: &Call) -> Option<Refusal> {
        if !call.method.is_long() || call.is_notification {
            return None;
        }
        let name = (!self.tools.is_empty() && call.method == Method::ToolsCall).then(|| call.target_name()).flatten();
        let tool = name.as_ref().and_then(|name| self.tools.get(&**name));
        let share = call.caller.share();
        // A call that the upstream may not have takes nothing of what its tool may have.
        if let Some(whole) = &self.whole
            && let Err(taken) = whole.has_any(&share)
        {
            return Some(of_upstream(upstream, (whole.rate(), taken)));
        }
        if let (Some(tool), Some(name)) = (tool, name)
            && let Err(taken) = tool.take(&share)
        {
            let public = call.public.as_deref().unwrap_or(&name);
            let table = format!("upstreams.{upstream}.tools.override.{}", json::quote(&name));
            return Some(refusal("tool_rate", &format!("tool `{public}`"), &table, (tool.rate(), taken)));
        }
        let whole = self.whole.as_ref()?;
        whole.take(&share).err().map(|taken| of_upstream(upstream, (whole.rate(), taken)))
    }
}

fn of_upstream(upstream: &str, found: (Rate, Taken)) -> Refusal {
    refusal("upstream_rate", &format!("upstream `{upstream}`"), &format!("upstreams.{upstream}"), found)
}

fn refusal(full: &'static str, what: &str, table: &str, (rate, taken): (Rate, Taken)) -> Refusal {
    refused(full).increment(1);
    let most = format!("the {what} may have {} calls {} (`call_rate` under [{table}])", rate.count, rate.every());
    let others = if taken.is_for_others { ", and what is left of them is for other clients" } else { "" };
    let seconds = taken.wait.as_secs_f32().ceil().max(1.0);
    Refusal::new(Reason::Limited(taken.wait), format!("{most}{others}; try again in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;
    use crate::upstream::config::Times;
    use crate::upstream::tests::rig::{call, config};
    use std::time::Duration;
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
