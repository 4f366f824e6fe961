//! Why a verb is refused. The core does not know which verb that is: the caller adds it.

use std::fmt::Display;

use verbs_api::{Cause, Error, ErrorKind, FullQueue, PostError, Verb};

use crate::memory::NoMapping;

/// Why a verb is refused. It is boxed, so that a function that succeeds returns a word or two.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal(Box<Facts>);

#[derive(Clone, Debug, PartialEq)]
struct Facts {
    kind: ErrorKind,
    cause: Cause,
    /// Whether the C call returns the negative errno value.
    is_negative: bool,
}

/// The result of a verb, or of a part of it, in the core.
pub(crate) type Result<T, E = Refusal> = core::result::Result<T, E>;

/// Why the work requests of a list from `bad_wr` on were not posted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PostRefusal {
    pub(crate) bad_wr: usize,
    refusal: Refusal,
}

/// What becomes the error of a verb once the verb is known.
pub(crate) trait Refused {
    type Error: Display + From<Error>;

    /// The error of `verb`.
    fn by(self, verb: Verb) -> Self::Error;

    /// The error without further results.
    fn plain(error: &Self::Error) -> &Error;
}

/// A result that becomes that of a verb once the verb is known.
pub(crate) trait Answer {
    type OfVerb;

    /// The result of `verb`.
    fn by(self, verb: Verb) -> Self::OfVerb;
}

impl<R, E: Refused> Answer for Result<R, E> {
    type OfVerb = Result<R, E::Error>;

    #[inline(always)]
    fn by(self, verb: Verb) -> Self::OfVerb {
        self.map_err(|refusal| refusal.by(verb))
    }
}

impl Refusal {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, cause: Cause) -> Self {
        let is_negative = false;
        Self(Box::new(Facts {
            kind,
            cause,
            is_negative,
        }))
    }

    /// An argument is wrong.
    #[cold]
    pub(crate) fn argument(kind: ErrorKind, what: &'static str, problem: &'static str) -> Self {
        Self::new(kind, Cause::Argument { what, problem })
    }

    /// A number is not from `min` to `max`.
    #[cold]
    pub(crate) fn out_of_range(
        kind: ErrorKind,
        what: &'static str,
        value: i64,
        min: i64,
        max: i64,
    ) -> Self {
        let cause = Cause::OutOfRange {
            what,
            value,
            min,
            max,
        };
        Self::new(kind, cause)
    }

    /// The program misused the interface.
    #[cold]
    pub(crate) fn usage(text: String) -> Self {
        Self::new(ErrorKind::Usage, Cause::Usage(text.into()))
    }

    /// A queue has no free slot.
    #[cold]
    pub(crate) fn full(queue: FullQueue, capacity: u32) -> Self {
        Self::new(ErrorKind::NoMemory, Cause::QueueFull { queue, capacity })
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl From<NoMapping> for Refusal {
    fn from(NoMapping(kind, what, problem): NoMapping) -> Self {
        Self::argument(kind, what, problem)
    }
}

impl PostRefusal {
    pub(crate) fn new(bad_wr: usize, refusal: Refusal) -> Self {
        Self { bad_wr, refusal }
    }

    /// The C call returns the negative errno value, as some drivers do.
    #[cold]
    pub(crate) fn negative(mut self) -> Self {
        self.refusal.0.is_negative = true;
        self
    }
}

impl From<Refusal> for PostRefusal {
    /// The whole list is refused.
    fn from(refusal: Refusal) -> Self {
        Self::new(0, refusal)
    }
}

impl Refused for Refusal {
    type Error = Error;

    #[cold]
    fn by(self, verb: Verb) -> Error {
        let raw = self.0.is_negative.then(|| -self.0.kind.errno());
        let error = Error::new(verb, self.0.kind, self.0.cause);
        match raw {
            Some(raw) => error.with_raw(raw),
            None => error,
        }
    }

    fn plain(error: &Error) -> &Error {
        error
    }
}

impl Refused for PostRefusal {
    type Error = PostError;

    #[cold]
    fn by(self, verb: Verb) -> PostError {
        PostError::new(self.bad_wr, self.refusal.by(verb))
    }

    fn plain(error: &PostError) -> &Error {
        &error.error
    }
}

impl Refused for Error {
    type Error = Self;

    /// The error of a part that knows its verb.
    fn by(self, _: Verb) -> Self {
        self
    }

    fn plain(error: &Self) -> &Self {
        error
    }
}
