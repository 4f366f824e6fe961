//! Objects: the structure that a program points to, with the handle of the engine.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};

use verbs_api::{Context, DriverObject, Handle, Verbs};
use verbs_sim::Class;

use super::result::{Object, Refusal, Result};
use crate::base::arena::{self, Arena};
use crate::base::per_process::PerProcess;
use crate::base::record;
use crate::engine::sim;

/// An object as C sees it. The engine knows whether its handle is still valid.
#[repr(C)]
pub(crate) struct CObject<K: Kind> {
    raw: UnsafeCell<K::Raw>,
    pub(crate) handle: K::Handle,
    /// It shares the number only with objects that were made as this one. The low half is in the
    /// field `handle` of the structure.
    pub(crate) number: u64,
    /// The object that this one was made as.
    first: Option<Held<K>>,
    /// One of [`state`].
    state: AtomicU8,
    pub(crate) more: K::More,
}

/// An object of a kind for the time of a call.
pub(crate) type Found<K> = arena::Found<CObject<K>>;

/// An object of a kind for as long as it is held.
pub(crate) type Held<K> = arena::Held<CObject<K>>;

/// States of an object.
mod state {
    /// An ordinary object.
    pub(super) const GOOD: u8 = 0;
    /// The engine knows that the program has changed the field `handle`.
    pub(super) const CORRUPT: u8 = 1;
    /// It was given up, which the engine does not know.
    pub(super) const ENDED: u8 = 2;
}

// SAFETY: the program reads and writes the structure as it does with C's. This library uses it
// through pointers only. Everything else can be shared.
unsafe impl<K: Kind> Sync for CObject<K> {}
// SAFETY: as above.
unsafe impl<K: Kind> Send for CObject<K> {}

/// All objects of a kind. Each process has its own.
pub(crate) type Objects<K> = PerProcess<Arena<CObject<K>>>;

/// A kind of object.
pub(crate) trait Kind: Sized + 'static {
    /// The structure.
    type Raw;
    /// The part of the structure that a program points to: for contexts the last member, for others
    /// all of it.
    type Seen;
    type Handle: Handle + Send + Sync;
    /// Further values of the object, which the structure lacks.
    type More: Send + Sync;
    /// Its structure, such as `struct ibv_qp`.
    const NAME: &'static str;
    /// The offset of [`Seen`](Self::Seen) in the structure.
    const OFFSET: usize;

    /// The objects of the process.
    fn arenas() -> &'static Objects<Self>;

    fn arena() -> &'static Arena<CObject<Self>> {
        Self::arenas().get_or_default()
    }

    /// The field `handle` of the structure, if it has one.
    fn number(_raw: *mut Self::Raw) -> Option<*mut u32> {
        None
    }

    /// Whether the field `context` of the structure names the context of the object. The kernel
    /// looks there for the number in the field `handle`.
    fn is_in_context(_object: &CObject<Self>) -> bool {
        true
    }

    /// The object whose handle a driver would read from that field.
    fn driver_object(_handle: Self::Handle) -> Option<DriverObject> {
        None
    }

    /// The name of an object in findings.
    fn named(object: &CObject<Self>) -> String {
        object.handle.to_string()
    }
}

impl<K: Kind> CObject<K> {
    /// Makes an object. `fill` makes its structure, except for the field `handle`.
    pub(crate) fn make(
        handle: K::Handle,
        more: K::More,
        fill: impl FnOnce() -> K::Raw,
    ) -> Result<Found<K>> {
        Self::make_with(|_| Ok((handle, more, fill())))
    }

    /// Makes an object of the parts that `make` returns. `make` gets its number.
    pub(crate) fn make_with(
        make: impl FnOnce(u64) -> Result<(K::Handle, K::More, K::Raw)>,
    ) -> Result<Found<K>> {
        Self::insert(|number| Ok((number, None, make(number)?)))
    }

