//! Objects: the structure that a program points to, and beside it the handle of the engine.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};

use verbs_api::{Context, DriverObject, Handle, Verbs};
use verbs_sim::Class;

use crate::ah::Ah;
use crate::arena::{Arena, Found, Held};
use crate::buffer::Buffer;
use crate::cm::channel::EventChannel;
use crate::cm::id::Id;
use crate::context::OpenDevice;
use crate::cq::{Channel, Cq};
use crate::dm::Dm;
use crate::domain::{Pd, Td};
use crate::engine::{self, engine};
use crate::import;
use crate::mw::Mw;
use crate::qp::Qp;
use crate::region::Mr;
use crate::result::{Refusal, Result};
use crate::srq::Srq;
use crate::verdict;
use crate::xrc::Xrcd;

/// An object as C sees it. The engine knows whether its handle is still good.
#[repr(C)]
pub(crate) struct CObject<K: Kind> {
    raw: UnsafeCell<K::Raw>,
    pub(crate) handle: K::Handle,
    /// The low half is in the field `handle` of the structure.
    number: u64,
    /// The object that this one was made as.
    first: Option<Holding<K>>,
    /// One of [`state`].
    state: AtomicU8,
    pub(crate) more: K::More,
}

/// An object of a kind for the time of a call.
pub(crate) type Finding<K> = Found<CObject<K>>;

/// An object of a kind for as long as it is held.
pub(crate) type Holding<K> = Held<CObject<K>>;

/// What of an object is out of the ordinary.
mod state {
    /// Nothing.
    pub(super) const GOOD: u8 = 0;
    /// The engine was told that the program has changed its number.
    pub(super) const GARBLED: u8 = 1;
    /// It was given up where the engine does not know of it.
    pub(super) const ENDED: u8 = 2;
}

// SAFETY: the structure is the program's, which reads and writes it as it reads and writes those of
// C; this library uses it through pointers alone. All else can be shared.
unsafe impl<K: Kind> Sync for CObject<K> {}
// SAFETY: as above.
unsafe impl<K: Kind> Send for CObject<K> {}

pub(crate) type ArenaOf<K> = Arena<CObject<K>>;

/// All objects of a process.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) ahs: ArenaOf<Ah>,
    pub(crate) buffers: ArenaOf<Buffer>,
    pub(crate) channels: ArenaOf<Channel>,
    pub(crate) contexts: ArenaOf<OpenDevice>,
    pub(crate) cqs: ArenaOf<Cq>,
    pub(crate) dms: ArenaOf<Dm>,
    pub(crate) event_channels: ArenaOf<EventChannel>,
    pub(crate) ids: ArenaOf<Id>,
    pub(crate) mrs: ArenaOf<Mr>,
    pub(crate) mws: ArenaOf<Mw>,
    pub(crate) pds: ArenaOf<Pd>,
    pub(crate) qps: ArenaOf<Qp>,
    pub(crate) srqs: ArenaOf<Srq>,
    pub(crate) tds: ArenaOf<Td>,
    pub(crate) xrcds: ArenaOf<Xrcd>,
}

/// What is particular to a kind of object.
pub(crate) trait Kind: Sized + 'static {
    /// The structure.
    type Raw;
    /// What of it a program points to: itself, or for contexts its last member.
    type Seen;
    type Handle: Copy + Send + Sync;
    type More: Send + Sync;
    /// Its structure, such as `struct ibv_qp`.
    const NAME: &'static str;
    /// Where [`Seen`](Self::Seen) is in it.
    const OFFSET: usize = 0;

    /// Where all of its kind are.
    fn arena_in(objects: &Objects) -> &ArenaOf<Self>;

    /// Those of this process.
    fn arena() -> &'static ArenaOf<Self> {
        Self::arena_in(&engine().objects)
    }

    /// Its field `handle`, if it has one.
    fn number(_raw: *mut Self::Raw) -> Option<*mut u32> {
        None
    }

    /// The same for the engine.
    fn driver_object(_handle: Self::Handle) -> Option<DriverObject> {
        None
    }
}

impl<K: Kind> CObject<K> {
    /// Makes an object. Its structure is as `fill` makes it, but for the field `handle`.
    pub(crate) fn make(
        handle: K::Handle,
        more: K::More,
        fill: impl FnOnce() -> K::Raw,
    ) -> Result<Finding<K>> {
        Self::make_with(|_| Ok((handle, more, fill())))
    }

    /// Makes an object of the parts that `make` returns, which gets its number.
    pub(crate) fn make_with(
        make: impl FnOnce(u64) -> Result<(K::Handle, K::More, K::Raw)>,
    ) -> Result<Finding<K>> {
        Self::insert(|number| Ok((number, None, make(number)?)))
    }

