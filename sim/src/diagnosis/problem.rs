//! The kinds of problems. Each one is a row in the file of its group: a struct with its class and
//! its sentence.

use verbs_api::site::Site;

use super::words::Names;
use super::{Certainty, Class};

pub use super::mem::PostedTo;
pub use super::qp::Difference;
pub use super::work::Ending;

/// A problem, as its group describes it.
pub(super) trait Describe {
    /// Its class.
    fn class(&self) -> Class;

    /// How certain it is that it is a mistake.
    fn certainty(&self) -> Certainty {
        self.class().certainty()
    }

    /// Distinguishes it from others of its class at the same place: the refused verb and the
    /// reason, or the attribute that differs.
    fn key(&self) -> [&'static str; 2] {
        [""; 2]
    }

    /// The sentence of the finding.
    fn sentence(&self, names: &dyn Names) -> String;
}

/// Problems as rows: the fields, the class, and the sentence. Some have a certainty or a key of
/// their own. The expressions refer to the fields by name, as references, and to the whole by the
/// name after `as`.
macro_rules! problems {
    ($(
        $(#[$meta:meta])*
        $name:ident $( as $this:ident )? { $( $(#[$doc:meta])* $field:ident: $type:ty, )* }
        is $class:expr,
        $( certainty $certainty:expr, )?
        $( key $key:expr, )?
        |$names:pat_param| $sentence:expr;
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$doc])* pub $field: $type, )*
        }

        // Expressions need not refer to each field, and follow an early return if there is one.
        #[allow(unused_variables, unreachable_code)]
        impl $crate::diagnosis::problem::Describe for $name {
            fn class(&self) -> $crate::diagnosis::Class {
                let Self { $($field),* } = self;
                $class
            }

            fn certainty(&self) -> $crate::diagnosis::Certainty {
                let Self { $($field),* } = self;
                $( let $this = self; )?
                $( return $certainty; )?
                self.class().certainty()
            }

            fn key(&self) -> [&'static str; 2] {
                let Self { $($field),* } = self;
                $( return $key; )?
                [""; 2]
            }

            fn sentence(&self, $names: &dyn $crate::diagnosis::Names) -> String {
                let Self { $($field),* } = self;
                $( let $this = self; )?
                $sentence
            }
        }
    )* };
}

pub(super) use problems;

macro_rules! groups {
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
            pub(super) fn described(&self) -> &dyn Describe {
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

groups! {
    arm: ArmedWithoutChannel, LostWakeup, NotArmedAgain, SolicitedOnly;
    call: Misused, Refused, Unposted;
    cq: NeverPolled, Outlived, Overrun, SmallCq, TakenLate, Unpolled;
    evt: OtherPolled, Unacknowledged, Unread, UnreadAsync, UnreadCm;
    mem: Changed, DeregisteredEarly, Overlaid, Unfenced, Unmapped, Withdrawn;
    obj: NotDestroyed;
    packets: Dropped, Garbage, UnownedGid;
    qp: EndsDiffer, PostedInError;
    wait: BusyPoll, Waits;
    work: CutOff, Failed, RequestRefused;
}

impl Problem {
    /// Its class.
    pub fn class(&self) -> Class {
        self.described().class()
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
