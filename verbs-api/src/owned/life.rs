//! How long objects live. Each holds what it was made from, and is destroyed once, when nothing
//! holds it any more. So children go before their parents, whatever the program drops first.

use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use super::Context;
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle::Handle;

/// Why an object was not destroyed, and the object.
///
/// Its message is that of [`error`](Self::error), and `?` turns it into that.
#[non_exhaustive]
pub struct DestroyError<T> {
    /// The object, as usable as before.
    pub object: T,
    /// Why it was not destroyed.
    pub error: Error,
}

impl<T> fmt::Debug for DestroyError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for DestroyError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> core::error::Error for DestroyError<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<T> From<DestroyError<T>> for Error {
    fn from(error: DestroyError<T>) -> Self {
        error.error
    }
}

/// An object of the backend, with what it was made from. Dropped when it has been destroyed, and
/// not before: its own `Drop` is the place for what follows from that.
pub(super) trait Parts: Send + Sync + 'static {
    /// The verb that destroys it.
    const VERB: Verb;

    type Handle: Handle;

    fn handle(&self) -> Self::Handle;

    fn context(&self) -> &Context;

    /// Calls the verb; does not wait.
    fn destroy(&self) -> Result<()>;
}

/// What destroys the object in the end.
pub(super) struct Owner<P: Parts> {
    /// Taken by `Drop` alone.
    parts: Option<P>,
    destroyed: AtomicBool,
}

impl<P: Parts> Owner<P> {
    pub(super) fn new(parts: P) -> Arc<Self> {
        Arc::new(Self {
            parts: Some(parts),
            destroyed: AtomicBool::new(false),
        })
    }
}

impl<P: Parts> Deref for Owner<P> {
    type Target = P;

    fn deref(&self) -> &P {
        self.parts.as_ref().expect("nothing can follow Drop")
    }
}

impl<P: Parts> Drop for Owner<P> {
    /// An object that cannot be destroyed is kept, with all it was made from, for as long as it
    /// takes.
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else {
            return;
        };
        let context = parts.context().clone();
        if *self.destroyed.get_mut() || parts.is_gone() {
            drop(parts);
        } else {
            context.keep(Box::new(parts));
        }
        context.try_kept_again();
    }
}

/// Destroys an object that nothing else holds.
pub(super) fn destroy<P: Parts>(owner: &Arc<Owner<P>>) -> Result<()> {
    let others = Arc::strong_count(owner) - 1;
    if others > 0 {
        return Err(still_held(P::VERB, owner.handle(), others));
    }
    owner.deref().destroy()?;
    owner.destroyed.store(true, Ordering::Relaxed);
    Ok(())
}

pub(super) fn still_held(verb: Verb, object: impl fmt::Display, others: usize) -> Error {
    let text = format!(
        "{object} is held by {others} others: clones of it, objects made from it, work requests \
         that use it, or events of it"
    );
    Error::new(verb, ErrorKind::Busy, Cause::Text(text.into()))
}

/// An object that could not be destroyed when it was dropped.
pub(super) trait Remains: Send + Sync {
    /// Tries again; returns whether the object was destroyed.
    fn is_gone(&self) -> bool;
}

impl<P: Parts> Remains for P {
    fn is_gone(&self) -> bool {
        match self.destroy() {
            Ok(()) => true,
            // Somebody destroyed it by its raw handle.
            Err(error) => matches!(error.cause(), Cause::Handle { .. }),
        }
    }
}

/// What all handles of this layer have in common.
macro_rules! object {
    ($name:ident, $verb:literal) => {
        object!($name: $name, $verb);
    };
    ($name:ident: $handle:ident, $verb:literal) => {
        impl $name {
            /// The raw handle, for [`Verbs`](crate::Verbs). It owns nothing; the
            /// [module](crate::owned#raw-access) says what raw calls can spoil.
            pub fn handle(&self) -> crate::handle::$handle {
                self.0.handle
            }

            /// Destroys it
            #[doc = concat!("(`", $verb, "`)")]
            /// and reports the obstacle, where dropping could not. Does not wait.
            ///
            /// # Errors
            /// `Busy` if a clone, an object made from it, posted work or an event holds it; those
            /// of the verb. The object comes back with the error.
            #[track_caller]
            pub fn destroy(self) -> Result<(), $crate::owned::DestroyError<Self>> {
                let _standing = $crate::site::Standing::at($crate::site::Site::here());
                match super::life::destroy(&self.0) {
                    Ok(()) => Ok(()),
                    Err(error) => Err($crate::owned::DestroyError {
                        object: self,
                        error,
                    }),
                }
            }
        }

        impl PartialEq for $name {
            /// Whether both are handles of one object.
            fn eq(&self, other: &Self) -> bool {
                std::sync::Arc::ptr_eq(&self.0, &other.0)
            }
        }

        impl Eq for $name {}

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0.handle, f)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0.handle, f)
            }
        }
    };
}

pub(super) use object;
