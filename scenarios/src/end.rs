//! Two ends of a connection, with memory, queues and a channel each, and traffic between them.

use std::ops::Range;

use verbs_api::{
    Access, Capabilities, CompChannel, Context, Cq, CqInit, CqInitEx, Handle, Mr, MrAttr, Pd, Qp,
    QpCap, QpInit, QpState, QpType, RcParams, RecvWr, Remote, SendOps, SendWr, Sge, Srq, SrqInit,
    Wc, Xrcd, XrcdInit, connect,
};

use crate::claim::Claim;
use crate::failure::{Failure, OfRule, Result, check_eq};
use crate::setup::Setup;

/// Bytes that the GRH takes at the start of a UD receive.
pub const GRH_LEN: u32 = 40;

/// Two connected ends.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Pair<'b> {
    /// The end on side A.
    pub a: End<'b>,
    /// The end on side B.
    pub b: End<'b>,
}

/// A queue pair and what belongs to it.
///
/// The region has two halves: messages leave from its start, and land in the second half, at
/// [`landing`](Self::landing). The short methods use these two places, and all their sends are
/// signaled; anything else goes through [`post`](Self::post).
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct End<'b> {
    setup: &'b Setup<'b>,
    peer: Option<Peer>,
    /// Where its receives go, instead of the queue pair.
    srq: Option<Srq>,
    /// The open device.
    pub context: Context,
    /// The protection domain of the region and the queue pair.
    pub pd: Pd,
    /// The region.
    pub mr: Mr,
    /// The address, length and keys of the region.
    pub mem: MrAttr,
    /// The channel of `recv_cq`; the zero handle if that has none.
    pub channel: CompChannel,
    /// The channel of `send_cq`: the same as `channel`, unless asked for otherwise.
    pub send_channel: CompChannel,
    /// The CQ of its sends.
    pub send_cq: Cq,
    /// The CQ of its receives.
    pub recv_cq: Cq,
    /// The queue pair.
    pub qp: Qp,
    /// The QP number.
    pub qp_num: u32,
    /// The transport.
    pub qp_type: QpType,
}

/// What an end is made of: [`Setup::end_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndParts {
    /// The protection domain.
    pub pd: Pd,
    /// The region, of that domain.
    pub mr: Mr,
    /// The CQ of sends.
    pub send_cq: Cq,
    /// The CQ of receives; it may be the same.
    pub recv_cq: Cq,
    /// The SRQ to take receives from. `None`: the queue pair has a receive queue of its own.
    pub srq: Option<Srq>,
}

/// The options of a pair. Both ends are alike.
///
/// ```
/// # use verbs_scenarios::PairOptions;
/// let options = PairOptions { one_cq: true, recv_cqe: 4, ..PairOptions::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairOptions {
    /// Transport: RC, UC, UD or XRC_SEND. With XRC_SEND side B is XRC_RECV, and its receives go to
    /// an SRQ in a private domain. Default: RC.
    pub qp_type: QpType,
    /// Least entries of the CQ of sends. Default: 64.
    pub send_cqe: i32,
    /// Least entries of the CQ of receives. Default: 64.
    pub recv_cqe: i32,
    /// Sends and receives of an end share one CQ, of `recv_cqe` entries. Default: no.
    pub one_cq: bool,
    /// The CQ of receives is an extended one. Default: no.
    pub extended: bool,
    /// The receives of an end go to an SRQ of its own, of `max_recv_wr` receives, as they always do
    /// with XRC_SEND. Default: no.
    pub srq: bool,
    /// The CQs have a channel. Default: yes.
    pub channel: bool,
    /// The CQ of sends has a channel of its own. Default: no, both CQs share one.
    pub separate_channels: bool,
    /// Sizes of the queue pairs. Default: that of [`QpCap`].
    pub cap: QpCap,
    /// Every send makes a completion. Default: no.
    pub sq_sig_all: bool,
    /// Parameters of RC and UC connections. Default: those of [`RcParams`].
    pub rc: RcParams,
    /// Bytes of the region. Default: 64 KiB.
    pub mem: usize,
    /// The access of the region. Default: [`Access::ALL_RDMA`].
    pub access: Access,
    /// Operations that batches of the queue pairs may have. Default: none.
    pub send_ops: SendOps,
}

impl Default for PairOptions {
    fn default() -> Self {
        Self {
            qp_type: QpType::Rc,
            send_cqe: 64,
            recv_cqe: 64,
            one_cq: false,
            extended: false,
            srq: false,
            channel: true,
            separate_channels: false,
            cap: QpCap::default(),
            sq_sig_all: false,
            rc: RcParams::default(),
            mem: 64 * 1024,
            access: Access::ALL_RDMA,
            send_ops: SendOps::empty(),
        }
    }
}

