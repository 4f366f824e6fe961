//! A device may refuse what it never said that it has. That skips a scenario, and breaks no rule.

use std::sync::PoisonError;

use verbs_api::{
    Access, Capabilities, Context, Cq, CqInit, CqInitEx, Error, ErrorKind, Mr, MrInit, Pd,
    PostError, Qp, QpAttr, QpAttrMask, QpInit, QpType, RcParams, RecvWr, SendWr, Srq, SrqAttr,
    SrqAttrMask, SrqInit,
};

use crate::asked::{Asked, reads};
use crate::end::PairOptions;
use crate::failure::Failure;
use crate::setup::Setup;

/// The last refusal of more than the device has.
pub(crate) struct Refusal {
    failure: Failure,
    beyond: Beyond,
}

/// What a call asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beyond {
    /// No more than the device has: it must be there.
    Nothing,
    /// A combination that the device was not asked for, which it may not support. As set-up.
    Questions,
    /// More than its limits, or what it lacks.
    Answers,
}

impl Setup<'_> {
    /// The capabilities that the device has for certain.
    pub fn capabilities(&self, context: Context) -> verbs_api::Result<Capabilities> {
        let says = self.verbs().capabilities(context)?;
        Ok(self.asked.map_or(says, |asked| says & asked.has))
    }

    /// Whether the device has this, or lacks it and must refuse it. `None`: it is not known.
    pub fn has(&self, context: Context, what: Capabilities) -> verbs_api::Result<Option<bool>> {
        let has = self.capabilities(context)?.contains(what);
        let is_known = has || self.asked.is_none_or(|asked| asked.lacks.contains(what));
        Ok(is_known.then_some(has))
    }

    /// The device's words, if a scenario has failed because the device refused what it does not
    /// have.
    pub(crate) fn refused(&self, failure: &Failure) -> Option<String> {
        let last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let Refusal {
            failure: refused,
            beyond,
        } = last.as_ref()?;
        // Where an error was expected, another one is not a refusal of what it does not have.
        let is_it = failure.seen.starts_with(&refused.seen)
            && failure.expected == refused.expected
            && (*beyond == Beyond::Answers || failure.rule.is_none());
        is_it.then(|| format!("refused by the device: {}", failure.seen))
    }

    /// The result. Remembers a refusal of what is `beyond` the device.
    fn remember<T, E: Clone + Into<Error>>(
        &self,
        result: Result<T, E>,
        beyond: impl FnOnce(&Asked) -> Beyond,
    ) -> Result<T, E> {
        let (Some(asked), Err(error)) = (self.asked, &result) else {
            return result;
        };
        let error: Error = error.clone().into();
        let beyond = match (error.kind(), beyond(asked)) {
            (ErrorKind::NotSupported | ErrorKind::NotImplemented, beyond) => beyond,
            (ErrorKind::Invalid | ErrorKind::NoMemory, Beyond::Answers) => Beyond::Answers,
            _ => Beyond::Nothing,
        };
        let refusal = || Refusal {
            failure: Failure::from(error),
            beyond,
        };
        // An earlier refusal does not excuse this one.
        let mut last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (beyond > Beyond::Nothing).then(refusal);
        result
    }
}

fn answers(is_beyond: bool) -> Beyond {
    if is_beyond {
        Beyond::Answers
    } else {
        Beyond::Nothing
    }
}

fn questions(is_beyond: bool) -> Beyond {
    if is_beyond {
        Beyond::Questions
    } else {
        Beyond::Nothing
    }
}

impl Setup<'_> {
    /// The options, with default sizes that are no more than the limits of the device.
    pub(crate) fn fitting(&self, options: PairOptions) -> PairOptions {
        let Some(Asked { attr, .. }) = self.asked else {
            return options;
        };
        let standard = PairOptions::default();
        let mut fitting = options;
        if options.cap == standard.cap {
            fitting.cap.max_send_wr = options.cap.max_send_wr.min(attr.max_qp_wr);
            fitting.cap.max_recv_wr = options.cap.max_recv_wr.min(attr.max_qp_wr);
        }
        let most = i32::try_from(attr.max_cqe).unwrap_or(i32::MAX);
        for (cqe, of) in [
            (&mut fitting.send_cqe, standard.send_cqe),
            (&mut fitting.recv_cqe, standard.recv_cqe),
        ] {
            if *cqe == of {
                *cqe = of.min(most);
            }
        }
        if options.rc.max_rd_atomic == standard.rc.max_rd_atomic {
            let reads = reads(attr);
            fitting.rc.max_rd_atomic = options.rc.max_rd_atomic.min(reads);
        }
        fitting
    }
}

