//! What a program did wrong or left undone, as far as a simulation knows.
//!
//! The core states facts when something goes wrong, and does not judge them. What is below in this
//! table names nothing of a device; what is above reads the nodes, and only the runtime asks it.
//!
//! | file | holds |
//! |---|---|
//! | `report` | the findings of all nodes: their order, and which explain others |
//! | `of_node`, `threads`, `ends` | what is wrong on a node; of threads that wait; of connections |
//! | `outstanding` | what may yet complete in a CQ |
//! | `suppressions` | findings that are known |
//! | `problem` | the kinds of problems, by their groups, and what they have in common |
//! | `arm`, `call`, `cq`, `evt`, `mem`, `obj`, `packets`, `qp`, `wait`, `work` | a group of problems: the facts that make them, their classes and sentences |
//! | `class`, `words` | the table of classes; how findings are printed |
//! | `journal`, `news` | what went wrong on a node; what of it is new |
//! | `recovery` | whether a program goes on after work that failed |
//! | `fact`, `cause` | what the core states: data; what work failed for |

mod arm;
mod call;
mod cause;
mod class;
mod cq;
mod ends;
mod evt;
mod fact;
mod journal;
mod mem;
mod news;
mod obj;
mod of_node;
mod outstanding;
mod packets;
pub mod problem;
mod qp;
mod recovery;
mod report;
mod suppressions;
mod threads;
mod wait;
mod words;
mod work;

use verbs_api::site::Site;

pub use cause::Why;
pub(crate) use cause::{FailureCause, KeyKind, LabCause, LossCause, RegionSlot, Rights};
pub use class::{Certainty, Class, UnknownClass};
pub(crate) use ends::compare;
pub(crate) use fact::{
    ChannelSeen, CqSeen, CqUse, DropDetails, FailedWork, QpAt, Reached, Standing,
};
pub(crate) use journal::Journal;
pub(crate) use mem::PostedWork;
pub(crate) use of_node::note_closing;
pub(crate) use of_node::note_unread;
use problem::Noted;
pub(crate) use problem::PostedTo;
pub use problem::{Problem, Unposted};
pub(crate) use report::{diagnose, keep_fresh, note_mistake, note_refusal, take_fresh};
pub use suppressions::Suppressions;
pub(crate) use threads::note_endless;
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
    fn new(node: u32, noted: Noted) -> Self {
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
        self.certainty == Certainty::Certain
            && matches!(&self.problem, Problem::Failed(failed) if failed.is_excusable())
    }
}
