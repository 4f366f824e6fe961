//! A completion as the program gets it.

use core::fmt;

use verbs_api::{Wc, WcEx, WcFields, WcStatus};

/// A completion, and which of its fields are known: an iteration gives those that its CQ was made
/// with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    pub(crate) wc: Wc,
    known: WcFields,
}

impl Polled {
    pub(crate) fn qp_num(&self) -> Option<u32> {
        self.knows(WcFields::QP_NUM).then_some(self.wc.qp_num)
    }

    /// The most bytes that it says were received.
    pub(crate) fn most_bytes(&self) -> u64 {
        if self.knows(WcFields::BYTE_LEN) {
            self.wc.byte_len.into()
        } else {
            u64::MAX
        }
    }

    pub(crate) fn knows(&self, field: WcFields) -> bool {
        self.known.contains(field)
    }

    pub(crate) fn is_success(&self) -> bool {
        self.wc.status == WcStatus::Success
    }
}

impl From<Wc> for Polled {
    fn from(wc: Wc) -> Self {
        let known = WcFields::STANDARD;
        Self { wc, known }
    }
}

impl From<WcEx> for Polled {
    fn from(read: WcEx) -> Self {
        let mut known = WcFields::empty();
        known.set(WcFields::BYTE_LEN, read.byte_len.is_some());
        known.set(WcFields::IMM, read.imm_data.is_some());
        known.set(WcFields::QP_NUM, read.qp_num.is_some());
        let mut wc = Wc::default();
        wc.wr_id = read.wr_id;
        wc.status = read.status;
        wc.opcode = read.opcode;
        wc.vendor_err = read.vendor_err;
        wc.wc_flags = read.wc_flags;
        wc.byte_len = read.byte_len.unwrap_or_default();
        wc.imm_data = read.imm_data.unwrap_or_default();
        wc.qp_num = read.qp_num.unwrap_or_default();
        Self { wc, known }
    }
}

impl fmt::Display for Polled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.knows(SHOWN) {
            write!(f, "{}", self.wc)
        } else {
            let Wc { wr_id, status, .. } = self.wc;
            write!(f, "wr_id {wr_id:#x} {status}")?;
            if self.is_success() {
                write!(f, " {}", self.wc.opcode)
            } else {
                Ok(())
            }
        }
    }
}

/// The fields that completions are shown with.
const SHOWN: WcFields = WcFields::QP_NUM
    .union(WcFields::BYTE_LEN)
    .union(WcFields::IMM);
