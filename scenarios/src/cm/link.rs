//! Two sides that connect.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::fs;

use verbs_api::cm::{Cm, CmChannel, CmEvent, CmEventType, CmId, CmIdAttr, ConnParam, PortSpace};
use verbs_api::{
    Access, Context, CqInit, Handle, Pd, QpAttr, QpAttrMask, QpState, QpType, Transport, Wait,
};

use crate::asked;
use crate::claim::{self, Claim};
use crate::end::end_by;
use crate::failure::check;
use crate::setup::is_nothing;
use crate::{End, EndParts, Failure, OfRule, Pair, PairOptions, Result, Setup};

/// Time to resolve what leads somewhere.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// Virtual time for what must not come.
const QUIET: Duration = Duration::from_millis(50);

/// One side: its device, its address, and where its events go.
#[derive(Clone, Copy)]
pub(super) struct Side<'b> {
    pub(super) setup: &'b Setup<'b>,
    pub(super) cm: &'b dyn Cm,
    /// The context that ids which are bound to the device have.
    pub(super) verbs: Context,
    pub(super) ip: IpAddr,
    pub(super) channel: CmChannel,
}

/// The server, on the first device, and the client, on the other if there is one.
pub(super) fn sides<'b>(setup: &'b Setup<'_>) -> Result<[Side<'b>; 2]> {
    Ok([side(setup, setup.ctx_a())?, side(setup, setup.ctx_b())?])
}

pub(super) fn manager<'b>(setup: &'b Setup<'_>) -> &'b dyn Cm {
    setup.require(verbs_api::Capabilities::CM);
    let cm = setup.cm();
    cm.expect("capability cm comes with rdma_cm")
}

fn side<'b>(setup: &'b Setup<'_>, opened: Context) -> Result<Side<'b>> {
    let cm = manager(setup);
    let guid = |context| Ok::<_, Failure>(setup.query_device(context)?.node_guid);
    let own = guid(opened)?;
    let is_own = |context: &Context| guid(*context).is_ok_and(|of| of == own);
    let verbs = cm.cm_devices()?.into_iter().find(is_own);
    let verbs = verbs.ok_or_else(|| Failure::assertion("a context of the device", "none"))?;
    let channel = cm.create_event_channel()?;
    let leads_there = |ip: &IpAddr| {
        let id = cm.create_id(channel, 0, PortSpace::Tcp)?;
        let bound = cm.bind_addr(id, SocketAddr::new(*ip, 0));
        let at = bound.and_then(|()| cm.query_id(id));
        cm.destroy_id(id, setup.wait())?;
        let port = setup.port();
        Ok::<_, Failure>(at.is_ok_and(|at| at.verbs == Some(verbs) && at.port_num == port))
    };
    for ip in addresses(setup, verbs)? {
        if leads_there(&ip)? {
            return Ok(Side {
                setup,
                cm,
                verbs,
                ip,
                channel,
            });
        }
    }
    Err(Failure::assertion("an address of the device", "none"))
}

/// What may be addresses of IPv4 of a port: those of its GIDs, or else of IPoIB, which are in no
/// table of the device: of simulated ones, or of this machine.
fn addresses(setup: &Setup<'_>, verbs: Context) -> Result<impl Iterator<Item = IpAddr>> {
    let port = setup.port();
    let table = setup.query_port(verbs, port)?.gid_tbl_len;
    let own = u32::from(setup.place().sgid_index);
    let gids = [own].into_iter().chain(0..table);
    let of_gids = gids.filter_map(move |index| setup.query_gid(verbs, port, index).ok()?.ipv4());
    let devices = 0..setup.devices()?.len() as u16;
    let simulated = devices.map(move |device| {
        let [high, low] = device.to_be_bytes();
        Ipv4Addr::new(10, high, low, port)
    });
    let all = of_gids.chain(simulated).chain(of_machine());
    Ok(all.map(IpAddr::from))
}

/// The addresses of this machine, as Linux lists them.
fn of_machine() -> Vec<Ipv4Addr> {
    let table = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let lines: Vec<_> = table.lines().map(str::trim).collect();
    let is_own = |pair: &&[&str]| pair[1] == "/32 host LOCAL";
    let own = lines.windows(2).filter(is_own);
    own.filter_map(|pair| pair[0].strip_prefix("|-- ")?.parse().ok())
        .collect()
}

