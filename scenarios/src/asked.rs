//! What a device has, as it answers: before the suite judges it, everything is tried that can be
//! absent and that a call shows without traffic.

use std::fmt::Write;

use verbs_api::{
    Access, Capabilities, Context, Cq, CqFlags, CqInit, CqInitEx, CqModeration, DeviceAttr, DmInit,
    Error, ErrorKind, MrChange, MrInit, MwType, Pd, Qp, QpCap, QpInit, QpType, Result, SendOps,
    SrqAttr, SrqAttrMask, SrqInit, Verbs, Wait, WcFields, XrcdInit, connect,
};

use crate::mcast::{ALL_HOSTS, MLID};
use crate::place::Place;

/// The answers of a device. What is in neither set is not known: no scenario needs it or demands
/// that it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The capabilities that it has.
    pub has: Capabilities,
    /// Those that it lacks.
    pub lacks: Capabilities,
    /// Operations that its batches may have, each asked for alone.
    pub send_ops: SendOps,
    /// Fields that the completions of its extended CQs may have, each asked for alone.
    pub wc_fields: WcFields,
    /// Flags that its extended CQs may have.
    pub cq_flags: CqFlags,
    /// Bytes of inline data that a queue pair takes: a power of two up to [`MOST_INLINE`], or 0.
    pub inline_data: u32,
    /// Its limits.
    pub attr: DeviceAttr,
    /// How it refused what it lacks.
    words: Vec<(Capabilities, String)>,
}

/// The capabilities that are asked for. For others the word of the device counts.
pub const ASKED_FOR: Capabilities = {
    let mut all = Capabilities::IGNORE_OVERRUN.union(Capabilities::WC_TIMESTAMP);
    let mut at = 0;
    while at < QUESTIONS.len() {
        all = all.union(QUESTIONS[at].of);
        at += 1;
    }
    all
};

/// The most bytes of inline data that are asked for.
pub const MOST_INLINE: u32 = 1024;

impl Asked {
    /// The answers of devices of which it is known beforehand what they have.
    pub(crate) fn known(has: Capabilities) -> Self {
        Self {
            has,
            lacks: has.complement(),
            send_ops: SendOps::all(),
            wc_fields: WcFields::all(),
            cq_flags: CqFlags::all(),
            inline_data: MOST_INLINE,
            attr: DeviceAttr::default(),
            words: Vec::new(),
        }
    }

    /// What both devices have, and what both lack.
    pub(crate) fn and(mut self, other: Self) -> Self {
        let least = |mine: &mut u32, of: u32| *mine = (*mine).min(of);
        self.has &= other.has;
        self.lacks &= other.lacks;
        self.send_ops &= other.send_ops;
        self.wc_fields &= other.wc_fields;
        self.cq_flags &= other.cq_flags;
        self.words.extend(other.words);
        least(&mut self.inline_data, other.inline_data);
        let (mine, of) = (&mut self.attr, other.attr);
        least(&mut mine.max_qp_wr, of.max_qp_wr);
        least(&mut mine.max_sge, of.max_sge);
        least(&mut mine.max_cqe, of.max_cqe);
        least(&mut mine.max_srq_wr, of.max_srq_wr);
        least(&mut mine.max_srq_sge, of.max_srq_sge);
        mine.max_mr_size = mine.max_mr_size.min(of.max_mr_size);
        mine.max_qp_rd_atom = mine.max_qp_rd_atom.min(of.max_qp_rd_atom);
        mine.max_qp_init_rd_atom = mine.max_qp_init_rd_atom.min(of.max_qp_init_rd_atom);
        self
    }

    /// Capabilities by name, and in the device's own words why they are not there.
    pub(crate) fn missing(&self, what: Capabilities) -> String {
        let mut text = format!("needs {what}");
        let of_them = self.words.iter().filter(|(of, _)| of.intersects(what));
        for (i, (_, words)) in of_them.enumerate() {
            let before = if i == 0 { ":" } else { ";" };
            write!(text, "{before} {words}").expect("a string");
        }
        text
    }
}

/// Asks a device, in a context of its own that is closed again. `port` is the port to work on.
/// `is_dangerous` tells which scenarios are recorded to crash the kernel of its driver: what they
/// do is not asked, and what the device says of itself counts.
///
/// # Errors
/// Those of opening the device, of its queries, and of a domain and a CQ.
pub fn ask(
    verbs: &dyn Verbs,
    device: &str,
    port: u8,
    is_dangerous: &dyn Fn(&str) -> bool,
) -> Result<Asked> {
    let context = verbs.open_device(device)?;
    let asked = verbs
        .capabilities(context)
        .and_then(|says| ask_in(verbs, context, says, port, is_dangerous));
    verbs.close_device(context)?;
    asked
}

