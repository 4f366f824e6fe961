//! The fields of C structures that programs read: they are what the object was made with.

use verbs_abi::{ibv_cq, ibv_mw, ibv_qp, ibv_srq, token};
use verbs_api::{Cause, Error, ErrorKind, QpState, Result, Verb};

use crate::objects::{Cq, Mw, Qp, Srq};

/// The name of a field, its value, and the value that it must have. Pointers are numbers.
type Field = (&'static str, usize, usize);

/// Fails if a field has another value than it must have: the library or the driver set it wrong.
fn agree(verb: Verb, fields: impl IntoIterator<Item = Field>) -> Result<()> {
    let wrong = |(_, seen, right): &Field| seen != right;
    fields
        .into_iter()
        .find(wrong)
        .map_or(Ok(()), |(field, ..)| {
            let text = format!("the field {field} has another value than it must have");
            Err(Error::new(verb, ErrorKind::Io, Cause::Text(text.into())))
        })
}

impl Qp {
    /// Checks `struct ibv_qp`.
    pub(crate) fn check_fields(&self, verb: Verb) -> Result<()> {
        let context = self.device.raw.address();
        let cqs: Vec<_> = self.cqs.iter().map(|cq| cq.raw.address()).collect();
        let pd = self.pd.as_ref().map(|pd| pd.raw.address());
        let srq = self.srq.as_ref().map_or(0, |srq| srq.raw.address());
        let qp_type = u32::from(self.init.qp_type) as usize;
        self.raw.with(verb, |qp: *mut ibv_qp| {
            // SAFETY: the QP is live, and these fields stay as they are while it is.
            let qp = unsafe {
                let (sends, receives) = ((*qp).send_cq as usize, (*qp).recv_cq as usize);
                let fields = [
                    (*qp).context as usize,
                    (*qp).pd as usize,
                    (*qp).srq as usize,
                ];
                (fields, [sends, receives], (*qp).qp_type as usize)
            };
            let ([in_context, in_pd, in_srq], in_cqs, in_type) = qp;
            let cqs = ["ibv_qp.send_cq", "ibv_qp.recv_cq"]
                .into_iter()
                .zip(in_cqs)
                .zip(&cqs)
                .map(|((name, seen), right)| (name, seen, *right));
            let all = [
                ("ibv_qp.context", in_context, context),
                ("ibv_qp.pd", in_pd, pd.unwrap_or(in_pd)),
                ("ibv_qp.srq", in_srq, srq),
                ("ibv_qp.qp_type", in_type, qp_type),
            ];
            agree(verb, all.into_iter().chain(cqs))
        })?
    }

    /// Checks that `struct ibv_qp` has the state that the queue pair was changed to, or one of
    /// failure: another thread may have queried it in between.
    pub(crate) fn check_state(&self, verb: Verb, to: QpState) -> Result<()> {
        // SAFETY: the QP is live.
        let read = |qp: *mut ibv_qp| QpState::from(unsafe { (*qp).state });
        match self.raw.with(verb, read)? {
            QpState::Err | QpState::Sqe => Ok(()),
            seen => {
                let [seen, to] = [seen, to].map(|state| u32::from(state) as usize);
                agree(verb, [("ibv_qp.state", seen, to)])
            }
        }
    }
}

impl Srq {
    /// Checks `struct ibv_srq`.
    pub(crate) fn check_fields(&self, verb: Verb) -> Result<()> {
        let (pd, context) = (self.pd.raw.address(), self.pd.device.raw.address());
        let srq_context = token(self.init.srq_context) as usize;
        self.raw.with(verb, |srq: *mut ibv_srq| {
            // SAFETY: the SRQ is live, and these fields stay as they are while it is.
            let srq = unsafe { ((*srq).context, (*srq).pd, (*srq).srq_context) };
            let fields = [
                ("ibv_srq.context", srq.0 as usize, context),
                ("ibv_srq.pd", srq.1 as usize, pd),
                ("ibv_srq.srq_context", srq.2 as usize, srq_context),
            ];
            agree(verb, fields)
        })?
    }
}

impl Cq {
    /// Checks `struct ibv_cq`.
    pub(crate) fn check_fields(&self, verb: Verb) -> Result<()> {
        let context = self.device.raw.address();
        let channel = self.channel.as_ref();
        let channel = channel.map_or(0, |(_, channel)| channel.raw.address());
        let cq_context = token(self.cq_context) as usize;
        self.raw.with(verb, |cq: *mut ibv_cq| {
            // SAFETY: the CQ is live, and these fields stay as they are while it is.
            let cq = unsafe { ((*cq).context, (*cq).channel, (*cq).cq_context) };
            let fields = [
                ("ibv_cq.context", cq.0 as usize, context),
                ("ibv_cq.channel", cq.1 as usize, channel),
                ("ibv_cq.cq_context", cq.2 as usize, cq_context),
            ];
            agree(verb, fields)
        })?
    }
}

impl Mw {
    /// Checks `struct ibv_mw`.
    pub(crate) fn check_fields(&self, verb: Verb) -> Result<()> {
        let (pd, context) = (self.pd.raw.address(), self.pd.device.raw.address());
        let mw_type = u32::from(self.mw_type) as usize;
        self.raw.with(verb, |mw: *mut ibv_mw| {
            // SAFETY: the window is live, and these fields stay as they are while it is.
            let mw = unsafe { ((*mw).context, (*mw).pd, (*mw).mw_type) };
            let fields = [
                ("ibv_mw.context", mw.0 as usize, context),
                ("ibv_mw.pd", mw.1 as usize, pd),
                ("ibv_mw.type", mw.2 as usize, mw_type),
            ];
            agree(verb, fields)
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_differs_is_named() {
        let verb = Verb::QueryQp;
        let fields = |pd| [("ibv_qp.context", 1, 1), ("ibv_qp.pd", pd, 2)];
        assert!(agree(verb, fields(2)).is_ok());
        let error = agree(verb, fields(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("ibv_qp.pd"), "{error}");
    }
}