/// Calls whose arguments may ask for more than a device has: as those of the trait.
impl Setup<'_> {
    /// [`Verbs::create_cq`](verbs_api::Verbs::create_cq).
    pub fn create_cq(&self, context: Context, init: &CqInit) -> verbs_api::Result<Cq> {
        let made = self.verbs().create_cq(context, init);
        self.remember(made, |asked| answers(asked.is_long(init.cqe)))
    }

    /// [`Verbs::resize_cq`](verbs_api::Verbs::resize_cq).
    pub fn resize_cq(&self, cq: Cq, cqe: i32) -> verbs_api::Result<()> {
        let resized = self.verbs().resize_cq(cq, cqe);
        self.remember(resized, |asked| answers(asked.is_long(cqe)))
    }

    /// [`Verbs::create_cq_ex`](verbs_api::Verbs::create_cq_ex).
    pub fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> verbs_api::Result<Cq> {
        let made = self.verbs().create_cq_ex(context, init);
        self.remember(made, |asked| {
            let lacks =
                !asked.wc_fields.contains(init.wc_flags) || !asked.cq_flags.contains(init.flags);
            answers(lacks || asked.is_long(init.cq.cqe)).max(questions(
                init.parent_domain.is_some() || !init.flags.is_empty(),
            ))
        })
    }

    /// [`Verbs::create_qp`](verbs_api::Verbs::create_qp).
    pub fn create_qp(&self, pd: Pd, init: &QpInit) -> verbs_api::Result<Qp> {
        let made = self.verbs().create_qp(pd, init);
        self.remember(made, |asked| asked.qp_beyond(init))
    }

    /// The result of a call that creates a queue pair of rdma_cm.
    pub(crate) fn cm_qp(
        &self,
        init: &QpInit,
        made: verbs_api::Result<Qp>,
    ) -> verbs_api::Result<Qp> {
        self.remember(made, |asked| asked.qp_beyond(init))
    }

    /// [`Verbs::create_srq`](verbs_api::Verbs::create_srq).
    pub fn create_srq(&self, pd: Pd, init: &SrqInit) -> verbs_api::Result<Srq> {
        let made = self.verbs().create_srq(pd, init);
        self.remember(made, |Asked { attr, .. }| {
            let SrqAttr {
                max_wr, max_sge, ..
            } = init.attr;
            answers(max_wr > attr.max_srq_wr || max_sge > attr.max_srq_sge)
        })
    }

    /// [`Verbs::modify_srq`](verbs_api::Verbs::modify_srq).
    pub fn modify_srq(&self, srq: Srq, to: &SrqAttr, mask: SrqAttrMask) -> verbs_api::Result<()> {
        let modified = self.verbs().modify_srq(srq, to, mask);
        self.remember(modified, |Asked { attr, .. }| {
            answers(mask.contains(SrqAttrMask::MAX_WR) && to.max_wr > attr.max_srq_wr)
        })
    }

    /// [`Verbs::alloc_mr`](verbs_api::Verbs::alloc_mr).
    pub fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> verbs_api::Result<Mr> {
        let made = self.verbs().alloc_mr(pd, length, access);
        self.remember(made, |asked| asked.mr_beyond(length, access))
    }

    /// [`Verbs::alloc_mr_as`](verbs_api::Verbs::alloc_mr_as).
    pub fn alloc_mr_as(&self, pd: Pd, init: &MrInit) -> verbs_api::Result<Mr> {
        let made = self.verbs().alloc_mr_as(pd, init);
        self.remember(made, |asked| asked.mr_beyond(init.length, init.access))
    }

    /// [`Verbs::modify_qp`](verbs_api::Verbs::modify_qp).
    pub fn modify_qp(&self, qp: Qp, to: &QpAttr, mask: QpAttrMask) -> verbs_api::Result<()> {
        let modified = self.verbs().modify_qp(qp, to, mask);
        let named = |of, value| if mask.contains(of) { value } else { 0 };
        let reads = named(QpAttrMask::MAX_QP_RD_ATOMIC, to.max_rd_atomic);
        let answered = named(QpAttrMask::MAX_DEST_RD_ATOMIC, to.max_dest_rd_atomic);
        self.connected(reads, answered, modified)
    }

    /// [`Verbs::export_dmabuf`](verbs_api::Verbs::export_dmabuf). The machine may have no exporter.
    #[cfg(unix)]
    pub fn export_dmabuf(
        &self,
        context: Context,
        length: usize,
    ) -> verbs_api::Result<std::os::fd::OwnedFd> {
        let exported = self.verbs().export_dmabuf(context, length);
        self.remember(exported, |_| Beyond::Answers)
    }

    /// The result of a call that connects a queue pair, which then has this number of reads
    /// outstanding at most, and answers this number at a time.
    pub(crate) fn connected(
        &self,
        reads: u8,
        answered: u8,
        result: verbs_api::Result<()>,
    ) -> verbs_api::Result<()> {
        self.remember(result, |Asked { attr, .. }| {
            answers(reads > attr.max_qp_init_rd_atom || answered > attr.max_qp_rd_atom)
        })
    }

    /// [`Verbs::connect_rc`](verbs_api::Verbs::connect_rc).
    pub fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> verbs_api::Result<()> {
        let most = params.max_rd_atomic;
        self.connected(most, most, self.verbs().connect_rc(a, b, params))
    }

    /// [`Verbs::post_send`](verbs_api::Verbs::post_send).
    pub fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let posted = self.verbs().post_send(qp, list);
        let longest = list.iter().map(|wr| wr.sg_list.len()).max();
        self.remember(posted, |asked| answers(asked.has_few(longest)))
    }

    /// [`Verbs::post_recv`](verbs_api::Verbs::post_recv).
    pub fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let posted = self.verbs().post_recv(qp, list);
        let longest = list.iter().map(|wr| wr.sg_list.len()).max();
        self.remember(posted, |asked| answers(asked.has_few(longest)))
    }
}

