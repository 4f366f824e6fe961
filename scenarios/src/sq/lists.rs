//! Lists of several entries, of different lengths, and messages of no bytes: of each operation, in
//! each way to post it, and inline.

use verbs_api::{BatchEnd, PostError, QpCap, QpType, Remote, SendOps, SendWr, Sge};

use crate::failure::{check, check_eq, value_in_case};
use crate::kind::Kind;
use crate::{Claim, End, OfRule, Pair, PairOptions, Result, Setup, pattern, wr_ids};

/// Where each entry of a list starts, and its length. Their order is not that of their addresses.
const LISTS: [&[(u64, u32)]; 6] = [
    &[(0, 8), (64, 24)],
    &[(70, 24), (3, 7)],
    &[],
    &[(9, 1), (100, 0), (40, 30)],
    &[(5, 0)],
    &[(90, 0), (20, 13)],
];

/// The most entries, and the most bytes, of a list.
const ENTRIES: u32 = 3;
const BYTES: u32 = 32;

/// The room of each message in the region.
const ROOM: u32 = 256;

const RULE: Claim = Claim::one("WC-35");

/// How work is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each work request by itself.
    Each,
    /// All in one list.
    List,
    /// All in a batch.
    Batch,
}

impl Way {
    fn post(self, setup: &Setup<'_>, end: &End<'_>, list: &[SendWr<'_>]) -> Result<(), PostError> {
        match self {
            Self::Each => list
                .iter()
                .try_for_each(|wr| setup.post_send(end.qp, &[*wr])),
            Self::List => setup.post_send(end.qp, list),
            Self::Batch => {
                let posted = setup.post_batch(end.qp, list, BatchEnd::Complete);
                posted.map_err(PostError::from)
            }
        }
    }
}

const POSTS: &[Way] = &[Way::Each, Way::List];
const BATCH: &[Way] = &[Way::Batch];
const SENDS: [Kind; 2] = [Kind::Send, Kind::SendImm];
/// On UC a program cannot see that a write without immediate data has arrived.
const RECEIVED: [Kind; 3] = [Kind::Send, Kind::SendImm, Kind::WriteImm];

scenario!(each_entry_of_a_list_counts:
    "WC-35", "SQ-07"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ);
fn each_entry_of_a_list_counts(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Rc, &Kind::ALL, POSTS)
}

scenario!(each_entry_of_a_batch_counts:
    "WC-35", "SQ-07"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ, BATCHES);
fn each_entry_of_a_batch_counts(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Rc, &Kind::ALL, BATCH)
}

scenario!(each_entry_of_a_list_counts_on_uc:
    "WC-35", "SQ-07"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn each_entry_of_a_list_counts_on_uc(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Uc, &RECEIVED, POSTS)
}

scenario!(each_entry_of_a_batch_counts_on_uc:
    "WC-35", "SQ-07"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM, BATCHES);
fn each_entry_of_a_batch_counts_on_uc(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Uc, &RECEIVED, BATCH)
}

scenario!(each_entry_of_a_list_counts_on_ud: "WC-35", "SQ-07"; needs UD, SEND_WITH_IMM);
fn each_entry_of_a_list_counts_on_ud(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Ud, &SENDS, POSTS)
}

scenario!(each_entry_of_a_batch_counts_on_ud: "WC-35", "SQ-07"; needs UD, SEND_WITH_IMM, BATCHES);
fn each_entry_of_a_batch_counts_on_ud(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::Ud, &SENDS, BATCH)
}

scenario!(each_entry_of_a_list_counts_on_xrc:
    "WC-35", "SQ-07"; needs XRC, SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ);
fn each_entry_of_a_list_counts_on_xrc(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::XrcSend, &Kind::ALL, POSTS)
}

scenario!(each_entry_of_a_batch_counts_on_xrc:
    "WC-35", "SQ-07"; needs XRC, SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ, BATCHES);
fn each_entry_of_a_batch_counts_on_xrc(setup: &Setup<'_>) -> Result {
    each_way(setup, QpType::XrcSend, &Kind::ALL, BATCH)
}

fn each_way(setup: &Setup<'_>, qp_type: QpType, kinds: &[Kind], ways: &[Way]) -> Result {
    for inline in [true, false] {
        let has_inline = |kind: &&Kind| !inline || **kind != Kind::Read;
        for kind in kinds.iter().filter(has_inline) {
            for way in ways {
                let case = format!("{kind:?}, {way:?}, inline: {inline}");
                let pair = setup.pair(options(qp_type, *kind, *way, inline))?;
                value_in_case(&case, all_lists(setup, &pair, *kind, *way, inline))?;
            }
        }
    }
    Ok(())
}

