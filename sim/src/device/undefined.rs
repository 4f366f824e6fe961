//! Undefined fields of completions.

use verbs_api::behavior::UndefinedFields;
use verbs_api::{Wc, WcFlags, WcOpcode, WcStatus};

use super::base::Base;

/// Fills the undefined fields: for an error most fields (WC-01), for a success those that its kind
/// does not have.
#[cold]
pub(super) fn undefine(base: &mut Base, mut wc: Wc, of_datagram: bool) -> Wc {
    let garbage = match base.behavior.undefined_wc_fields {
        UndefinedFields::Garbage => base.random.any(),
        UndefinedFields::Zero | _ => 0,
    };
    let failed = wc.status != WcStatus::Success;
    let has_immediate = wc
        .wc_flags
        .intersects(WcFlags::WITH_IMM | WcFlags::WITH_INV);
    // Programs must not read these fields, and garbage finds those that do.
    if failed || !has_immediate {
        wc.imm_data = ((garbage >> 32) as u32).to_be_bytes();
    }
    if failed || !of_datagram {
        wc.src_qp = (garbage >> 8) as u32;
        wc.sl = (garbage >> 40) as u8;
        wc.slid = (garbage >> 24) as u16;
        wc.dlid_path_bits = (garbage >> 48) as u8;
    }
    wc.pkey_index = (garbage >> 4) as u16;
    if failed {
        if garbage != 0 {
            wc.opcode = WcOpcode::from((garbage >> 12) as u32);
        }
        wc.byte_len = garbage as u32;
        wc.wc_flags = WcFlags::from_bits_retain((garbage >> 16) as u32);
    }
    wc
}
