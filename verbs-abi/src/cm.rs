//! rdma_cm: ids, events and parameters.

use std::ffi::{c_char, c_int, c_void};
use std::net::SocketAddr;

use libc::{sockaddr, sockaddr_storage, socklen_t};
use verbs_api::Gid;
use verbs_api::cm::{CmIdAttr, CmOption, CmParam, ConnData, ConnParam, UdData};

use crate::border::{Border, slice};
use crate::{
    ibv_ah_attr, ibv_comp_channel, ibv_context, ibv_cq, ibv_gid, ibv_pd, ibv_qp, ibv_srq, token,
};

structures! {
    rdma_event_channel [4] { fd: c_int }

    /// In wire order.
    rdma_ib_addr [40] { sgid: ibv_gid, dgid: ibv_gid, pkey: u16 }

    /// C has unions, of each address with that of each family, and around the last.
    rdma_addr [296] {
        src_addr = (src_addr): sockaddr_storage,
        dst_addr = (dst_addr): sockaddr_storage,
        ibaddr = addr: rdma_ib_addr,
    }

    rdma_route [312] { addr: rdma_addr, path_rec: *mut ibv_sa_path_rec, num_paths: c_int }

    /// A library may have more behind it.
    rdma_cm_id [416] {
        verbs: *mut ibv_context,
        channel: *mut rdma_event_channel,
        context: *mut c_void,
        qp: *mut ibv_qp,
        route: rdma_route,
        ps: u32,
        port_num: u8,
        event: *mut rdma_cm_event,
        send_cq_channel: *mut ibv_comp_channel,
        send_cq: *mut ibv_cq,
        recv_cq_channel: *mut ibv_comp_channel,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        pd: *mut ibv_pd,
        qp_type: u32,
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

    rdma_ud_param [56] {
        private_data: *const c_void,
        private_data_len: u8,
        ah_attr: ibv_ah_attr,
        qp_num: u32,
        qkey: u32,
    }

    rdma_cm_event [80] {
        id: *mut rdma_cm_id,
        listen_id: *mut rdma_cm_id,
        event: u32,
        status: c_int,
        param: rdma_cm_param,
    }

    rdma_addrinfo [96] {
        ai_flags: c_int,
        ai_family: c_int,
        ai_qp_type: c_int,
        ai_port_space: c_int,
        ai_src_len: socklen_t,
        ai_dst_len: socklen_t,
        ai_src_addr: *mut sockaddr,
        ai_dst_addr: *mut sockaddr,
        ai_src_canonname: *mut c_char,
        ai_dst_canonname: *mut c_char,
        ai_route_len: usize,
        ai_route: *mut c_void,
        ai_connect_len: usize,
        ai_connect: *mut c_void,
        ai_next: *mut rdma_addrinfo,
    }

    rdma_cm_join_mc_attr_ex [16] { comp_mask: u32, join_flags: u32, addr: *mut sockaddr }

    /// In wire order.
    ibv_sa_path_rec [64] {
        dgid: ibv_gid,
        sgid: ibv_gid,
        dlid: u16,
        slid: u16,
        raw_traffic: c_int,
        flow_label: u32,
        hop_limit: u8,
        traffic_class: u8,
        reversible: c_int,
        numb_path: u8,
        pkey: u16,
        sl: u8,
        mtu_selector: u8,
        mtu: u8,
        rate_selector: u8,
        rate: u8,
        packet_life_time_selector: u8,
        packet_life_time: u8,
        preference: u8,
    }
}

/// The union `param` of [`rdma_cm_event`].
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of C")]
pub union rdma_cm_param {
    pub conn: rdma_conn_param,
    pub ud: rdma_ud_param,
    /// Of [`RDMA_CM_EVENT_USER`].
    pub arg: u64,
}

constants! {
    numbers rdma_cm_event_type: u32 {
        RDMA_CM_EVENT_ADDR_RESOLVED = 0,
        RDMA_CM_EVENT_ADDR_ERROR = 1,
        RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
        RDMA_CM_EVENT_ROUTE_ERROR = 3,
        RDMA_CM_EVENT_CONNECT_REQUEST = 4,
        RDMA_CM_EVENT_CONNECT_RESPONSE = 5,
        RDMA_CM_EVENT_CONNECT_ERROR = 6,
        RDMA_CM_EVENT_UNREACHABLE = 7,
        RDMA_CM_EVENT_REJECTED = 8,
        RDMA_CM_EVENT_ESTABLISHED = 9,
        RDMA_CM_EVENT_DISCONNECTED = 10,
        RDMA_CM_EVENT_DEVICE_REMOVAL = 11,
        RDMA_CM_EVENT_MULTICAST_JOIN = 12,
        RDMA_CM_EVENT_MULTICAST_ERROR = 13,
        RDMA_CM_EVENT_ADDR_CHANGE = 14,
        RDMA_CM_EVENT_TIMEWAIT_EXIT = 15,
    }
    unseen rdma_cm_event_type: u32 {
        RDMA_CM_EVENT_ADDRINFO_RESOLVED = 16,
        RDMA_CM_EVENT_ADDRINFO_ERROR = 17,
        RDMA_CM_EVENT_USER = 18,
    }
    numbers rdma_port_space: u32 {
        RDMA_PS_IPOIB = 0x0002,
        RDMA_PS_TCP = 0x0106,
        RDMA_PS_UDP = 0x0111,
        RDMA_PS_IB = 0x013f,
    }
    flags rdma_cm_join_mc_attr_mask: u32 {
        RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
        RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
    }
    flags rdma_cm_mc_join_flags: u32 {
        RDMA_MC_JOIN_FLAG_FULLMEMBER = 0,
        RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER = 1,
    }
    unseen rdma_option_level: c_int { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 }
    unseen rdma_id_option: c_int {
        RDMA_OPTION_ID_TOS = 0,
        RDMA_OPTION_ID_REUSEADDR = 1,
        RDMA_OPTION_ID_AFONLY = 2,
        RDMA_OPTION_ID_ACK_TIMEOUT = 3,
    }
    unseen rdma_ib_option: c_int { RDMA_OPTION_IB_PATH = 1 }
    macros rdma_addrinfo_flags: c_int {
        RAI_PASSIVE = 1 << 0,
        RAI_NUMERICHOST = 1 << 1,
        RAI_NOROUTE = 1 << 2,
        RAI_FAMILY = 1 << 3,
        RAI_SA = 1 << 4,
        RAI_DNS = 1 << 5,
    }
}

// Private data, and a caller's own value in its place, are pointers, and told apart. So are the
// objects of an id.
conversions! {
    rdma_ib_addr, CmIdAttr { sgid, dgid, }
    => from |raw| { pkey: u16::from_be(raw.pkey) }
    to |attr| { pkey: attr.pkey.to_be() }

    rdma_cm_id, CmIdAttr { ps, port_num, }
    => from |raw| {
        context: raw.context as u64,
        local_addr: Border::from_c(&raw.route.addr.src_addr),
        peer_addr: raw.peer_addr(),
        sgid: Border::from_c(&raw.route.addr.ibaddr.sgid),
        dgid: raw.peer_addr().map_or_else(Gid::default, |_| Gid(raw.route.addr.ibaddr.dgid.raw)),
        pkey: u16::from_be(raw.route.addr.ibaddr.pkey),
        num_paths: Border::from_c(&raw.route.num_paths),
    }
    to |attr| {
        context: token(attr.context),
        route: rdma_route {
            addr: rdma_addr {
                src_addr: Border::to_c(&attr.local_addr),
                dst_addr: Border::to_c(&attr.peer_addr),
                ibaddr: rdma_ib_addr::to_c(attr),
            },
            num_paths: Border::to_c(&attr.num_paths),
            ..rdma_route::default()
        },
    }

    rdma_conn_param, ConnData {
        responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq, qp_num,
    }

    rdma_ud_param, UdData { ah_attr, qp_num, qkey, }
}

impl rdma_cm_id {
    /// The peer. Without one, an id that is bound has the unspecified address and port here.
    fn peer_addr(&self) -> Option<SocketAddr> {
        let found: Option<SocketAddr> = Border::from_c(&self.route.addr.dst_addr);
        found.filter(|addr| addr.port() != 0 || !addr.ip().is_unspecified())
    }
}

impl rdma_conn_param {
    /// What a program passes, with its private data.
    ///
    /// # Safety
    /// The private data is there, and stays for `'a`.
    pub unsafe fn param<'a>(&self) -> ConnParam<'a> {
        ConnParam {
            // SAFETY: the caller's promise.
            private_data: unsafe { bytes(self.private_data, self.private_data_len) },
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: self.flow_control,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            qp_num: self.qp_num,
        }
    }
}

impl From<&ConnParam<'_>> for rdma_conn_param {
    /// Good as long as the private data. What C has no room for in its length is left out.
    fn from(param: &ConnParam<'_>) -> Self {
        Self {
            private_data: start(param.private_data),
            private_data_len: length(param.private_data),
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control,
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
            srq: param.srq,
            qp_num: param.qp_num,
        }
    }
}

