//! Every field of the completions of a message, on each transport: its receive lies in a queue of
//! the queue pair or in an SRQ, and completes in a plain CQ or in an extended one.

use verbs_api::{Capabilities, LinkLayer, QpType, WcEx, WcFields, WcFlags, WcOpcode, WcStatus};

use super::Kind;
use crate::cq_ex::{as_read, read};
use crate::failure::{check_eq, in_case};
use crate::{End, GRH_LEN, Pair, PairOptions, Result, Setup};

scenario!(every_field_is_right: "WC-02", "WC-03", "WC-04", "WC-05", "WC-06", "WC-08", "WC-10",
    "WC-11"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn every_field_is_right(setup: &Setup<'_>) -> Result {
    every_field(setup, PairOptions::default())
}

scenario!(every_field_is_right_with_an_srq: "WC-02", "WC-03", "WC-04", "WC-05", "WC-06", "WC-08",
    "WC-10", "WC-11"; needs SEND_WITH_IMM, WRITE_WITH_IMM, SRQ);
fn every_field_is_right_with_an_srq(setup: &Setup<'_>) -> Result {
    every_field(setup, of_srq(QpType::Rc))
}

scenario!(every_field_is_right_on_uc: "WC-02", "WC-03", "WC-04", "WC-05", "WC-06", "WC-08",
    "WC-10", "WC-11"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn every_field_is_right_on_uc(setup: &Setup<'_>) -> Result {
    every_field(setup, PairOptions::of(QpType::Uc))
}

scenario!(every_field_is_right_on_ud: "WC-02", "WC-03", "WC-04", "WC-05", "WC-07", "WC-10",
    "WC-11", "WC-13", "WC-14", "WC-15"; needs UD, SEND_WITH_IMM);
fn every_field_is_right_on_ud(setup: &Setup<'_>) -> Result {
    every_field(setup, PairOptions::of(QpType::Ud))
}

scenario!(every_field_is_right_on_ud_with_an_srq: "WC-02", "WC-03", "WC-04", "WC-05", "WC-07",
    "WC-10", "WC-11", "WC-13", "WC-14", "WC-15"; needs UD, SEND_WITH_IMM, SRQ);
fn every_field_is_right_on_ud_with_an_srq(setup: &Setup<'_>) -> Result {
    every_field(setup, of_srq(QpType::Ud))
}

scenario!(every_field_is_right_on_xrc: "WC-02", "WC-03", "WC-04", "WC-05", "WC-06", "WC-08",
    "WC-10", "WC-11"; needs XRC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn every_field_is_right_on_xrc(setup: &Setup<'_>) -> Result {
    every_field(setup, PairOptions::of(QpType::XrcSend))
}

fn of_srq(qp_type: QpType) -> PairOptions {
    PairOptions {
        srq: true,
        ..PairOptions::of(qp_type)
    }
}

const KINDS: [Kind; 4] = [Kind::Send, Kind::SendImm, Kind::Write, Kind::WriteImm];

/// One message after the other, of each kind and of several lengths.
fn every_field(setup: &Setup<'_>, options: PairOptions) -> Result {
    let has = setup.capabilities(setup.ctx_b())?;
    for extended in [false, true] {
        if extended && !has.contains(Capabilities::CQ_EX) {
            continue;
        }
        let options = PairOptions {
            extended,
            ..options
        };
        let mut pair = setup.pair(options)?;
        let kinds = KINDS
            .iter()
            .filter(|kind| options.qp_type != QpType::Ud || !kind.is_write());
        let messages = kinds.flat_map(|kind| [0, 1, 255, 256].map(|len| (*kind, len)));
        for (n, (kind, len)) in (1..).zip(messages) {
            let case = format!("{kind:?} of {len} bytes, extended CQ: {extended}");
            let message = Message { n, kind, len };
            let passes = message.passes(setup, &pair, extended);
            let failed = passes.is_err();
            in_case(&case, passes)?;
            if failed {
                // The failure may have moved the queue pairs to ERR.
                pair = setup.pair(options)?;
            }
        }
    }
    Ok(())
}

/// A message that is different from the one before in each of its fields.
struct Message {
    n: u64,
    kind: Kind,
    len: u32,
}

impl Message {
    fn passes(&self, setup: &Setup<'_>, pair: &Pair<'_>, extended: bool) -> Result {
        let Pair { a, b } = pair;
        let Self { n, kind, len } = *self;
        let imm = [n as u8, 0x80, 0, !n as u8];
        if kind.takes_a_receive() {
            b.recv(!n, 256)?;
        }
        a.post(kind.work_with(a, n << 32, &[a.sge(0, len)], imm))?;
        let sent = setup.successes(a.send_cq, 1)?[0];
        let opcode = if kind.is_write() {
            WcOpcode::RdmaWrite
        } else {
            WcOpcode::Send
        };
        check_eq!("WC-04", sent.opcode, opcode, "opcode of the send");
        check_eq!("WC-02", sent.wr_id, n << 32, "wr_id of the send");
        check_eq!("WC-03", sent.qp_num, a.qp_num, "qp_num of the send");
        if !kind.takes_a_receive() {
            return Ok(());
        }
        let wc = if extended {
            read(setup, b.recv_cq, 1)?[0]
        } else {
            as_read(&setup.successes(b.recv_cq, 1)?[0], WcFields::STANDARD)
        };
        let opcode = if kind.is_write() {
            WcOpcode::RecvRdmaWithImm
        } else {
            WcOpcode::Recv
        };
        check_eq!("WC-05", (wc.status, wc.opcode), (WcStatus::Success, opcode));
        check_eq!("WC-02", wc.wr_id, !n);
        check_eq!("WC-03", wc.qp_num, Some(b.qp_num));
        let flagged = wc.wc_flags.contains(WcFlags::WITH_IMM);
        check_eq!("WC-11", flagged, kind.has_imm(), "WITH_IMM");
        if flagged {
            check_eq!("WC-10", wc.imm_data, Some(imm));
        }
        match b.qp_type {
            QpType::Ud => of_datagram(setup, a, &wc, len),
            _ => {
                let rule = if kind.is_write() { "WC-08" } else { "WC-06" };
                check_eq!(rule, wc.byte_len, Some(len));
                Ok(())
            }
        }
    }
}

fn of_datagram(setup: &Setup<'_>, a: &End<'_>, wc: &WcEx, len: u32) -> Result {
    let port = setup.query_port(a.context, setup.port())?;
    check_eq!("WC-07", wc.byte_len, Some(len + GRH_LEN));
    check_eq!("WC-13", wc.src_qp, Some(a.qp_num));
    check_eq!("WC-14", wc.wc_flags.contains(WcFlags::GRH), true, "GRH");
    check_eq!("WC-15", wc.slid, Some(port.lid.into()));
    check_eq!("WC-15", wc.dlid_path_bits, Some(0));
    if port.link_layer == LinkLayer::InfiniBand {
        check_eq!("WC-15", wc.sl, Some(0));
    }
    Ok(())
}
