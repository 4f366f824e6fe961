//! Extended completion queues.

use std::ffi::{c_int, c_uint, c_void};

use verbs_api::{CompChannel, CqFlags, CqInit, CqInitEx, WcFields};

use crate::{ibv_comp_channel, ibv_cq, ibv_pd};

structures! {
    /// Which of the fields behind `comp_mask` are there it says itself.
    ibv_cq_init_attr_ex [56] {
        cqe: u32,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
        comp_vector: u32,
        wc_flags: u64,
        comp_mask: u32,
        flags: u32,
        parent_domain: *mut ibv_pd,
    }

    ibv_poll_cq_attr { comp_mask: u32 }

    /// Immediate data is as on the wire, or the key that was invalidated.
    ibv_cq_ex [288] {
        cq_base = context: ibv_cq,
        comp_mask: u32,
        status: u32,
        wr_id: u64,
        start_poll: op!(*mut ibv_cq_ex, *mut ibv_poll_cq_attr => c_int),
        next_poll: op!(*mut ibv_cq_ex => c_int),
        end_poll: op!(*mut ibv_cq_ex),
        read_opcode: op!(*mut ibv_cq_ex => u32),
        read_vendor_err: op!(*mut ibv_cq_ex => u32),
        read_byte_len: op!(*mut ibv_cq_ex => u32),
        read_imm_data: op!(*mut ibv_cq_ex => u32),
        read_qp_num: op!(*mut ibv_cq_ex => u32),
        read_src_qp: op!(*mut ibv_cq_ex => u32),
        read_wc_flags: op!(*mut ibv_cq_ex => c_uint),
        read_slid: op!(*mut ibv_cq_ex => u32),
        read_sl: op!(*mut ibv_cq_ex => u8),
        read_dlid_path_bits: op!(*mut ibv_cq_ex => u8),
        read_completion_ts: op!(*mut ibv_cq_ex => u64),
        read_cvlan: usize,
        read_flow_tag: usize,
        read_tm_info: usize,
        read_completion_wallclock_ns: op!(*mut ibv_cq_ex => u64),
    }
}

constants! {
    flags ibv_cq_init_attr_mask: u32 {
        IBV_CQ_INIT_ATTR_MASK_FLAGS = 1 << 0,
        IBV_CQ_INIT_ATTR_MASK_PD = 1 << 1,
    }
}

impl ibv_cq_init_attr_ex {
    /// The fields that are present; the rest is 0.
    ///
    /// # Safety
    /// Fields up to the mask can be read, and those behind it that it names.
    pub unsafe fn read(attr: *const Self) -> Self {
        let mut found = Self::default();
        // SAFETY: the caller's promise.
        unsafe {
            found.cqe = (*attr).cqe;
            found.cq_context = (*attr).cq_context;
            found.channel = (*attr).channel;
            found.comp_vector = (*attr).comp_vector;
            found.wc_flags = (*attr).wc_flags;
            found.comp_mask = (*attr).comp_mask;
            if found.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 {
                found.flags = (*attr).flags;
            }
            if found.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD != 0 {
                found.parent_domain = (*attr).parent_domain;
            }
        }
        found
    }

    /// All but the parent domain, with this channel.
    pub fn from_c(attr: &Self, channel: Option<CompChannel>) -> CqInitEx {
        let cq = CqInit {
            cqe: attr.cqe as i32,
            cq_context: attr.cq_context as u64,
            channel,
            comp_vector: attr.comp_vector as i32,
        };
        let flags = CqFlags::from_bits_retain(attr.flags);
        CqInitEx::new(cq)
            .wc_flags(WcFields::from_bits_retain(attr.wc_flags))
            .flags(flags)
    }

    /// All of it, with this channel and this parent domain, or none.
    pub fn to_c(
        init: &CqInitEx,
        channel: *mut ibv_comp_channel,
        parent_domain: *mut ibv_pd,
    ) -> Self {
        let (flags, parent) = (!init.flags.is_empty(), !parent_domain.is_null());
        Self {
            cqe: init.cq.cqe as u32,
            cq_context: crate::token(init.cq.cq_context),
            channel,
            comp_vector: init.cq.comp_vector as u32,
            wc_flags: init.wc_flags.bits(),
            comp_mask: (u32::from(flags) * IBV_CQ_INIT_ATTR_MASK_FLAGS)
                | (u32::from(parent) * IBV_CQ_INIT_ATTR_MASK_PD),
            flags: init.flags.bits(),
            parent_domain,
        }
    }
}
