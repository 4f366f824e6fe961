//! What of `rdma_cma.h` connects queue pairs.

use std::ffi::{c_int, c_void};

use crate::{ibv_context, ibv_qp};

structures! {
    rdma_event_channel { fd: c_int }

    /// Made by the library alone, so its end need not be known.
    rdma_cm_id (grows) {
        verbs: *mut ibv_context,
        channel: *mut rdma_event_channel,
        context: *mut c_void,
        qp: *mut ibv_qp,
    }

    /// As above.
    rdma_cm_event (grows) {
        id: *mut rdma_cm_id,
        listen_id: *mut rdma_cm_id,
        event: u32,
        status: c_int,
    }

    rdma_conn_param [24] {
        private_data: *const c_void,
        private_data_len: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retry_count: u8,
        rnr_retry_count: u8,
        srq: u8,
        qp_num: u32,
    }
}

constants! {
    numbers rdma_cm_event_type: u32 {
        RDMA_CM_EVENT_ADDR_RESOLVED = 0,
        RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
        RDMA_CM_EVENT_CONNECT_REQUEST = 4,
        RDMA_CM_EVENT_ESTABLISHED = 9,
    }
    numbers rdma_port_space: u32 { RDMA_PS_TCP = 0x0106 }
}
