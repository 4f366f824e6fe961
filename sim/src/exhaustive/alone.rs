//! A node without a fabric, for searches that drive one by hand.

use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::behavior::Behavior;
use verbs_api::{
    Access, Arm, AsyncEvent, CompChannel, Context, Cq, CqAttr, CqEvent, CqInit, Gid, Mr, MrAttr,
    MrInit, Pd, PostError, Qp, QpAttr, QpAttrMask, QpInit, RecvWr, Result, SendWr, Verb, Wc,
};

use crate::config::SimConfig;
use crate::device::{Answer, gids};
use crate::memory::{Late, Memory};
use crate::node::Node;

/// A node with one port and without a fabric. Its packets reach only itself, when it
/// [runs](Self::run). Its time does not advance.
#[derive(Clone, Debug)]
pub(super) struct Alone(Node);

/// Verbs like those of the trait, but they take the node by reference and never wait.
macro_rules! verbs {
    (|$node:ident| $( $verb:ident($($argument:ident: $type:ty),*) -> $result:ty: $call:expr; )*) => { $(
        pub(super) fn $verb(&mut self, $($argument: $type),*) -> $result {
            let $node = &mut self.0;
            $call.by(Verb::Lab)
        }
    )* };
}

impl Alone {
    /// Creates a node with this behavior.
    pub(super) fn new(behavior: Behavior, seed: u64) -> Self {
        let config = SimConfig::new().behavior(behavior).seed(seed);
        let memory = Arc::new(Mutex::new(Memory::new(Late::of(&config))));
        let gids = Arc::new(gids(1, 1, false));
        Self(Node::new(0, &config, gids, memory))
    }

    /// Delivers its packets to itself until none are left. Packets to other nodes are lost.
    pub(super) fn run(&mut self) {
        loop {
            while let Some(packet) = self.0.device.egress.pop() {
                // There is no other node that could receive it.
                if packet.route.to.is_some_and(|to| to.node == 0) {
                    _ = self.0.handle_packet(&packet);
                }
            }
            if self.0.device.turns.waiting.is_empty() {
                return;
            }
            for qp in std::mem::take(&mut self.0.device.turns.waiting) {
                self.0.give_turn(qp);
            }
        }
    }

    verbs! { |node|
        open_device() -> Result<Context>: node.device.open_device();
        query_gid(context: Context, port: u8, index: u32) -> Result<Gid>:
            node.device.base.check_context(context).and_then(|()| node.device.ports.gid(port, index));
        alloc_pd(context: Context) -> Result<Pd>:
            node.device.alloc_pd(context);
        alloc_mr(pd: Pd, length: usize, access: Access) -> Result<Mr>:
            node.device.alloc_mr(pd, &MrInit::new(length, access));
        query_mr(mr: Mr) -> Result<MrAttr>: node.device.query_mr(mr);
        create_comp_channel(context: Context) -> Result<CompChannel>:
            node.device.cqs.create_comp_channel(&mut node.device.base, context);
        get_cq_event(channel: CompChannel) -> Result<CqEvent>: node.device.cqs.get_cq_event(&mut node.device.base, channel);
        create_cq(context: Context, init: &CqInit) -> Result<Cq>:
            node.device.create_cq(context, init, None);
        query_cq(cq: Cq) -> Result<CqAttr>: node.device.query_cq(cq);
        resize_cq(cq: Cq, cqe: i32) -> Result<()>: node.device.resize_cq(cq, cqe);
        req_notify_cq(cq: Cq, arm: Arm) -> Result<()>: node.device.req_notify_cq(cq, arm);
        ack_cq_events(cq: Cq, nevents: u32) -> Result<()>: node.device.ack_cq_events(cq, nevents);
        poll_cq(cq: Cq, wc: &mut [Wc]) -> Result<usize>: node.poll_cq(cq, wc);
        create_qp(pd: Pd, init: &QpInit) -> Result<Qp>: node.create_qp(pd, init);
        qp_num(qp: Qp) -> Result<u32>: node.qp_num(qp);
        modify_qp(qp: Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<()>:
            node.modify_qp(qp, attr, mask, None);
        post_send(qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError>: {
            node.push_sends(qp, list).and_then(|(index, posted)| {
                node.qps.at_mut(index).run_sends(&mut node.device);
                posted
            })
        };
        post_recv(qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError>: node.post_recv(qp, list);
        get_async_event(context: Context) -> Result<AsyncEvent>:
            node.device.base.get_async_event(context);
    }
}
