//! What a set of CQs on one channel must do, in as few words as possible.
//!
//! The reference for the searches. Written from the rules of arming (CQ-ARM), channels (CHAN),
//! overrun (CQ-OVR), resize (CQ-RESIZE) and destruction (CQ-DESTROY); shares nothing with the
//! simulator but the public types.
#![allow(dead_code, reason = "each search uses a part of it")]

use std::collections::VecDeque;

use verbs_api::{ErrorKind, Wc, WcOpcode, WcStatus};

/// What of a completion is compared. The opcode counts on success only (WC-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) wr_id: u64,
    pub(crate) status: WcStatus,
    pub(crate) opcode: Option<WcOpcode>,
}

impl Completion {
    pub(crate) fn success(wr_id: u64, opcode: WcOpcode) -> Self {
        Self {
            wr_id,
            status: WcStatus::Success,
            opcode: Some(opcode),
        }
    }

    pub(crate) fn failure(wr_id: u64, status: WcStatus) -> Self {
        Self {
            wr_id,
            status,
            opcode: None,
        }
    }
}

impl From<&Wc> for Completion {
    fn from(wc: &Wc) -> Self {
        Self {
            wr_id: wc.wr_id,
            status: wc.status,
            opcode: (wc.status == WcStatus::Success).then_some(wc.opcode),
        }
    }
}

/// Which request is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Off,
    Solicited,
    Next,
}

#[derive(Clone, Debug)]
struct Cq {
    size: usize,
    entries: VecDeque<Completion>,
    armed: Armed,
    /// It has overrun (CQ-OVR-02).
    dead: bool,
    unacknowledged: u32,
}

/// CQs, some of which may be gone, and the channel they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    cqs: Vec<Option<Cq>>,
    /// Unread events, oldest first (CHAN-33).
    events: VecDeque<usize>,
}

pub(crate) type Result<T = ()> = std::result::Result<T, ErrorKind>;

impl Model {
    /// A new CQ, in the place of a destroyed one or after the last.
    pub(crate) fn create(&mut self, cq: usize, size: usize) {
        if cq == self.cqs.len() {
            self.cqs.push(None);
        }
        self.cqs[cq] = Some(Cq {
            size,
            entries: VecDeque::new(),
            armed: Armed::Off,
            dead: false,
            unacknowledged: 0,
        });
    }

    pub(crate) fn lives(&self, cq: usize) -> bool {
        self.cqs[cq].is_some()
    }

    /// CQ-OVR-02: a CQ that has overrun cannot be used any more.
    pub(crate) fn is_dead(&self, cq: usize) -> bool {
        self.cqs[cq].as_ref().is_some_and(|cq| cq.dead)
    }

    pub(crate) fn arm(&mut self, cq: usize, solicited: bool) -> Result {
        let cq = self.usable(cq)?;
        // CQ-ARM-14, CQ-ARM-15: next is the stronger one.
        if !solicited {
            cq.armed = Armed::Next;
        } else if cq.armed == Armed::Off {
            cq.armed = Armed::Solicited;
        }
        Ok(())
    }

    /// Adds a completion; `solicited` is one of a receive whose sender asked for an event.
    pub(crate) fn add(&mut self, index: usize, completion: Completion, solicited: bool) {
        let Some(cq) = &mut self.cqs[index] else {
            return;
        };
        if cq.dead || cq.entries.len() == cq.size {
            (cq.dead, cq.armed) = (true, Armed::Off);
            return;
        }
        cq.entries.push_back(completion);
        let asked_for = match cq.armed {
            Armed::Off => false,
            Armed::Solicited => solicited || completion.status != WcStatus::Success,
            Armed::Next => true,
        };
        if asked_for {
            cq.armed = Armed::Off;
            self.events.push_back(index);
        }
    }

    /// Up to `n` completions, oldest first.
    pub(crate) fn poll(&mut self, cq: usize, n: usize) -> Result<Vec<Completion>> {
        let cq = self.live(cq)?;
        if cq.dead && cq.entries.is_empty() && n > 0 {
            return Err(ErrorKind::Io);
        }
        let n = n.min(cq.entries.len());
        Ok(cq.entries.drain(..n).collect())
    }

    /// The oldest event.
    pub(crate) fn get_event(&mut self) -> Result<usize> {
        let index = self.events.pop_front().ok_or(ErrorKind::WouldBlock)?;
        self.live(index)?.unacknowledged += 1;
        Ok(index)
    }

    /// CHAN-37: no more than were read.
    pub(crate) fn ack(&mut self, cq: usize, n: u32) -> Result {
        let unacknowledged = &mut self.live(cq)?.unacknowledged;
        *unacknowledged = unacknowledged.checked_sub(n).ok_or(ErrorKind::Usage)?;
        Ok(())
    }

    /// CQ-RESIZE-06, -11, -26.
    pub(crate) fn resize(&mut self, cq: usize, size: i32) -> Result {
        let cq = self.usable(cq)?;
        let size = usize::try_from(size).map_err(|_| ErrorKind::Invalid)?;
        if size == 0 || size < cq.entries.len() {
            return Err(ErrorKind::Invalid);
        }
        cq.size = size;
        Ok(())
    }

    /// The size, which is exactly what was asked for.
    pub(crate) fn size(&mut self, cq: usize) -> Result<usize> {
        self.live(cq).map(|cq| cq.size)
    }

    /// CHAN-35, CHAN-36: not before what was read is acknowledged; what was not read goes.
    pub(crate) fn destroy(&mut self, index: usize) -> Result {
        if self.live(index)?.unacknowledged > 0 {
            return Err(ErrorKind::WouldBlock);
        }
        self.cqs[index] = None;
        self.events.retain(|event| *event != index);
        Ok(())
    }

    fn live(&mut self, cq: usize) -> Result<&mut Cq> {
        self.cqs[cq].as_mut().ok_or(ErrorKind::Invalid)
    }

    fn usable(&mut self, cq: usize) -> Result<&mut Cq> {
        self.live(cq).and_then(|cq| {
            if cq.dead {
                Err(ErrorKind::Invalid)
            } else {
                Ok(cq)
            }
        })
    }
}
