//! Arguments of calls as Rust code.

use std::fmt::Write;

use verbs_api::{Access, ErrorKind, SendFlags};

use super::call::{Key, Link, Op, Remote, Send, Sge, WRONG};
use super::outcome::WrId;
use super::print::Printer;
use super::run::{MIN_RNR_TIMER, TIMEOUT};

impl Printer {
    pub(super) fn sends(&self, at: u32, list: &[Send]) -> String {
        let one = |(index, send)| self.send(at, index, send);
        let all: Vec<_> = list.iter().enumerate().map(one).collect();
        format!("[{}]", all.join(", "))
    }

    fn send(&self, at: u32, index: usize, send: &Send) -> String {
        let id = id(at, index);
        let list = self.sges(&send.list);
        let mut code = format!("SendWr::new({id}, {}, &{list})", self.op(&send.op));
        if !send.flags.contains(SendFlags::SIGNALED) {
            code += ".unsignaled()";
        }
        for (name, flag) in send.flags.iter_names() {
            if flag != SendFlags::SIGNALED {
                write!(code, ".flags(SendFlags::{name})").expect("a string");
            }
        }
        if let Some(to) = send.to {
            let number = if self.made.contains(&format!("qp{}", to.qp)) {
                format!("num{}", to.qp)
            } else {
                "0".to_string()
            };
            let ah = self.the("ah", to.ah);
            write!(code, ".to({ah}, {number}, {:#x})", to.qkey).expect("a string");
        }
        code
    }

    fn op(&self, op: &Op) -> String {
        match op {
            Op::Send => "SendOp::Send".to_string(),
            Op::SendWithImm(imm) => {
                format!(
                    "SendOp::SendWithImm {{ imm_data: {:?} }}",
                    imm.to_be_bytes()
                )
            }
            Op::Write(remote) => format!("SendOp::RdmaWrite {{ remote: {} }}", self.remote(remote)),
            Op::WriteWithImm(remote, imm) => format!(
                "SendOp::RdmaWriteWithImm {{ remote: {}, imm_data: {:?} }}",
                self.remote(remote),
                imm.to_be_bytes()
            ),
            Op::Read(remote) => format!("SendOp::RdmaRead {{ remote: {} }}", self.remote(remote)),
            Op::CompareAndSwap(remote, compare, swap) => format!(
                "SendOp::CompareAndSwap {{ remote: {}, compare: {compare}, swap: {swap} }}",
                self.remote(remote)
            ),
            Op::FetchAndAdd(remote, add) => {
                format!(
                    "SendOp::FetchAndAdd {{ remote: {}, add: {add} }}",
                    self.remote(remote)
                )
            }
            Op::Flush(remote, length, placement, level) => {
                let (remote, bits) = (self.remote(remote), placement.bits());
                format!(
                    "SendOp::Flush {{ remote: {remote}, length: {length}, placement: PlacementType::from_bits_retain({bits}), level: SelectivityLevel::{level:?} }}"
                )
            }
            Op::AtomicWrite(remote, value) => format!(
                "SendOp::AtomicWrite {{ remote: {}, value: {:?} }}",
                self.remote(remote),
                value.to_be_bytes()
            ),
        }
    }

    pub(super) fn receives(&self, at: u32, list: &[Vec<Sge>]) -> String {
        let one = |(index, sges): (usize, &Vec<Sge>)| {
            format!("RecvWr::new({}, &{})", id(at, index), self.sges(sges))
        };
        let all: Vec<_> = list.iter().enumerate().map(one).collect();
        format!("[{}]", all.join(", "))
    }

    pub(super) fn sges(&self, sges: &[Sge]) -> String {
        let all: Vec<_> = sges.iter().map(|sge| self.sge(sge)).collect();
        format!("[{}]", all.join(", "))
    }

    fn sge(&self, sge: &Sge) -> String {
        let Sge {
            mr,
            offset,
            length,
            key,
        } = sge;
        if !self.made.contains(&format!("mr{mr}")) {
            let lkey = key.of(0);
            return format!("Sge {{ addr: {offset}, length: {length}, lkey: {lkey:#x} }}");
        }
        match key {
            Key::Right => format!("mem{mr}.sge({offset}, {length})"),
            Key::Wrong => {
                format!(
                    "Sge {{ lkey: mem{mr}.lkey ^ {WRONG:#x}, ..mem{mr}.sge({offset}, {length}) }}"
                )
            }
        }
    }

    fn remote(&self, remote: &Remote) -> String {
        let Remote { mr, offset, key } = remote;
        if !self.made.contains(&format!("mr{mr}")) {
            return format!("Remote {{ addr: {offset}, rkey: {:#x} }}", key.of(0));
        }
        match key {
            Key::Right => format!("mem{mr}.remote({offset})"),
            Key::Wrong => {
                format!("Remote {{ rkey: mem{mr}.rkey ^ {WRONG:#x}, ..mem{mr}.remote({offset}) }}")
            }
        }
    }
}

fn id(call: u32, index: usize) -> String {
    let index = index as u32;
    format!("{:#x}", WrId { call, index }.raw())
}

pub(super) fn error(kind: ErrorKind) -> String {
    format!("ErrorKind::{kind:?}")
}

pub(super) fn access_code(access: Access) -> String {
    let names: Vec<_> = access
        .iter_names()
        .map(|(name, _)| format!("Access::{name}"))
        .collect();
    if names.is_empty() {
        return "Access::empty()".to_string();
    }
    names.join(" | ")
}

pub(super) fn link_code(link: &Link) -> String {
    let Link {
        path_mtu,
        access,
        retries,
        depth,
    } = link;
    let access = access_code(*access);
    format!(
        "RcParams {{ path_mtu: Mtu::{path_mtu:?}, access: {access}, timeout: {TIMEOUT}, retry_cnt: {retries}, rnr_retry: {retries}, min_rnr_timer: {MIN_RNR_TIMER}, max_rd_atomic: {depth}, ..RcParams::default() }}"
    )
}
