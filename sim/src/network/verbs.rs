//! What verbs do to the sockets of a simulation on a network.

use std::io;
use std::os::fd::BorrowedFd;

use verbs_api::{Context, Error, ErrorKind, Gid, Handle, Qp, Result, Verb};

use crate::device::node_of;
use crate::runtime::Runtime;
use crate::verbs::Sim;

impl Sim {
    /// Takes what has come from other processes, for a program that waits for a descriptor: an answer is often soon
    /// there. It does so while this is true, and sleeps then. `looks` is 0 at first.
    pub fn look_for_packets(&self, looks: &mut u32) -> bool {
        let again = self.runtime.polls_again(*looks);
        if again {
            self.runtime.poll_again(looks);
        }
        again
    }

    /// The descriptors that a child after `fork` is to close: with them it would keep the addresses of its parent.
    pub fn each_network_descriptor(&self, visit: impl FnMut(BorrowedFd<'_>)) {
        if let Some(sockets) = &self.runtime.sockets {
            sockets.each_descriptor(visit);
        }
    }

    /// Ends the connections of ids, and sends what has left, before a process ends. What cannot be sent within a second is lost; nothing waits for a lock,
    /// so that a signal handler may end the process.
    pub fn send_waiting(&self) {
        self.runtime.yield_until(|| self.runtime.send_rest());
    }

    /// Gives the ports of a device their addresses, when it is first opened.
    pub(crate) fn take_addresses(&self, verb: Verb, node: u32) -> Result<()> {
        let Some(sockets) = &self.runtime.sockets else {
            return Ok(());
        };
        let opened = sockets.open(node, |port, socket, tenant| {
            let (address, mtu) = (socket.address(), socket.mtu());
            self.runtime.with(|fabric| {
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
        let Some(sockets) = &self.runtime.sockets else {
            return;
        };
        let node = node_of(context);
        if node >= self.runtime.config.nodes {
            return;
        }
        let remote_qps = self.runtime.with(|fabric| {
            let now = fabric.node(node).device.base.remote_qps;
            let gateway = fabric.gateway.as_mut();
            let all = gateway.map_or(0, |gateway| gateway.count_remote_qps(node, now));
            sockets.set_remote_qps(all > 0);
            all
        });
        if let Some(receiver) = self.receiver.as_ref().filter(|_| remote_qps > 0) {
            receiver.start();
        }
        if may_leave_groups {
            sockets.leave_all_but(|| self.runtime.with(|fabric| fabric.groups()));
        }
    }

    /// Ids of rdma_cm that packets of other processes may be for have come or gone.
    pub(crate) fn update_managed(&self) {
        let Some(sockets) = &self.runtime.sockets else {
            return;
        };
        let remote_qps = self.runtime.with(|fabric| {
            let now = fabric.manage(|manager, _| manager.expecting());
            let gateway = fabric.gateway.as_mut();
            let all = gateway.map_or(0, |gateway| {
                gateway.count_remote_qps(self.runtime.config.nodes, now)
            });
            sockets.set_remote_qps(all > 0);
            all
        });
        if let Some(receiver) = self.receiver.as_ref().filter(|_| remote_qps > 0) {
            receiver.start();
        }
    }

    /// A QP was attached to a group: it is detached again if nothing can come in for the group.
    pub(crate) fn join_group(&self, qp: Qp, group: Gid, lid: u16) -> Result<()> {
        let Some(sockets) = &self.runtime.sockets else {
            return Ok(());
        };
        let node = node_of(qp.context());
        sockets.join(group, node).map_err(|error| {
            let _ = self
                .runtime
                .with(|fabric| fabric.work(node, |node| node.detach_mcast(qp, group, lid)));
            refused(Verb::AttachMcast, &error)
        })
    }
}

/// The program ends. While no queue pair is ready to receive, nobody reads what comes: it is looked at once, for a
/// diagnosis.
pub(crate) fn note_unread(runtime: &Runtime) {
    /// Of each socket, as many datagrams or trains of them.
    const MOST: usize = 64;
    let unread = runtime.sockets.as_ref();
    let Some(sockets) = unread.filter(|sockets| !sockets.has_remote_qps()) else {
        return;
    };
    for _ in 0..MOST {
        sockets.read(|source, address, came| {
            runtime.with(|fabric| fabric.note_unread(source, address, came));
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