    /// Makes another object for the engine's object of `other`, with the same number.
    pub(crate) fn make_as(
        other: Held<K>,
        more: K::More,
        fill: impl FnOnce() -> K::Raw,
    ) -> Result<Found<K>> {
        // An import of an import is one of the first object.
        let first = other.first.clone().unwrap_or(other);
        let (number, handle) = (first.number, first.handle);
        Self::insert(|_| Ok((number, Some(first), (handle, more, fill()))))
    }

    /// Makes an object of its own in the engine that has the number of another one.
    pub(crate) fn make_numbered(
        number: u64,
        handle: K::Handle,
        more: K::More,
        fill: impl FnOnce() -> K::Raw,
    ) -> Result<Found<K>> {
        Self::insert(|_| Ok((number, None, (handle, more, fill()))))
    }

    fn insert(
        make: impl FnOnce(u64) -> Result<(u64, Option<Held<K>>, (K::Handle, K::More, K::Raw))>,
    ) -> Result<Found<K>> {
        let object = K::arena().insert(|number| {
            let (number, first, (handle, more, raw)) = make(number)?;
            Ok(Self {
                raw: UnsafeCell::new(raw),
                handle,
                number,
                first,
                state: AtomicU8::new(state::GOOD),
                more,
            })
        });
        let object = object.unwrap_or_else(|| {
            let what = format!("there have been too many of {}", K::NAME);
            Err(Refusal::new(libc::ENOMEM, what))
        })?;
        // The number is known only now that the object has a slot.
        if let Some(number) = K::number(object.raw()) {
            // SAFETY: the structure is ours, and no program has a pointer to it yet.
            unsafe { number.write(object.number as u32) };
        }
        Ok(object)
    }

    /// The object that a program points to. The lookup does not touch the memory that the pointer
    /// names.
    #[inline(always)]
    pub(crate) fn find(seen: *mut K::Seen) -> Result<Found<K>> {
        match Self::at(seen) {
            Some(object) if object.is_ordinary() => Ok(object),
            found => Self::look(seen, found),
        }
    }

    /// The object at a pointer, which may be destroyed.
    #[inline(never)]
    pub(crate) fn at(seen: *mut K::Seen) -> Option<Found<K>> {
        let address = (seen as usize).wrapping_sub(K::OFFSET);
        K::arenas().get()?.find(address)
    }

    #[inline]
    fn is_ordinary(&self) -> bool {
        !self.is_corrupt() && self.state.load(Ordering::Relaxed) == state::GOOD
    }

    /// Whether the program has changed the field `handle`.
    #[inline]
    fn is_corrupt(&self) -> bool {
        K::number(self.raw()).is_some_and(|number| {
            // SAFETY: the object is one of ours, and stays as long as `self`. A program may write
            // the field at any time, as with C.
            unsafe { number.read_volatile() != self.number as u32 }
        })
    }

    /// The object that a program points to, for a verb that is a call of the kernel: the kernel
    /// looks in the context that the structure names. Verbs for each message do not.
    pub(crate) fn find_in_context(seen: *mut K::Seen) -> Result<Found<K>> {
        let found = Self::find(seen)?;
        if K::is_in_context(&found) {
            Ok(found)
        } else {
            Err(Self::changed("context"))
        }
    }

    /// The program has changed a field by which the kernel finds the object.
    #[cold]
    fn changed(field: &str) -> Refusal {
        let what = format!(
            "the program has changed the field {field} of the {}",
            K::NAME
        );
        Refusal::new(libc::ENOENT, what)
    }

    /// The object that a program points to, or `None` for a null pointer.
    pub(crate) fn find_some(seen: *mut K::Seen) -> Result<Option<Found<K>>> {
        if seen.is_null() {
            return Ok(None);
        }
        Self::find(seen).map(Some)
    }

