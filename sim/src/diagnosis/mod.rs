//! What a program did wrong or left undone, as far as a simulation knows.
//!
//! The core states facts when something goes wrong, and does not judge them. What is below in this
//! table names nothing of a device; what is above reads the nodes, and only the runtime asks it.
//!
//! | file | holds |
//! |---|---|
//! | `report` | the findings of all nodes: their order, and which explain others |
//! | `of_node`, `waits`, `ends` | the findings of a node; of threads that wait; of connections |
//! | `outstanding` | what may yet complete in a CQ |
//! | `class`, `words` | the class of each finding; its sentence |
//! | `suppressions` | findings that are known |
//! | `journal`, `news` | what went wrong on a node; what of it is new |
//! | `recovery` | whether a program goes on after work that failed |
//! | `fact`, `cause` | what the core states: data; what work failed for |

mod cause;
mod class;
mod ends;
mod fact;
mod journal;
mod news;
mod of_node;
mod outstanding;
mod recovery;
mod report;
mod suppressions;
mod unposted;
mod waits;
mod words;

use core::time::Duration;

use verbs_api::lab::ArmState;
use verbs_api::site::Site;
use verbs_api::{AsyncEventType, CompChannel, Cq, Error, Gid, Mr, WcStatus};

use crate::packet::DropReason;

pub use cause::Why;
pub(crate) use cause::{FailureCause, KeyKind, LabCause, LossCause, RegionSlot};
pub use class::{Certainty, Class, UnknownClass};
pub(crate) use ends::compare;
pub(crate) use fact::{DropDetails, FailedWork, QpAt, Reached, Standing};
pub(crate) use journal::Journal;
pub(crate) use of_node::note_closing;
pub(crate) use of_node::note_unread;
pub(crate) use report::{diagnose, keep_fresh, note_mistake, note_refusal, take_fresh};
pub use suppressions::Suppressions;
pub use unposted::Unposted;
pub(crate) use waits::note_endless;
pub(crate) use words::counted;
pub use words::{Names, PlainNames};

/// What was found, causes before what came of them; what is merely still there comes last.
///
/// Printed it is a line for each finding, with its class and the place in the program, without the address of any
/// memory; the first of each class is followed by what to do. It is empty after a program without mistakes that has
/// destroyed all its objects.
///
/// ```
/// use verbs_api::site::Site;
/// use verbs_api::{CqInit, Verbs};
/// use verbs_sim::{Names, Sim, SimConfig};
///
/// let sim = Sim::new(SimConfig::new());
/// let context = sim.open_device("sim1")?;
/// sim.create_cq(context, &CqInit::new(16))?;
/// let diagnosis = sim.diagnose();
/// assert!(diagnosis.mistakes.is_empty());
/// struct Here;
/// impl Names for Here {
///     fn place(&self, _: Site) -> String {
///         "main.rs:7".to_owned()
///     }
/// }
/// assert_eq!(
///     diagnosis.with_names(&Here),
///     "sim1: VS-OBJ-03: hint: not destroyed: cq#0 (main.rs:7); 1 context not closed\n\
///      help: VS-OBJ-03: destroy what was created, and close what was opened (DEV-03)\n"
/// );
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// What was done wrong, in the order in which it is printed.
    pub mistakes: Vec<Finding>,
    /// What is still there, one finding a device, and one for each context that was closed with what it had.
    pub leftovers: Vec<Finding>,
}

/// Something that a program did wrong or left undone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the device: 0 is that of `sim0`.
    pub node: u32,
    /// What it is.
    pub problem: Problem,
    /// Where in the program: of a failure where the work was posted, of a lost wake-up where the CQ was armed, of a
    /// refused call where that was made. `None` if it is not known.
    pub site: Option<Site>,
    /// How often more the same was found at the same place.
    pub more: u64,
    /// How sure it is that it is a mistake: as its class says. Three things are hints all the same:
    /// what a program had not done yet when it was stopped; a failure that may come from the other
    /// side and that the program has handled ([`Problem::Failed`]); and a CQ that was not polled
    /// after its event, if the program has destroyed it ([`Problem::OtherPolled`]).
    pub certainty: Certainty,
}

/// A problem as it was noted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Noted {
    pub(crate) problem: Problem,
    pub(crate) site: Option<Site>,
    pub(crate) more: u64,
}

impl From<Problem> for Noted {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            site: None,
            more: 0,
        }
    }
}

impl Noted {
    /// One that is of a place.
    pub(crate) fn at(problem: Problem, site: Option<Site>) -> Self {
        Self {
            problem,
            site,
            more: 0,
        }
    }
}