impl PairOptions {
    /// The defaults with this transport.
    pub fn of(qp_type: QpType) -> Self {
        Self {
            qp_type,
            ..Self::default()
        }
    }
}

/// Parameters with which sends give up soon: after one retry and a timeout of a millisecond, or of
/// some round trips if these take longer.
pub(crate) fn gives_up_soon() -> RcParams {
    RcParams {
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    }
}

#[derive(Clone, Copy)]
struct Peer {
    mem: MrAttr,
    ud: Option<(verbs_api::Ah, u32)>,
    srqn: Option<u32>,
}

impl<'v> Setup<'v> {
    /// A connected RC pair with the default options.
    pub fn rc_pair(&self) -> Result<Pair<'_>> {
        self.pair(PairOptions::default())
    }

    /// A connected pair: the ends can send to each other.
    pub fn pair(&self, options: PairOptions) -> Result<Pair<'_>> {
        let a = self.end(self.ctx_a(), options)?;
        let b = self.peer_end(options)?;
        self.connect(a, b, options)
    }

    /// The peer, on side B, that an end of these options can be connected with.
    pub fn peer_end(&self, options: PairOptions) -> Result<End<'_>> {
        if options.qp_type != QpType::XrcSend {
            return self.end(self.ctx_b(), options);
        }
        let xrcd = self.open_xrcd(self.ctx_b(), &XrcdInit::private())?;
        self.xrc_end(xrcd, None, options)
    }

    /// An end in an XRC domain, with an SRQ of its own, for an existing queue pair or a new one.
    pub fn xrc_end(&self, xrcd: Xrcd, target: Option<Qp>, options: PairOptions) -> Result<End<'_>> {
        self.require(Capabilities::XRC);
        let options = self.fitting(options);
        let context = xrcd.context();
        let channel = self.create_comp_channel(context)?;
        let cq = self.recv_cq(context, Some(channel), options)?;
        let pd = self.alloc_pd(context)?;
        let mr = self.alloc_mr(pd, options.mem, options.access)?;
        let srq = self.create_srq(pd, &SrqInit::new(options.cap.max_recv_wr).xrc(xrcd, cq))?;
        let qp = match target {
            Some(target) => target,
            None => self.create_xrc_recv_qp(xrcd)?,
        };
        Ok(End {
            setup: self,
            peer: None,
            srq: Some(srq),
            context,
            pd,
            mr,
            mem: self.query_mr(mr)?,
            channel,
            send_channel: channel,
            send_cq: cq,
            recv_cq: cq,
            qp,
            qp_num: self.qp_num(qp)?,
            qp_type: QpType::XrcRecv,
        })
    }

    /// One more connected pair on the CQs of `first`, with regions of its own.
    pub fn second_pair<'b>(&'b self, first: &Pair<'_>, options: PairOptions) -> Result<Pair<'b>> {
        let a = self.end_on(first.a.send_cq, first.a.recv_cq, options)?;
        let b = self.end_on(first.b.send_cq, first.b.recv_cq, options)?;
        self.connect(a, b, options)
    }

    /// An end of its own, its queue pair in RESET.
    pub fn end(&self, context: Context, options: PairOptions) -> Result<End<'_>> {
        let options = self.fitting(options);
        let channel = |wanted: bool| {
            if wanted {
                self.create_comp_channel(context).map(Some)
            } else {
                Ok(None)
            }
        };
        let recv_channel = channel(options.channel)?;
        let send_channel = if options.separate_channels {
            channel(options.channel)?
        } else {
            recv_channel
        };
        let recv_cq = self.recv_cq(context, recv_channel, options)?;
        let send_cq = if options.one_cq {
            recv_cq
        } else {
            let channel = send_channel;
            let init = CqInit::new(options.send_cqe);
            self.create_cq(context, &CqInit { channel, ..init })?
        };
        self.end_on(send_cq, recv_cq, options)
    }

    fn recv_cq(
        &self,
        context: Context,
        channel: Option<CompChannel>,
        options: PairOptions,
    ) -> verbs_api::Result<Cq> {
        let init = CqInit::new(options.recv_cqe);
        let init = CqInit { channel, ..init };
        if options.extended {
            return self.create_cq_ex(context, &CqInitEx::new(init));
        }
        self.create_cq(context, &init)
    }

    /// An end on CQs that exist, with a protection domain and region of its own, its queue pair
    /// in RESET.
    pub fn end_on(&self, send_cq: Cq, recv_cq: Cq, options: PairOptions) -> Result<End<'_>> {
        let pd = self.alloc_pd(recv_cq.context())?;
        let mr = self.alloc_mr(pd, options.mem, options.access)?;
        let init = SrqInit::new(options.cap.max_recv_wr);
        let srq = options.srq.then(|| self.create_srq(pd, &init));
        let parts = EndParts {
            pd,
            mr,
            send_cq,
            recv_cq,
            srq: srq.transpose()?,
        };
        self.end_of(parts, options)
    }

    /// An end of what exists. Its queue pair is in RESET.
    pub fn end_of(&self, parts: EndParts, options: PairOptions) -> Result<End<'_>> {
        let make = |init: &QpInit| self.create_qp(parts.pd, init);
        end_by(self, parts, options, make)
    }

    /// Another end on the domain, the region and the CQs of an end, its queue pair in RESET.
    pub fn sibling<'b>(&'b self, of: &End<'_>, options: PairOptions) -> Result<End<'b>> {
        let cap = self.fitting(options).cap;
        let mut init = QpInit::new(of.qp_type, of.send_cq, of.recv_cq).cap(cap);
        init.sq_sig_all = options.sq_sig_all;
        let qp = self.create_qp(of.pd, &init)?;
        Ok(End {
            setup: self,
            peer: None,
            qp,
            qp_num: self.qp_num(qp)?,
            ..*of
        })
    }

    /// Connects two ends and brings both to RTS; UD queue pairs get address handles of each other.
    pub fn connect<'b>(&'b self, a: End<'b>, b: End<'b>, options: PairOptions) -> Result<Pair<'b>> {
        let rc = self.here(self.fitting(options).rc);
        match options.qp_type {
            QpType::Ud => {
                for end in [&a, &b] {
                    connect::ud_to_rts(self.verbs(), end.qp, rc.port_num, self.qkey())?;
                }
            }
            QpType::Uc => connect::by_attributes(self.verbs(), a.qp, b.qp, &rc)?,
            _ => self.connect_rc(a.qp, b.qp, &rc)?,
        }
        self.introduce(a, b)
    }

    /// Lets two ends know each other's address and memory, and changes nothing about their queue
    /// pairs.
    pub fn introduce<'b>(&'b self, a: End<'b>, b: End<'b>) -> Result<Pair<'b>> {
        let peer = |from: &End<'_>, to: &End<'_>| -> Result<Option<Peer>> {
            let ud = match to.qp_type {
                QpType::Ud => {
                    let route = self.route_to(to.context)?;
                    Some((self.create_ah(from.pd, &route)?, to.qp_num))
                }
                _ => None,
            };
            let srq = to.srq.filter(|_| to.qp_type == QpType::XrcRecv);
            let srqn = srq.map(|srq| self.srq_num(srq)).transpose()?;
            let mem = to.mem;
            Ok(Some(Peer { mem, ud, srqn }))
        };
        let (peer_of_a, peer_of_b) = (peer(&a, &b)?, peer(&b, &a)?);
        Ok(Pair {
            a: End {
                peer: peer_of_a,
                ..a
            },
            b: End {
                peer: peer_of_b,
                ..b
            },
        })
    }

    /// Connects two RC, UC or XRC ends by attributes, each with its own: `psn_a` is the first
    /// sequence number an end sends, and `psn_b` the first it expects.
    pub fn connect_each<'b>(
        &'b self,
        a: End<'b>,
        b: End<'b>,
        of_a: RcParams,
        of_b: RcParams,
    ) -> Result<Pair<'b>> {
        self.require(Capabilities::MODIFY_CONNECT);
        for (end, params, peer) in [(&a, of_a, &b), (&b, of_b, &a)] {
            self.climb(end, peer, params, QpState::Rts)?;
        }
        self.introduce(a, b)
    }

    /// Brings the queue pair of an RC, UC or XRC end from RESET to `state`, with the PSNs of
    /// `params` as in [`connect_each`](Self::connect_each). The peer stays as it is.
    pub fn climb(&self, end: &End<'_>, peer: &End<'_>, params: RcParams, state: QpState) -> Result {
        let options = PairOptions {
            rc: params,
            ..PairOptions::default()
        };
        let params = self.here(self.fitting(options).rc);
        let peer = connect::Endpoint {
            psn: params.psn_b,
            ..connect::endpoint(self.verbs(), peer.qp, &params)?
        };
        let climbed = connect::to_state(self.verbs(), end.qp, &peer, &params, state);
        let most = params.max_rd_atomic;
        Ok(self.connected(most, most, climbed)?)
    }
}

