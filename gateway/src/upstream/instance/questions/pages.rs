//! The pages that an upstream has had sessions open: who is told when one was seen to.

use crate::call::caller::ClientSession;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::{RpcError, URL_ELICITATION_REQUIRED};
use crate::protocol::json;
use crate::protocol::value::Object;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many pages are remembered; the oldest is forgotten.
const PAGES_MAX: usize = 256;

/// The pages of one upstream that may still be open.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<VecDeque<(Box<str>, Weak<ClientSession>)>>);

impl Pages {
    /// A session is asked to open the page of a question.
    pub(crate) fn asked(&self, question: &Object, tenant: &Arc<ClientSession>) {
        self.remember(question.raw(), tenant);
    }

    /// A session that is told to open pages first will hear when they were seen to.
    pub(crate) fn answered(&self, body: &Body, tenant: Option<&Arc<ClientSession>>) {
        let (Body::Error(raw), Some(tenant)) = (body, tenant) else { return };
        let error = RpcError::from_raw(raw.clone());
        if error.code() != Some(URL_ELICITATION_REQUIRED) {
            return;
        }
        let Some(all) = error.data().and_then(|data| json::get(data, "elicitations")) else { return };
        for place in json::elements(all).into_iter().flatten().take(PAGES_MAX) {
            self.remember(&all[place], tenant);
        }
    }

    /// A page was seen to: whoever was to open it is told, and nobody else.
    pub(crate) fn complete(&self, params: &Object) {
        let Some(id) = params.find("elicitationId").and_then(json::unquote) else { return };
        let mut pages = self.lock();
        let Some(at) = pages.iter().rposition(|(known, _)| **known == *id) else { return };
        let tenant = pages.remove(at).and_then(|(_, tenant)| tenant.upgrade());
        drop(pages);
        if let Some(tenant) = tenant {
            tenant.tell(&Method::ElicitationComplete, params);
        }
    }

    fn remember(&self, page: &[u8], tenant: &Arc<ClientSession>) {
        let Some(id) = json::get(page, "elicitationId").and_then(json::unquote) else { return };
        let mut pages = self.lock();
        if pages.len() >= PAGES_MAX {
            pages.pop_front();
        }
        pages.push_back((id.as_ref().into(), Arc::downgrade(tenant)));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Box<str>, Weak<ClientSession>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
