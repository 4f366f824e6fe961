//! Where in a program a verb is called: the place that a diagnosis names.
//!
//! In Rust it is a line of source, by `#[track_caller]`. A layer over the verbs, such as a C library or the owning
//! objects, says whose call it passes on: [`Standing`].

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
}

std::thread_local!(static STANDING: Cell<Option<Site>> = const { Cell::new(None) });

/// Says where the program is in what this library knows nothing of.
static NOTED: OnceLock<fn() -> Option<Site>> = OnceLock::new();

/// From now on the whole process asks a layer first where the program is: one that notes every call of the program by
/// itself, as a C library does, and for less than a [`Standing`] takes. Only the first layer is asked.
///
/// ```
/// use verbs_api::site::{Site, noted_by};
///
/// let place = Site::Address(0x1000);
/// noted_by(|| Some(Site::Address(0x1000)));
/// assert_eq!(Site::of_program(), place);
/// ```
pub fn noted_by(layer: fn() -> Option<Site>) {
    let _ = NOTED.set(layer);
}

impl Site {
    /// Where the program is: what a layer has said ([`noted_by`], [`Standing`]), or else whoever called this function.
    #[inline(always)]
    #[track_caller]
    pub fn of_program() -> Self {
        let noted = NOTED.get().and_then(|layer| layer());
        let said = noted.or_else(|| STANDING.get());
        said.unwrap_or(Self::Source(Location::caller()))
    }

    /// Whoever called this function.
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
