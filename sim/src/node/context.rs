//! Contexts, device and port queries, asynchronous events.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use verbs_api::behavior::Behavior;
use verbs_api::lab::{Limit, TraceEvent};
use verbs_api::profile::DeviceLimits;
use verbs_api::{
    AsyncEvent, AsyncEventType, AtomicCap, Capabilities, Cause, Context, DeviceAttr, DeviceAttrEx,
    Element, Error, ErrorKind, Gid, GidEntry, GidType, LinkLayer, Mtu, Object, PortAttr, PortState,
    Result, Verb,
};

use super::events::{EventQueue, Events, Numbers};
use super::{Gids, Node, context_of, in_range, invalid, moderate, same_context};
use crate::packet::PortId;
use crate::subnet::Subnet;

/// An open context.
#[derive(Clone, Debug)]
pub(super) struct OpenDevice {
    handle: Context,
    pub(super) events: Events<AsyncEvent>,
    /// Those about an object.
    events_of: BTreeMap<Element, Numbers>,
    /// By kind, the indices of all that was made in it.
    objects: BTreeSet<(Object, u32)>,
    /// Events of the device or a port that were read and not acknowledged.
    unacked: u32,
}

/// A port of the node.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) gids: Vec<Gid>,
    pub(super) pkeys: Vec<u16>,
    pub(super) up: bool,
    pub(super) mtu: Mtu,
    pub(super) bad_pkeys: u32,
    pub(super) bad_qkeys: u32,
}

/// The greatest MTU of every port, and at first its active one.
pub(super) const PORT_MTU: Mtu = Mtu::Mtu4096;
/// As above, in bytes.
pub(super) const PORT_MTU_BYTES: u32 = 4096;
/// The longest message.
pub(super) const MAX_MSG_SZ: u32 = 1 << 31;
/// A context's slot has 16 bits in its handle; some slots rest before they are used again.
const MAX_CONTEXTS: u32 = 65_000;
pub(super) const DEFAULT_PKEY: u16 = 0xffff;

impl Port {
    pub(super) fn new(id: PortId) -> Self {
        Self {
            gids: port_gids(id, false).into(),
            pkeys: vec![DEFAULT_PKEY, 0, 0, 0],
            up: true,
            mtu: PORT_MTU,
            bad_pkeys: 0,
            bad_qkeys: 0,
        }
    }
}

/// The GIDs of a port: a link-local one, and on Ethernet one that maps an IPv4 address.
fn port_gids(PortId { node, port }: PortId, infiniband: bool) -> [Gid; 2] {
    let [high, low] = (node as u16).to_be_bytes();
    let mut local = [0; 16];
    local[..2].copy_from_slice(&[0xfe, 0x80]);
    local[8..].copy_from_slice(&[0x02, 0, 0, 0xff, 0xfe, high, low, port]);
    if infiniband {
        return [Gid(local), Gid::default()];
    }
    let mut mapped = [0; 16];
    mapped[10..12].copy_from_slice(&[0xff, 0xff]);
    mapped[12..].copy_from_slice(&[10, high, low, port]);
    [Gid(local), Gid(mapped)]
}

/// All GIDs of a fabric of so many nodes and ports.
pub(crate) fn gids(nodes: u32, ports: u8, infiniband: bool) -> Gids {
    let ids = (0..nodes).flat_map(|node| (1..=ports).map(move |port| PortId { node, port }));
    ids.flat_map(|id| port_gids(id, infiniband).map(|gid| (gid, id)))
        .filter(|(gid, _)| *gid != Gid::default())
        .collect()
}

pub(super) fn device_attr(node: u32, ports: u8, limits: &DeviceLimits) -> DeviceAttr {
    let mut attr = DeviceAttr::default();
    limits.put_into(&mut attr);
    attr.fw_ver = env!("CARGO_PKG_VERSION").to_owned();
    attr.node_guid = 0x0200_00ff_fe00_0000 | u64::from(node) << 8;
    attr.max_qp = limits.max_qp.min(super::qp::MAX_QP);
    (attr.mem_window, attr.mem_window_type_2b, attr.xrc) = (true, true, true);
    attr.atomic_cap = AtomicCap::Hca;
    attr.phys_port_cnt = ports;
    attr
}

impl Node {
    /// The node is on InfiniBand.
    pub(crate) fn join(&mut self, subnet: Subnet) {
        self.subnet = Some(subnet);
        let node = self.id;
        for (port, own) in (1..).zip(&mut self.ports) {
            own.gids = port_gids(PortId { node, port }, true).into();
        }
    }

