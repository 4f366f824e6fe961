//! A program as Rust code, to paste into a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::call::{Call, Key, Number, QpMake, Sge};
use super::code::{access_code, error, link_code};
use super::outcome::{Outcome, Seen};
use super::run::{DM_LOG_ALIGN, DMABUF_AT};
use super::{Pace, Program};

/// The program as a test called `name`: the calls, and that they give what they gave in `outcome`.
///
/// `simulation` is the code of what it ran on, a `Sim` or a [`Checked`](crate::Checked) one, such
/// as `Sim::new(SimConfig::new().nodes(4))`; what has to be done to that before the program starts,
/// such as faults, comes as further statements behind a semicolon. `nodes` is how many it has.
pub fn print(
    program: &Program,
    outcome: &Outcome,
    name: &str,
    simulation: &str,
    nodes: u8,
) -> String {
    let mut printer = Printer {
        nodes,
        text: String::new(),
        made: BTreeSet::new(),
        events: BTreeMap::new(),
    };
    let calls = program.calls.iter().zip(&outcome.seen).enumerate();
    for (number, (call, seen)) in calls {
        printer.line(&format!("// Call {number}"));
        printer.call(number as u32, call, seen);
        let settles = match program.pace {
            Pace::Free => *call == Call::Settle,
            Pace::Settled => call.starts_work() && seen.may_start(),
        };
        if settles {
            printer.line("verbs.lab().unwrap().settle().unwrap();");
        }
    }
    let body = printer.text;
    format!(
        "#[test]\n#[allow(unused)]\nfn {name}() {{\n    {USES}\n    let verbs = {simulation};\n{POLL}{body}}}\n"
    )
}

const USES: &str = "use verbs_api::profile::Profile;\n    use verbs_api::*;\n    use verbs_sim::{Mode, Sim, SimConfig};";

/// What a poll gives, in an order that does not depend on the CQ's.
const POLL: &str = "    let poll = |cq, max| {
        let mut wc = vec![Wc::default(); max];
        let count = verbs.poll_cq(cq, &mut wc)?;
        let mut seen: Vec<_> = wc[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect();
        seen.sort();
        Ok::<_, Error>(seen)
    };
";

pub(super) struct Printer {
    nodes: u8,
    text: String,
    /// Names of variables that there are.
    pub(super) made: BTreeSet<String>,
    /// Asynchronous events that are not acknowledged, by context.
    events: BTreeMap<Number, Vec<String>>,
}

impl Printer {
    fn line(&mut self, line: &str) {
        writeln!(self.text, "    {line}").expect("a string");
    }

    /// The variable of an object, or the zero handle.
    pub(super) fn the(&self, kind: &str, number: Number) -> String {
        let name = format!("{kind}{number}");
        if self.made.contains(&name) {
            return name;
        }
        let handle = match kind {
            "context" => "Context",
            "pd" => "Pd",
            "td" => "Td",
            "dm" => "Dm",
            "mr" => "Mr",
            "channel" => "CompChannel",
            "cq" => "Cq",
            "srq" => "Srq",
            "qp" => "Qp",
            _ => "Ah",
        };
        format!("{handle}::default()")
    }

    /// A call that makes an object.
    fn makes(&mut self, kind: &str, number: Number, call: &str, seen: &Seen) -> bool {
        if !seen.is_done() {
            self.gives(call, seen);
            return false;
        }
        let name = format!("{kind}{number}");
        self.line(&format!("let {name} = {call}.unwrap();"));
        self.made.insert(name);
        true
    }

    /// A call that succeeds with nothing to say, or fails.
    fn gives(&mut self, call: &str, seen: &Seen) {
        match seen {
            Seen::Refused(kind) => {
                self.line(&format!(
                    "assert_eq!({call}.unwrap_err().kind(), {});",
                    error(*kind)
                ));
            }
            Seen::RefusedAt(at, kind) => {
                self.line(&format!("let error = {call}.unwrap_err();"));
                let kind = error(*kind);
                self.line(&format!(
                    "assert_eq!((error.bad_wr, error.error.kind()), ({at}, {kind}));"
                ));
            }
            _ => self.line(&format!("{call}.unwrap();")),
        }
    }

