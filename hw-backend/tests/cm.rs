//! Client and server of rdma_cm in one process, over the trait, on a real device.
//!
//! `VERBSIM_DEVICE` names the device, and `VERBSIM_ADDRESS` its address. Without them the test is
//! skipped, which it reports.
//! `./check hardware` runs it on soft-RoCE and soft-iWARP.
#![cfg(target_os = "linux")]

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use verbs_api::cm::{
    Cm, CmEvent, CmEventType as Type, CmOption, CmParam, ConnParam, PortSpace, RDMA_UDP_QKEY,
    private_data,
};
use verbs_api::{
    Access, AhAttr, BatchEnd, Capabilities, CmChannel, CmId, Context, Cq, CqInit, ErrorKind, Grh,
    Mr, Pd, Qp, QpAttrMask, QpInit, QpState, QpType, RcParams, RecvWr, Result, SendOps, SendWr,
    Sge, Transport, Verbs, Wait, Wc, WcStatus,
};
use verbs_hw::Hw;

#[test]
fn on_a_device() {
    let variable = |name| std::env::var(name).ok();
    let (device, address) = (variable("VERBSIM_DEVICE"), variable("VERBSIM_ADDRESS"));
    let (Some(device), Some(address)) = (device, address) else {
        return skip("VERBSIM_DEVICE and VERBSIM_ADDRESS name no device");
    };
    let hw = Hw::new();
    let opened = hw.open_device(&device).unwrap();
    if !hw.capabilities(opened).unwrap().contains(Capabilities::CM) {
        return skip("the machine has no rdma_cm");
    }
    let infos = Verbs::devices(&hw).unwrap();
    let info = infos.iter().find(|info| info.name == device).unwrap();
    let setup = Setup {
        hw: &hw,
        cm: hw.cm().unwrap(),
        address: address.parse().unwrap(),
        iwarp: info.transport == Transport::Iwarp,
    };
    setup.connection().unwrap();
    setup.refusal().unwrap();
    setup.own_queue_pairs().unwrap();
    setup.lives().unwrap();
    setup.threads().unwrap();
    setup.meeting(opened).unwrap();
    if !setup.iwarp {
        setup.datagrams().unwrap();
        setup.group().unwrap();
        setup.batches().unwrap();
    }
}

fn skip(reason: &str) {
    // Not by a macro: those of a test that passes are not shown.
    let text = format!("skipped: {reason}\n");
    io::stderr().write_all(text.as_bytes()).unwrap();
}

/// Long on an emulated machine.
const SOON: Duration = Duration::from_secs(30);

struct Setup<'a> {
    hw: &'a dyn Verbs,
    cm: &'a dyn Cm,
    address: IpAddr,
    iwarp: bool,
}

/// A client that waits for the answer to its request, and the server's id for it.
struct Asked {
    channel: CmChannel,
    listener: CmId,
    client: CmId,
    server: CmId,
    request: CmEvent,
}

/// A queue pair with a region and its CQ.
struct End {
    cq: Cq,
    mr: Mr,
    lkey: u32,
    addr: u64,
}

