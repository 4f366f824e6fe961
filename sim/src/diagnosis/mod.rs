//! What a program did wrong or left undone, as far as a simulation knows.
//!
//! The core records facts when something goes wrong, and does not judge them. The lower files of
//! this table do not depend on the device. The upper ones read the nodes, and only the runtime
//! calls them.
//!
//! | file | holds |
//! |---|---|
//! | `report` | the findings of all nodes: their order, and which explain others |
//! | `of_node`, `of_cm` | findings of a node; of rdma_cm |
//! | `threads`, `ends` | findings of waiting threads; of connections |
//! | `outstanding` | work that may still complete in a CQ |
//! | `suppressions` | known findings |
//! | `problem` | the kinds of problems, by their groups, and what they have in common |
//! | `arm`, `call`, `cq`, `evt`, `mem`, `obj`, `packets`, `qp`, `wait`, `work` | a group of problems: a row for each with its class and its sentence, and the facts that make them |
//! | `class`, `words` | the table of classes; how findings are printed |
//! | `journal` | the record of what went wrong on a node, and its new entries |
//! | `recovery` | whether a program continues after work that failed |
//! | `fact`, `cause` | facts that the core records; causes of failures |

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
mod obj;
mod of_cm;
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
pub(crate) use cause::{CmArgument, CmOrigin, FailureCause, KeyKind, LabCause, LossCause, Rights};
pub use class::{Certainty, Class, UnknownClass};
pub(crate) use fact::{
    ChannelSeen, CmUnread, CqSeen, CqUse, DropDetails, FailedWork, QpAt, Reached, Standing,
};
pub(crate) use journal::{DestroyedQp, Journal};

pub use problem::{Problem, Unposted};
pub(crate) use report::is_own;
pub use suppressions::Suppressions;
pub(crate) use words::counted;
pub use words::{Names, PlainNames};

/// The findings of a simulation: causes before their consequences, and leftover objects last.
///
/// Printed, it has a line for each finding, with its class and the place in the program, and
/// without memory addresses. The first finding of each class is followed by its remedy. It is empty
/// after a correct program that has destroyed all its objects.
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
    /// The mistakes, in the order in which they are printed.
    pub mistakes: Vec<Finding>,
    /// The objects that still exist: one finding for each device, and one for each context that was
    /// closed with objects.
    pub leftovers: Vec<Finding>,
}

/// Something that a program did wrong or left undone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the device: 0 is that of `sim0`.
    pub node: u32,
    /// The problem.
    pub problem: Problem,
    /// The place in the program. For a failure that is where the work was posted, for a lost
    /// wake-up where the CQ was armed, and for a refused call where it was made. `None` if it is
    /// not known.
    pub site: Option<Site>,
    /// How many more times the same problem was found at the same place.
    pub more: u64,
    /// How certain it is that it is a mistake. That follows from its class, with three exceptions,
    /// which are hints: what a program had not done yet when it was stopped; a failure that the
    /// other side may have caused and that the program has handled ([`Problem::Failed`]); and a CQ
    /// that was not polled after its event, if the program has destroyed it
    /// ([`Problem::OtherPolled`]).
    pub certainty: Certainty,
}

impl Diagnosis {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.mistakes.is_empty() && self.leftovers.is_empty()
    }

    /// Refuses certain mistakes, except those that `allowed` covers.
    ///
    /// # Errors
    /// A text with a line for each mistake, followed by its remedy.
    pub fn check(&self, allowed: &Suppressions) -> Result<(), String> {
        let mut text = String::new();
        for finding in &self.mistakes {
            // Hints may be correct programs.
            let place = || finding.site.map(|site| PlainNames.place(site));
            if finding.certainty == Certainty::Certain && !allowed.cover(finding.class(), place) {
                text += &format!("\n{finding}\nhelp: {}", finding.class().remedy());
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        Err(format!("the program made mistakes:{text}"))
    }

    /// All findings, in the order in which they are printed.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.mistakes.iter().chain(&self.leftovers)
    }
}

impl Finding {
    /// The class of the problem.
    pub fn class(&self) -> Class {
        self.problem.class()
    }

    /// Whether it is certain now, but becomes a hint if the program handles it: work that failed
    /// with `IBV_WC_RETRY_EXC_ERR`, `IBV_WC_RNR_RETRY_EXC_ERR` or `IBV_WC_REM_OP_ERR`, for a reason
    /// that the other side may have caused ([`Problem::Failed`]).
    pub fn may_be_handled(&self) -> bool {
        self.certainty == Certainty::Certain
            && matches!(&self.problem, Problem::Failed(failed) if failed.is_excusable())
    }
}