    /// Refuses a pointer to no object, an object that was given up, and one whose number the
    /// program has changed. The engine refuses the objects that it knows, so here it only learns of
    /// the change.
    #[cold]
    fn look(seen: *mut K::Seen, found: Option<Found<K>>) -> Result<Found<K>> {
        let found = found.ok_or_else(|| Self::unknown(seen))?;
        let corrupt = found.is_corrupt();
        let (now, other) = if corrupt {
            (state::CORRUPT, state::GOOD)
        } else {
            (state::GOOD, state::CORRUPT)
        };
        let order = Ordering::Relaxed;
        let changed = found.state.compare_exchange(other, now, order, order);
        // The engine does not know such objects, so the refusal is made here.
        if changed == Err(state::ENDED) {
            return Err(Self::destroyed());
        }
        match K::driver_object(found.handle) {
            Some(object) => {
                // The engine is notified once for each change, not for each call.
                if changed.is_ok() {
                    // The engine refuses destroyed objects anyway.
                    let _ = sim().corrupt_handle(object, corrupt);
                }
                Ok(found)
            }
            None if corrupt => Err(Self::changed("handle")),
            None => Ok(found),
        }
    }

    /// A pointer names no object of this process. It may name one of the parent's.
    fn unknown(seen: *mut K::Seen) -> Refusal {
        let address = (seen as usize).wrapping_sub(K::OFFSET);
        let of_parent = K::arenas().of_parent();
        let (class, what) = if of_parent.is_some_and(|arena| arena.find(address).is_some()) {
            // The program means to use the device here too.
            record::opened();
            (Class::AfterFork, "is of the parent, from before fork")
        } else if seen.is_null() {
            (Class::Refused, "is NULL")
        } else if K::arena().had(address) {
            (
                Class::Destroyed,
                "names an object that was destroyed long ago",
            )
        } else {
            (Class::Refused, "names no object that there ever was")
        };
        let what = format!("the pointer to a {} {what}", K::NAME);
        Refusal::of(class, libc::EINVAL, what)
    }

    /// The object was given up here, which the engine does not know.
    fn destroyed() -> Refusal {
        let what = format!("the {} was destroyed", K::NAME);
        Refusal::of(Class::Destroyed, libc::EINVAL, what)
    }

    /// The object with a number, by which the engine names it in events.
    pub(crate) fn numbered(number: u64) -> Result<Found<K>> {
        K::arena()
            .numbered(number)
            .ok_or(Refusal::expected(libc::EIO))
    }

    /// The object that `ibv_import_*` names by the field `handle`: the first of this number, if it
    /// is `importable`.
    pub(crate) fn with_handle(
        handle: u32,
        importable: impl FnOnce(&Self) -> bool,
    ) -> Result<Found<K>> {
        let found = K::arena().at(handle.into());
        let found = found.filter(|of| of.number as u32 == handle && of.is_first());
        found.filter(|of| importable(of)).ok_or_else(|| {
            Refusal::invalid(format!(
                "the context has no object of this kind with the handle {handle}"
            ))
        })
    }

    /// Gives up an object that `ibv_import_*` has made.
    pub(crate) fn end_import(&self) -> Result<()> {
        if self.is_first() {
            return Err(Refusal::invalid("the object was not imported"));
        }
        self.end()
    }

    /// The object that this one was made as: itself, unless it was imported.
    pub(crate) fn first(&self) -> &Self {
        self.first.as_deref().unwrap_or(self)
    }

    pub(crate) fn is_first(&self) -> bool {
        self.first.is_none()
    }

    /// Gives up an object that the engine does not know. Lookups refuse it from then on.
    pub(crate) fn end(&self) -> Result<()> {
        // If two threads end the object, one succeeds.
        match self.state.swap(state::ENDED, Ordering::Relaxed) {
            state::ENDED => Err(Self::destroyed()),
            _ => {
                self.retire();
                Ok(())
            }
        }
    }

