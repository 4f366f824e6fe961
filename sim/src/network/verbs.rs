//! The effects of verbs on the sockets of a simulation on a network.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use verbs_api::{Context, Error, ErrorKind, Gid, Handle, Qp, Result, Verb};

use crate::device::node_of;
use crate::fabric::Fabric;
use crate::runtime::Runtime;
use crate::verbs::Sim;

impl Sim {
    /// Reads received packets for a program that is about to wait for a descriptor, because an
    /// answer often arrives soon. Call it until it returns false, then sleep. `looks` starts at 0.
    pub fn look_for_packets(&self, looks: &mut u32) -> bool {
        let again = self.runtime.polls_again(*looks);
        if again {
            self.runtime.poll_again(looks);
        }
        again
    }

    /// Visits the descriptors that a child must close after `fork`. They would keep its parent's
    /// addresses in use.
    pub fn each_network_descriptor(&self, visit: impl FnMut(BorrowedFd<'_>)) {
        if let Some(sockets) = &self.runtime.sockets {
            sockets.each_descriptor(visit);
        }
    }

    /// Ends the connections of ids, and sends pending output, before a process ends. Packets that
    /// cannot be sent within a second are lost. It waits for no lock, so a signal handler may call
    /// it.
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
            // Packets for other tenants may arrive here, even if no queue pair of this process
            // receives.
            if let Some(receiver) = self.receiver.as_ref().filter(|_| tenant.is_some()) {
                receiver.start();
            }
        });
        opened.map_err(|error| refused(verb, &error))
    }

    /// Updates the receiver after an object that packets of other processes may be addressed to was
    /// created or destroyed, possibly a member of a group.
    pub(crate) fn update_receiver(&self, context: Context, may_leave_groups: bool) {
        let node = node_of(context);
        if node >= self.runtime.config.nodes {
            return;
        }
        self.count_remote(node, |fabric| fabric.node(node).device.base.remote_qps);
        if let Some(sockets) = self.runtime.sockets.as_ref().filter(|_| may_leave_groups) {
            sockets.leave_all_but(|| self.runtime.with(|fabric| fabric.groups()));
        }
    }

    /// Updates the receiver after ids of rdma_cm that packets of other processes may be addressed
    /// to were created or destroyed.
    pub(crate) fn update_managed(&self) {
        self.count_remote(self.runtime.config.nodes, |fabric| {
            fabric.cm_bridge.manager.expecting()
        });
    }

    /// Counts the objects of a place that packets of other processes may be addressed to: those of
    /// a node, or of the connection manager after the last node. The first one starts the receiver.
    fn count_remote(&self, place: u32, count: impl FnOnce(&mut Fabric) -> u32) {
        let Some(sockets) = &self.runtime.sockets else {
            return;
        };
        let remote_qps = self.runtime.with(|fabric| {
            let now = count(fabric);
            let gateway = fabric.gateway.as_mut();
            let all = gateway.map_or(0, |gateway| gateway.count_remote_qps(place, now));
            sockets.has_remote_qps.store(all > 0, Ordering::Relaxed);
            all
        });
        if let Some(receiver) = self.receiver.as_ref().filter(|_| remote_qps > 0) {
            receiver.start();
        }
    }

    /// Joins the group of an attached queue pair. Detaches it again if the sockets cannot receive
    /// packets for the group.
    pub(crate) fn join_group(&self, qp: Qp, group: Gid, lid: u16) -> Result<()> {
        let Some(sockets) = &self.runtime.sockets else {
            return Ok(());
        };
        let node = node_of(qp.context());
        sockets.join(group, node).map_err(|error| {
            // The caller learns of the socket's error; the detach only undoes the attach.
            let _ = self
                .runtime
                .with(|fabric| fabric.work(node, |node| node.detach_mcast(qp, group, lid)));
            refused(Verb::AttachMcast, &error)
        })
    }
}

impl Runtime {
    /// Reads unread packets at the end of a program, for a diagnosis. Sockets are unread while no
    /// queue pair is ready to receive.
    pub(crate) fn note_unread(&self) {
        /// Datagrams, or trains of datagrams, read from each socket.
        const MOST: usize = 64;
        let unread = self.sockets.as_ref();
        let Some(sockets) = unread.filter(|sockets| !sockets.has_remote_qps()) else {
            return;
        };
        for _ in 0..MOST {
            let mut has_read = false;
            sockets.read(|source, address, received| {
                has_read = true;
                self.with(|fabric| fabric.note_unread(source, address, received));
            });
            if !has_read {
                return;
            }
        }
    }
}

/// The error of a verb for one of the system.
pub(super) fn refused(verb: Verb, error: &io::Error) -> Error {
    let kind = match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::AddrInUse, _) => ErrorKind::Busy,
        (io::ErrorKind::AddrNotAvailable, _) => ErrorKind::NoDevice,
        (_, Some(raw)) => Error::from_raw(verb, raw).kind(),
        _ => ErrorKind::Io,
    };
    Error::new(verb, kind, verbs_api::Cause::Text(error.to_string().into()))
}
