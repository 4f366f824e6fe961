//! The connection manager: rdma_cm's ids over CM messages, as a plain struct.
//!
//! Calls and messages go in; messages, events and deadlines come out. It has no lock, no clock and
//! no I/O. The work of librdmacm, mostly on queue pairs, is in `verbs`.
//!
//! | file | holds |
//! |---|---|
//! | `id`, `ids`, `bind`, `resolve` | an id; all ids; their addresses and ports; their destinations |
//! | `conn`, `message`, `numbers` | a connection and its timeouts; its messages; how messages find it |
//! | `calls`, `arrival` | its inputs: the program, the other side |
//! | `event_channel` | channels and their events |
//! | `attr`, `ece` | attributes of a connection's queue pair, and its options |
//! | `multicast` | multicast |
//! | `pending` | outstanding steps and unread events, for a diagnosis |
//! | `host` | its view of the machine |

mod arrival;
mod attr;
mod bind;
mod calls;
mod conn;
mod ece;
mod event_channel;
mod host;
mod id;
mod ids;
mod message;
mod multicast;
pub(crate) mod numbers;
#[cfg_attr(any(), mutants::skip)] // texts
mod pending;
mod resolve;

use core::time::Duration;

use verbs_api::cm::{CmChannel, CmEvent, CmEventType, CmId, CmIdAttr, CmParam, PortSpace};
use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::{BadHandle, Context, Handle, Object, Pd};
use verbs_roce::mad::CmMessage;

use crate::device::{Result, Wakeup, bad_handle, check_acknowledged, invalid};
use crate::hosts::HostNodes;
use crate::rng::{Purpose, Random};
use crate::time::{Time, Timers};

use conn::Conn;
use event_channel::{Channels, owner_of};
use host::Local;
pub(crate) use host::{Exchange, Host, Peer};
pub(crate) use id::OwnQp;
use id::{Id, State};
use ids::Ids;
use numbers::Numbers;
pub(crate) use pending::{ended_by_peer, is_connected, is_idle, no_event, unread, users_of_busy};
pub(crate) use resolve::Destination;

/// The connection manager of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    pub(crate) channels: Channels,
    pub(crate) ids: Ids,
    /// A context and a domain of each node, for the ids bound to it. Empty until a channel is
    /// created.
    pub(crate) contexts: Vec<(Context, Pd)>,
    timeout: Duration,
    /// The time of the next call.
    pub(crate) now: Time,
    /// The call site of the next call.
    pub(crate) site: Option<Site>,
    pub(crate) numbers: Numbers,
    timers: Timers,
    /// Messages to send, oldest first.
    pub(crate) egress: Vec<(Exchange, CmMessage)>,
    /// Events for the trace, with their nodes.
    pub(crate) notes: Option<Vec<(u32, TraceEvent)>>,
}