    /// `ibv_open_device`
    pub fn open_device(&mut self) -> Result<Context> {
        self.check_limit(
            Verb::OpenDevice,
            Limit::Files,
            "open files",
            self.files() + 1,
        )?;
        let max = MAX_CONTEXTS;
        self.check_room(Verb::OpenDevice, "contexts", self.contexts.len(), max)?;
        let node = self.id;
        let id = self.contexts.insert(|id| OpenDevice {
            handle: context_of(node, id),
            events: Events::default(),
            events_of: BTreeMap::new(),
            objects: BTreeSet::new(),
            unacked: 0,
        });
        Ok(context_of(self.id, id))
    }

    /// `ibv_close_device`: all that the context still has goes with it, as when the kernel cleans
    /// up behind a process.
    pub fn close_device(&mut self, context: Context) -> Result<()> {
        let index = self.find_context(Verb::CloseDevice, context)?;
        self.note_left(context);
        self.remove_qps_of(context);
        self.remove_srqs_of(context);
        self.remove_xrcds_of(context);
        self.remove_cqs_and_channels_of(context);
        self.remove_windows_of(context);
        self.remove_regions_of(context);
        self.remove_domains_of(context);
        let open = self.contexts.remove(index);
        self.queue_changed(EventQueue::Async(context), open.events.watched);
        self.news = true;
        Ok(())
    }