/// [`Setup::end_of`], with a queue pair that `make` makes.
pub(crate) fn end_by<'b>(
    setup: &'b Setup<'_>,
    parts: EndParts,
    options: PairOptions,
    make: impl FnOnce(&QpInit) -> verbs_api::Result<Qp>,
) -> Result<End<'b>> {
    setup.require(Capabilities::of_qp_type(options.qp_type));
    let EndParts {
        pd,
        mr,
        send_cq,
        recv_cq,
        srq,
    } = parts;
    let context = recv_cq.context();
    let cap = setup.fitting(options).cap;
    let mut init = QpInit::new(options.qp_type, send_cq, recv_cq).cap(cap);
    init.sq_sig_all = options.sq_sig_all;
    init.srq = srq;
    init.send_ops = options.send_ops;
    let qp = make(&init)?;
    Ok(End {
        setup,
        peer: None,
        srq,
        context,
        pd,
        mr,
        mem: setup.query_mr(mr)?,
        channel: setup.query_cq(recv_cq)?.channel.unwrap_or_default(),
        send_channel: setup.query_cq(send_cq)?.channel.unwrap_or_default(),
        send_cq,
        recv_cq,
        qp,
        qp_num: setup.qp_num(qp)?,
        qp_type: options.qp_type,
    })
}

