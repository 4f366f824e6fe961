//! The question whether data arrives in order: `ibv_query_qp_data_in_order`.

use bitflags::bitflags;

use crate::c_enum::c_enum;

bitflags! {
    /// How to ask (`enum ibv_query_qp_data_in_order_flags`). Without a flag the answer is
    /// [`InOrder::WHOLE_MSG`] or nothing (RO-07). Bits without a name can be carried; nothing is
    /// promised then (RO-08).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InOrderQuery: u32 {
        /// For every promise, not only that for whole messages.
        const RETURN_CAPS = 1 << 0;
        /// For the promise of the device alone. Without this flag libibverbs promises nothing on
        /// processors other than x86.
        const DEVICE_ONLY = 1 << 1;
        const _ = !0;
    }
}

bitflags! {
    /// Which bytes of one message become visible in order
    /// (`enum ibv_query_qp_data_in_order_caps`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InOrder: u32 {
        /// All of them.
        const WHOLE_MSG = 1 << 0;
        /// Those of each aligned block of 128 bytes. Whole messages include it (RO-07).
        const ALIGNED_128_BYTES = 1 << 1;
        const _ = !0;
    }
}

c_enum! {
    /// The kind of a send work request (`enum ibv_wr_opcode`), where its arguments do not matter.
    WrOpcode {
        /// An RDMA Write.
        RdmaWrite = 0, "RDMA_WRITE";
        /// An RDMA Write with immediate data.
        RdmaWriteWithImm = 1, "RDMA_WRITE_WITH_IMM";
        /// A Send.
        Send = 2, "SEND";
        /// A Send with immediate data.
        SendWithImm = 3, "SEND_WITH_IMM";
        /// An RDMA Read.
        RdmaRead = 4, "RDMA_READ";
        /// A compare-and-swap.
        CompareAndSwap = 5, "ATOMIC_CMP_AND_SWP";
        /// A fetch-and-add.
        FetchAndAdd = 6, "ATOMIC_FETCH_AND_ADD";
        /// The invalidation of a window.
        LocalInv = 7, "LOCAL_INV";
        /// The bind of a window.
        BindMw = 8, "BIND_MW";
        /// A Send that invalidates a window of the receiver.
        SendWithInv = 9, "SEND_WITH_INV";
        /// A segmented send.
        Tso = 10, "TSO";
    }
}
