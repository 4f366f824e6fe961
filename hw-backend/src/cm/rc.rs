//! Connecting two queue pairs by rdma_cm, for transports that need it: both ends are in this process,
//! on one device, and meet at an address of the device's own interface.

use std::ffi::c_int;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use verbs_api::cm::{Cm, CmEventType, ConnParam, PortSpace};
use verbs_api::{
    Cause, CmChannel, CmId, Error, ErrorKind, Qp as QpHandle, QpAttr, QpAttrMask, QpState,
    RcParams, Result, Verb, Verbs, Wait,
};

use super::objects::Connection;
use crate::hw::Hw;
use crate::objects::{Device, Qp};

const VERB: Verb = Verb::ConnectRc;
/// Both ends are on this machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects two QPs in RESET. The kernel brings them to RTS.
pub(crate) fn meet(hw: &Hw, a: QpHandle, b: QpHandle, params: &RcParams) -> Result<()> {
    let (end_a, end_b) = (hw.qp(VERB, a)?, hw.qp(VERB, b)?);
    let address = address_of(&end_a.device, params.port_num)?;
    let mut meeting = Meeting::new(hw)?;
    for qp in [a, b] {
        to_init(hw, qp, params)?;
    }
    let [listener, client] = [meeting.id()?, meeting.id()?];
    hw.bind_addr(listener, SocketAddr::new(address.into(), 0))?;
    hw.listen(listener, 1)?;
    let at = hw.query_id(listener)?.local_addr;
    let at = at.ok_or_else(|| not_connected("the listener has no address".to_owned()))?;
    hw.resolve_addr(client, None, at, TIMEOUT)?;
    meeting.expect(CmEventType::AddrResolved)?;
    hw.resolve_route(client, TIMEOUT)?;
    meeting.expect(CmEventType::RouteResolved)?;
    hw.connect(client, &param(&end_a, params))?;
    let server = meeting.expect(CmEventType::ConnectRequest)?;
    meeting.ids.push(server);
    hw.accept(server, &param(&end_b, params))?;
    for _ in 0..2 {
        meeting.expect(CmEventType::Established)?;
    }
    let connection = Arc::new(Connection {
        _ids: [client, server]
            .into_iter()
            .filter_map(|id| hw.manager().take_id(id))
            .collect(),
        _channel: hw.manager().take_channel(meeting.channel),
    });
    for qp in [end_a, end_b] {
        *qp.connection.lock() = Some(connection.clone());
    }
    Ok(())
}

fn to_init(hw: &Hw, qp: QpHandle, params: &RcParams) -> Result<()> {
    let attr = QpAttr {
        qp_state: QpState::Init,
        port_num: params.port_num,
        pkey_index: params.pkey_index,
        qp_access_flags: params.access,
        ..QpAttr::default()
    };
    let mask =
        QpAttrMask::STATE | QpAttrMask::PORT | QpAttrMask::PKEY_INDEX | QpAttrMask::ACCESS_FLAGS;
    hw.modify_qp(qp, &attr, mask)
}
fn param(qp: &Qp, params: &RcParams) -> ConnParam<'static> {
    ConnParam {
        responder_resources: params.max_rd_atomic,
        initiator_depth: params.max_rd_atomic,
        retry_count: params.retry_cnt,
        rnr_retry_count: params.rnr_retry,
        srq: qp.init.srq.is_some().into(),
        qp_num: qp.qp_num,
        ..ConnParam::default()
    }
}

/// What connecting needs. Its objects go with it, but for those that were taken out.
struct Meeting<'a> {
    hw: &'a Hw,
    channel: CmChannel,
    ids: Vec<CmId>,
}

impl<'a> Meeting<'a> {
    fn new(hw: &'a Hw) -> Result<Self> {
        Ok(Self {
            hw,
            channel: hw.create_event_channel()?,
            ids: Vec::new(),
        })
    }

    fn id(&mut self) -> Result<CmId> {
        let id = self.hw.create_id(self.channel, 0, PortSpace::Tcp)?;
        self.ids.push(id);
        Ok(id)
    }

    /// Waits for an event of this type and acknowledges it; the id it is about.
    fn expect(&self, wanted: CmEventType) -> Result<CmId> {
        let event = self.hw.get_cm_event(self.channel, Wait::For(TIMEOUT))?;
        self.hw.ack_cm_event(&event)?;
        if event.event == wanted && event.status == 0 {
            return Ok(event.id);
        }
        Err(not_connected(format!("rdma_cm gave {event}, not {wanted}")))
    }
}

impl Drop for Meeting<'_> {
    fn drop(&mut self) {
        for id in &self.ids {
            self.hw.manager().take_id(*id);
        }
        self.hw.manager().take_channel(self.channel);
    }
}

fn not_connected(text: String) -> Error {
    Error::new(VERB, ErrorKind::NotConnected, Cause::Text(text.into()))
}

/// The IPv4 address of the interface under a device: the one whose hardware address is in the
/// device's GID.
fn address_of(device: &Device, port_num: u8) -> Result<Ipv4Addr> {
    let gid = fs::read_to_string(format!(
        "/sys/class/infiniband/{}/ports/{}/gids/0",
        device.name, port_num
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
        not_connected(format!(
            "the interface under {} has no IPv4 address",
            device.name
        ))
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