    /// Makes one more object for what another is for, with its number.
    pub(crate) fn make_as(
        other: Holding<K>,
        more: K::More,
        fill: impl FnOnce() -> K::Raw,
    ) -> Result<Finding<K>> {
        let first = other.first.clone().unwrap_or(other);
        let (number, handle) = (first.number, first.handle);
        Self::insert(|_| Ok((number, Some(first), (handle, more, fill()))))
    }

    fn insert(
        make: impl FnOnce(u64) -> Result<(u64, Option<Holding<K>>, (K::Handle, K::More, K::Raw))>,
    ) -> Result<Finding<K>> {
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
        if let Some(number) = K::number(object.raw()) {
            // SAFETY: the structure is ours, and no program has a pointer to it yet.
            unsafe { number.write(object.number as u32) };
        }
        Ok(object)
    }

    /// The object that a program points to. Nothing else that it may point to is touched.
    #[inline(always)]
    pub(crate) fn find(seen: *mut K::Seen) -> Result<Finding<K>> {
        match Self::at(seen) {
            Some(object) if object.is_ordinary() => Ok(object),
            found => Self::look(seen, found),
        }
    }

    #[inline(never)]
    fn at(seen: *mut K::Seen) -> Option<Finding<K>> {
        K::arena().find((seen as usize).wrapping_sub(K::OFFSET))
    }

    #[inline]
    fn is_ordinary(&self) -> bool {
        !self.is_garbled() && self.state.load(Ordering::Relaxed) == state::GOOD
    }

    /// Whether the program has changed its number.
    #[inline]
    fn is_garbled(&self) -> bool {
        K::number(self.raw()).is_some_and(|number| {
            // SAFETY: the object is one of ours, and here as long as this. A program may write the
            // field at any time, as it may with C's.
            unsafe { number.read_volatile() != self.number as u32 }
        })
    }

    /// The same, or none for a null pointer.
    pub(crate) fn find_some(seen: *mut K::Seen) -> Result<Option<Finding<K>>> {
        if seen.is_null() {
            return Ok(None);
        }
        Self::find(seen).map(Some)
    }

    /// The object that the one a program points to was made as: itself, unless it was imported.
    pub(crate) fn find_first(seen: *mut K::Seen) -> Result<Holding<K>> {
        let found = Self::find(seen)?;
        Ok(found.first.clone().unwrap_or_else(|| found.hold()))
    }

    /// Refuses what is none, was given up, or is garbled. What the engine knows it refuses itself, when it was
    /// told.
    #[cold]
    fn look(seen: *mut K::Seen, found: Option<Finding<K>>) -> Result<Finding<K>> {
        let found = found.ok_or_else(|| Self::unknown(seen))?;
        let garbled = found.is_garbled();
        let (now, other) = match garbled {
            true => (state::GARBLED, state::GOOD),
            false => (state::GOOD, state::GARBLED),
        };
        let order = Ordering::Relaxed;
        let changed = found.state.compare_exchange(other, now, order, order);
        if changed == Err(state::ENDED) {
            return Err(Self::destroyed());
        }
        match K::driver_object(found.handle) {
            Some(object) => {
                if changed.is_ok() {
                    // An object that is gone cannot be garbled, and need not be.
                    let _ = engine().sim.garble(object, garbled);
                }
                Ok(found)
            }
            None if garbled => {
                let what = format!(
                    "the program has changed the field handle of the {}",
                    K::NAME
                );
                Err(Refusal::new(libc::ENOENT, what))
            }
            None => Ok(found),
        }
    }

