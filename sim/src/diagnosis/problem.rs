//! The kinds of problems. Each is a struct in the file of its group, with its class and its sentence.

use verbs_api::site::Site;

use super::words::Names;
use super::{Certainty, Class};

pub use super::mem::PostedTo;
pub use super::qp::Difference;

/// A problem, as its group describes it.
pub(super) trait Describe {
    /// Its class.
    fn class(&self) -> Class;

    /// How sure it is that it is a mistake.
    fn certainty(&self) -> Certainty {
        self.class().certainty()
    }

    /// What tells it from others of its class at the same place.
    fn key(&self) -> [&'static str; 2] {
        [""; 2]
    }

    /// What is wrong.
    fn sentence(&self, names: &dyn Names) -> String;
}

macro_rules! problems {
    ($( $group:ident: $($problem:ident),*; )*) => {
        $( pub use super::$group::{$($problem),*}; )*

        /// What there is to be found.
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

    /// How sure it is that it is a mistake.
    pub(super) fn certainty(&self) -> Certainty {
        self.described().certainty()
    }

    /// What tells it from others of its class at the same place: the verb that was refused and for
    /// what, or what differs.
    pub(super) fn key(&self) -> [&'static str; 2] {
        self.described().key()
    }

    /// What is wrong.
    pub(super) fn sentence(&self, names: &dyn Names) -> String {
        self.described().sentence(names)
    }
}

/// A problem as it was noted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Noted {
    pub(super) problem: Problem,
    pub(super) site: Option<Site>,
    pub(super) more: u64,
}

impl Noted {
    /// One that is of a place.
    pub(super) fn at(problem: impl Into<Problem>, site: Option<Site>) -> Self {
        Self {
            problem: problem.into(),
            site,
            more: 0,
        }
    }
}
