//! What verbs do to the sockets of a simulation on a network.

use std::io;
use std::os::fd::BorrowedFd;

use verbs_api::{Context, Error, ErrorKind, Gid, Handle, Qp, Result, Verb};

use crate::device::node_of;
use crate::runtime::World;
use crate::verbs::Sim;

impl Sim {
    /// Takes what has come from other processes, for a program that waits for a descriptor: an answer is often soon
    /// there. It does so while this is true, and sleeps then. `looks` is 0 at first.
    pub fn look_for_packets(&self, looks: &mut u32) -> bool {
        let again = self.world.polls_again(*looks);
        if again {
            self.world.poll_again(looks);
        }
        again
    }

    /// The descriptors that a child after `fork` is to close: with them it would keep the addresses of its parent.
    pub fn each_network_descriptor(&self, visit: impl FnMut(BorrowedFd<'_>)) {
        if let Some(sockets) = &self.world.sockets {
            sockets.each_descriptor(visit);
        }
    }

    /// Ends the connections of ids, and sends what has left, before a process ends. What cannot be sent within a second is lost; nothing waits for a lock,
    /// so that a signal handler may end the process.
    pub fn send_waiting(&self) {
        self.world.yield_until(|| self.world.send_rest());
    }

    /// Gives the ports of a device their addresses, when it is first opened.
    pub(crate) fn take_addresses(&self, verb: Verb, node: u32) -> Result<()> {
        let Some(sockets) = &self.world.sockets else {
            return Ok(());
        };
        let opened = sockets.open(node, |port, socket, tenant| {
            let (address, mtu) = (socket.address(), socket.mtu());
            self.world.with(|fabric| {
                fabric.set_address(port, address, mtu, socket.segments());
                if let Some(number) = tenant {
                    fabric.become_tenant(port.node, number);
                }
            });
            // What is for other tenants may come here.
            if let Some(receiver) = self.receiver.as_ref().filter(|_| tenant.is_some()) {
                receiver.start();
            }
        });
        opened.map_err(|error| refused(verb, &error))
    }

    /// Something has come or gone that packets of other processes may be for, perhaps a member of a group.
    pub(crate) fn update_receiver(&self, context: Context, may_leave_groups: bool) {
        let Some(sockets) = &self.world.sockets else {
            return;
        };
        let node = node_of(context);
        if node >= self.world.config.nodes {
            return;
        }
        let listeners = self.world.with(|fabric| {
            let now = fabric.node(node).device.base.listeners;
            let gateway = fabric.gateway.as_mut();
            let all = gateway.map_or(0, |gateway| gateway.count_listeners(node, now));
            sockets.set_listeners(all > 0);
            all
        });
        if let Some(receiver) = self.receiver.as_ref().filter(|_| listeners > 0) {
            receiver.start();
        }
        if may_leave_groups {
            sockets.leave_all_but(|| self.world.with(|fabric| fabric.groups()));
        }
    }

    /// Ids of rdma_cm that packets of other processes may be for have come or gone.
    pub(crate) fn update_managed(&self) {
        let Some(sockets) = &self.world.sockets else {
            return;
        };
        let listeners = self.world.with(|fabric| {
            let now = fabric.manage(|manager, _| manager.expecting());
            let gateway = fabric.gateway.as_mut();
            let all = gateway.map_or(0, |gateway| {
                gateway.count_listeners(self.world.config.nodes, now)
            });
            sockets.set_listeners(all > 0);
            all
        });
        if let Some(receiver) = self.receiver.as_ref().filter(|_| listeners > 0) {
            receiver.start();
        }
    }

    /// A QP was attached to a group: it is detached again if nothing can come in for the group.
    pub(crate) fn join_group(&self, qp: Qp, group: Gid, lid: u16) -> Result<()> {
        let Some(sockets) = &self.world.sockets else {
            return Ok(());
        };
        let node = node_of(qp.context());
        sockets.join(group, node).map_err(|error| {
            let _ = self
                .world
                .with(|fabric| fabric.work(node, |node| node.detach_mcast(qp, group, lid)));
            refused(Verb::AttachMcast, &error)
        })
    }
}

/// The program ends. While no queue pair is ready to receive, nobody reads what comes: it is looked at once, for a
/// diagnosis.
pub(crate) fn note_unread(world: &World) {
    /// Of each socket, as many datagrams or trains of them.
    const MOST: usize = 64;
    let unread = world.sockets.as_ref();
    let Some(sockets) = unread.filter(|sockets| !sockets.has_listeners()) else {
        return;
    };
    for _ in 0..MOST {
        sockets.read(|entrance, address, came| {
            world.with(|fabric| fabric.note_unread(entrance, address, came));
        });
    }
}

fn refused(verb: Verb, error: &io::Error) -> Error {
    let kind = match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::AddrInUse, _) => ErrorKind::Busy,
        (io::ErrorKind::AddrNotAvailable, _) => ErrorKind::NoDevice,
        (_, Some(raw)) => Error::from_raw(verb, raw).kind(),
        _ => ErrorKind::Io,
    };
    Error::new(verb, kind, verbs_api::Cause::Text(error.to_string().into()))
}
