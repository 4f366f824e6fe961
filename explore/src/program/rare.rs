//! What a random program does that not every device can.
//!
//! A region of device memory takes the number of a region, and a parent domain that of its domain.
//! So the program goes on with the new object, or with the old one where the device refuses.

use verbs_api::{Access, InOrderQuery, WrOpcode};

use super::call::{Call, Number};
use super::generate::{ContextDraft, DmDraft, Draft, Kind, MrDraft};

/// What is done next.
#[derive(Clone, Copy)]
enum Act {
    Region,
    Copy,
    Free,
    Domain,
    Thread,
    Order,
    Clock,
}

const ACTS: &[(u32, Act)] = &[
    (4, Act::Region),
    (5, Act::Copy),
    (2, Act::Free),
    (2, Act::Domain),
    (2, Act::Thread),
    (2, Act::Order),
    (1, Act::Clock),
];

impl Draft {
    /// Now and then, such a call. All its draws are of the stream for rare ones.
    pub(super) fn act_rarely(&mut self) {
        if self.rare.below(8) > 0 {
            return;
        }
        let context = self.rare.one(&self.contexts);
        match self.rare.weighted(ACTS) {
            Act::Region => self.region_of_dm(context),
            Act::Copy => self.copy(),
            Act::Free => self.free(),
            Act::Domain => self.parent_domain(context),
            Act::Thread => self.thread_domain(context.context),
            Act::Order => {
                let qp = self.rare.one(&self.qps).number;
                let qp = self.rare_number(Kind::Qp, qp);
                let opcode = self.rare.one(WrOpcode::ALL);
                // The third bit has no name.
                let flags = InOrderQuery::from_bits_retain(self.rare.below(5));
                self.say(Call::QueryInOrder { qp, opcode, flags });
            }
            Act::Clock => {
                let context = self.rare_number(Kind::Context, context.context);
                self.say(Call::QueryRtValues { context });
            }
        }
    }

    /// Makes a region one of device memory.
    fn region_of_dm(&mut self, ContextDraft { context, pd, .. }: ContextDraft) {
        let of_context = self.mrs.iter().filter(|mr| mr.context == context);
        if of_context.clone().next().is_none() {
            return;
        }
        let MrDraft {
            number,
            length,
            access,
            ..
        } = *self.rare.one_of(of_context);
        // Regions that share bytes also have the same zones.
        let fits = |dm: &&DmDraft| dm.context == context && dm.length == length;
        let shared = self.dms.iter().find(fits).copied();
        let dm = match shared.filter(|_| self.rare.percent(50)) {
            Some(dm) => dm,
            None => self.new_dm(context, length, number),
        };
        // Device memory has no pages, and other devices say that first.
        let mut access = access.difference(Access::ON_DEMAND);
        access.set(Access::ZERO_BASED, self.rare.below(20) > 0);
        let call = Call::RegDmMr {
            mr: number,
            pd: self.rare_number(Kind::Pd, pd),
            dm: self.rare_number(Kind::Dm, dm.number),
            offset: dm.offset,
            length,
            access,
        };
        self.foreign.push(number);
        self.say(call);
    }

    /// Device memory for regions of this length, the first of which is `region`.
    fn new_dm(&mut self, context: Number, length: u32, region: Number) -> DmDraft {
        let dm = DmDraft {
            number: self.next_number(Kind::Dm),
            context,
            offset: self.rare.one(&[0, 8, 64]),
            length,
            region,
        };
        let call = Call::AllocDm {
            dm: dm.number,
            context: self.rare_number(Kind::Context, context),
            length: dm.offset + length,
        };
        self.say(call);
        self.dms.push(dm);
        dm
    }

    /// Copies bytes to or from device memory, mostly as many as may be copied.
    fn copy(&mut self) {
        let Some(dm) = self.dms.last().copied() else {
            return;
        };
        let unit = if self.rare.below(10) == 0 { 1 } else { 4 };
        let offset = unit * self.rare.below((dm.offset + dm.length) / unit);
        let length = unit * self.rare.below(9);
        let dm = self.rare_number(Kind::Dm, dm.number);
        let call = if self.rare.percent(50) {
            let value = self.rare.any() as u8;
            Call::CopyToDm {
                dm,
                offset,
                length,
                value,
            }
        } else {
            Call::CopyFromDm { dm, offset, length }
        };
        self.say(call);
    }

    /// Frees device memory, mostly without its region.
    fn free(&mut self) {
        let Some(dm) = self.dms.pop() else {
            return;
        };
        let mr = dm.region;
        if self.rare.percent(70) && self.mrs.len() > 1 {
            self.mrs.retain(|of| of.number != mr);
            self.say(Call::DeregMr { mr });
        }
        let dm = self.rare_number(Kind::Dm, dm.number);
        self.say(Call::FreeDm { dm });
    }

    /// Makes a thread domain, or removes any.
    fn thread_domain(&mut self, context: Number) {
        if self.rare.percent(50) {
            self.new_td(context);
        } else {
            let td = self.any_number(Kind::Td);
            self.say(Call::DeallocTd { td });
        }
    }

    fn new_td(&mut self, context: Number) -> Number {
        let td = self.next_number(Kind::Td);
        self.say(Call::AllocTd { td, context });
        td
    }

    /// Makes a domain the parent of itself, with a thread domain or without.
    fn parent_domain(&mut self, ContextDraft { context, pd, .. }: ContextDraft) {
        let td = self.rare.percent(60).then(|| {
            let td = self.new_td(context);
            self.rare_number(Kind::Td, td)
        });
        self.say(Call::AllocParentDomain { parent: pd, pd, td });
    }

    fn next_number(&mut self, kind: Kind) -> Number {
        let next = self.next[kind as usize];
        self.next[kind as usize] += 1;
        next
    }

    /// The number that is meant; sometimes that of any object, or of none.
    fn rare_number(&mut self, kind: Kind, meant: Number) -> Number {
        if self.rare.below(12) > 0 {
            return meant;
        }
        self.any_number(kind)
    }

    /// The number of any object, or of none.
    fn any_number(&mut self, kind: Kind) -> Number {
        self.rare.below(u32::from(self.next[kind as usize]) + 1) as Number
    }
}