/// [`ask`], in an open context of a device that `says` what it has. What it does not say it lacks.
/// All that is made there is destroyed.
///
/// # Errors
/// Those of queries, of a domain and of a CQ.
pub fn ask_in(
    verbs: &dyn Verbs,
    context: Context,
    says: Capabilities,
    port: u8,
    is_dangerous: &dyn Fn(&str) -> bool,
) -> Result<Asked> {
    let attr = verbs.query_device(context)?;
    let pd = verbs.alloc_pd(context)?;
    let made = verbs.create_cq(context, &CqInit::new(1));
    let asked = made.and_then(|cq| {
        let bench = Bench {
            verbs,
            context,
            pd,
            cq,
            port,
            qp_type: QpType::Rc,
        };
        let asked = bench.all(says, attr, is_dangerous);
        verbs.destroy_cq(cq, Wait::Poll).map(|()| asked)
    });
    verbs.dealloc_pd(pd)?;
    asked
}

/// What questions work with.
struct Bench<'v> {
    verbs: &'v dyn Verbs,
    context: Context,
    pd: Pd,
    cq: Cq,
    port: u8,
    /// The transport of queue pairs: RC, or UD of devices without it.
    qp_type: QpType,
}

struct Question {
    of: Capabilities,
    /// It is asked of devices that have these.
    needs: Capabilities,
    /// `EINVAL` also means that there is no such kind of object.
    of_a_kind: bool,
    /// A scenario that makes the same call.
    like: Option<&'static str>,
    ask: fn(&Bench<'_>) -> Result<()>,
}

impl Question {
    /// Whether the device has a verb.
    const fn verb(of: Capabilities, ask: fn(&Bench<'_>) -> Result<()>) -> Self {
        Self {
            of,
            needs: Capabilities::empty(),
            of_a_kind: false,
            like: None,
            ask,
        }
    }

    /// Whether it has a kind of object.
    const fn kind(of: Capabilities, ask: fn(&Bench<'_>) -> Result<()>) -> Self {
        Self {
            of_a_kind: true,
            ..Self::verb(of, ask)
        }
    }

    const fn needs(self, needs: Capabilities) -> Self {
        Self { needs, ..self }
    }

    const fn like(self, scenario: &'static str) -> Self {
        let like = Some(scenario);
        Self { like, ..self }
    }
}

/// In an order in which each comes after those that it needs.
const QUESTIONS: &[Question] = &[
    Question::kind(Capabilities::RC, |on| on.qp(QpType::Rc, |init| init)),
    Question::kind(Capabilities::UC, |on| on.qp(QpType::Uc, |init| init)),
    Question::kind(Capabilities::UD, |on| on.qp(QpType::Ud, |init| init)),
    Question::kind(Capabilities::XRC, |on| on.xrc()),
    Question::verb(Capabilities::SRQ, |on| on.srq(|_| Ok(()))),
    Question::kind(Capabilities::SRQ_RESIZE, |on| {
        on.srq(|srq| on.resize_srq(srq))
    })
    .needs(Capabilities::SRQ)
    .like("srq.resize_below_what_is_posted_is_refused"),
    Question::verb(Capabilities::RESIZE_CQ, |on| on.verbs.resize_cq(on.cq, 2)),
    Question::verb(Capabilities::CQ_MODERATION, |on| {
        on.verbs.modify_cq(on.cq, &CqModeration::default())
    }),
    Question::verb(Capabilities::CQ_EX, |on| on.cq_ex(|init| init)),
    Question::verb(Capabilities::REREG_MR, |on| on.rereg_mr()),
    Question::verb(Capabilities::REG_MR_IOVA, |on| on.mr_iova()),
    Question::verb(Capabilities::NULL_MR, |on| {
        on.verbs.dereg_mr(on.verbs.alloc_null_mr(on.pd)?)
    }),
    #[cfg(unix)]
    Question::verb(Capabilities::DMABUF, |on| on.dmabuf()),
    Question::kind(Capabilities::MW_TYPE_1, |on| on.window(MwType::Type1)),
    Question::kind(Capabilities::MW_TYPE_2, |on| on.window(MwType::Type2)),
    Question::verb(Capabilities::DEVICE_MEMORY, |on| {
        on.verbs
            .free_dm(on.verbs.alloc_dm(on.context, &DmInit::new(64))?)
    }),
    Question::verb(Capabilities::PARENT_DOMAIN, |on| on.parent_domain()),
    Question::verb(Capabilities::RT_VALUES, |on| {
        on.verbs.query_rt_values(on.context).map(drop)
    }),
    Question::kind(Capabilities::BATCHES, |on| on.batches(SendOps::SEND)),
    Question::kind(Capabilities::FLUSH, |on| on.batches(SendOps::FLUSH))
        .needs(Capabilities::BATCHES),
    Question::kind(Capabilities::ATOMIC_WRITE, |on| {
        on.batches(SendOps::ATOMIC_WRITE)
    })
    .needs(Capabilities::BATCHES),
    Question::verb(Capabilities::ECE, |on| {
        on.with_qp(on.init(QpType::Rc), |qp| on.verbs.query_ece(qp).map(drop))
    })
    .needs(Capabilities::RC),
    Question::verb(Capabilities::MCAST, |on| on.mcast()).needs(Capabilities::UD),
];

impl Bench<'_> {
    fn all(
        mut self,
        says: Capabilities,
        attr: DeviceAttr,
        is_dangerous: &dyn Fn(&str) -> bool,
    ) -> Asked {
        let mut asked = Asked {
            attr,
            ..Asked::known(says)
        };
        for question in QUESTIONS {
            if !asked.has.contains(Capabilities::RC) {
                self.qp_type = QpType::Ud;
            }
            let of = question.of;
            if !asked.has.contains(question.needs) {
                asked.has -= of;
            }
            if !asked.has.contains(of) || question.like.is_some_and(is_dangerous) {
                continue;
            }
            if let Some(words) = refusal((question.ask)(&self), question.of_a_kind) {
                asked.has -= of;
                asked.lacks |= of;
                asked.words.push((of, words));
            }
        }
        if says.contains(Capabilities::FLUSH) && self.has_regions_for_flushes() {
            // What its library cannot post the device carries out for its peers.
            asked.lacks -= Capabilities::FLUSH;
        }
        self.details(&mut asked);
        if reads(&asked.attr) == 0 {
            // Whether work that can never start is refused is not known.
            asked.has -= Capabilities::RDMA_READ;
            let words = "its limit of outstanding reads is 0".to_owned();
            asked.words.push((Capabilities::RDMA_READ, words));
        }
        asked
    }

    /// What is a part of a capability.
    fn details(&self, asked: &mut Asked) {
        let given = |answer| refusal(answer, true).is_none();
        if asked.has.contains(Capabilities::BATCHES) {
            let ops = SendOps::all().iter_names().map(|(_, ops)| ops);
            asked.send_ops = ops.filter(|ops| given(self.batches(*ops))).collect();
        }
        if asked.has.contains(Capabilities::CQ_EX) {
            let fields = WcFields::all().iter_names().map(|(_, field)| field);
            let field = |field: &WcFields| given(self.cq_ex(|init| init.wc_flags(*field)));
            asked.wc_fields = fields.filter(field).collect();
            let flags = CqFlags::all().iter_names().map(|(_, flag)| flag);
            let flag = |flag: &CqFlags| given(self.cq_ex(|init| init.flags(*flag)));
            asked.cq_flags = flags.filter(flag).collect();
        }
        let overruns = asked.cq_flags.contains(CqFlags::IGNORE_OVERRUN);
        asked.has_in_parts(Capabilities::IGNORE_OVERRUN, overruns, overruns);
        let times = (WcFields::TIMESTAMPS, asked.wc_fields);
        let [all, any] = [times.1.contains(times.0), times.1.intersects(times.0)];
        asked.has_in_parts(Capabilities::WC_TIMESTAMP, all, any);
        let sizes = std::iter::successors(Some(1), |size| Some(size * 2));
        let sizes = sizes.take_while(|size| *size <= MOST_INLINE);
        let inline = |max_inline_data: &u32| {
            let cap = QpCap {
                max_inline_data: *max_inline_data,
                ..small()
            };
            self.qp(self.qp_type, |init| init.cap(cap)).is_ok()
        };
        asked.inline_data = sizes.take_while(inline).last().unwrap_or(0);
    }

    fn init(&self, qp_type: QpType) -> QpInit {
        QpInit::new(qp_type, self.cq, self.cq).cap(small())
    }

    fn with_qp(&self, init: QpInit, ask: impl FnOnce(Qp) -> Result<()>) -> Result<()> {
        let qp = self.verbs.create_qp(self.pd, &init)?;
        let answer = ask(qp);
        self.verbs.destroy_qp(qp, Wait::Poll).and(answer)
    }

    fn qp(&self, qp_type: QpType, with: impl FnOnce(QpInit) -> QpInit) -> Result<()> {
        self.with_qp(with(self.init(qp_type)), |_| Ok(()))
    }

    fn batches(&self, ops: SendOps) -> Result<()> {
        self.qp(self.qp_type, |init| init.send_ops(ops))
    }

    fn xrc(&self) -> Result<()> {
        let xrcd = self.verbs.open_xrcd(self.context, &XrcdInit::private())?;
        let answer = self.qp(QpType::XrcSend, |init| init);
        self.verbs.close_xrcd(xrcd).and(answer)
    }

    fn srq(&self, ask: impl FnOnce(verbs_api::Srq) -> Result<()>) -> Result<()> {
        let srq = self.verbs.create_srq(self.pd, &SrqInit::new(1))?;
        let answer = ask(srq);
        self.verbs.destroy_srq(srq, Wait::Poll).and(answer)
    }

    fn resize_srq(&self, srq: verbs_api::Srq) -> Result<()> {
        let attr = SrqAttr {
            max_wr: 2,
            ..SrqAttr::default()
        };
        self.verbs.modify_srq(srq, &attr, SrqAttrMask::MAX_WR)
    }

    fn cq_ex(&self, with: impl FnOnce(CqInitEx) -> CqInitEx) -> Result<()> {
        let init = with(CqInitEx::new(CqInit::new(1)));
        let cq = self.verbs.create_cq_ex(self.context, &init)?;
        self.verbs.destroy_cq(cq, Wait::Poll)
    }

    fn rereg_mr(&self) -> Result<()> {
        let mr = self.verbs.alloc_mr(self.pd, 64, Access::ALL_RDMA)?;
        let change = MrChange {
            access: Some(Access::LOCAL_WRITE),
            ..MrChange::default()
        };
        let answer = self.verbs.rereg_mr(mr, &change);
        let answer = answer.map_err(|refused| refused.error);
        self.verbs.dereg_mr(mr).and(answer)
    }

    fn has_regions_for_flushes(&self) -> bool {
        let region = |flag| {
            let access = Access::ALL_RDMA | flag;
            self.verbs
                .dereg_mr(self.verbs.alloc_mr(self.pd, 64, access)?)
        };
        [Access::FLUSH_GLOBAL, Access::FLUSH_PERSISTENT]
            .into_iter()
            .any(|flag| refusal(region(flag), true).is_none())
    }

    fn mr_iova(&self) -> Result<()> {
        let init = MrInit::new(64, Access::LOCAL_WRITE).iova(1 << 20);
        self.verbs.dereg_mr(self.verbs.alloc_mr_as(self.pd, &init)?)
    }

    /// A device that has them refuses a file that is not a dma-buf in another way.
    #[cfg(unix)]
    fn dmabuf(&self) -> Result<()> {
        use std::os::fd::AsFd;
        let Ok(file) = std::fs::File::open("/dev/null") else {
            return Ok(());
        };
        let (fd, access) = (file.as_fd(), Access::LOCAL_WRITE);
        let mr = self.verbs.reg_dmabuf_mr(self.pd, 0, 4096, 0, fd, access)?;
        self.verbs.dereg_mr(mr)
    }

    fn window(&self, mw_type: MwType) -> Result<()> {
        let mw = self.verbs.alloc_mw(self.pd, mw_type)?;
        self.verbs.dealloc_mw(mw)
    }

    fn parent_domain(&self) -> Result<()> {
        let td = self.verbs.alloc_td(self.context)?;
        let made = self.verbs.alloc_parent_domain(self.pd, Some(td));
        let answer = made.and_then(|pd| self.verbs.dealloc_pd(pd));
        self.verbs.dealloc_td(td).and(answer)
    }

    fn mcast(&self) -> Result<()> {
        self.with_qp(self.init(QpType::Ud), |qp| {
            connect::ud_to_rts(self.verbs, qp, self.port, Place::default().qkey)?;
            self.verbs.attach_mcast(qp, ALL_HOSTS, MLID)?;
            self.verbs.detach_mcast(qp, ALL_HOSTS, MLID)
        })
    }
}

impl Asked {
    /// A capability of parts: all of them, or at least one.
    fn has_in_parts(&mut self, what: Capabilities, all: bool, any: bool) {
        let says = self.has.contains(what) && self.has.contains(Capabilities::CQ_EX);
        self.has.set(what, says && all);
        self.lacks.set(what, !(says && any));
    }
}

/// The reads and atomics that a queue pair may have under way, towards one that answers as many.
pub(crate) fn reads(attr: &DeviceAttr) -> u8 {
    attr.max_qp_rd_atom.min(attr.max_qp_init_rd_atom)
}

/// A queue pair of one work request of each kind.
fn small() -> QpCap {
    QpCap {
        max_send_wr: 1,
        max_recv_wr: 1,
        ..QpCap::default()
    }
}

/// The device's words, if the answer says that something is absent. Anything else that is wrong is
/// for the scenarios to find.
fn refusal(answer: Result<()>, of_a_kind: bool) -> Option<String> {
    let error: Error = answer.err()?;
    let is_absent = match error.kind() {
        ErrorKind::NotSupported | ErrorKind::NotImplemented => true,
        ErrorKind::Invalid => of_a_kind,
        _ => false,
    };
    is_absent.then(|| error.to_string())
}