impl<'b> Side<'b> {
    /// An address of this side.
    pub(super) fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, port)
    }

    pub(super) fn id(&self, ps: PortSpace) -> Result<CmId> {
        Ok(self.cm.create_id(self.channel, 0, ps)?)
    }

    /// An id with the address of this side, and a port that was chosen.
    pub(super) fn bound(&self, ps: PortSpace) -> Result<(CmId, SocketAddr)> {
        let id = self.id(ps)?;
        self.cm.bind_addr(id, self.at(0))?;
        Ok((id, self.local(id)?))
    }

    /// One that listens.
    pub(super) fn listener(&self, ps: PortSpace) -> Result<(CmId, SocketAddr)> {
        let (id, at) = self.bound(ps)?;
        self.cm.listen(id, 0)?;
        Ok((id, at))
    }

    /// One with a route to there.
    pub(super) fn routed(&self, ps: PortSpace, to: SocketAddr) -> Result<CmId> {
        let id = self.id(ps)?;
        self.route(id, to)?;
        Ok(id)
    }

    /// Gives an id a route to there.
    pub(super) fn route(&self, id: CmId, to: SocketAddr) -> Result {
        let src = self.at(0);
        let src = self.attr(id)?.local_addr.is_none().then_some(src);
        self.cm.resolve_addr(id, src, to, SOON)?;
        self.expect(CmEventType::AddrResolved, id, Claim::NONE)?;
        self.cm.resolve_route(id, SOON)?;
        self.expect(CmEventType::RouteResolved, id, Claim::NONE)?;
        Ok(())
    }

    pub(super) fn attr(&self, id: CmId) -> Result<CmIdAttr> {
        Ok(self.cm.query_id(id)?)
    }

    /// The address that an id is bound to.
    pub(super) fn local(&self, id: CmId) -> Result<SocketAddr> {
        let local = self.attr(id)?.local_addr;
        local.ok_or_else(|| Failure::assertion(format!("{id} is bound"), "it is not"))
    }

    /// An end with a queue pair of an id, in the domain that comes with the id.
    pub(super) fn end(&self, id: CmId) -> Result<End<'b>> {
        self.end_in(id, None)
    }

    /// An end for `id` in the protection domain `pd`.
    pub(super) fn end_in(&self, id: CmId, pd: Option<Pd>) -> Result<End<'b>> {
        let Self { setup, cm, .. } = *self;
        let attr = self.attr(id)?;
        let own = attr.pd.unwrap_or_default();
        let qp_type = if attr.ps.is_datagram() {
            QpType::Ud
        } else {
            QpType::Rc
        };
        let mut options = PairOptions::of(qp_type);
        options.access |= Access::REMOTE_ATOMIC;
        let mr = setup.alloc_mr(pd.unwrap_or(own), options.mem, options.access)?;
        let cq = CqInit::new(setup.fitting(options).recv_cqe);
        let [send_cq, recv_cq] = [(); 2].map(|()| setup.create_cq(own.context(), &cq));
        let parts = EndParts {
            pd: pd.unwrap_or(own),
            mr,
            send_cq: send_cq?,
            recv_cq: recv_cq?,
            srq: None,
        };
        end_by(setup, parts, options, |init| {
            setup.cm_qp(init, cm.create_cm_qp(id, pd, init))
        })
    }

    /// Whether its devices are of iWARP.
    pub(super) fn is_iwarp(&self) -> Result<bool> {
        let devices = self.setup.devices()?;
        Ok(devices
            .first()
            .is_some_and(|device| device.transport == Transport::Iwarp))
    }

    /// Removes an id and its queue pair.
    pub(super) fn destroy(&self, id: CmId) -> Result {
        let wait = self.setup.wait();
        if self.attr(id)?.qp.is_some() {
            self.cm.destroy_cm_qp(id, wait)?;
        }
        Ok(self.cm.destroy_id(id, wait)?)
    }

    /// Lets a client ask, with a queue pair of its own: iWARP has no connection without one.
    pub(super) fn ask(&self, id: CmId) -> Result {
        self.end(id)?;
        Ok(self.cm.connect(id, &ConnParam::new())?)
    }

    /// The next event, which is not acknowledged.
    pub(super) fn take(&self) -> Result<CmEvent> {
        Ok(self.cm.get_cm_event(self.channel, self.setup.wait())?)
    }

    /// The next event that is not the last of a connection that was.
    pub(super) fn next(&self) -> Result<CmEvent> {
        loop {
            let event = self.take()?;
            self.cm.ack_cm_event(&event)?;
            if event.event != CmEventType::TimewaitExit {
                return Ok(event);
            }
        }
    }

    /// The next event, which must be this one.
    pub(super) fn expect(
        &self,
        kind: CmEventType,
        id: CmId,
        rule: impl Into<Claim>,
    ) -> Result<CmEvent> {
        let rule = claim::record(rule);
        let expected = format!("{kind} {id}");
        let event = self.next().map_err(|failure| Failure {
            expected: expected.clone(),
            ..failure
        });
        let event = event.rule(rule)?;
        let is_it = event.event == kind && event.id == id;
        check!(rule, is_it, expected, "{event}");
        Ok(event)
    }

    /// The next event, which must be a request that came to this id.
    pub(super) fn request(&self, listener: CmId, rule: impl Into<Claim>) -> Result<CmEvent> {
        let rule = claim::record(rule);
        let event = self.next().rule(rule)?;
        let kind = CmEventType::ConnectRequest;
        let is_it = event.event == kind && event.listen_id == Some(listener);
        check!(rule, is_it, format!("{kind} of {listener}"), "{event}");
        Ok(event)
    }

    /// All other events that are there or come soon: messages may be repeated for minutes.
    pub(super) fn rest(&self) -> Result<Vec<CmEvent>> {
        let wait = match self.setup.verbs().lab() {
            Some(lab) => lab.advance(QUIET).map(|()| Wait::Poll)?,
            None => self.setup.quiet()?,
        };
        let mut got = Vec::new();
        loop {
            match self.cm.get_cm_event(self.channel, wait) {
                Ok(event) => {
                    self.cm.ack_cm_event(&event)?;
                    if event.event != CmEventType::TimewaitExit {
                        got.push(event);
                    }
                }
                Err(error) if is_nothing(&error) => return Ok(got),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// No event is there, and none comes soon.
    pub(super) fn no_event(&self, rule: impl Into<Claim>) -> Result {
        let rest = self.rest()?;
        let seen: Vec<_> = rest.iter().map(CmEvent::to_string).collect();
        check!(rule, rest.is_empty(), "no event", "{}", seen.join("; "));
        Ok(())
    }
}

/// A listener, and a client that has a route to it.
#[derive(Clone, Copy)]
pub(super) struct CmPair<'b> {
    pub(super) server: Side<'b>,
    pub(super) client: Side<'b>,
    pub(super) listener: CmId,
    pub(super) at: SocketAddr,
    pub(super) ps: PortSpace,
    pub(super) id: CmId,
}

/// The number of reads that both devices may have under way and answer, at most `most`.
pub(super) fn reads(setup: &Setup<'_>, most: u8) -> Result<u8> {
    [setup.ctx_a(), setup.ctx_b()]
        .into_iter()
        .try_fold(most, |most, context| {
            let attr = setup.query_device(context)?;
            Ok(most.min(asked::reads(&attr)))
        })
}

impl<'b> CmPair<'b> {
    pub(super) fn new(setup: &'b Setup<'_>) -> Result<Self> {
        Self::of(setup, PortSpace::Tcp)
    }

    pub(super) fn of(setup: &'b Setup<'_>, ps: PortSpace) -> Result<Self> {
        let [server, client] = sides(setup)?;
        let (listener, at) = server.listener(ps)?;
        let id = client.routed(ps, at)?;
        Ok(Self {
            server,
            client,
            listener,
            at,
            ps,
            id,
        })
    }

    /// One more client with a route.
    pub(super) fn another(&self) -> Result<CmId> {
        self.client.routed(self.ps, self.at)
    }

    /// The same listener, with a client that `client` creates.
    pub(super) fn with_another(&self) -> Result<Self> {
        let id = self.another()?;
        Ok(Self { id, ..*self })
    }

    /// Lets the client ask, with a queue pair. Gives that, and the request.
    pub(super) fn ask(&self, param: &ConnParam<'_>) -> Result<(End<'b>, CmEvent)> {
        let end = self.client.end(self.id)?;
        Ok((end, self.ask_without(param)?))
    }

    /// Lets the client ask as it is. Gives the request.
    pub(super) fn ask_without(&self, param: &ConnParam<'_>) -> Result<CmEvent> {
        let (reads, answered) = (param.initiator_depth, param.responder_resources);
        let asked = self.client.cm.connect(self.id, param);
        self.client.setup.connected(reads, answered, asked)?;
        self.server.request(self.listener, Claim::NONE)
    }

    /// The server creates a queue pair and accepts. The client does not know yet.
    pub(super) fn accept(
        self,
        from: End<'b>,
        accepted: CmId,
        param: &ConnParam<'_>,
    ) -> Result<Link<'b>> {
        let to = self.server.end(accepted)?;
        let (reads, answered) = (param.initiator_depth, param.responder_resources);
        let connected = self.server.cm.accept(accepted, param);
        self.server.setup.connected(reads, answered, connected)?;
        Ok(Link {
            cm_pair: self,
            accepted,
            pair: self.client.setup.introduce(from, to)?,
        })
    }

    /// Both are connected.
    pub(super) fn link(self, asked: &ConnParam<'_>, answer: &ConnParam<'_>) -> Result<Link<'b>> {
        let (from, request) = self.ask(asked)?;
        let link = self.accept(from, request.id, answer)?;
        link.established(Claim::NONE)?;
        Ok(link)
    }
}

