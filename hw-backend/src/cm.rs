//! Connecting queue pairs by rdma_cm, for transports that need it: both ends are in this process,
//! on one device, and meet at an address of the device's own interface.

use std::ffi::c_int;
use std::fs;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use verbs_abi::{
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_PS_TCP, ibv_qp_attr, library, rdma_cm_event, rdma_cm_id,
    rdma_conn_param, rdma_event_channel,
};
use verbs_api::{
    Cause, Error, ErrorKind, QpAttr, QpAttrMask, QpState, RcParams, Result, Verb, Wait,
};

use crate::errno::{check, errno, made};
use crate::objects::{Device, Qp};
use crate::wait::{Deadline, set_nonblocking, wait_readable};

const VERB: Verb = Verb::ConnectRc;
/// Both ends are on this machine.
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_MS: c_int = 10_000;

/// An established connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    // Ids go before their channel, in the order of the fields.
    _ids: Vec<Id>,
    _channel: EventChannel,
}

/// Connects two QPs in RESET. The kernel brings them to RTS.
pub(crate) fn connect(a: &Qp, b: &Qp, params: &RcParams) -> Result<()> {
    library::open_librdmacm().map_err(|why| {
        let cause = Cause::Text(why.to_string().into());
        Error::new(VERB, ErrorKind::NotSupported, cause)
    })?;
    let address = address_of(&a.device, params)?;
    for qp in [a, b] {
        to_init(qp, params)?;
    }
    let channel = EventChannel::new()?;
    let listener = channel.id()?;
    let client = channel.id()?;
    let mut local = socket_address(address);
    // SAFETY: the id is live; the address is a valid socket address.
    check(VERB, unsafe {
        library::rdma_bind_addr(listener.0, local.as_mut_ptr())
    })?;
    // SAFETY: the id is live and bound.
    check(VERB, unsafe { library::rdma_listen(listener.0, 1) })?;
    let mut remote = socket_address(address);
    // SAFETY: the id is live.
    let port = unsafe { library::rdma_get_src_port(listener.0) };
    remote.0.sin_port = port;
    // SAFETY: the id is live; the address is a valid socket address; no source is given.
    let resolve = unsafe {
        library::rdma_resolve_addr(
            client.0,
            std::ptr::null_mut(),
            remote.as_mut_ptr(),
            TIMEOUT_MS,
        )
    };
    check(VERB, resolve)?;
    channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED)?;
    // SAFETY: the id is live and its address resolved.
    check(VERB, unsafe {
        library::rdma_resolve_route(client.0, TIMEOUT_MS)
    })?;
    channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED)?;
    let mut param = connection_param(a, params);
    // SAFETY: the id is live and its route resolved; the QP number is that of a live QP.
    check(VERB, unsafe { library::rdma_connect(client.0, &mut param) })?;
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST)?;
    let server = Id(request);
    let mut param = connection_param(b, params);
    // SAFETY: the id came with the request; the QP number is that of a live QP.
    check(VERB, unsafe { library::rdma_accept(server.0, &mut param) })?;
    for _ in 0..2 {
        channel.expect(RDMA_CM_EVENT_ESTABLISHED)?;
    }
    drop(listener);
    let connection = Arc::new(Connection {
        _ids: vec![client, server],
        _channel: channel,
    });
    for qp in [a, b] {
        *qp.connection.lock() = Some(connection.clone());
    }
    Ok(())
}

fn to_init(qp: &Qp, params: &RcParams) -> Result<()> {
    let attr = QpAttr {
        qp_state: QpState::Init,
        port_num: params.port_num,
        pkey_index: params.pkey_index,
        qp_access_flags: params.access,
        ..QpAttr::default()
    };
    let mask =
        QpAttrMask::STATE | QpAttrMask::PORT | QpAttrMask::PKEY_INDEX | QpAttrMask::ACCESS_FLAGS;
    let mut attr = ibv_qp_attr::to_c(&attr);
    let mask = mask.bits() as c_int;
    // SAFETY: the QP is live.
    qp.raw.call(VERB, |qp| unsafe {
        library::ibv_modify_qp(qp, &mut attr, mask)
    })
}

fn connection_param(qp: &Qp, params: &RcParams) -> rdma_conn_param {
    rdma_conn_param {
        responder_resources: params.max_rd_atomic,
        initiator_depth: params.max_rd_atomic,
        retry_count: params.retry_cnt,
        rnr_retry_count: params.rnr_retry,
        srq: qp.init.srq.is_some().into(),
        qp_num: qp.qp_num,
        ..rdma_conn_param::default()
    }
}

/// An rdma_cm id.
#[derive(Debug)]
struct Id(*mut rdma_cm_id);