impl Setup<'_> {
    /// Private data and resources go both ways, then messages; each side learns of the end.
    fn connection(&self) -> Result<()> {
        let Self { cm, hw, .. } = self;
        let param = ConnParam {
            responder_resources: 3,
            initiator_depth: 2,
            ..ConnParam::new()
        };
        let asked = self.asked(
            PortSpace::Tcp,
            Some(QpType::Rc),
            &param.private_data(b"hello"),
        )?;
        let (client, server) = (asked.client, asked.server);
        self.shows(&asked.request, b"hello", private_data::REQ);
        assert_eq!(asked.request.listen_id, Some(asked.listener));
        let CmParam::Conn(conn) = &asked.request.param else {
            panic!("{:?}", asked.request)
        };
        assert_eq!((conn.responder_resources, conn.initiator_depth), (2, 3));
        let at_listener = cm.query_id(asked.listener)?;
        let at_server = cm.query_id(server)?;
        let at_client = cm.query_id(client)?;
        assert_eq!(at_server.context, at_listener.context);
        assert_eq!(at_server.peer_addr, at_client.local_addr);
        assert_eq!(at_server.local_addr, at_client.peer_addr);
        assert_eq!(
            (at_server.verbs, at_server.pd),
            (at_client.verbs, at_client.pd)
        );

        let far = self.qp(server, QpType::Rc)?;
        let near = at_client.qp.unwrap();
        let pd = at_client.pd.unwrap();
        let [near_end, far_end] = [self.end(pd, near)?, self.end(pd, far)?];
        for (qp, end) in [(near, &near_end), (far, &far_end)] {
            self.receive(qp, end)?;
        }
        cm.accept(server, &ConnParam::new().private_data(b"welcome"))?;
        self.states(far, QpState::Rts)?;
        for _ in 0..2 {
            let event = self.expect(asked.channel, Type::Established)?;
            if event.id == client {
                self.shows(&event, b"welcome", private_data::REP);
            } else {
                assert_eq!((event.id, event.private_data()), (server, &b""[..]));
            }
        }
        self.states(near, QpState::Rts)?;
        self.sends(near, &near_end, &far_end, None)?;
        self.sends(far, &far_end, &near_end, None)?;

        cm.disconnect(client)?;
        self.states(near, QpState::Err)?;
        if !self.iwarp {
            let event = self.expect(asked.channel, Type::Disconnected)?;
            assert_eq!(event.id, server);
            self.states(far, QpState::Rts)?;
            cm.disconnect(server)?;
            self.states(far, QpState::Err)?;
            assert_eq!(self.expect(asked.channel, Type::Disconnected)?.id, client);
        } else {
            for _ in 0..2 {
                self.expect(asked.channel, Type::Disconnected)?;
            }
        }
        for end in [near_end, far_end] {
            hw.dereg_mr(end.mr)?;
        }
        self.close(asked)
    }

    /// A refusal carries its private data, and so does the end of the id. Without a listener the
    /// request is rejected.
    fn refusal(&self) -> Result<()> {
        let Self { cm, .. } = self;
        let status = if self.iwarp { -libc::ECONNRESET } else { 28 };
        for data in [Some(b"no"), None] {
            let asked = self.asked(PortSpace::Tcp, Some(QpType::Rc), &ConnParam::new())?;
            match data {
                Some(data) => cm.reject(asked.server, data)?,
                None => cm.destroy_id(asked.server, Wait::Poll)?,
            }
            let event = self.expect_status(asked.channel, Type::Rejected, status)?;
            if let Some(data) = data {
                self.shows(&event, data, private_data::REJ);
            }
            self.states(cm.query_id(asked.client)?.qp.unwrap(), QpState::Err)?;
            self.close(asked)?;
        }
        let channel = cm.create_event_channel()?;
        let client = self.resolved(channel, PortSpace::Tcp, SocketAddr::new(self.address, 9))?;
        self.qp(client, QpType::Rc)?;
        let asks = cm.connect(client, &ConnParam::new());
        if self.iwarp {
            assert_eq!(asks.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        } else {
            asks?;
            self.expect_status(channel, Type::Rejected, 8)?;
        }
        self.destroy(&[client])?;
        cm.destroy_event_channel(channel)
    }

    /// A program makes its own queue pairs, and sets them as rdma_cm says.
    fn own_queue_pairs(&self) -> Result<()> {
        let Self { cm, hw, .. } = self;
        let channel = cm.create_event_channel()?;
        let (listener, at) = self.listener(channel, PortSpace::Tcp)?;
        let client = self.resolved(channel, PortSpace::Tcp, at)?;
        let (context, pd) = self.device(client)?;
        let cq = hw.create_cq(context, &CqInit::new(4))?;
        let made = || hw.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq));
        let [near, far] = [made()?, made()?];
        let set = |id, qp, states: &[QpState]| {
            states.iter().try_for_each(|state| {
                let (attr, mask) = cm.init_qp_attr(id, *state)?;
                hw.modify_qp(qp, &attr, mask)
            })
        };
        let param = |qp| -> Result<_> {
            Ok(ConnParam {
                qp_num: hw.qp_num(qp)?,
                ..ConnParam::new()
            })
        };
        set(client, near, &[QpState::Init])?;
        cm.connect(client, &param(near)?)?;
        let request = self.expect(channel, Type::ConnectRequest)?;
        let all = [QpState::Init, QpState::Rtr, QpState::Rts];
        let all = if self.iwarp { &all[..1] } else { &all };
        set(request.id, far, all)?;
        cm.accept(request.id, &param(far)?)?;
        if !self.iwarp {
            let response = self.expect(channel, Type::ConnectResponse)?;
            assert_eq!(response.id, client);
            set(client, near, &[QpState::Rtr, QpState::Rts])?;
            cm.establish(client)?;
            assert_eq!(self.expect(channel, Type::Established)?.id, request.id);
        } else {
            for _ in 0..2 {
                self.expect(channel, Type::Established)?;
            }
        }
        for qp in [near, far] {
            self.states(qp, QpState::Rts)?;
        }
        for id in [client, request.id] {
            cm.destroy_id(id, Wait::Poll)?;
        }
        for qp in [near, far] {
            hw.destroy_qp(qp, Wait::Poll)?;
        }
        hw.destroy_cq(cq, Wait::Poll)?;
        self.destroy(&[listener])?;
        cm.destroy_event_channel(channel)
    }

    /// Calls that would make C crash, wait forever or access freed memory are refused.
    fn lives(&self) -> Result<()> {
        let Self { cm, hw, .. } = self;
        let kind = |result: Result<()>| result.unwrap_err().kind();
        let asked = self.asked(PortSpace::Tcp, Some(QpType::Rc), &ConnParam::new())?;
        let (channel, client) = (asked.channel, asked.client);
        let (context, pd) = self.device(client)?;
        let qp = cm.query_id(client)?.qp.unwrap();
        assert!(cm.cm_devices()?.contains(&context));
        assert_eq!(kind(hw.close_device(context)), ErrorKind::Usage);
        assert_eq!(kind(hw.dealloc_pd(pd)), ErrorKind::Usage);
        assert_eq!(kind(hw.destroy_qp(qp, Wait::Poll)), ErrorKind::Usage);
        assert_eq!(kind(cm.destroy_id(client, Wait::Poll)), ErrorKind::Busy);
        assert_eq!(kind(cm.destroy_event_channel(channel)), ErrorKind::Busy);
        assert_eq!(kind(cm.ack_cm_event(&asked.request)), ErrorKind::Usage);

        let cq = hw.create_cq(context, &CqInit::new(4))?;
        let bare = cm.create_id(channel, 0, PortSpace::Tcp)?;
        let init = QpInit::new(QpType::Rc, cq, cq);
        assert_eq!(
            kind(cm.create_cm_qp(bare, None, &init).map(drop)),
            ErrorKind::Invalid
        );
        assert_eq!(
            kind(cm.connect(bare, &ConnParam::new())),
            ErrorKind::Invalid
        );
        assert_eq!(kind(cm.accept(bare, &ConnParam::new())), ErrorKind::Invalid);
        assert_eq!(kind(cm.resolve_route(bare, SOON)), ErrorKind::Invalid);
        let long = ConnParam::new().private_data(&[0; 256]);
        assert_eq!(kind(cm.connect(client, &long)), ErrorKind::Invalid);
        cm.set_option(bare, CmOption::ReuseAddr(true))?;
        cm.destroy_id(bare, Wait::Poll)?;
        assert_eq!(kind(cm.listen(bare, 1)), ErrorKind::Invalid);
        hw.destroy_cq(cq, Wait::Poll)?;

        cm.reject(asked.server, b"")?;
        let event = cm.get_cm_event(channel, Wait::For(SOON))?;
        cm.destroy_cm_qp(client, Wait::Poll)?;
        assert_eq!(
            kind(cm.destroy_id(client, Wait::Poll)),
            ErrorKind::WouldBlock
        );
        let other = cm.create_event_channel()?;
        assert_eq!(
            kind(cm.migrate_id(client, other, Wait::Poll)),
            ErrorKind::WouldBlock
        );
        let moment = Wait::For(Duration::from_millis(10));
        assert_eq!(kind(cm.destroy_id(client, moment)), ErrorKind::TimedOut);
        cm.ack_cm_event(&event)?;
        cm.migrate_id(client, other, Wait::Poll)?;
        assert_eq!(cm.query_id(client)?.channel, other);
        self.close(asked)?;
        cm.destroy_event_channel(other)
    }

    /// A wait for an event, and one for its acknowledgement, end when another thread brings it.
    fn threads(&self) -> Result<()> {
        let Self { cm, .. } = self;
        let channel = cm.create_event_channel()?;
        let (listener, at) = self.listener(channel, PortSpace::Tcp)?;
        let client = cm.create_id(channel, 0, PortSpace::Tcp)?;
        let event = thread::scope(|scope| {
            let waits = scope.spawn(|| cm.get_cm_event(channel, Wait::Forever));
            cm.resolve_addr(client, None, at, SOON)?;
            waits.join().unwrap()
        })?;
        assert_eq!(event.event, Type::AddrResolved);
        thread::scope(|scope| {
            let goes = scope.spawn(|| cm.destroy_id(client, Wait::Forever));
            cm.ack_cm_event(&event)?;
            goes.join().unwrap()
        })?;
        self.destroy(&[listener])?;
        cm.destroy_event_channel(channel)
    }

    /// Queue pairs of one process are connected, by rdma_cm where attributes do not do it.
    fn meeting(&self, context: Context) -> Result<()> {
        let hw = self.hw;
        let pd = hw.alloc_pd(context)?;
        let cqs = [
            hw.create_cq(context, &CqInit::new(4))?,
            hw.create_cq(context, &CqInit::new(4))?,
        ];
        let [near, far] = cqs.map(|cq| hw.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap());
        let [near_end, far_end] = [self.end(pd, near)?, self.end(pd, far)?];
        hw.connect_rc(near, far, &RcParams::default())?;
        self.receive(far, &far_end)?;
        self.sends(near, &near_end, &far_end, None)?;
        for (qp, end) in [(near, near_end), (far, far_end)] {
            hw.destroy_qp(qp, Wait::Poll)?;
            hw.destroy_cq(end.cq, Wait::Poll)?;
            hw.dereg_mr(end.mr)?;
        }
        hw.dealloc_pd(pd)
    }

    /// A client learns the server's queue pair, and a datagram goes there.
    fn datagrams(&self) -> Result<()> {
        let Self { cm, hw, .. } = self;
        let param = ConnParam::new().private_data(b"where");
        let asked = self.asked(PortSpace::Udp, Some(QpType::Ud), &param)?;
        self.shows(&asked.request, b"where", private_data::SIDR_REQ);
        let far = self.qp(asked.server, QpType::Ud)?;
        let near = cm.query_id(asked.client)?.qp.unwrap();
        let pd = self.device(asked.client)?.1;
        let [near_end, far_end] = [self.end(pd, near)?, self.end(pd, far)?];
        self.states(far, QpState::Rts)?;
        self.receive(far, &far_end)?;
        cm.accept(asked.server, &ConnParam::new().private_data(b"here"))?;
        let event = self.expect(asked.channel, Type::Established)?;
        self.shows(&event, b"here", private_data::SIDR_REP);
        let CmParam::Ud(to) = &event.param else {
            panic!("{event:?}")
        };
        assert_eq!(
            (event.id, to.qp_num, to.qkey),
            (asked.client, hw.qp_num(far)?, RDMA_UDP_QKEY)
        );
        self.sends(near, &near_end, &far_end, Some((pd, to.ah_attr, to.qp_num)))?;
        for end in [near_end, far_end] {
            hw.dereg_mr(end.mr)?;
        }
        self.close(asked)
    }

    /// The event of a group says where to send; a group is left once.
    fn group(&self) -> Result<()> {
        let Self { cm, .. } = self;
        let channel = cm.create_event_channel()?;
        let id = cm.create_id(channel, 0, PortSpace::Udp)?;
        cm.bind_addr(id, SocketAddr::new(self.address, 0))?;
        self.qp(id, QpType::Ud)?;
        let group = "239.1.2.3:0".parse().unwrap();
        cm.join_multicast(id, group, 7)?;
        let event = cm.get_cm_event(channel, Wait::For(SOON))?;
        assert_eq!((event.event, event.status), (Type::MulticastJoin, 0));
        let CmParam::Ud(to) = &event.param else {
            panic!("{event:?}")
        };
        assert_eq!(
            (to.context, to.qp_num, to.qkey),
            (7, 0xff_ffff, RDMA_UDP_QKEY)
        );
        assert!(to.ah_attr.grh.is_some());
        let early = cm.leave_multicast(id, group).unwrap_err();
        assert_eq!(early.kind(), ErrorKind::WouldBlock);
        cm.ack_cm_event(&event)?;
        cm.leave_multicast(id, group)?;
        let twice = cm.leave_multicast(id, group).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::AddressNotAvailable);
        self.destroy(&[id])?;
        cm.destroy_event_channel(channel)
    }

    /// A queue pair of an id takes what the extended attributes ask for.
    fn batches(&self) -> Result<()> {
        let Self { cm, hw, .. } = self;
        let channel = cm.create_event_channel()?;
        let id = cm.create_id(channel, 0, PortSpace::Udp)?;
        cm.bind_addr(id, SocketAddr::new(self.address, 0))?;
        let (context, pd) = self.device(id)?;
        let cq = hw.create_cq(context, &CqInit::new(4))?;
        let init = QpInit::new(QpType::Ud, cq, cq).send_ops(SendOps::SEND);
        let qp = cm.create_cm_qp(id, Some(pd), &init)?;
        assert_eq!(cm.query_id(id)?.qp, Some(qp));
        self.states(qp, QpState::Rts)?;
        hw.post_batch(qp, &[], BatchEnd::Complete)?;
        self.destroy(&[id])?;
        cm.destroy_event_channel(channel)
    }
}

