//! Data that a device places later than it arrives ([`Placement::Late`]).
//!
//! The end of a message is placed at once, and its beginning waits here. When the next message of
//! the queue pair starts, all of it is there (RO-01). In relaxed memory each piece of a message is
//! placed or waits as the seed decides, whatever the other pieces and messages do (RO-02).

use std::mem;

use verbs_api::Qp;
use verbs_api::behavior::Placement;

use super::{Gone, Memory, RegionId, Slice};
use crate::SimConfig;
use crate::rng::{Purpose, Random};

/// Data that is not placed yet.
#[derive(Debug)]
pub(crate) struct Late {
    /// Oldest first.
    waiting: Vec<Piece>,
    random: Random,
    /// Whether a piece in relaxed memory may be placed after a later one for the same bytes. Only
    /// where all completions are known is it certain that none came between the two.
    may_overwrite: bool,
}

/// Bytes that are not placed yet.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    into: Slice,
    of: Qp,
}

/// The message whose data is placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    /// The queue pair to which it belongs.
    pub(crate) qp: Qp,
    /// Whether this is its beginning.
    pub(crate) starts: bool,
}

/// The most pieces into which data for relaxed memory is cut.
const PIECES: usize = 8;

impl Late {
    /// `None` if the devices place data when it arrives.
    pub(crate) fn of(config: &SimConfig) -> Option<Self> {
        (config.behavior.placement == Placement::Late).then(|| Self {
            waiting: Vec::new(),
            random: Random::new(config.seed, Purpose::Placement, 0),
            may_overwrite: config.network.is_none(),
        })
    }
}

impl Memory {
    /// Whether data may be placed late.
    pub(crate) fn places_late(&self) -> bool {
        self.late.is_some()
    }

    /// Places all late data.
    pub(crate) fn settle(&mut self) {
        self.settle_if(|_, _| true);
    }

    /// Places the late data of a queue pair.
    pub(crate) fn settle_of(&mut self, qp: Qp) {
        self.settle_if(|_, late| late.of == qp);
    }

    /// Places the late data for this slice (MPE-01). Other data stays late.
    pub(crate) fn place(&mut self, flushed: &Slice) {
        self.settle_if(|_, late| late.into.overlaps(flushed));
    }

    /// Places the late data of a region.
    pub(super) fn settle_region(&mut self, region: RegionId) {
        self.settle_if(|_, late| late.into.region == region);
    }

    /// Places some data of a message now, and leaves the rest for later.
    pub(crate) fn place_late(
        &mut self,
        data: &[u8],
        target: &[Slice],
        placing: Placing,
    ) -> Result<(), Gone> {
        let Placing { qp, starts } = placing;
        self.settle_if(|random, late| {
            if late.into.is_relaxed {
                draw(random)
            } else {
                starts && late.of == qp
            }
        });
        let mut rest = data;
        for into in target {
            let (bytes, behind) = rest.split_at(into.length);
            rest = behind;
            let is_checked = self.checks(into.region);
            let may_overwrite = self.late.as_ref().is_some_and(|late| late.may_overwrite);
            // The later one of two messages for the same bytes must win.
            if is_checked || !(into.is_relaxed && may_overwrite) {
                self.settle_if(|_, late| late.into.overlaps(into));
            }
            if is_checked {
                // Only now can the message fail.
                self.put(into, bytes)?;
            } else if into.is_relaxed {
                self.place_some(bytes, into, qp)?;
            } else {
                self.place_end(bytes, into, qp)?;
            }
        }
        Ok(())
    }

    /// Places the second half.
    fn place_end(&mut self, bytes: &[u8], into: &Slice, of: Qp) -> Result<(), Gone> {
        let (first, last) = bytes.split_at(bytes.len() / 2);
        self.put(&into.part(first.len(), last.len()), last)?;
        self.defer(first, into.part(0, first.len()), of);
        Ok(())
    }

    /// Places those pieces on which the seed decides.
    fn place_some(&mut self, bytes: &[u8], into: &Slice, of: Qp) -> Result<(), Gone> {
        let length = bytes.len().div_ceil(PIECES).max(1);
        for (count, piece) in bytes.chunks(length).enumerate() {
            let into = into.part(count * length, piece.len());
            let late = self.late.as_mut();
            if late.is_some_and(|late| draw(&mut late.random)) {
                self.put(&into, piece)?;
            } else {
                self.defer(piece, into, of);
            }
        }
        Ok(())
    }