    /// A pointer names no object of this process. It may name one of the parent's.
    fn unknown(seen: *mut K::Seen) -> Refusal {
        let address = (seen as usize).wrapping_sub(K::OFFSET);
        let of_parent = engine::of_parent()
            .is_some_and(|parent| K::arena_in(&parent.objects).find(address).is_some());
        if of_parent {
            verdict::opened(engine());
        }
        let (class, what) = if of_parent {
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

    /// It was given up here, which the engine does not know.
    #[cold]
    fn destroyed() -> Refusal {
        let what = format!("the {} was destroyed", K::NAME);
        Refusal::of(Class::Destroyed, libc::EINVAL, what)
    }

    /// The object with a number, which is in no structure: the engine says it in events.
    pub(crate) fn numbered(number: u64) -> Result<Finding<K>> {
        K::arena()
            .numbered(number)
            .ok_or(Refusal::expected(libc::EIO))
    }

    /// The object that has this in the field `handle`, of those that others were made as.
    pub(crate) fn with_handle(handle: u32) -> Result<Finding<K>> {
        let found = K::arena().at(handle.into());
        let is_it = |found: &Finding<K>| found.number as u32 == handle && found.is_first();
        found.filter(is_it).ok_or_else(|| import::unknown(handle))
    }

    /// The object that this one was made as: itself, unless it was imported.
    pub(crate) fn first(&self) -> &Self {
        self.first.as_deref().unwrap_or(self)
    }

    pub(crate) fn is_first(&self) -> bool {
        self.first.is_none()
    }

    /// No other object has it, but those that were made as this one.
    pub(crate) fn id(&self) -> u64 {
        self.number
    }

    /// Gives it up where the engine does not know of it: it is not found from then on.
    pub(crate) fn end(&self) -> Result<()> {
        match self.state.swap(state::ENDED, Ordering::Relaxed) {
            state::ENDED => Err(Self::destroyed()),
            _ => {
                self.retire();
                Ok(())
            }
        }
    }

    /// It is destroyed: its memory will be used again, but not soon.
    pub(crate) fn retire(&self) {
        K::arena().end(self);
    }

    /// Its structure.
    pub(crate) fn raw(&self) -> *mut K::Raw {
        self.raw.get()
    }

    /// What the program points to.
    pub(crate) fn seen(&self) -> *mut K::Seen {
        self.raw.get().wrapping_byte_add(K::OFFSET).cast()
    }
}

/// What a call is about: the pointer to an object that a program passes.
pub(crate) trait Object: Copy {
    /// The context of the object, if it is of one, and its name in findings, or nothing. `None` if
    /// it is not an object.
    fn named(self) -> Option<(Option<Context>, String)>;

    /// Refuses a pointer that names no object.
    fn check(self) -> Result<()>;
}

/// A call that is about no object.
impl Object for () {
    fn named(self) -> Option<(Option<Context>, String)> {
        None
    }

    fn check(self) -> Result<()> {
        Ok(())
    }
}

macro_rules! objects {
    ($( $seen:ident: $kind:ty, |$object:ident| $name:expr; )*) => { $(
        impl Object for *mut verbs_abi::$seen {
            fn named(self) -> Option<(Option<Context>, String)> {
                let $object = CObject::<$kind>::at(self.cast())?;
                let context = $object.handle.context();
                Some((Some(context).filter(|of| of.generation() > 0), $name))
            }

            fn check(self) -> Result<()> {
                CObject::<$kind>::find(self.cast()).map(drop)
            }
        }
    )* };
}

objects! {
    ibv_ah: Ah, |ah| ah.handle.to_string();
    ibv_buf: Buffer, |_buffer| "the buffer".to_owned();
    ibv_comp_channel: Channel, |channel| channel.handle.to_string();
    // Its device stands before the finding.
    ibv_context: OpenDevice, |_context| String::new();
    ibv_cq: Cq, |cq| cq.handle.to_string();
    ibv_cq_ex: Cq, |cq| cq.handle.to_string();
    ibv_dm: Dm, |_dm| "the device memory".to_owned();
    ibv_mr: Mr, |mr| mr.handle.to_string();
    ibv_mw: Mw, |mw| mw.handle.to_string();
    ibv_pd: Pd, |pd| pd.handle.to_string();
    ibv_qp: Qp, |qp| format!("qp {:#x}", qp.qp_num());
    ibv_qp_ex: Qp, |qp| format!("qp {:#x}", qp.qp_num());
    ibv_srq: Srq, |srq| srq.handle.to_string();
    ibv_td: Td, |_td| "the thread domain".to_owned();
    ibv_xrcd: Xrcd, |xrcd| xrcd.handle.to_string();
    rdma_cm_id: Id, |id| id.handle.to_string();
    rdma_event_channel: EventChannel, |channel| channel.handle.to_string();
}

/// The context of an object by its pointer.
pub(crate) fn context_of(context: *mut verbs_abi::ibv_context) -> Result<Context> {
    CObject::<OpenDevice>::find(context).map(|context| context.handle)
}

macro_rules! kinds {
    ($( $(#[$meta:meta])* $kind:ident in $arena:ident: $raw:ident as $seen:ident, $handle:ident, $more:ty $(, $numbered:ident)?; )*) => { $(
        $(#[$meta])*
        pub(crate) struct $kind;

        impl $crate::object::Kind for $kind {
            type Raw = verbs_abi::$raw;
            type Seen = verbs_abi::$seen;
            type Handle = verbs_api::$handle;
            type More = $more;
            const NAME: &'static str = concat!("struct ", stringify!($seen));

            fn arena_in(objects: &$crate::object::Objects) -> &$crate::object::ArenaOf<Self> {
                &objects.$arena
            }

            $(
                fn number(raw: *mut Self::Raw) -> Option<*mut u32> {
                    let seen = raw.cast::<Self::Seen>();
                    // SAFETY: within the structure, which is not read.
                    Some(unsafe { &raw mut (*seen).handle })
                }

                fn driver_object(handle: Self::Handle) -> Option<verbs_api::DriverObject> {
                    Some(verbs_api::DriverObject::$numbered(handle))
                }
            )?
        }
    )* };
}

pub(crate) use kinds;