/// Steps.
impl Setup<'_> {
    fn asked(&self, ps: PortSpace, qp: Option<QpType>, param: &ConnParam<'_>) -> Result<Asked> {
        let channel = self.cm.create_event_channel()?;
        let (listener, at) = self.listener(channel, ps)?;
        let client = self.resolved(channel, ps, at)?;
        if let Some(qp_type) = qp {
            self.qp(client, qp_type)?;
        }
        self.cm.connect(client, param)?;
        let request = self.expect(channel, Type::ConnectRequest)?;
        Ok(Asked {
            channel,
            listener,
            client,
            server: request.id,
            request,
        })
    }

    fn close(&self, asked: Asked) -> Result<()> {
        self.destroy(&[asked.client, asked.server, asked.listener])?;
        self.cm.destroy_event_channel(asked.channel)
    }

    /// Destroys ids with their queue pairs, if these still exist.
    fn destroy(&self, ids: &[CmId]) -> Result<()> {
        for id in ids {
            let Ok(attr) = self.cm.query_id(*id) else {
                continue;
            };
            if let Some(qp) = attr.qp {
                let cq = self.hw.query_qp(qp, QpAttrMask::STATE)?.init.send_cq;
                self.cm.destroy_cm_qp(*id, Wait::Poll)?;
                self.hw.destroy_cq(cq, Wait::Poll)?;
            }
            self.cm.destroy_id(*id, Wait::Poll)?;
        }
        Ok(())
    }

    fn listener(&self, channel: CmChannel, ps: PortSpace) -> Result<(CmId, SocketAddr)> {
        let listener = self.cm.create_id(channel, 77, ps)?;
        self.cm
            .bind_addr(listener, SocketAddr::new(self.address, 0))?;
        self.cm.listen(listener, 8)?;
        Ok((listener, self.cm.query_id(listener)?.local_addr.unwrap()))
    }

    fn resolved(&self, channel: CmChannel, ps: PortSpace, at: SocketAddr) -> Result<CmId> {
        let client = self.cm.create_id(channel, 0, ps)?;
        self.cm.resolve_addr(client, None, at, SOON)?;
        self.expect(channel, Type::AddrResolved)?;
        self.cm.resolve_route(client, SOON)?;
        self.expect(channel, Type::RouteResolved)?;
        Ok(client)
    }

    fn device(&self, id: CmId) -> Result<(Context, Pd)> {
        let attr = self.cm.query_id(id)?;
        Ok((attr.verbs.unwrap(), attr.pd.unwrap()))
    }

    fn qp(&self, id: CmId, qp_type: QpType) -> Result<Qp> {
        let cq = self.hw.create_cq(self.device(id)?.0, &CqInit::new(8))?;
        self.cm
            .create_cm_qp(id, None, &QpInit::new(qp_type, cq, cq))
    }

    fn end(&self, pd: Pd, qp: Qp) -> Result<End> {
        let mr = self.hw.alloc_mr(pd, 128, Access::LOCAL_WRITE)?;
        let attr = self.hw.query_mr(mr)?;
        let cq = self.hw.query_qp(qp, QpAttrMask::STATE)?.init.send_cq;
        Ok(End {
            cq,
            mr,
            lkey: attr.lkey,
            addr: attr.addr,
        })
    }

    /// The next event, acknowledged.
    fn expect(&self, channel: CmChannel, wanted: Type) -> Result<CmEvent> {
        self.expect_status(channel, wanted, 0)
    }

    fn expect_status(&self, channel: CmChannel, wanted: Type, status: i32) -> Result<CmEvent> {
        let event = self.cm.get_cm_event(channel, Wait::For(SOON))?;
        self.cm.ack_cm_event(&event)?;
        assert_eq!((event.event, event.status), (wanted, status), "{event}");
        Ok(event)
    }

    /// The private data of an event: padded with zeros where the transport pads it.
    fn shows(&self, event: &CmEvent, data: &[u8], room: usize) {
        let length = if self.iwarp { data.len() } else { room };
        let (start, rest) = event.private_data().split_at(data.len());
        assert_eq!((start, data.len() + rest.len()), (data, length), "{event}");
        assert!(rest.iter().all(|byte| *byte == 0));
    }

    /// The state of a queue pair, where the driver tells: soft-iWARP does not.
    fn states(&self, qp: Qp, wanted: QpState) -> Result<()> {
        if !self.iwarp {
            let query = self.hw.query_qp(qp, QpAttrMask::STATE)?;
            assert_eq!(query.attr.qp_state, wanted);
        }
        Ok(())
    }

    fn receive(&self, qp: Qp, end: &End) -> Result<()> {
        let into = [Sge {
            addr: end.addr + 64,
            length: 64,
            lkey: end.lkey,
        }];
        Ok(self.hw.post_recv(qp, &[RecvWr::new(2, &into)])?)
    }

    /// Sends 16 bytes and finds them there, behind the room for a header if they are a datagram.
    fn sends(&self, qp: Qp, from: &End, to: &End, ud: Option<(Pd, AhAttr, u32)>) -> Result<()> {
        let hw = self.hw;
        let mut got = [0; 16];
        hw.write_mr(from.mr, 0, b"sixteen bytes...")?;
        let bytes = [Sge {
            addr: from.addr,
            length: 16,
            lkey: from.lkey,
        }];
        let mut send = SendWr::send(1, &bytes);
        let mut ah = None;
        if let Some((pd, attr, qp_num)) = ud {
            let made = hw.create_ah(pd, &attr)?;
            send = send.to(made, qp_num, RDMA_UDP_QKEY);
            ah = Some(made);
        }
        hw.post_send(qp, &[send])?;
        for end in [from, to] {
            let done = self.completion(end.cq)?;
            assert_eq!(done.status, WcStatus::Success);
        }
        let header = if ah.is_some() { Grh::BYTES } else { 0 };
        hw.read_mr(to.mr, 64 + header, &mut got)?;
        assert_eq!(&got, b"sixteen bytes...");
        ah.map_or(Ok(()), |ah| hw.destroy_ah(ah))
    }

    fn completion(&self, cq: Cq) -> Result<Wc> {
        let mut wc = [Wc::default()];
        for _ in 0..SOON.as_millis() {
            if self.hw.poll_cq(cq, &mut wc)? == 1 {
                return Ok(wc[0]);
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("no completion in {SOON:?}")
    }
}