    /// Destroys the object. Its memory is used again, but not soon.
    pub(crate) fn retire(&self) {
        K::arena().end(self);
    }

    /// Its structure.
    pub(crate) fn raw(&self) -> *mut K::Raw {
        self.raw.get()
    }

    /// The pointer of the program.
    pub(crate) fn seen(&self) -> *mut K::Seen {
        self.raw.get().wrapping_byte_add(K::OFFSET).cast()
    }
}

/// A structure that programs point to.
pub(crate) trait Structure {
    type Kind: Kind;
}

impl<S: Structure> Object for *mut S {
    type Found = Found<S::Kind>;

    fn named(self) -> Option<(Option<Context>, String)> {
        let object = CObject::<S::Kind>::at(self.cast())?;
        // Objects of rdma_cm have the zero handle for a context.
        let context = Some(object.handle.context()).filter(|of| of.generation() > 0);
        Some((context, S::Kind::named(&object)))
    }

    #[inline(always)]
    fn found(self) -> Result<Self::Found> {
        CObject::<S::Kind>::find(self.cast())
    }

    #[inline]
    fn found_in_context(self) -> Result<Self::Found> {
        CObject::<S::Kind>::find_in_context(self.cast())
    }
}

/// Declares kinds of objects, a row for each:
///
/// ```text
/// Kind: structure as pointer | further pointer, Handle, More, clauses;
/// ```
///
/// Pointers of each of these types name objects of the kind. The clauses are `at OFFSET` (of the
/// pointer in the structure), `numbered` (the structure has the fields `handle` and `context`;
/// `is_context` of the scope compares the latter), `numbered Object` (and they are those of a
/// driver's object), and `named |object| EXPRESSION` (in findings).
macro_rules! kinds {
    ($(
        $(#[$meta:meta])*
        $kind:ident: $raw:ty as $seen:ident $(| $other:ident)*, $handle:ident, $more:ty
            $(, at $offset:expr)?
            $(, numbered $($driver:ident)?)?
            $(, named |$object:ident| $name:expr)?;
    )*) => { $(
        $(#[$meta])*
        pub(crate) struct $kind;

        impl $crate::c::object::Kind for $kind {
            type Raw = $raw;
            type Seen = verbs_abi::$seen;
            type Handle = verbs_api::$handle;
            type More = $more;
            const NAME: &'static str = concat!("struct ", stringify!($seen));
            const OFFSET: usize = 0 $(+ $offset)?;

            fn arenas() -> &'static $crate::c::object::Objects<Self> {
                static OBJECTS: $crate::c::object::Objects<$kind> =
                    $crate::c::object::Objects::new();
                &OBJECTS
            }

            $(
                fn number(raw: *mut Self::Raw) -> Option<*mut u32> {
                    let seen = raw.cast::<Self::Seen>();
                    // SAFETY: the field is within the structure, which is not read.
                    Some(unsafe { &raw mut (*seen).handle })
                }

                fn is_in_context(object: &$crate::c::object::CObject<Self>) -> bool {
                    let seen = object.raw().cast::<Self::Seen>();
                    // SAFETY: the object is one of ours, and stays as long as the reference. A
                    // program may write the field at any time, as with C.
                    let context = unsafe { (&raw const (*seen).context).read_volatile() };
                    is_context(context, verbs_api::Handle::context(object.handle))
                }

                $(
                    fn driver_object(handle: Self::Handle) -> Option<verbs_api::DriverObject> {
                        Some(verbs_api::DriverObject::$driver(handle))
                    }
                )?
            )?

            $(
                fn named($object: &$crate::c::object::CObject<Self>) -> String {
                    $name
                }
            )?
        }

        impl $crate::c::object::Structure for verbs_abi::$seen {
            type Kind = $kind;
        }
        $(
            impl $crate::c::object::Structure for verbs_abi::$other {
                type Kind = $kind;
            }
        )*
    )* };
}

pub(crate) use kinds;