impl rdma_cm_param {
    /// What an event tells besides. It is nothing where C has nothing but zeros.
    ///
    /// # Safety
    /// It is of an event with this number that has not been acknowledged, of an id for datagrams or
    /// not.
    pub unsafe fn from_c(raw: &Self, event: u32, datagram: bool) -> CmParam {
        if event == RDMA_CM_EVENT_USER {
            // SAFETY: an event of a program has this one.
            return CmParam::Arg(unsafe { raw.arg });
        }
        let is_group = matches!(
            event,
            RDMA_CM_EVENT_MULTICAST_JOIN | RDMA_CM_EVENT_MULTICAST_ERROR
        );
        if !datagram && !is_group {
            // SAFETY: an event of a connection has this one, with its private data.
            let (conn, param) = unsafe { (raw.conn, raw.conn.param()) };
            let mut data = rdma_conn_param::from_c(&conn);
            data.private_data = param.private_data.to_vec();
            return if data == ConnData::default() {
                CmParam::None
            } else {
                CmParam::Conn(data)
            };
        }
        // SAFETY: other events have this one.
        let ud = unsafe { raw.ud };
        let mut data = rdma_ud_param::from_c(&ud);
        if is_group {
            data.context = ud.private_data as u64;
        } else {
            // SAFETY: such an event has its private data.
            data.private_data = unsafe { bytes(ud.private_data, ud.private_data_len) }.to_vec();
        }
        if data == UdData::default() {
            CmParam::None
        } else {
            CmParam::Ud(data)
        }
    }