/// The rights of regions that every device has.
const PLAIN: Access = Access::ALL_RDMA;

impl Asked {
    fn is_long(&self, cqe: i32) -> bool {
        u32::try_from(cqe).is_ok_and(|cqe| cqe > self.attr.max_cqe)
    }

    fn has_few(&self, entries: Option<usize>) -> bool {
        entries.is_some_and(|entries| entries > self.attr.max_sge as usize)
    }

    fn qp_beyond(&self, init: &QpInit) -> Beyond {
        let of_type = Capabilities::of_qp_type(init.qp_type);
        let (cap, most) = (init.cap, &self.attr);
        let is_large = cap.max_send_wr > most.max_qp_wr
            || cap.max_send_sge > most.max_sge
            || cap.max_inline_data > self.inline_data
            || init.srq.is_none()
                && (cap.max_recv_wr > most.max_qp_wr || cap.max_recv_sge > most.max_sge);
        let lacks = !self.has.contains(of_type) || !self.send_ops.contains(init.send_ops);
        let batches_of_others = init.qp_type != QpType::Rc && !init.send_ops.is_empty();
        answers(is_large || lacks).max(questions(batches_of_others || init.srq.is_some()))
    }

    fn mr_beyond(&self, length: usize, access: Access) -> Beyond {
        let needs = [
            (Access::REMOTE_ATOMIC, Capabilities::ATOMICS),
            (Access::MW_BIND, Capabilities::MW),
            (Access::ON_DEMAND, Capabilities::ODP),
        ];
        let lacks = |(right, of): &(Access, Capabilities)| {
            access.intersects(*right) && !self.has.intersects(*of)
        };
        let is_long = length as u64 > self.attr.max_mr_size;
        answers(is_long || needs.iter().any(lacks)).max(questions(!PLAIN.contains(access)))
    }
}