    /// A call that gives a value.
    fn value(&mut self, call: &str, value: Option<String>, seen: &Seen) {
        match value {
            Some(value) => self.line(&format!("assert_eq!({call}.unwrap(), {value});")),
            None => self.gives(&format!("{call}.map(|_| ())"), seen),
        }
    }

    /// The bytes of a new memory.
    fn pattern(&mut self, number: Number, length: u32) {
        let first = number.wrapping_mul(31) | 1;
        self.line(&format!(
            "let bytes: Vec<u8> = (0..{length}u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add({first})).collect();"
        ));
    }

    fn call(&mut self, at: u32, call: &Call, seen: &Seen) {
        match call {
            Call::OpenDevice { context, node } => {
                let call = format!("verbs.open_device(\"sim{}\")", node % self.nodes);
                self.makes("context", *context, &call, seen);
            }
            Call::CloseDevice { context } => {
                let context = self.the("context", *context);
                self.gives(&format!("verbs.close_device({context})"), seen);
            }
            Call::QueryRtValues { context } => {
                let context = self.the("context", *context);
                let call = format!("verbs.query_rt_values({context}).map(|_| ())");
                self.gives(&call, seen);
            }
            Call::AllocPd { pd, context } => {
                let context = self.the("context", *context);
                self.makes("pd", *pd, &format!("verbs.alloc_pd({context})"), seen);
            }
            Call::DeallocPd { pd } => {
                let pd = self.the("pd", *pd);
                self.gives(&format!("verbs.dealloc_pd({pd})"), seen);
            }
            Call::AllocTd { td, context } => {
                let context = self.the("context", *context);
                self.makes("td", *td, &format!("verbs.alloc_td({context})"), seen);
            }
            Call::DeallocTd { td } => {
                let td = self.the("td", *td);
                self.gives(&format!("verbs.dealloc_td({td})"), seen);
            }
            Call::AllocParentDomain { parent, pd, td } => {
                let pd = self.the("pd", *pd);
                let td = td.map(|td| format!("td{td}"));
                let td = td.filter(|td| self.made.contains(td));
                let td = td.map_or("None".to_string(), |td| format!("Some({td})"));
                let call = format!("verbs.alloc_parent_domain({pd}, {td})");
                self.makes("pd", *parent, &call, seen);
            }
            Call::AllocMr {
                mr,
                pd,
                length,
                access,
            }
            | Call::RegDmabufMr {
                mr,
                pd,
                length,
                access,
            } => {
                let (pd, access) = (self.the("pd", *pd), access_code(*access));
                let call = match call {
                    Call::AllocMr { .. } => format!("verbs.alloc_mr({pd}, {length}, {access})"),
                    _ => format!(
                        "verbs.export_dmabuf({pd}.context(), {length}).and_then(|fd| verbs.reg_dmabuf_mr({pd}, 0, {length}, {DMABUF_AT:#x}, std::os::fd::AsFd::as_fd(&fd), {access}))"
                    ),
                };
                if self.makes("mr", *mr, &call, seen) {
                    self.line(&format!("let mem{mr} = verbs.query_mr(mr{mr}).unwrap();"));
                    self.pattern(*mr, *length);
                    self.line(&format!("verbs.write_mr(mr{mr}, 0, &bytes).unwrap();"));
                }
            }
            Call::DeregMr { mr } => {
                let mr = self.the("mr", *mr);
                self.gives(&format!("verbs.dereg_mr({mr})"), seen);
            }
            Call::WriteMr {
                mr,
                offset,
                length,
                value,
            } => {
                let mr = self.the("mr", *mr);
                self.gives(
                    &format!("verbs.write_mr({mr}, {offset}, &[{value}; {length}])"),
                    seen,
                );
            }
            Call::ReadMr { mr, offset, length } => {
                let mr = self.the("mr", *mr);
                let call = format!("verbs.read_mr({mr}, {offset}, &mut [0; {length}])");
                self.gives(&call, seen);
            }
            Call::MapMr { mr, mapped } => {
                let mr = self.the("mr", *mr);
                self.gives(&format!("verbs.map_mr({mr}, {mapped})"), seen);
            }
            Call::AdviseMr {
                pd,
                mr,
                offset,
                length,
                advice,
                flags,
            } => {
                let (pd, bits) = (self.the("pd", *pd), flags.bits());
                let list = self.sges(&[Sge {
                    mr: *mr,
                    offset: *offset,
                    length: *length,
                    key: Key::Right,
                }]);
                let flags = format!("AdviseFlags::from_bits_retain({bits})");
                let call = format!("verbs.advise_mr({pd}, Advice::{advice:?}, {flags}, &{list})");
                self.gives(&call, seen);
            }
            Call::AllocDm {
                dm,
                context,
                length,
            } => {
                let context = self.the("context", *context);
                let init = format!("DmInit::new({length}).log_align({DM_LOG_ALIGN})");
                let call = format!("verbs.alloc_dm({context}, &{init})");
                if self.makes("dm", *dm, &call, seen) {
                    self.pattern(*dm, *length);
                    self.line(&format!("verbs.copy_to_dm(dm{dm}, 0, &bytes).unwrap();"));
                }
            }
            Call::FreeDm { dm } => {
                let dm = self.the("dm", *dm);
                self.gives(&format!("verbs.free_dm({dm})"), seen);
            }
            Call::RegDmMr {
                mr,
                pd,
                dm,
                offset,
                length,
                access,
            } => {
                let (pd, dm) = (self.the("pd", *pd), self.the("dm", *dm));
                let access = access_code(*access);
                let call = format!("verbs.reg_dm_mr({pd}, {dm}, {offset}, {length}, {access})");
                if self.makes("mr", *mr, &call, seen) {
                    self.line(&format!("let mem{mr} = verbs.query_mr(mr{mr}).unwrap();"));
                }
            }
            Call::CopyToDm {
                dm,
                offset,
                length,
                value,
            } => {
                let dm = self.the("dm", *dm);
                let call = format!("verbs.copy_to_dm({dm}, {offset}, &[{value}; {length}])");
                self.gives(&call, seen);
            }
            Call::CopyFromDm { dm, offset, length } => {
                let dm = self.the("dm", *dm);
                let call = format!("verbs.copy_from_dm({dm}, {offset}, &mut [0; {length}])");
                self.gives(&call, seen);
            }
            Call::CreateChannel { channel, context } => {
                let context = self.the("context", *context);
                let call = format!("verbs.create_comp_channel({context})");
                self.makes("channel", *channel, &call, seen);
            }
            Call::DestroyChannel { channel } => {
                let channel = self.the("channel", *channel);
                self.gives(&format!("verbs.destroy_comp_channel({channel})"), seen);
            }
            Call::GetEvent { channel } => {
                let channel = self.the("channel", *channel);
                let call = format!(
                    "verbs.get_cq_event({channel}, Wait::Poll).map(|event| event.cq_context)"
                );
                let value = match seen {
                    Seen::Event(cq) => Some(cq.to_string()),
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::CreateCq {
                cq,
                context,
                cqe,
                channel,
            } => {
                let context = self.the("context", *context);
                let channel = channel.map_or(String::new(), |channel| {
                    format!(".channel({})", self.the("channel", channel))
                });
                let call = format!(
                    "verbs.create_cq({context}, &CqInit::new({cqe}).context({cq}){channel})"
                );
                self.makes("cq", *cq, &call, seen);
            }
            Call::ResizeCq { cq, cqe } => {
                let cq = self.the("cq", *cq);
                self.gives(&format!("verbs.resize_cq({cq}, {cqe})"), seen);
            }
            Call::QueryCq { cq } => {
                let call = format!(
                    "verbs.query_cq({}).map(|attr| attr.cqe)",
                    self.the("cq", *cq)
                );
                let value = match seen {
                    Seen::Size(size) => Some(size.to_string()),
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::Arm { cq, solicited } => {
                let arm = if *solicited {
                    "Arm::SOLICITED"
                } else {
                    "Arm::NEXT"
                };
                let cq = self.the("cq", *cq);
                self.gives(&format!("verbs.req_notify_cq({cq}, {arm})"), seen);
            }
            Call::Poll { cq, max } => {
                let call = format!("poll({}, {max})", self.the("cq", *cq));
                let value = match seen {
                    Seen::Completions(list) => {
                        let mut all: Vec<_> = list.iter().map(|wc| (wc.wr_id, wc.status)).collect();
                        all.sort();
                        let all: Vec<_> = all
                            .iter()
                            .map(|(id, status)| format!("({:#x}, WcStatus::{status:?})", id.raw()))
                            .collect();
                        Some(format!("[{}]", all.join(", ")))
                    }
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::Ack { cq, events } => {
                let cq = self.the("cq", *cq);
                self.gives(&format!("verbs.ack_cq_events({cq}, {events})"), seen);
            }
            Call::DestroyCq { cq } => {
                let cq = self.the("cq", *cq);
                self.gives(&format!("verbs.destroy_cq({cq}, Wait::Poll)"), seen);
            }
            Call::CreateSrq {
                srq,
                pd,
                max_wr,
                max_sge,
            } => {
                let pd = self.the("pd", *pd);
                let init = format!("SrqInit::new({max_wr}).max_sge({max_sge})");
                self.makes(
                    "srq",
                    *srq,
                    &format!("verbs.create_srq({pd}, &{init})"),
                    seen,
                );
            }
            Call::LimitSrq { srq, limit } => {
                let srq = self.the("srq", *srq);
                let attr = format!("SrqAttr {{ srq_limit: {limit}, ..SrqAttr::default() }}");
                self.gives(
                    &format!("verbs.modify_srq({srq}, &{attr}, SrqAttrMask::LIMIT)"),
                    seen,
                );
            }
            Call::PostSrqRecv { srq, list } => {
                let (srq, list) = (self.the("srq", *srq), self.receives(at, list));
                self.gives(&format!("verbs.post_srq_recv({srq}, &{list})"), seen);
            }
            Call::DestroySrq { srq } => {
                let srq = self.the("srq", *srq);
                self.gives(&format!("verbs.destroy_srq({srq}, Wait::Poll)"), seen);
            }
            Call::CreateQp { qp, make } => self.create_qp(*qp, make, seen),
            Call::Connect { a, b, link } => {
                let (a, b, link) = (self.the("qp", *a), self.the("qp", *b), link_code(link));
                self.gives(
                    &format!("connect::by_attributes(&verbs, {a}, {b}, &{link})"),
                    seen,
                );
            }
            Call::Toward { qp, peer, to, link } => {
                let (qp, peer, link) =
                    (self.the("qp", *qp), self.the("qp", *peer), link_code(link));
                self.line(&format!("let params = {link};"));
                let call = format!(
                    "connect::endpoint(&verbs, {peer}, &params).and_then(|peer| connect::to_state(&verbs, {qp}, &peer, &params, QpState::{to:?}))"
                );
                self.gives(&call, seen);
            }
            Call::StartUd { qp } => {
                let qp = self.the("qp", *qp);
                let key = super::call::QKEY;
                self.gives(
                    &format!("connect::ud_to_rts(&verbs, {qp}, 1, {key:#x})"),
                    seen,
                );
            }
            Call::ModifyQp { qp, to } => {
                self.line(&format!("let modify = QpModify::to(QpState::{to:?});"));
                let qp = self.the("qp", *qp);
                self.gives(
                    &format!("verbs.modify_qp({qp}, &modify.attr, modify.mask)"),
                    seen,
                );
            }
            Call::QueryInOrder { qp, opcode, flags } => {
                let (qp, bits) = (self.the("qp", *qp), flags.bits());
                let flags = format!("InOrderQuery::from_bits_retain({bits})");
                let call = format!(
                    "verbs.query_qp_data_in_order({qp}, WrOpcode::{opcode:?}, {flags}).map(|promised| promised.bits())"
                );
                let value = match seen {
                    Seen::InOrder(promised) => Some(promised.bits().to_string()),
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::QueryEce { qp } => {
                let qp = self.the("qp", *qp);
                let call = format!("verbs.query_ece({qp}).map(|ece| ece.options)");
                let value = match seen {
                    Seen::Options(options) => Some(format!("{options:#x}")),
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::SetEce { qp, options } => {
                let qp = self.the("qp", *qp);
                let call = format!(
                    "verbs.query_ece({qp}).and_then(|own| verbs.set_ece({qp}, &Ece {{ options: {options:#x}, ..own }}))"
                );
                self.gives(&call, seen);
            }
            Call::QueryQp { qp } => {
                let qp = self.the("qp", *qp);
                let call = format!(
                    "verbs.query_qp({qp}, QpAttrMask::STATE).map(|query| query.attr.qp_state)"
                );
                let value = match seen {
                    Seen::State(state) => Some(format!("QpState::{state:?}")),
                    _ => None,
                };
                self.value(&call, value, seen);
            }
            Call::PostSend { qp, list } => {
                let sends = self.sends(at, list);
                let qp = self.the("qp", *qp);
                self.gives(&format!("verbs.post_send({qp}, &{sends})"), seen);
            }
            Call::PostBatch { qp, list } => {
                let sends = self.sends(at, list);
                let qp = self.the("qp", *qp);
                let call = format!("verbs.post_batch({qp}, &{sends}, BatchEnd::Complete)");
                self.gives(&call, seen);
            }
            Call::PostRecv { qp, list } => {
                let (qp, list) = (self.the("qp", *qp), self.receives(at, list));
                self.gives(&format!("verbs.post_recv({qp}, &{list})"), seen);
            }
            Call::DestroyQp { qp } => {
                let qp = self.the("qp", *qp);
                self.gives(&format!("verbs.destroy_qp({qp}, Wait::Poll)"), seen);
            }
            Call::CreateAh { ah, pd, to } => {
                let (pd, to) = (self.the("pd", *pd), self.the("context", *to));
                let call = format!(
                    "verbs.query_gid({to}, 1, 0).and_then(|gid| verbs.create_ah({pd}, &AhAttr::global(1, 0, gid)))"
                );
                self.makes("ah", *ah, &call, seen);
            }
            Call::DestroyAh { ah } => {
                let ah = self.the("ah", *ah);
                self.gives(&format!("verbs.destroy_ah({ah})"), seen);
            }
            Call::GetAsyncEvent { context } => {
                let call = format!(
                    "verbs.get_async_event({}, Wait::Poll)",
                    self.the("context", *context)
                );
                let Seen::AsyncEvent(kind, _) = seen else {
                    return self.gives(&call, seen);
                };
                let event = format!("event{at}");
                self.line(&format!("let {event} = {call}.unwrap();"));
                self.line(&format!(
                    "assert_eq!({event}.event_type, AsyncEventType::{kind:?});"
                ));
                self.events.entry(*context).or_default().push(event);
            }
            Call::AckAsyncEvent { context } => {
                let name = self.the("context", *context);
                let events = self.events.entry(*context).or_default();
                if events.is_empty() {
                    return self.line("// There is no event to acknowledge.");
                }
                let event = events.remove(0);
                self.gives(&format!("verbs.ack_async_event({name}, &{event})"), seen);
            }
            Call::Settle => {}
        }
    }

    fn create_qp(&mut self, qp: Number, make: &QpMake, seen: &Seen) {
        let (pd, cap) = (self.the("pd", make.pd), make.cap);
        let [send_cq, recv_cq] = [make.send_cq, make.recv_cq].map(|cq| self.the("cq", cq));
        let mut init = format!(
            "QpInit::new(QpType::{:?}, {send_cq}, {recv_cq}).cap(QpCap {{ max_send_wr: {}, max_recv_wr: {}, max_send_sge: {}, max_recv_sge: {}, max_inline_data: {} }})",
            make.qp_type,
            cap.max_send_wr,
            cap.max_recv_wr,
            cap.max_send_sge,
            cap.max_recv_sge,
            cap.max_inline_data
        );
        if let Some(srq) = make.srq {
            write!(init, ".srq({})", self.the("srq", srq)).expect("a string");
        }
        if make.sq_sig_all {
            init += ".sq_sig_all()";
        }
        if !make.send_ops.is_empty() {
            let bits = make.send_ops.bits();
            write!(init, ".send_ops(SendOps::from_bits_retain({bits:#x}))").expect("a string");
        }
        if self.makes("qp", qp, &format!("verbs.create_qp({pd}, &{init})"), seen) {
            self.line(&format!("let num{qp} = verbs.qp_num(qp{qp}).unwrap();"));
        }
    }
}