    /// In C. Good as long as the private data of `param` stays where it is.
    pub fn to_c(param: &CmParam) -> Self {
        let mut made = Self::default();
        match param {
            CmParam::Conn(data) => {
                made.conn = rdma_conn_param {
                    private_data: start(&data.private_data),
                    private_data_len: length(&data.private_data),
                    ..rdma_conn_param::to_c(data)
                }
            }
            CmParam::Ud(data) => {
                made.ud = rdma_ud_param {
                    private_data: if data.private_data.is_empty() {
                        token(data.context)
                    } else {
                        start(&data.private_data)
                    },
                    private_data_len: length(&data.private_data),
                    ..rdma_ud_param::to_c(data)
                }
            }
            CmParam::Arg(arg) => made.arg = *arg,
            _ => {}
        }
        made
    }
}

impl Default for rdma_cm_param {
    fn default() -> Self {
        Self {
            ud: rdma_ud_param::default(),
        }
    }
}

/// What `rdma_set_option` takes for an option at the level `RDMA_OPTION_ID`: its name and its
/// value; none if C has no such option.
pub fn option_to_c(option: CmOption) -> Option<(c_int, Vec<u8>)> {
    let flag = |value: bool| c_int::from(value).to_ne_bytes().to_vec();
    Some(match option {
        CmOption::Tos(tos) => (RDMA_OPTION_ID_TOS, vec![tos]),
        CmOption::ReuseAddr(reuse) => (RDMA_OPTION_ID_REUSEADDR, flag(reuse)),
        CmOption::AfOnly(only) => (RDMA_OPTION_ID_AFONLY, flag(only)),
        CmOption::AckTimeout(code) => (RDMA_OPTION_ID_ACK_TIMEOUT, vec![code]),
        _ => return None,
    })
}

/// The option that `rdma_set_option` is given; none if it is not known, or its value has another
/// size.
pub fn option_from_c(level: c_int, name: c_int, value: &[u8]) -> Option<CmOption> {
    let byte = || Some(*<&[u8; 1]>::try_from(value).ok()?.first()?);
    let flag = || Some(c_int::from_ne_bytes(value.try_into().ok()?) != 0);
    match (level, name) {
        (RDMA_OPTION_ID, RDMA_OPTION_ID_TOS) => Some(CmOption::Tos(byte()?)),
        (RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR) => Some(CmOption::ReuseAddr(flag()?)),
        (RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY) => Some(CmOption::AfOnly(flag()?)),
        (RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT) => Some(CmOption::AckTimeout(byte()?)),
        _ => None,
    }
}