// SAFETY: librdmacm ids may be used from any thread.
unsafe impl Send for Id {}
// SAFETY: as above; nothing is done with a shared id.
unsafe impl Sync for Id {}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the id is live and ours. Its events have been acknowledged as they came.
        unsafe { library::rdma_destroy_id(self.0) };
    }
}

/// An rdma_cm event channel.
#[derive(Debug)]
struct EventChannel(*mut rdma_event_channel);

// SAFETY: librdmacm channels may be used from any thread.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    fn new() -> Result<Self> {
        // SAFETY: makes a new object.
        let channel = Self(made(VERB, || unsafe {
            library::rdma_create_event_channel()
        })?);
        set_nonblocking(VERB, channel.fd())?;
        Ok(channel)
    }

    fn fd(&self) -> RawFd {
        // SAFETY: the channel is live.
        unsafe { (*self.0).fd }
    }

    fn id(&self) -> Result<Id> {
        let mut id = std::ptr::null_mut();
        // SAFETY: the channel is live.
        let result =
            unsafe { library::rdma_create_id(self.0, &mut id, std::ptr::null_mut(), RDMA_PS_TCP) };
        check(VERB, result)?;
        Ok(Id(id))
    }

    /// Waits for an event of this type and acknowledges it; the id it is about.
    fn expect(&self, wanted: u32) -> Result<*mut rdma_cm_id> {
        let deadline = Deadline::new(Wait::For(TIMEOUT));
        loop {
            let mut event: *mut rdma_cm_event = std::ptr::null_mut();
            // SAFETY: the channel is live.
            if unsafe { library::rdma_get_cm_event(self.0, &mut event) } != 0 {
                match errno() {
                    libc::EAGAIN => wait_readable(VERB, self.fd(), &deadline)?,
                    libc::EINTR => {}
                    other => return Err(Error::from_raw(VERB, other)),
                }
                continue;
            }
            // SAFETY: just got, and not acknowledged yet.
            let (seen, status, id) = unsafe { ((*event).event, (*event).status, (*event).id) };
            // SAFETY: as above; it is not used afterwards.
            unsafe { library::rdma_ack_cm_event(event) };
            if seen == wanted && status == 0 {
                return Ok(id);
            }
            let text = format!("rdma_cm gave event {seen} with status {status}, not {wanted}");
            return Err(Error::new(
                VERB,
                ErrorKind::NotConnected,
                Cause::Text(text.into()),
            ));
        }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: the channel is live and ours, and its ids are gone.
        unsafe { library::rdma_destroy_event_channel(self.0) };
    }
}

struct SocketAddress(libc::sockaddr_in);

impl SocketAddress {
    fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        std::ptr::from_mut(&mut self.0).cast()
    }
}

fn socket_address(address: Ipv4Addr) -> SocketAddress {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut raw: libc::sockaddr_in = unsafe { zeroed() };
    raw.sin_family = libc::AF_INET as libc::sa_family_t;
    raw.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    SocketAddress(raw)
}

/// The IPv4 address of the interface under a device: the one whose hardware address is in the
/// device's GID.
fn address_of(device: &Device, params: &RcParams) -> Result<Ipv4Addr> {
    let gid = fs::read_to_string(format!(
        "/sys/class/infiniband/{}/ports/{}/gids/0",
        device.name, params.port_num
    ));
    let gid: String = gid
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    let hardware = gid.get(..12).unwrap_or_default();
    let interfaces = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let names = interfaces.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let under = |name: &String| {
        let address = fs::read_to_string(format!("/sys/class/net/{name}/address"));
        address.is_ok_and(|address| address.trim().replace(':', "") == hardware)
    };
    let addresses = ipv4_addresses();
    let found = names.filter(under).find_map(|name| {
        addresses
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, address)| *address)
    });
    found.ok_or_else(|| {
        let text = format!("the interface under {} has no IPv4 address", device.name);
        Error::new(VERB, ErrorKind::NotConnected, Cause::Text(text.into()))
    })
}

/// The IPv4 addresses of this machine, with the names of their interfaces.
fn ipv4_addresses() -> Vec<(String, Ipv4Addr)> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is ours to write.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    while !entry.is_null() {
        // SAFETY: an entry of a list that has not been freed.
        let (name, address, next) =
            unsafe { ((*entry).ifa_name, (*entry).ifa_addr, (*entry).ifa_next) };
        // SAFETY: an address that is there has a family, and one of that family is `sockaddr_in`;
        // the name is a string with an end.
        unsafe {
            if !address.is_null() && c_int::from((*address).sa_family) == libc::AF_INET {
                let raw = (*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                let name = std::ffi::CStr::from_ptr(name)
                    .to_string_lossy()
                    .into_owned();
                addresses.push((name, Ipv4Addr::from(raw.to_ne_bytes())));
            }
        }
        entry = next;
    }
    // SAFETY: the list came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    addresses
}