    fn defer(&mut self, bytes: &[u8], into: Slice, of: Qp) {
        if let Some(late) = &mut self.late {
            let bytes = bytes.to_vec();
            late.waiting.push(Piece { bytes, into, of });
        }
    }

    /// Places late data for which `is_due` holds, in order.
    fn settle_if(&mut self, is_due: impl Fn(&mut Random, &Piece) -> bool) {
        let Some(late) = &mut self.late else { return };
        if late.waiting.is_empty() {
            return;
        }
        let random = &mut late.random;
        let (due, waiting) = mem::take(&mut late.waiting)
            .into_iter()
            .partition(|piece| is_due(random, piece));
        late.waiting = waiting;
        let due: Vec<Piece> = due;
        for Piece { bytes, into, .. } in due {
            // Data for a removed region is discarded.
            let _ = self.put(&into, &bytes);
        }
    }
}

/// Whether a piece in relaxed memory is placed now.
fn draw(random: &mut Random) -> bool {
    random.any() & 1 == 0
}

#[cfg(test)]
mod tests {
    use verbs_api::Context;
    use verbs_api::behavior::Behavior;

    use super::*;

    const BYTES: usize = 64;

    /// A memory that places data late, and a region of it.
    fn memory(seed: u64, may_overwrite: bool) -> (Memory, RegionId) {
        let mut behavior = Behavior::SPEC;
        behavior.placement = Placement::Late;
        let config = SimConfig::new().behavior(behavior).seed(seed);
        let late = Late::of(&config).map(|late| Late {
            may_overwrite,
            ..late
        });
        let mut memory = Memory::new(late);
        let region = memory.add_owned(BYTES, false).unwrap();
        (memory, region)
    }

    fn whole(region: RegionId, is_relaxed: bool) -> Slice {
        Slice {
            region,
            offset: 0,
            length: BYTES,
            is_relaxed,
        }
    }

    fn qp(number: u32) -> Qp {
        Qp::from_parts(Context::from_parts(0, 0), number, 0)
    }

    fn place(memory: &mut Memory, into: Slice, byte: u8, number: u32) {
        let placing = Placing {
            qp: qp(number),
            starts: true,
        };
        memory.place_late(&[byte; BYTES], &[into], placing).unwrap();
    }

    fn bytes(memory: &Memory, from: &Slice) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        memory.peek(from, &mut bytes).unwrap();
        bytes
    }

    /// RO-02: of two messages for the same bytes either wins where no completion can have come
    /// between them, and the later one anywhere else.
    #[test]
    fn later_message_wins_unless_memory_is_relaxed_and_all_completions_are_known() {
        for (is_relaxed, may_overwrite) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let wins = |seed| {
                let (mut memory, region) = memory(seed, may_overwrite);
                let into = whole(region, is_relaxed);
                (1..=2).for_each(|byte| place(&mut memory, into, byte, 0));
                memory.settle();
                let seen = bytes(&memory, &into);
                assert!(seen.iter().all(|byte| (1..=2).contains(byte)), "{seen:?}");
                seen == [2; BYTES]
            };
            let always = (0..64).all(wins);
            assert_eq!(always, !(is_relaxed && may_overwrite), "{is_relaxed}");
        }
    }

    /// RO-01: the next message of a queue pair finds the data of its earlier ones, and that of
    /// another queue pair may still wait.
    #[test]
    fn message_places_the_data_before_it_of_its_queue_pair_alone() {
        for (number, is_there) in [(0, true), (1, false)] {
            let (mut memory, region) = memory(0, true);
            let elsewhere = memory.add_owned(BYTES, false).unwrap();
            let into = whole(region, false);
            place(&mut memory, into, 1, 0);
            assert_eq!(bytes(&memory, &into)[0], 0, "it waits");
            place(&mut memory, whole(elsewhere, false), 2, number);
            assert_eq!(bytes(&memory, &into) == [1; BYTES], is_there);
        }
    }
}
