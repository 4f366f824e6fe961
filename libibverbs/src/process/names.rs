//! Names in findings: devices as the program opens them, places by line, queues and channels by pointer.

use std::fmt::Display;

use verbs_api::site::Site;
use verbs_api::{CompChannel, Cq};
use verbs_sim::Names;

use super::place;
use crate::c::object::Kind;
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
        let mut all = cq::Cq::arena().iter();
        let pointer = all.find(|of| of.handle == cq).map(|of| of.seen());
        with_pointer(cq, pointer)
    }

    fn channel(&self, channel: CompChannel) -> String {
        let mut all = cq::Channel::arena().iter();
        let pointer = all.find(|of| of.handle == channel).map(|of| of.seen());
        with_pointer(channel, pointer)
    }
}

fn with_pointer<T>(name: impl Display, pointer: Option<*mut T>) -> String {
    match pointer {
        Some(pointer) => format!("{name} ({pointer:p})"),
        None => name.to_string(),
    }
}