impl Manager {
    /// A manager whose messages are repeated after `timeout` without an answer.
    pub(crate) fn new(seed: u64, timeout: Duration, traced: bool) -> Self {
        let mut random = Random::new(seed, Purpose::Cm, 0);
        Self {
            channels: Channels::default(),
            contexts: Vec::new(),
            timeout,
            now: Time::ZERO,
            site: None,
            numbers: Numbers::new(&mut random),
            ids: Ids::new(random),
            timers: Timers::default(),
            egress: Vec::new(),
            notes: traced.then(Vec::new),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn next_deadline(&mut self) -> Option<Time> {
        self.timers.first().map(|(at, _)| at)
    }

    /// The number of ids that may receive messages of other processes.
    pub(crate) fn expecting(&self) -> u32 {
        self.ids.listening + self.numbers.ours.len() as u32
    }

    /// `rdma_create_id`
    pub(crate) fn create_id(
        &mut self,
        channel: CmChannel,
        context: u64,
        ps: PortSpace,
    ) -> Result<CmId> {
        let channel = self.channels.find(channel)?;
        if let PortSpace::Unknown(_) = ps {
            return Err(invalid("ps", "is not a port space"));
        }
        let id = self.add(channel, context, ps);
        self.ids.at_mut(id.index()).made_at = self.site;
        Ok(id)
    }

    fn add(&mut self, channel: u32, context: u64, ps: PortSpace) -> CmId {
        self.channels.count_id(channel, true);
        let id = self.ids.table.insert(|id| Id {
            handle: CmId::from_parts(id.index, id.generation),
            channel,
            context,
            home: self.channels.home(channel),
            ps,
            ..Id::default()
        });
        self.ids.at(id.index).handle
    }

    /// The fields of `struct rdma_cm_id`.
    pub(crate) fn query_id(&self, id: CmId) -> Result<CmIdAttr> {
        let id = self.ids.at(self.ids.find(id)?);
        let mut attr = id.attr();
        attr.channel = self.channels.handle(id.channel);
        let of_node = |local: Local| self.contexts.get(local.id.node as usize);
        (attr.verbs, attr.pd) = id.port.and_then(of_node).copied().unzip();
        Ok(attr)
    }

    /// `rdma_destroy_id`. Returns `WouldBlock` while events are not acknowledged.
    pub(crate) fn destroy_id(&mut self, id: CmId) -> Result<()> {
        let index = self.ids.find(id)?;
        check_acknowledged(Object::CmId, self.ids.at(index).unacked)?;
        self.remove(index);
        Ok(())
    }

    /// Removes an id. Wakes the threads that wait for it, and refuses its unread requests.
    fn remove(&mut self, index: u32) {
        for event in self.take_unread(index) {
            // The program never learns of the request's id, so only this can remove it.
            if event.event == CmEventType::ConnectRequest {
                self.remove(event.id.index());
            }
        }
        self.end(index);
        self.ids.unbind(index);
        self.timers.set(index, None);
        self.ids.set_state(index, State::Removed);
        let id = self.ids.table.remove(index);
        self.channels.count_id(id.channel, false);
        // Another thread may wait to destroy the same id.
        self.channels.wakeups.add(Wakeup::CmAcknowledged(id.handle));
    }

    /// `rdma_migrate_id`. Returns `WouldBlock` while events are not acknowledged.
    pub(crate) fn migrate_id(&mut self, id: CmId, channel: CmChannel) -> Result<()> {
        let index = self.ids.find(id)?;
        let to = self.channels.find(channel)?;
        check_acknowledged(Object::CmId, self.ids.at(index).unacked)?;
        let events = self.take_unread(index);
        // The ids of unread requests are on the listener's channel.
        let requests = events
            .iter()
            .filter(|event| event.event == CmEventType::ConnectRequest);
        let moving = requests.map(|event| event.id.index()).chain([index]);
        for index in moving.collect::<Vec<_>>() {
            let channel = &mut self.ids.at_mut(index).channel;
            self.channels
                .count_id(core::mem::replace(channel, to), false);
            self.channels.count_id(to, true);
        }
        for event in events {
            self.queue(index, event);
        }
        Ok(())
    }

    /// Notifies the ids of a device that was removed.
    pub(crate) fn device_gone(&mut self, node: u32) {
        let is_of = |id: &Id| id.port.is_some_and(|local| local.id.node == node);
        for index in self.ids.table.indices(is_of) {
            // A removed device sends nothing, so peers notice by their timeouts.
            self.forget_conn(index);
            self.timers.set(index, None);
            self.ids.set_state(index, State::Removed);
            self.raise(index, CmEventType::DeviceRemoval, 0);
        }
    }

    /// Removes the ids and channels of a host, and the ids on its ports. Peers notice by their
    /// timeouts.
    #[cfg_attr(any(), mutants::skip)] // controls of tests
    pub(crate) fn crash(&mut self, host: HostNodes) {
        let is_of = |id: &Id| {
            let port = id.port.map(|local| local.id);
            id.home == Some(host) || port.is_some_and(|port| host.contains(port.node))
        };
        let indices = self.ids.table.indices(is_of);
        let handles: Vec<_> = indices
            .iter()
            .map(|index| self.ids.at(*index).handle)
            .collect();
        for index in indices {
            // What is removed without a connection tells the peer nothing.
            self.forget_conn(index);
        }
        for id in handles {
            // A listener takes its unread requests with it.
            if let Ok(index) = self.ids.find(id) {
                self.remove(index);
            }
            self.ids.lost.add(id);
        }
        self.channels.crash(host, &self.ids.lost);
    }

    /// Gives an id a connection.
    fn set_conn(&mut self, index: u32, conn: Conn) {
        self.forget_conn(index);
        self.numbers.add(index, &conn);
        self.ids.at_mut(index).conn = Some(Box::new(conn));
    }

    /// Unregisters the numbers of an id's connection, so messages no longer find it.
    fn forget_numbers(&mut self, index: u32) {
        if let Some(conn) = &self.ids.at(index).conn {
            self.numbers.remove(index, conn);
        }
    }

    fn forget_conn(&mut self, index: u32) {
        self.forget_numbers(index);
        self.ids.at_mut(index).conn = None;
    }

    /// Queues an event of an id.
    fn raise(&mut self, index: u32, event: CmEventType, status: i32) {
        self.raise_with(index, event, status, CmParam::None);
    }

    fn raise_with(&mut self, index: u32, event: CmEventType, status: i32, param: CmParam) {
        let mut event = CmEvent::new(self.ids.at(index).handle, event, 0);
        (event.status, event.param) = (status, param);
        self.note(index, &event);
        self.queue(index, event);
    }

    /// Queues a request for a listener.
    fn raise_request(&mut self, listener: u32, child: u32, param: CmParam) {
        let kind = CmEventType::ConnectRequest;
        let mut event = CmEvent::new(self.ids.at(child).handle, kind, 0);
        event.listen_id = Some(self.ids.at(listener).handle);
        event.param = param;
        self.note(child, &event);
        self.queue(listener, event);
    }

    #[cfg_attr(any(), mutants::skip)] // texts
    fn note(&mut self, index: u32, event: &CmEvent) {
        if let Some(notes) = &mut self.notes {
            let id = self.ids.at(index);
            let channel = self.channels.handle(id.channel);
            let node = id.port.map_or(0, |local| local.id.node);
            let event = event.to_string();
            notes.push((node, TraceEvent::CmEvent { channel, event }));
        }
    }

    /// Queues an event that counts for this id.
    fn queue(&mut self, owner: u32, event: CmEvent) {
        let id = self.ids.at_mut(owner);
        id.unread.push_back(self.channels.push(id.channel, event));
    }

    /// Takes the oldest event of a channel, if there is one.
    pub(crate) fn get_cm_event(&mut self, channel: CmChannel) -> Result<CmEvent> {
        let event = self.channels.pop(channel, self.site)?;
        let id = self.ids.at_mut(event_channel::owner_of(&event).index());
        id.unread.pop_front();
        id.unacked += 1;
        id.last_read = Some((event.event, self.site));
        if event.event == CmEventType::ConnectRequest
            && let Ok(child) = self.ids.find(event.id)
        {
            self.ids.at_mut(child).made_at = self.site;
        }
        Ok(event)
    }

    /// `rdma_write_cm_event`
    pub(crate) fn write_event(
        &mut self,
        id: CmId,
        event: CmEventType,
        status: i32,
        arg: u64,
    ) -> Result<()> {
        let index = self.ids.find(id)?;
        if !matches!(event, CmEventType::User | CmEventType::AddrinfoResolved) {
            return Err(invalid("event", "is not one that programs write"));
        }
        self.raise_with(index, event, status, CmParam::Arg(arg));
        Ok(())
    }

    /// `rdma_ack_cm_event`
    pub(crate) fn ack_cm_event(&mut self, event: &CmEvent) -> Result<()> {
        if self.ids.lost.has(owner_of(event)) {
            return Err(bad_handle(Object::CmId, BadHandle::Crashed));
        }
        let owner = self.channels.acknowledge(event)?;
        self.ids.at_mut(owner.index()).unacked -= 1;
        Ok(())
    }

    /// Removes the unread events of an id from its channel.
    fn take_unread(&mut self, index: u32) -> Vec<CmEvent> {
        let id = self.ids.at_mut(index);
        let (channel, numbers) = (id.channel, core::mem::take(&mut id.unread));
        let numbers = numbers.into_iter();
        let events = numbers.filter_map(|number| self.channels.take_out(channel, number));
        events.collect()
    }
}
