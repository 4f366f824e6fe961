//! Invariants that hold on any device, checked apart from it.
//!
//! [`Checked`] is a [`Verbs`] around any other. It forwards every call and keeps books of its own,
//! only from the calls and what they returned. So the books cannot repeat a mistake of the device.
//! `docs/invariants.md` lists what it finds.
//!
//! | module | holds |
//! |---|---|
//! | `work`, `queues`, `polled` | what was posted and must complete: once, in order, on its CQ |
//! | `domains` | which XRC SRQs the messages of a queue pair can name |
//! | `delivery` | what RC receivers get of what their peers sent |
//! | `events` | arms, CQ events, acknowledgements |
//! | `memory`, `atomics`, `ranges` | bytes that may change, and what counters must hold |
//! | `objects` | parents and children |
//! | `witness` | how things stand when a program fails |
//! | `books` | all of these, and what a call means for them |
//! | `reading` | what is read apart from the program |
//! | `lifetime` | making and destroying objects |
//! | `verbs`, `cm`, `lab` | the traits |
//! | `end` | what only the end of a run shows |
//!
//! `books` and the modules above it do not name [`Checked`]; the modules below are its methods.

mod atomics;
mod books;
mod broken;
mod cm;
mod delivery;
mod domains;
mod end;
mod events;
mod lab;
mod lifetime;
mod map;
mod memory;
mod objects;
mod polled;
mod queues;
mod ranges;
mod reading;
mod summary;
mod verbs;
mod witness;
mod work;

use core::fmt;
use std::sync::Arc;

use verbs_api::lab::Lab;
use verbs_api::sync::{Mutex, MutexGuard};
use verbs_api::{Context, Result, Verbs};

pub use broken::{Broken, Invariant};
pub use summary::Summary;
pub(crate) use witness::Witness;

use books::Books;

/// A [`Verbs`] that checks invariants of the one it is around.
///
/// A broken invariant changes nothing for the program: no call fails because of it. The first one
/// is kept: [`broken`](Self::broken) gives it at any time, and [`finish`](Self::finish) at the end.
/// A value that is dropped without `finish` finishes by itself, and panics if an invariant is
/// broken. So a test only has to wrap its device.
///
/// Several threads may use it. Its lock is held during calls that do not wait, so the books have
/// the order of the calls; those that can wait are made without it.
///
/// Besides the program's calls, it queries the number of each new QP and the attributes of each new
/// or changed region. It reads a region before it is deregistered, and the completion that an
/// iteration is at if the program moves on without it. At the end it ends open iterations. A
/// simulator does not observe these calls ([`Lab::unobserved`]): fault rules fire only on the calls
/// of the program.
///
/// ```
/// # use std::sync::Arc;
/// # use verbs_api::Verbs;
/// # fn program(_: &dyn Verbs) {}
/// # fn example(device: Arc<dyn Verbs>) -> Result<(), verbs_explore::Broken> {
/// let verbs = verbs_explore::Checked::new(device);
/// program(&verbs);
/// let summary = verbs.finish()?;
/// assert!(summary.calls > 0);
/// # Ok(())
/// # }
/// ```
pub struct Checked {
    inner: Arc<dyn Verbs>,
    books: Arc<Mutex<Books>>,
    /// The same, for calls that are not observed; `None` if this is that one.
    unobserved: Option<Box<Checked>>,
    /// Who sees the program fail, if somebody asks.
    witness: Option<Arc<Witness>>,
    /// Another one, with the same books, finishes.
    is_view: bool,
}

impl Checked {
    /// Wraps `inner`, on which nothing has been done yet: earlier work and objects are unknown, and
    /// would look like the device's inventions.
    pub fn new(inner: impl Into<Arc<dyn Verbs>>) -> Self {
        let inner = inner.into();
        Self::with(inner, Arc::default(), None, false)
    }

    /// The same checks around another view of the device.
    fn view(&self, inner: Arc<dyn Verbs>) -> Self {
        Self::with(inner, self.books.clone(), self.witness.clone(), true)
    }

    fn with(
        inner: Arc<dyn Verbs>,
        books: Arc<Mutex<Books>>,
        witness: Option<Arc<Witness>>,
        is_view: bool,
    ) -> Self {
        let unobserved = Self {
            inner: inner.clone(),
            books: books.clone(),
            unobserved: None,
            witness: None,
            is_view: true,
        };
        Self {
            inner,
            books,
            unobserved: Some(Box::new(unobserved)),
            witness,
            is_view,
        }
    }

    /// Checks with a witness of failures.
    pub(crate) fn watched(mut self, witness: Arc<Witness>) -> Self {
        self.books.lock().witness = Some(witness.clone());
        self.witness = Some(witness);
        self
    }

    /// The first invariant found broken so far.
    pub fn broken(&self) -> Option<Broken> {
        self.books.lock().broken.clone()
    }

    /// The program calls something.
    fn goes_on(&self) {
        if let Some(witness) = &self.witness {
            witness.goes_on();
        }
    }

    /// The device, for what the program calls.
    fn device(&self) -> &dyn Verbs {
        self.goes_on();
        self.forwarded()
    }

    /// The same, without anything said of what the program does.
    fn forwarded(&self) -> &dyn Verbs {
        match self.unobserved {
            Some(_) => &*self.inner,
            None => self.device_unobserved(),
        }
    }

    /// The device, for a call that acknowledges or ends something: values do that too when they are
    /// dropped.
    fn device_to_let_go(&self) -> &dyn Verbs {
        if let Some(witness) = &self.witness {
            witness.lets_go();
        }
        self.forwarded()
    }

    /// A call that destroys something. One that is refused is a call like others: programs may fail
    /// by it.
    fn take_apart<R>(&self, call: impl FnOnce(&dyn Verbs) -> Result<R>) -> Result<R> {
        if let Some(witness) = &self.witness {
            witness.begins_to_end();
        }
        let result = call(self.forwarded());
        if result.is_err() {
            self.goes_on();
        }
        result
    }

    /// A poll found nothing, which the simulator does not trace.
    fn found_nothing(&self, context: Context, call: impl FnOnce() -> String) {
        if let Some(witness) = &self.witness {
            witness.found_nothing(context, call());
        }
    }

    /// The device, for what it asks by itself.
    fn device_unobserved(&self) -> &dyn Verbs {
        self.inner.lab().map_or(&*self.inner, Lab::unobserved)
    }

    /// The books, for a call that does something.
    fn begin(&self) -> MutexGuard<'_, Books> {
        let mut books = self.books.lock();
        books.summary.calls += 1;
        books
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.broken();
        f.debug_struct("Checked").field("broken", &broken).finish()
    }
}