/// A connection. Its client is `a` of the pair.
#[derive(Clone, Copy)]
pub(super) struct Link<'b> {
    pub(super) cm_pair: CmPair<'b>,
    /// The id of the server.
    pub(super) accepted: CmId,
    pub(super) pair: Pair<'b>,
}

impl<'b> Link<'b> {
    pub(super) fn new(setup: &'b Setup<'_>) -> Result<Self> {
        let param = ConnParam::new();
        CmPair::new(setup)?.link(&param, &param)
    }

    /// Both sides and their ids, the client first.
    pub(super) fn ends(&self) -> [(Side<'b>, CmId); 2] {
        let CmPair { server, client, .. } = self.cm_pair;
        [(client, self.cm_pair.id), (server, self.accepted)]
    }

    /// Both sides are notified of the connection: returns their events, the client first.
    pub(super) fn established(&self, rule: impl Into<Claim>) -> Result<[CmEvent; 2]> {
        let rule = rule.into();
        let hears = |(side, id): (Side<'_>, CmId)| side.expect(CmEventType::Established, id, rule);
        let [client, server] = self.ends();
        Ok([hears(client)?, hears(server)?])
    }

    /// The states of both queue pairs, the client's first.
    pub(super) fn states(&self) -> Result<[QpState; 2]> {
        let [client, server] = self.qps(QpAttrMask::STATE)?;
        Ok([client.qp_state, server.qp_state])
    }

    /// What both queue pairs are set to, the client's first.
    pub(super) fn qps(&self, mask: QpAttrMask) -> Result<[QpAttr; 2]> {
        let setup = self.cm_pair.client.setup;
        let of = |end: End<'_>| setup.query_qp(end.qp, mask);
        Ok([of(self.pair.a)?.attr, of(self.pair.b)?.attr])
    }

    /// A message goes in each direction.
    pub(super) fn works(&self, rule: impl Into<Claim>) -> Result {
        let (rule, Pair { a, b }) = (rule.into(), self.pair);
        self.pair.still_works(rule)?;
        Pair { a: b, b: a }.still_works(rule)
    }

    /// Both sides disconnect, the client first, and are notified.
    pub(super) fn disconnect(&self, rule: impl Into<Claim>) -> Result {
        let rule = rule.into();
        let [(client, asks), (server, answers)] = self.ends();
        client.cm.disconnect(asks).rule(rule)?;
        server.expect(CmEventType::Disconnected, answers, rule)?;
        server.cm.disconnect(answers).rule(rule)?;
        client.expect(CmEventType::Disconnected, asks, rule)?;
        Ok(())
    }
}