/// What there is to be found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// A work request failed, and was not only flushed.
    Failed {
        /// Number of its QP.
        qp_num: u32,
        /// It is a receive.
        receive: bool,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
        /// How it ended.
        status: WcStatus,
        /// What it failed for, if that is known.
        why: Option<Why>,
        /// The program has polled that, has destroyed or reset the queue pair, and work that it has posted since then has
        /// succeeded.
        handled: bool,
    },
    /// A call was refused.
    Refused {
        /// Of which class that is.
        class: Class,
        /// The error: verb, errno value and facts.
        error: Error,
    },
    /// A layer over the verbs was misused, which the simulator does not see
    /// ([`Misuse`](crate::Misuse)).
    Misused {
        /// Of which class that is.
        class: Class,
        /// What tells it from others of its class at the same place.
        fact: [&'static str; 2],
        /// In words.
        text: String,
        /// Where what it speaks of began, behind words that say which; if it is known.
        place: Option<(&'static str, Site)>,
    },
    /// A batch was begun (`ibv_wr_start`), and neither completed nor aborted. The place is where it was begun.
    Unposted {
        /// Number of its QP.
        qp_num: u32,
        /// How many work requests it has.
        requests: usize,
    },
    /// Completions were lost, since a CQ was full.
    Overrun {
        /// The CQ.
        cq: Cq,
        /// How many completions it holds.
        cqe: u32,
        /// How many were lost.
        lost: u64,
        /// The numbers of the queue pairs whose completions those were, the first eight.
        qps: Vec<u32>,
    },
    /// More may complete in a CQ than it has room for.
    SmallCq {
        /// The CQ.
        cq: Cq,
        /// How many completions it holds.
        cqe: u32,
        /// How many are in it.
        unpolled: u32,
        /// How much work is outstanding that completes in it.
        outstanding: u64,
    },
    /// A CQ was armed that has no channel: no event comes of that.
    ArmedWithoutChannel {
        /// The CQ.
        cq: Cq,
    },
    /// A CQ is armed, and completions wait in it that were there before: the classic lost wake-up.
    LostWakeup {
        /// The CQ.
        cq: Cq,
        /// What it is armed for.
        armed: ArmState,
        /// How many wait.
        unpolled: u32,
        /// The poll before took as many as it asked for, and left these.
        partly: bool,
    },
    /// A CQ is armed for solicited completions, and others wait in it.
    SolicitedOnly {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
        /// All of them are of sends, which nobody can solicit.
        of_sends: bool,
    },
    /// An event told of a CQ that was not polled since, and completions wait in it.
    OtherPolled {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
        /// The program has destroyed the CQ: it may have ended before it wanted to poll.
        destroyed: bool,
    },
    /// A CQ was not armed since the last event of it was read, and completions wait in it.
    NotArmedAgain {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
    },
    /// No completion of a CQ was ever polled.
    NeverPolled {
        /// The CQ.
        cq: Cq,
        /// How many wait that are no flush.
        unpolled: u32,
    },
    /// The ends of a connection do not fit together.
    EndsDiffer {
        /// Number of the QP that came last to where it shows.
        qp_num: u32,
        /// The node and the number of its peer.
        peer: (u32, u32),
        /// What differs, with both values: at the QP, and at its peer.
        what: &'static str,
        /// The value at the QP.
        own: u64,
        /// The value at its peer.
        others: u64,
    },
    /// Sends were posted on a QP in the error state, after a completion had told of that.
    PostedInError {
        /// Number of the QP.
        qp_num: u32,
    },
    /// A thread waits, and nothing that is under way ends that.
    Waits {
        /// What it has called: a verb, or a function of the system.
        call: &'static str,
        /// What it waits for, in words.
        waits_for: String,
        /// For how long, if that is known.
        since: Option<Duration>,
        /// Why nothing comes.
        class: Class,
        /// In words, with what would end it.
        why: String,
        /// A place that these words speak of, behind words that say which; if it is known.
        place: Option<(&'static str, Site)>,
        /// What is wrong with an object, if that is why: it is said in place of these words.
        of: Option<Box<Problem>>,
    },
    /// The program was stopped, and had polled a CQ that had nothing many times.
    PolledInVain {
        /// The CQ.
        cq: Cq,
        /// How often since its last completion.
        times: u64,
        /// What may still complete in it, in words.
        outstanding: String,
    },
    /// A request of a peer in another process was refused. That of a peer in this one is in its `Failed`. The place is where
    /// the region was registered or deregistered, if it is for that.
    RequestRefused {
        /// What was asked for, such as `a write`.
        operation: &'static str,
        /// The number of the peer's QP, in its process.
        from: u32,
        /// The number of the QP that refused it.
        qp_num: u32,
        /// How the peer's work ends.
        status: WcStatus,
        /// What for.
        why: Why,
    },
    /// Packets were not taken.
    Dropped {
        /// The node and the number of the QP they came from; the node is `None` if it is another process's, and the number 0
        /// if it is not known.
        from: (Option<u32>, u32),
        /// The number of the QP they were for.
        qp_num: u32,
        /// Why.
        why: DropReason,
        /// The same with numbers, of the first of them, in words.
        details: Option<String>,
        /// How many, without those that came again.
        count: u64,
        /// How often one of them came.
        tries: u64,
    },
    /// A datagram was sent to an address that no device has. The place is where it was posted.
    UnownedGid {
        /// Number of the QP that sent it.
        qp_num: u32,
        /// The destination GID.
        gid: Gid,
    },
    /// Datagrams came from the network that are no packets for this device.
    Garbage {
        /// What they were.
        why: DropReason,
        /// How many.
        count: u64,
    },
    /// Completions wait in a CQ.
    Unpolled {
        /// The CQ.
        cq: Cq,
        /// How many.
        unpolled: u32,
    },
    /// Events of CQs wait in a channel.
    Unread {
        /// The channel.
        channel: CompChannel,
        /// How many.
        events: u32,
    },
    /// Asynchronous events that tell of an error were not read.
    UnreadAsync {
        /// What they tell.
        event_type: AsyncEventType,
        /// What they are of.
        of: String,
        /// How many.
        events: u32,
    },
    /// Events were read and not acknowledged: the destroy of what they are of would wait for ever. A thread that does
    /// wait so is another mistake, and a certain one.
    Unacknowledged {
        /// What they are of.
        of: String,
        /// What the last of them tells, if there are several kinds.
        last: Option<String>,
        /// How many.
        events: u32,
    },
    /// Objects are still there.
    NotDestroyed {
        /// Which, with how they stand, and where they were made: users before what they use.
        names: Vec<(String, Option<Site>)>,
        /// How often the device is still open.
        contexts: u32,
        /// They went with their context, which was closed all the same (DEV-03).
        closed: bool,
    },
    /// The bytes of a send changed before its completion was polled.
    Changed {
        /// Number of its QP.
        qp_num: u32,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
    },
    /// Work uses memory of a region that is not mapped any more. The place is that of the registration.
    Unmapped {
        /// The region.
        mr: Mr,
        /// The first of the bytes in the region.
        offset: u64,
        /// How many there are.
        length: u64,
    },
    /// A region was deregistered before the completion of work that names it was polled.
    DeregisteredEarly {
        /// The region.
        mr: Mr,
        /// The work, the last that was posted.
        work: String,
        /// Where that was posted, if it is known.
        posted: Option<Site>,
    },
}

impl Diagnosis {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.mistakes.is_empty() && self.leftovers.is_empty()
    }

    /// Refuses mistakes that are certain, but for those that are `allowed`.
    ///
    /// # Errors
    /// The mistakes, a line each with what to do.
    pub fn check(&self, allowed: &Suppressions) -> Result<(), String> {
        let mut text = String::new();
        for finding in &self.mistakes {
            let is_refused = finding.certainty == Certainty::Certain;
            if is_refused && !allowed.cover_finding(finding) {
                text += &format!("\n{finding}\nhelp: {}", finding.class().remedy());
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        Err(format!("the program made mistakes:{text}"))
    }

    /// All there is, in the order in which it is printed.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.mistakes.iter().chain(&self.leftovers)
    }
}

impl Finding {
    pub(crate) fn new(node: u32, noted: Noted) -> Self {
        let Noted {
            problem,
            site,
            more,
        } = noted;
        Self {
            node,
            certainty: problem.certainty(),
            problem,
            site,
            more,
        }
    }

    /// Of which class it is.
    pub fn class(&self) -> Class {
        self.problem.class()
    }

    /// Whether it is certain now, and becomes a hint if the program handles it: work that failed with
    /// `IBV_WC_RETRY_EXC_ERR`, `IBV_WC_RNR_RETRY_EXC_ERR` or `IBV_WC_REM_OP_ERR`, for a reason that
    /// may be the other side's ([`Problem::Failed`]).
    pub fn may_be_handled(&self) -> bool {
        self.certainty == Certainty::Certain && self.problem.is_excusable()
    }
}
