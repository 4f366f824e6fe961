//! Where in a program a verb is called: the place that a diagnosis names.
//!
//! In Rust it is a line of source, by `#[track_caller]`. A layer over the verbs, such as a C
//! library or the owning objects, says whose call it passes on: [`Standing`].

use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use std::sync::OnceLock;

use crate::sync::CHECKED;

/// A place in a program's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Site {
    /// A line of Rust.
    Source(&'static Location<'static>),
    /// What a call of C returns to. Only its own process can give it a name.
    Address(usize),
    /// A place with the calls around it.
    Calls(&'static Calls),
}

/// Calls of C in each other, as what each returns to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Calls(Box<[usize]>);

impl Calls {
    /// Of at least one, the innermost first.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(returns_to: Vec<usize>) -> Self {
        assert!(!returns_to.is_empty(), "a place is that of a call");
        Self(returns_to.into())
    }

    /// What the call at the place returns to.
    pub fn innermost(&self) -> usize {
        self.0[0]
    }

    /// What the calls around it return to, from the inside out.
    pub fn around(&self) -> &[usize] {
        &self.0[1..]
    }
}

std::thread_local!(static STANDING: Cell<Option<Site>> = const { Cell::new(None) });

/// Says where the program is in what this library knows nothing of.
static NOTED: OnceLock<Layer> = OnceLock::new();

/// What knows where the program is.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// Where this thread has called a verb, if it has.
    pub here: fn() -> Option<Site>,
    /// A place with the calls around it if it is where this thread is, or else the place.
    pub with_calls: fn(Site) -> Site,
}

/// From now on the whole process asks a layer first where the program is: one that notes every call
/// of the program by itself, as a C library does, and for less than a [`Standing`] takes. Only the
/// first layer is asked.
///
/// ```
/// use verbs_api::site::{Layer, Site, noted_by};
///
/// let place = Site::Address(0x1000);
/// noted_by(Layer {
///     here: || Some(Site::Address(0x1000)),
///     with_calls: |site| site,
/// });
/// assert_eq!(Site::of_program(), place);
/// ```
pub fn noted_by(layer: Layer) {
    let _ = NOTED.set(layer);
}

impl Site {
    /// Where the program is: the place that a layer has set ([`noted_by`], [`Standing`]), or else
    /// the caller of this function.
    #[inline(always)]
    #[track_caller]
    pub fn of_program() -> Self {
        let noted = NOTED.get().and_then(|layer| (layer.here)());
        let said = noted.or_else(|| STANDING.get());
        said.unwrap_or(Self::Source(Location::caller()))
    }

    /// The same place with the calls around it, if a layer knows them ([`noted_by`]): it may take a
    /// microsecond.
    #[cold]
    pub fn with_calls(self) -> Self {
        match NOTED.get() {
            Some(layer) => (layer.with_calls)(self),
            None => self,
        }
    }

    /// The caller of this function.
    #[inline(always)]
    #[track_caller]
    pub fn here() -> Self {
        Self::Source(Location::caller())
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(location) => write!(f, "{}:{}", location.file(), location.line()),
            Self::Address(address) => write!(f, "{address:#x}"),
            Self::Calls(calls) => write!(f, "{:#x}", calls.innermost()),
        }
    }
}

/// While it lives, verbs that this thread calls are called from one place. The outermost counts.
///
/// A model checker runs its threads on one of the system: there it does nothing.
///
/// ```
/// use verbs_api::site::{Site, Standing};
///
/// let place = Site::Address(0x1000);
/// let standing = Standing::at(place);
/// assert_eq!(Site::of_program(), place);
/// drop(standing);
/// assert_ne!(Site::of_program(), place);
/// ```
#[derive(Debug)]
#[must_use = "it counts while it lives"]
pub struct Standing {
    is_outermost: bool,
    /// It is of one thread.
    _of_thread: core::marker::PhantomData<*const ()>,
}

impl Standing {
    /// From now on this thread calls verbs from there.
    #[inline(always)]
    pub fn at(site: Site) -> Self {
        let is_outermost = !CHECKED && STANDING.get().is_none();
        if is_outermost {
            STANDING.set(Some(site));
        }
        Self {
            is_outermost,
            _of_thread: core::marker::PhantomData,
        }
    }
}

impl Drop for Standing {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_outermost {
            STANDING.set(None);
        }
    }
}
