//! Somebody looks at what an upstream offers: what is old is read again behind the answer.

use super::beside::Instances;
use super::eras::Eras;
use super::variants::Variants;
use crate::call::Call;
use crate::protocol::frame::Method;
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