impl Pair<'_> {
    /// Lets A send a message for each of these receives of B. Their completions then lie in B's
    /// CQ; those of the sends have been polled.
    pub fn deliver(&self, wr_ids: Range<u64>) -> Result {
        let count = wr_ids.clone().count();
        for wr_id in wr_ids {
            self.b.recv(wr_id, 8)?;
            self.a.send(wr_id, 8)?;
        }
        self.a.setup.successes(self.a.send_cq, count)?;
        Ok(())
    }

    /// Checks that a message still goes from A to B, and that nothing else is there.
    pub fn still_works(&self, rule: impl Into<Claim>) -> Result {
        const MARKER: u64 = 0x3a4b;
        let rule = rule.into();
        let (a, b, setup) = (self.a, self.b, self.a.setup);
        a.fill(7, 64)?;
        b.recv(MARKER, 64).rule(rule)?;
        a.send(MARKER, 64).rule(rule)?;
        for cq in [a.send_cq, b.recv_cq] {
            let wc = setup.successes(cq, 1).rule(rule)?[0];
            check_eq!(rule, wc.wr_id, MARKER);
            setup.no_completion(cq, rule)?;
        }
        b.expect_data(7, 64, rule)
    }
}

impl<'b> End<'b> {
    /// Offset in the region at which messages land: its half.
    pub fn landing(&self) -> u64 {
        self.mem.length / 2
    }

    /// The entry for `len` bytes at `offset` of the region.
    pub fn sge(&self, offset: u64, len: u32) -> Sge {
        self.mem.sge(offset, len)
    }

    /// The place in the peer's region at which messages land.
    pub fn remote(&self) -> Remote {
        let mem = self.connected().mem;
        mem.remote(mem.length / 2)
    }

    /// A place in the peer's region with an invalid key: work that names it ends with
    /// `REM_ACCESS_ERR`.
    pub fn bad_remote(&self) -> Remote {
        let good = self.remote();
        Remote {
            rkey: good.rkey ^ 0xa5,
            ..good
        }
    }

