//! How reliable connections are set up.

use crate::device::Mtu;
use crate::mr::Access;

/// The parameters of a connection between two QPs. Each field has its default; both ends get the
/// same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcParams {
    /// Payload bytes of one packet. Default: 1024.
    pub path_mtu: Mtu,
    /// First sequence number of the first QP. Default: 0.
    pub psn_a: u32,
    /// First sequence number of the second QP. Default: 0.
    pub psn_b: u32,
    /// The access that each end allows its peer. Default: [`Access::ALL_RDMA`].
    pub access: Access,
    /// Code of the wait for an acknowledgement. Default: 14 (67 ms).
    pub timeout: u8,
    /// Retries without an answer. Default: 7.
    pub retry_cnt: u8,
    /// Retries when the receiver is not ready. Default: 7, which has no limit.
    pub rnr_retry: u8,
    /// Code of the wait when no receive is posted. Default: 12 (0.64 ms).
    pub min_rnr_timer: u8,
    /// RDMA Reads and atomics outstanding in each direction. Default: 1.
    pub max_rd_atomic: u8,
    /// Port of both ends. Default: 1.
    pub port_num: u8,
    /// Index in the GID table of both ends. Default: 0.
    pub sgid_index: u8,
    /// Index in the P_Key table of both ends. Default: 0.
    pub pkey_index: u16,
}

impl Default for RcParams {
    fn default() -> Self {
        Self {
            path_mtu: Mtu::Mtu1024,
            psn_a: 0,
            psn_b: 0,
            access: Access::ALL_RDMA,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_rd_atomic: 1,
            port_num: 1,
            sgid_index: 0,
            pkey_index: 0,
        }
    }
}
