//! Somebody looks at what an upstream offers, or tells it something: what that concerns beside its primary instance.

use super::beside::Instances;
use super::eras::Eras;
use super::variants::Variants;
use crate::call::Call;
use crate::protocol::frame::Method;
use crate::upstream::calls::admit::tell;
use crate::upstream::calls::sessions::own;
use crate::upstream::instance::Instance;
use std::sync::Arc;

/// What an upstream has beside its primary instance.
type Beside<'a> = (&'a Option<Arc<Instances>>, &'a Option<Arc<Eras>>, &'a Option<Arc<Variants>>);

/// Somebody looks at the inventory: it is read again where that was last done long ago, and for the first time where it was
/// never known.
pub(crate) fn looked_at(primary: &Arc<Instance>, (instances, eras, variants): Beside<'_>, call: &Call) {
    if primary.offering.inventory.borrow().is_none() {
        match call.method.is_long() || call.method == Method::Complete {
            true => primary.admission.demand.hurry(),
            false => primary.admission.demand.wake(),
        }
    }
    primary.offering.reads.refresh();
    if let Some(eras) = eras {
        eras.refresh(call.revision().era());
    }
    // The lists of a principal with a login of its own are read by an instance of its own, and nothing of them is known before.
    if primary.stands_apart() {
        let begun = instances.as_ref().map(|instances| instances.lease(call));
        drop(begun);
    }
    if let Some(own) = instances.as_ref().and_then(|instances| instances.find(call)) {
        own.offering.reads.refresh();
    }
    if let Some(own) = own::existing(primary, &call.caller).filter(|own| own.has_lists()) {
        own.instance.offering.reads.refresh();
    }
    if let Some(variants) = variants {
        variants.refresh(call.revision().era(), |set| call.caller.has_declared(set));
    }
}

/// A notification is for who is there now: one that is not there yet will not miss it.
pub(crate) fn told(primary: &Arc<Instance>, (instances, eras, _): Beside<'_>, call: &Call) {
    let own = instances.as_ref().and_then(|instances| instances.find(call));
    let own = own.or_else(|| eras.as_ref()?.serving(call.revision().era()));
    let serving = own.as_ref().unwrap_or(primary);
    let alone = own::existing(serving, &call.caller).map(|own| own.instance.clone());
    let instance = alone.as_ref().unwrap_or(serving);
    // What a client says of its roots concerns what is its own, and nobody else's.
    if call.method != Method::RootsChanged || instance.owner.is_of(call.caller.tenant.as_ref()) {
        tell(instance, call);
    }
}