    /// The work request, addressed to the peer. Only UD and XRC need it.
    pub fn to_peer<'s>(&self, wr: SendWr<'s>) -> SendWr<'s> {
        match self.connected() {
            Peer {
                ud: Some((ah, qp_num)),
                ..
            } => wr.to(ah, qp_num, self.setup.qkey()),
            Peer {
                srqn: Some(remote_srqn),
                ..
            } => wr.to_srq(remote_srqn),
            _ => wr,
        }
    }

    /// Its SRQ.
    ///
    /// # Panics
    /// If its receives go to the queue pair.
    pub fn srq(&self) -> Srq {
        self.srq.expect("the end has an SRQ")
    }

    /// Posts one send to the peer.
    pub fn post(&self, wr: SendWr<'_>) -> Result {
        Ok(self.setup.post_send(self.qp, &[self.to_peer(wr)])?)
    }

    /// Sends `len` bytes.
    pub fn send(&self, wr_id: u64, len: u32) -> Result {
        self.post(SendWr::send(wr_id, &[self.sge(0, len)]))
    }

    /// Sends `len` bytes and asks for a solicited event.
    pub fn send_solicited(&self, wr_id: u64, len: u32) -> Result {
        self.post(SendWr::send(wr_id, &[self.sge(0, len)]).solicited())
    }

    /// Sends `len` bytes with immediate data.
    pub fn send_imm(&self, wr_id: u64, len: u32, imm: [u8; 4]) -> Result {
        self.setup.require(Capabilities::SEND_WITH_IMM);
        self.post(SendWr::send_with_imm(wr_id, &[self.sge(0, len)], imm))
    }

    /// Writes `len` bytes to the peer's landing place.
    pub fn write(&self, wr_id: u64, len: u32) -> Result {
        self.post(SendWr::rdma_write(
            wr_id,
            &[self.sge(0, len)],
            self.remote(),
        ))
    }

    /// Writes `len` bytes to the peer's landing place, with immediate data.
    pub fn write_imm(&self, wr_id: u64, len: u32, imm: [u8; 4]) -> Result {
        self.setup.require(Capabilities::WRITE_WITH_IMM);
        let sges = [self.sge(0, len)];
        self.post(SendWr::rdma_write_with_imm(
            wr_id,
            &sges,
            self.remote(),
            imm,
        ))
    }

    /// Reads `len` bytes from the start of the peer's region to the landing place of this one.
    pub fn read(&self, wr_id: u64, len: u32) -> Result {
        self.setup.require(Capabilities::RDMA_READ);
        let sges = [self.sge(self.landing(), len)];
        let remote = self.connected().mem.remote(0);
        self.post(SendWr::rdma_read(wr_id, &sges, remote))
    }

    /// Posts a receive at the landing place with room for `len` bytes of payload, and for the GRH
    /// on UD.
    pub fn recv(&self, wr_id: u64, len: u32) -> Result {
        self.recv_at(wr_id, self.landing(), len)
    }

    /// Posts a receive at `offset` with room for `len` bytes of payload, and for the GRH on UD.
    pub fn recv_at(&self, wr_id: u64, offset: u64, len: u32) -> Result {
        let sges = [self.sge(offset, len + self.grh())];
        let wr = RecvWr::new(wr_id, &sges);
        self.post_recv(wr)
    }

    /// Posts one receive.
    pub fn post_recv(&self, wr: RecvWr<'_>) -> Result {
        match self.srq {
            Some(srq) => Ok(self.setup.post_srq_recv(srq, &[wr])?),
            None => Ok(self.setup.post_recv(self.qp, &[wr])?),
        }
    }

    /// Fills the first `len` bytes of the region with the pattern of `tag`.
    pub fn fill(&self, tag: u8, len: u32) -> Result {
        self.fill_at(0, tag, len)
    }

    /// Fills `len` bytes at `offset` with the pattern of `tag`.
    pub fn fill_at(&self, offset: u64, tag: u8, len: u32) -> Result {
        Ok(self
            .setup
            .write_mr(self.mr, offset as usize, &pattern(tag, len))?)
    }

    /// `len` bytes of the region from `offset` on.
    pub fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.setup.read_mr(self.mr, offset as usize, &mut bytes)?;
        Ok(bytes)
    }

    /// Checks that `len` bytes of the pattern of `tag` have landed, behind the GRH on UD.
    pub fn expect_data(&self, tag: u8, len: u32, rule: impl Into<Claim>) -> Result {
        self.expect_data_at(self.landing() + u64::from(self.grh()), tag, len, rule)
    }

    /// Checks that the pattern of `tag` is at `offset`.
    pub fn expect_data_at(&self, offset: u64, tag: u8, len: u32, rule: impl Into<Claim>) -> Result {
        let seen = self.bytes(offset, len as usize)?;
        let expected = pattern(tag, len);
        let differs = seen.iter().zip(&expected).position(|(a, b)| a != b);
        let result = differs.map_or(Ok(()), |at| {
            Err(Failure::assertion(
                format!("byte {at} of {len} is {:#04x}", expected[at]),
                format!("{:#04x}", seen[at]),
            ))
        });
        result.rule(rule)
    }

    /// Bytes that the GRH takes at the start of a receive.
    pub(crate) fn grh(&self) -> u32 {
        if self.qp_type == QpType::Ud {
            GRH_LEN
        } else {
            0
        }
    }

    fn connected(&self) -> Peer {
        self.peer.expect("the end is connected")
    }
}

/// The work request ids of these completions.
pub fn wr_ids(completions: &[Wc]) -> Vec<u64> {
    completions.iter().map(|wc| wc.wr_id).collect()
}

/// `len` bytes that differ from place to place and from tag to tag.
pub fn pattern(tag: u8, len: u32) -> Vec<u8> {
    (0..len)
        .map(|i| tag.wrapping_add((i as u8).wrapping_mul(31)) ^ (i >> 8) as u8)
        .collect()
}