    /// An object was made in a context.
    pub(super) fn add_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(super::slot_of(context));
        open.objects.insert((object, index));
    }

    /// An object of a context is gone.
    pub(super) fn remove_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(super::slot_of(context));
        open.objects.remove(&(object, index));
    }

    /// The indices of the objects of a kind that were made in a context, in order.
    pub(super) fn objects(&self, context: Context, object: Object) -> Vec<u32> {
        let open = self.contexts.at(super::slot_of(context));
        let of_kind = open.objects.range((object, 0)..=(object, u32::MAX));
        of_kind.map(|(_, index)| *index).collect()
    }

    /// What may be asked of the device.
    pub fn capabilities(&self, context: Context) -> Result<Capabilities> {
        self.find_context(Verb::QueryDevice, context)?;
        let mut all = Capabilities::all() - Capabilities::PATH_MIG - Capabilities::TSO;
        if self.behavior.resize_errno != verbs_api::behavior::ResizeSupport::Supported {
            all.remove(Capabilities::RESIZE_CQ);
        }
        if !self.behavior.srq_resize {
            all.remove(Capabilities::SRQ_RESIZE);
        }
        Ok(all)
    }

    /// How the device answers where it has a choice.
    pub fn behavior(&self, context: Context) -> Result<Behavior> {
        self.find_context(Verb::QueryDevice, context)?;
        Ok(self.behavior)
    }

    pub(crate) fn guid(&self) -> u64 {
        self.attr.node_guid
    }

    /// `ibv_query_device`
    pub fn query_device(&self, context: Context) -> Result<DeviceAttr> {
        self.find_context(Verb::QueryDevice, context)?;
        let limit = self.limit(Limit::QueuePairs);
        let limit = limit.map_or(u32::MAX, |limit| limit.try_into().unwrap_or(u32::MAX));
        let mut attr = self.attr.clone();
        attr.max_qp = attr.max_qp.min(limit);
        Ok(attr)
    }

    /// `ibv_query_device_ex`. The device's clock counts nanoseconds.
    pub fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        let has = |capability| !self.lacks.contains(capability);
        let mut attr = DeviceAttrEx::default();
        attr.orig_attr = self.query_device(context)?;
        if has(Capabilities::WC_TIMESTAMP) {
            attr.completion_timestamp_mask = u64::MAX;
            attr.hca_core_clock = 1_000_000;
        }
        if has(Capabilities::CQ_MODERATION) {
            attr.cq_moderation = moderate::LIMITS;
        }
        Ok(attr)
    }

    /// `ibv_query_port`
    pub fn query_port(&self, context: Context, port: u8) -> Result<PortAttr> {
        self.find_context(Verb::QueryPort, context)?;
        let id = PortId {
            node: self.id,
            port,
        };
        let port = self.check_port(Verb::QueryPort, port)?;
        let mut attr = PortAttr::default();
        attr.state = match port.up {
            true => PortState::Active,
            false => PortState::Down,
        };
        (attr.max_mtu, attr.active_mtu) = (PORT_MTU, port.mtu);
        attr.gid_tbl_len = port.gids.len() as u32;
        attr.pkey_tbl_len = port.pkeys.len() as u16;
        attr.max_msg_sz = MAX_MSG_SZ;
        attr.lid = self.subnet.map_or(0, |subnet| subnet.lid(id));
        attr.link_layer = match self.subnet {
            Some(_) => LinkLayer::InfiniBand,
            None => LinkLayer::Ethernet,
        };
        attr.grh_required = self.subnet.is_none();
        attr.bad_pkey_cntr = port.bad_pkeys;
        attr.qkey_viol_cntr = port.bad_qkeys;
        Ok(attr)
    }

    /// `ibv_query_gid`
    pub fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid> {
        self.find_context(Verb::QueryGid, context)?;
        let gids = &self.check_port(Verb::QueryGid, port)?.gids;
        in_range(
            Verb::QueryGid,
            "index",
            i64::from(index),
            0,
            gids.len() as i64 - 1,
        )?;
        Ok(gids[index as usize])
    }

    /// `ibv_query_gid_ex`
    pub fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        let verb = Verb::QueryGidEx;
        self.find_context(verb, context)?;
        let gids = &self.check_port(verb, port)?.gids;
        let last = gids.len() as i64 - 1;
        in_range(verb, "index", i64::from(index), 0, last)?;
        let cause = || Cause::Text("the entry is empty".into());
        self.entry(port, index, gids[index as usize])
            .ok_or_else(|| Error::new(verb, ErrorKind::NoData, cause()))
    }

    /// `ibv_query_gid_table`
    pub fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize> {
        let verb = Verb::QueryGidTable;
        self.find_context(verb, context)?;
        let of_port = |(port, found): (u8, &Port)| {
            let gids = (0..).zip(found.gids.clone());
            gids.filter_map(move |(index, gid)| self.entry(port, index, gid))
        };
        let all: Vec<_> = (1..).zip(&self.ports).flat_map(of_port).collect();
        let Some(room) = entries.get_mut(..all.len()) else {
            return Err(invalid(
                verb,
                "entries",
                "has no room for all that there are",
            ));
        };
        room.copy_from_slice(&all);
        Ok(all.len())
    }

    /// An entry of a GID table that is not empty.
    fn entry(&self, port: u8, gid_index: u32, gid: Gid) -> Option<GidEntry> {
        let mut entry = GidEntry::default();
        (entry.gid, entry.gid_index, entry.port_num) = (gid, gid_index, port.into());
        entry.gid_type = match self.subnet {
            Some(_) => GidType::Ib,
            None => GidType::RoceV2,
        };
        (gid != Gid::default()).then_some(entry)
    }

    /// `ibv_query_pkey`
    pub fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16> {
        self.find_context(Verb::QueryPkey, context)?;
        let pkeys = &self.check_port(Verb::QueryPkey, port)?.pkeys;
        in_range(
            Verb::QueryPkey,
            "index",
            i64::from(index),
            0,
            pkeys.len() as i64 - 1,
        )?;
        Ok(pkeys[usize::from(index)])
    }

    pub(super) fn check_port(&self, verb: Verb, port: u8) -> Result<&Port> {
        in_range(
            verb,
            "port_num",
            i64::from(port),
            1,
            self.ports.len() as i64,
        )?;
        Ok(&self.ports[usize::from(port) - 1])
    }

    /// A port by a number that has been checked.
    pub(super) fn port(&self, port: u8) -> &Port {
        &self.ports[usize::from(port) - 1]
    }

    pub(super) fn port_mut(&mut self, port: u8) -> &mut Port {
        &mut self.ports[usize::from(port) - 1]
    }

    /// Brings a port up or down; every context learns of it (ASYNC-09, ASYNC-13).
    pub(crate) fn set_port(&mut self, context: Context, port: u8, up: bool) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        self.check_port(Verb::Lab, port)?;
        self.switch_port(port, up);
        Ok(())
    }

    /// Brings a port up or down that there is.
    pub(crate) fn switch_port(&mut self, port: u8, up: bool) {
        let was_up = std::mem::replace(&mut self.port_mut(port).up, up);
        if was_up != up {
            let event_type = if up {
                AsyncEventType::PortActive
            } else {
                AsyncEventType::PortErr
            };
            self.tell_all(port, event_type);
        }
    }

    /// Sets the active MTU of a port. QPs that are connected keep theirs.
    pub(crate) fn set_mtu(&mut self, context: Context, port: u8, mtu: Mtu) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        self.check_port(Verb::Lab, port)?;
        if mtu
            .bytes()
            .is_none_or(|bytes| Some(bytes) > PORT_MTU.bytes())
        {
            return Err(invalid(Verb::Lab, "mtu", "is none that a port can have"));
        }
        self.port_mut(port).mtu = mtu;
        Ok(())
    }

    /// Every context learns of an event of a port (ASYNC-13).
    pub(super) fn tell_all(&mut self, port: u8, event_type: AsyncEventType) {
        let element = Element::Port(port);
        for index in self.contexts.indices(|_| true) {
            self.queue_async(index, AsyncEvent::new(event_type, element));
        }
    }

    /// Raises an event about an object of a context.
    pub(super) fn raise(&mut self, context: Context, event_type: AsyncEventType, element: Element) {
        let event = AsyncEvent::new(event_type, element);
        self.queue_async(super::slot_of(context), event);
    }

    pub(super) fn queue_async(&mut self, index: u32, event: AsyncEvent) {
        let open = self.contexts.at_mut(index);
        let number = open.events.push(event);
        if !matches!(event.element, Element::Device | Element::Port(_)) {
            open.events_of
                .entry(event.element)
                .or_default()
                .push(number);
        }
        self.async_changed(index);
        self.news = true;
        self.note(TraceEvent::Async(event));
    }

    /// `ibv_get_async_event` that does not wait.
    pub fn get_async_event(&mut self, context: Context) -> Result<AsyncEvent> {
        let index = self.find_context(Verb::GetAsyncEvent, context)?;
        let open = self.contexts.at_mut(index);
        let Some(event) = open.events.pop() else {
            return Err(Error::new(
                Verb::GetAsyncEvent,
                ErrorKind::WouldBlock,
                Cause::NoEvent,
            ));
        };
        if let Entry::Occupied(mut of) = open.events_of.entry(event.element) {
            of.get_mut().remove(0);
            if of.get().is_empty() {
                of.remove();
            }
        }
        self.async_changed(index);
        let open = self.contexts.at_mut(index);
        match event.element {
            Element::Cq(cq) => {
                let index = Self::find(&self.cqs, Verb::GetAsyncEvent, cq)?;
                self.cqs.at_mut(index).async_unacked += 1;
            }
            Element::Qp(qp) => *self.qp_unacked(Verb::GetAsyncEvent, qp)? += 1,
            Element::Srq(srq) => {
                let index = Self::find(&self.srqs, Verb::GetAsyncEvent, srq)?;
                self.srqs.at_mut(index).async_unacked += 1;
            }
            _ => open.unacked += 1,
        }
        Ok(event)
    }

    /// `ibv_ack_async_event`
    pub fn ack_async_event(&mut self, context: Context, event: &AsyncEvent) -> Result<()> {
        let verb = Verb::AckAsyncEvent;
        let index = self.find_context(verb, context)?;
        let unacked = match event.element {
            Element::Cq(cq) => {
                let index = Self::find_in(&self.cqs, verb, context, cq)?;
                &mut self.cqs.at_mut(index).async_unacked
            }
            Element::Qp(qp) => {
                self.find_qp(verb, qp)?;
                same_context(verb, context, qp)?;
                self.qp_unacked(verb, qp)?
            }
            Element::Srq(srq) => {
                let index = Self::find_in(&self.srqs, verb, context, srq)?;
                &mut self.srqs.at_mut(index).async_unacked
            }
            Element::Device | Element::Port(_) => &mut self.contexts.at_mut(index).unacked,
            _ => {
                return Err(invalid(
                    verb,
                    "element",
                    "is of a kind this device does not have",
                ));
            }
        };
        if *unacked == 0 {
            let text = format!("no event of {} waits to be acknowledged", event.element);
            return Err(Error::new(
                verb,
                ErrorKind::Usage,
                Cause::Usage(text.into()),
            ));
        }
        *unacked -= 1;
        self.news = true;
        Ok(())
    }

    /// Discards the unread events of an object that goes away (ASYNC-06).
    pub(super) fn discard_async(&mut self, context: Context, element: Element) {
        let index = super::slot_of(context);
        let open = self.contexts.at_mut(index);
        if let Some(numbers) = open.events_of.remove(&element) {
            for number in numbers {
                open.events.take_out(number);
            }
            self.async_changed(index);
        }
    }

    fn async_changed(&mut self, index: u32) {
        let open = self.contexts.at(index);
        let (of, watched) = (EventQueue::Async(open.handle), open.events.watched);
        self.queue_changed(of, watched);
    }
}