/// Private data. Without an address there is none, whatever its length says, as in librdmacm.
///
/// # Safety
/// `length` bytes are there, and stay for `'a`; or `length` is 0.
unsafe fn bytes<'a>(start: *const c_void, length: u8) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice(start.cast(), length.into()) }.unwrap_or_default()
}

fn start(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() {
        std::ptr::null()
    } else {
        bytes.as_ptr().cast()
    }
}

fn length(bytes: &[u8]) -> u8 {
    u8::try_from(bytes.len()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_programs_look_for_them() {
        use std::mem::offset_of;
        let id = [
            (offset_of!(rdma_cm_id, qp), 24),
            (offset_of!(rdma_cm_id, route), 32),
            (offset_of!(rdma_cm_id, ps), 344),
            (offset_of!(rdma_cm_id, port_num), 348),
            (offset_of!(rdma_cm_id, event), 352),
            (offset_of!(rdma_cm_id, send_cq), 368),
            (offset_of!(rdma_cm_id, recv_cq_channel), 376),
            (offset_of!(rdma_cm_id, srq), 392),
            (offset_of!(rdma_cm_id, pd), 400),
            (offset_of!(rdma_cm_id, qp_type), 408),
            (offset_of!(rdma_addr, dst_addr), 128),
            (offset_of!(rdma_addr, ibaddr), 256),
            (offset_of!(rdma_route, path_rec), 296),
            (offset_of!(rdma_route, num_paths), 304),
        ];
        let rest = [
            (offset_of!(rdma_cm_event, event), 16),
            (offset_of!(rdma_cm_event, param), 24),
            (offset_of!(rdma_conn_param, retry_count), 12),
            (offset_of!(rdma_conn_param, qp_num), 16),
            (offset_of!(rdma_ud_param, ah_attr), 16),
            (offset_of!(rdma_ud_param, qkey), 52),
            (offset_of!(rdma_addrinfo, ai_src_len), 16),
            (offset_of!(rdma_addrinfo, ai_route_len), 56),
            (offset_of!(rdma_addrinfo, ai_next), 88),
        ];
        for (ours, theirs) in id.into_iter().chain(rest) {
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn what_an_event_tells_survives_with_its_private_data() {
        let mut conn = ConnData::default();
        (conn.private_data, conn.qp_num) = (vec![1; 196], 17);
        let mut ud = UdData::default();
        (ud.private_data, ud.qkey) = (vec![2; 136], 3);
        let mut group = UdData::default();
        (group.context, group.qp_num) = (u64::MAX, 0xff_ffff);
        for (param, event, datagram) in [
            (CmParam::None, RDMA_CM_EVENT_ESTABLISHED, false),
            (CmParam::Conn(conn), RDMA_CM_EVENT_ESTABLISHED, false),
            (CmParam::Ud(ud), RDMA_CM_EVENT_ESTABLISHED, true),
            (CmParam::Ud(group), RDMA_CM_EVENT_MULTICAST_JOIN, true),
            (CmParam::Arg(u64::MAX), RDMA_CM_EVENT_USER, false),
        ] {
            let raw = rdma_cm_param::to_c(&param);
            // SAFETY: the private data is that of `param`.
            let there = unsafe { rdma_cm_param::from_c(&raw, event, datagram) };
            assert_eq!(there, param);
        }
    }

    #[test]
    fn what_a_program_asks_for_survives_with_its_private_data() {
        let param = ConnParam::new().private_data(b"hello");
        let raw = rdma_conn_param::from(&param);
        // SAFETY: the private data is a constant.
        assert_eq!(unsafe { raw.param() }, param);
    }

    #[test]
    fn options_survive_and_have_the_sizes_that_the_kernel_asks_for() {
        for (option, size) in [
            (CmOption::Tos(7), 1),
            (CmOption::ReuseAddr(true), 4),
            (CmOption::AfOnly(false), 4),
            (CmOption::AckTimeout(14), 1),
        ] {
            let (name, value) = option_to_c(option).unwrap();
            assert_eq!(value.len(), size);
            assert_eq!(option_from_c(RDMA_OPTION_ID, name, &value), Some(option));
            assert_eq!(option_from_c(RDMA_OPTION_ID, name, &[0; 3]), None);
        }
    }
}
