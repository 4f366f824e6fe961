//! The kinds of problems. Each one is a struct in the file of its group, with its class and its
//! sentence.

use verbs_api::site::Site;

use super::words::Names;
use super::{Certainty, Class};

pub use super::mem::PostedTo;
pub use super::qp::Difference;

/// A problem, as its group describes it.
pub(super) trait Describe {
    /// Its class.
    fn class(&self) -> Class;

    /// How certain it is that it is a mistake.
    fn certainty(&self) -> Certainty {
        self.class().certainty()
    }

    /// Distinguishes it from others of its class at the same place.
    fn key(&self) -> [&'static str; 2] {
        [""; 2]
    }

    /// The sentence of the finding.
    fn sentence(&self, names: &dyn Names) -> String;
}

macro_rules! problems {
    ($( $group:ident: $($problem:ident),*; )*) => {
        $( pub use super::$group::{$($problem),*}; )*

        /// The problem of a finding.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Problem {
            $($(
                #[doc = concat!("[`", stringify!($problem), "`](crate::problem::", stringify!($problem), ").")]
                $problem($problem),
            )*)*
        }

        impl Problem {
            fn described(&self) -> &dyn Describe {
                match self { $($( Self::$problem(problem) => problem, )*)* }
            }
        }

        $($(
            impl From<$problem> for Problem {
                fn from(problem: $problem) -> Self {
                    Self::$problem(problem)
                }
            }
        )*)*
    };
}

problems! {
    arm: ArmedWithoutChannel, LostWakeup, NotArmedAgain, SolicitedOnly;
    call: Misused, Refused, Unposted;
    cq: NeverPolled, Overrun, SmallCq, Unpolled;
    evt: OtherPolled, Unacknowledged, Unread, UnreadAsync;
    mem: Changed, DeregisteredEarly, Unmapped;
    obj: NotDestroyed;
    packets: Dropped, Garbage, UnownedGid;
    qp: EndsDiffer, PostedInError;
    wait: PolledInVain, Waits;
    work: Failed, RequestRefused;
}

impl Problem {
    /// Its class.
    pub fn class(&self) -> Class {
        self.described().class()
    }

    /// How certain it is that it is a mistake.
    pub(super) fn certainty(&self) -> Certainty {
        self.described().certainty()
    }

    /// Distinguishes it from others of its class at the same place: the refused verb and the
    /// reason, or the attribute that differs.
    pub(super) fn key(&self) -> [&'static str; 2] {
        self.described().key()
    }

    /// The sentence of the finding.
    pub(super) fn sentence(&self, names: &dyn Names) -> String {
        self.described().sentence(names)
    }
}

/// A recorded problem.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    pub(super) problem: Problem,
    pub(super) site: Option<Site>,
    pub(super) more: u64,
}

impl Noted {
    /// A problem at a place.
    pub(super) fn at(problem: impl Into<Problem>, site: Option<Site>) -> Self {
        Self {
            problem: problem.into(),
            site,
            more: 0,
        }
    }
}
