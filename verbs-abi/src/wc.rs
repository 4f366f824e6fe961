//! Completions.

use std::ffi::c_uint;

use verbs_api::{Wc, WcEx, WcFields, WcFlags};

use crate::ibv_cq_ex;

structures! {
    /// Immediate data is as on the wire, or the key that was invalidated.
    ibv_wc [48] {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        imm_data = (imm_data): u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
}

conversions! {
    ibv_wc, Wc {
        wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags, pkey_index,
        slid, sl, dlid_path_bits,
    }
}

impl ibv_cq_ex {
    /// The completion that an iteration has come to, with these fields.
    ///
    /// # Safety
    /// `cq` is a live extended CQ that was made with these fields, and an iteration over it has
    /// come to a completion.
    pub unsafe fn completion(cq: *mut Self, fields: WcFields) -> WcEx {
        // SAFETY: the CQ is live and an extended one.
        let own = unsafe { &*cq };
        macro_rules! read {
            ($reader:ident $(, $field:ident)?) => {
                own.$reader
                    $(.filter(|_| fields.contains(WcFields::$field)))?
                    // SAFETY: as promised.
                    .map(|read| unsafe { read(cq) })
            };
        }
        let mut wc = WcEx::default();
        wc.wr_id = own.wr_id;
        wc.status = own.status.into();
        wc.opcode = read!(read_opcode).unwrap_or_default().into();
        wc.vendor_err = read!(read_vendor_err).unwrap_or_default();
        wc.wc_flags = WcFlags::from_bits_retain(read!(read_wc_flags).unwrap_or_default());
        wc.byte_len = read!(read_byte_len, BYTE_LEN);
        wc.imm_data = read!(read_imm_data, IMM).map(u32::to_ne_bytes);
        wc.qp_num = read!(read_qp_num, QP_NUM);
        wc.src_qp = read!(read_src_qp, SRC_QP);
        wc.slid = read!(read_slid, SLID);
        wc.sl = read!(read_sl, SL);
        wc.dlid_path_bits = read!(read_dlid_path_bits, DLID_PATH_BITS);
        wc.completion_ts = read!(read_completion_ts, COMPLETION_TIMESTAMP);
        wc.completion_wallclock_ns =
            read!(read_completion_wallclock_ns, COMPLETION_TIMESTAMP_WALLCLOCK);
        wc
    }
}
