//! Names in findings: devices as the program opens them, places by line, queues and channels by
//! pointer.

use verbs_api::site::Site;
use verbs_api::{CompChannel, Cq};
use verbs_sim::Names;

use super::place;
use crate::c::Kind;
use crate::engine::Engine;
use crate::verbs::cq;

impl Names for Engine {
    fn device(&self, node: u32) -> String {
        self.name_of(node).to_owned()
    }

    fn place(&self, site: Site) -> String {
        place::name_with_calls(site)
    }

    fn cq(&self, cq: Cq) -> String {
        with_pointer::<cq::Cq>(cq)
    }

    fn channel(&self, channel: CompChannel) -> String {
        with_pointer::<cq::Channel>(channel)
    }
}

fn with_pointer<K: Kind<Handle: PartialEq>>(handle: K::Handle) -> String {
    match K::arena().iter().find(|of| of.handle == handle) {
        Some(of) => format!("{handle} ({:p})", of.seen()),
        None => handle.to_string(),
    }
}