fn options(qp_type: QpType, kind: Kind, way: Way, inline: bool) -> PairOptions {
    let send_ops = match way {
        Way::Batch => SendOps::of(&kind.op(Remote::default(), [0; 4])),
        _ => SendOps::empty(),
    };
    PairOptions {
        send_ops,
        cap: QpCap {
            max_send_sge: ENTRIES,
            max_inline_data: if inline { BYTES } else { 0 },
            ..QpCap::default()
        },
        ..PairOptions::of(qp_type)
    }
}

/// Posts all lists together. Each has its part of both regions.
fn all_lists(setup: &Setup<'_>, pair: &Pair<'_>, kind: Kind, way: Way, inline: bool) -> Result {
    let Pair { a, b } = pair;
    let parts: Vec<_> = (0..)
        .zip(LISTS)
        .map(|(n, list)| Part { pair, n, list })
        .collect();
    for part in &parts {
        a.fill_at(part.at(a), part.n as u8, ROOM)?;
        b.fill_at(part.at(b), !part.n as u8, ROOM)?;
        if kind.takes_a_receive() {
            b.recv_at(part.n, part.at(b), ROOM - b.grh())?;
        }
    }
    let lists: Vec<_> = parts.iter().map(Part::entries).collect();
    let list = parts.iter().zip(&lists).map(|(part, entries)| {
        let op = kind.op(b.mem.remote(part.at(b)), [9, 8, 7, part.n as u8]);
        let wr = a.to_peer(SendWr::new(part.n, op, entries));
        if inline { wr.inline() } else { wr }
    });
    way.post(setup, a, &list.collect::<Vec<_>>()).rule(RULE)?;
    let numbers: Vec<_> = parts.iter().map(|part| part.n).collect();
    let sent = setup.successes(a.send_cq, parts.len()).rule(RULE)?;
    check_eq!(RULE, wr_ids(&sent), numbers, "the order of work");
    if kind.takes_a_receive() {
        let came = setup.successes(b.recv_cq, parts.len()).rule(RULE)?;
        let grh = if kind.is_write() { 0 } else { b.grh() };
        let lengths: Vec<_> = came.iter().map(|wc| wc.byte_len - grh).collect();
        let expected: Vec<_> = parts.iter().map(Part::total).collect();
        check_eq!(RULE, lengths, expected, "the lengths of the messages");
    }
    parts.iter().try_for_each(|part| part.is_moved(kind))
}

/// A message and its parts of the regions.
struct Part<'p> {
    pair: &'p Pair<'p>,
    n: u64,
    list: &'static [(u64, u32)],
}

impl Part<'_> {
    /// Where its part of the region of an end starts.
    fn at(&self, end: &End<'_>) -> u64 {
        end.landing() + self.n * u64::from(ROOM)
    }

    fn entries(&self) -> Vec<Sge> {
        let a = &self.pair.a;
        let entry = |(from, len): &(u64, u32)| a.sge(self.at(a) + from, *len);
        self.list.iter().map(entry).collect()
    }

    fn total(&self) -> u32 {
        self.list.iter().map(|(_, len)| len).sum()
    }

    /// The bytes of its entries were moved, in their order, and no others.
    fn is_moved(&self, kind: Kind) -> Result {
        let Pair { a, b } = self.pair;
        let (here, there) = (pattern(self.n as u8, ROOM), pattern(!self.n as u8, ROOM));
        // What a header takes of a receive is not looked at.
        let grh = if kind.is_write() { 0 } else { b.grh() as usize };
        let (mut of_a, mut of_b) = (here.clone(), there.clone());
        let mut moved = grh;
        for (from, len) in self.list {
            let (from, len) = (*from as usize, *len as usize);
            match kind {
                Kind::Read => of_a[from..][..len].copy_from_slice(&there[moved..][..len]),
                _ => of_b[moved..][..len].copy_from_slice(&here[from..][..len]),
            }
            moved += len;
        }
        let seen_a = a.bytes(self.at(a), ROOM as usize)?;
        let seen_b = b.bytes(self.at(b), ROOM as usize)?;
        let what = format!("message {} of {} entries", self.n, self.list.len());
        let rule = if self.total() == 0 {
            Claim::one("SQ-07")
        } else {
            RULE
        };
        check!(rule, seen_a == of_a, &what, "other bytes at its sender");
        check!(
            rule,
            seen_b[grh..] == of_b[grh..],
            what,
            "other bytes at its receiver"
        );
        Ok(())
    }
}
