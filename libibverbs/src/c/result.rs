//! Results of C functions.
//!
//! A verb that fails returns a [`Refusal`]: the errno value, and the text for the diagnosis. The
//! functions here are the only way out of the library, and add the text to the diagnosis.

use std::ffi::c_int;
use std::fmt::Display;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use verbs_api::{Context, Error, ErrorKind, Handle, PostError, ReregError};
use verbs_sim::{Class, Misuse};

use super::object::{Found, Kind};
use super::{caller, schedule};
use crate::engine::sim;

pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// The subject of a call: the pointer to an object that a program passes.
pub(crate) trait Object: Copy {
    /// The object for the time of the call.
    type Found;

    /// The context of the object, if it has one, and its name in findings, which may be empty.
    /// `None` if the pointer does not name an object.
    fn named(self) -> Option<(Option<Context>, String)>;

    /// Looks the object up. Refuses a pointer that does not name one.
    fn found(self) -> Result<Self::Found>;

    /// Looks the object up as the kernel does, in the context that its structure names.
    fn found_in_context(self) -> Result<Self::Found> {
        self.found()
    }
}

/// A call that has no object.
impl Object for () {
    type Found = ();

    fn named(self) -> Option<(Option<Context>, String)> {
        None
    }

    fn found(self) -> Result<()> {
        Ok(())
    }
}

/// An object that the verb itself looks up: because it checks other arguments first, or because it
/// is called for each message, where a lookup outside of the verb takes 7 instructions more.
#[derive(Clone, Copy)]
pub(crate) struct Later<O>(pub(crate) O);

impl<O: Object> Object for Later<O> {
    type Found = ();

    fn named(self) -> Option<(Option<Context>, String)> {
        self.0.named()
    }

    fn found(self) -> Result<()> {
        Ok(())
    }
}

/// The reason why a call fails.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The value that the call returns. It is positive, except in profiles of drivers that have the
    /// wrong sign.
    errno: NonZero<c_int>,
    /// The text for the diagnosis. `None` if it is noted already, or if the program made no
    /// mistake.
    finding: Option<Box<Finding>>,
}

#[derive(Debug)]
struct Finding {
    class: Class,
    /// The fact.
    what: String,
}

impl Refusal {
    /// A refusal with this reason. The diagnosis adds the names of the call and of the object.
    pub(crate) fn new(errno: c_int, what: impl Into<String>) -> Self {
        Self::of(Class::Refused, errno, what)
    }

    /// A refusal of a class that describes the mistake better than [`new`](Self::new).
    #[cold]
    pub(crate) fn of(class: Class, errno: c_int, what: impl Into<String>) -> Self {
        let finding = Finding {
            class,
            what: what.into(),
        };
        Self {
            finding: Some(Box::new(finding)),
            ..Self::expected(errno)
        }
    }

    /// A call that is refused with `EINVAL`.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, what)
    }

    /// A feature that no device here has: `EOPNOTSUPP`.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::new(libc::EOPNOTSUPP, what)
    }

    /// A function of C has failed, with its reason in `errno`.
    pub(crate) fn by_system(function: &str) -> Self {
        Self::new(last_errno(), format!("{function} failed"))
    }

    /// An error of an unobserved call, which the engine has not noted.
    #[cold]
    pub(crate) fn unobserved(error: Error) -> Self {
        let what = error.cause().to_string();
        match Class::of_refusal(&error) {
            // The engine would have noted this error with this class.
            Some(class) => Self::of(class, errno_of(&error), what),
            None => error.into(),
        }
    }

    /// A refusal without a finding: one that a program without mistakes meets (no event is there
    /// yet, a signal came, the peer has refused), or one that is noted already.
    pub(crate) fn expected(errno: c_int) -> Self {
        Self {
            errno: NonZero::new(errno).unwrap_or(IO),
            finding: None,
        }
    }

    /// The refusal for a part of an argument, such as one work request.
    #[cold]
    pub(crate) fn of_part(mut self, part: impl Display) -> Self {
        if let Some(finding) = &mut self.finding {
            finding.what = format!("{part}: {}", finding.what);
        }
        self
    }

    /// Takes the text out, so that the diagnosis does not get it.
    pub(crate) fn take_text(&mut self) -> String {
        let finding = self.finding.take();
        finding.map(|finding| finding.what).unwrap_or_default()
    }

    /// Moves the refusal out of a reference.
    #[cold]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            errno: self.errno,
            finding: self.finding.take(),
        }
    }

    pub(crate) fn errno(&self) -> c_int {
        self.errno.get()
    }

    /// Adds the finding to the diagnosis, with the present call and its object.
    #[cold]
    pub(crate) fn note(&mut self, call: &'static str, object: impl Object) {
        let Some(finding) = self.finding.take() else {
            return;
        };
        let Finding { class, what } = *finding;
        // Some profiles return the value with the wrong sign.
        let kind = ErrorKind::from_errno(self.errno().abs());
        let symbol = match kind {
            ErrorKind::Os(errno) => format!("errno {errno}"),
            _ => kind.symbol().to_owned(),
        };
        let (context, what) = match object.named() {
            // The finding already names the device.
            Some((context, name)) if name.is_empty() => (context, what),
            Some((context, name)) => (context, format!("{name}: {what}")),
            None => (None, what),
        };
        let misuse = Misuse {
            context,
            class,
            fact: [call, kind.symbol()],
            text: format!("{call}: {symbol}: {what}"),
            place: None,
        };
        misuse.note(sim());
    }
}

const IO: NonZero<c_int> = NonZero::new(libc::EIO).unwrap();

fn errno_of(error: &Error) -> c_int {
    error.raw().unwrap_or(error.kind().errno())
}

/// The engine has noted the error, unless a program without mistakes can meet it.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::expected(errno_of(&error))
    }
}

impl From<PostError> for Refusal {
    fn from(failed: PostError) -> Self {
        failed.error.into()
    }
}

impl From<ReregError> for Refusal {
    fn from(failed: ReregError) -> Self {
        failed.error.into()
    }
}

/// Runs a verb of the name `call` on `object`. The error is the errno value, which is in `errno`
/// too. A panic can only be a mistake of the simulator. It has been printed, and becomes `EIO`: it
/// must not continue through C. The unwinding of a cancelled thread must not come here either.
#[inline]
pub(crate) fn guarded<O: Object, R>(
    call: &'static str,
    object: O,
    verb: impl FnOnce(O::Found) -> Result<R>,
) -> Result<R, c_int> {
    let _uncancelled = Uncancelled::new();
    run(call, object, || verb(object.found_in_context()?))
}

/// Runs a verb that calls no cancellation point of the system. See [`guarded`].
#[inline]
fn quickly<O: Object, R>(
    call: &'static str,
    object: O,
    verb: impl FnOnce(O::Found) -> Result<R>,
) -> Result<R, c_int> {
    run(call, object, || verb(object.found()?))
}

#[inline(always)]
fn run<R>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<R>,
) -> Result<R, c_int> {
    caller::settle();
    schedule::point();
    let result = catch_unwind(AssertUnwindSafe(verb));
    schedule::point();
    match result {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(refusal)) => Err(refused(call, object, refusal)),
        Err(_) => Err(refused(call, (), Refusal::expected(libc::EIO))),
    }
}

/// Notes the refusal, and sets `errno`.
#[cold]
fn refused(call: &'static str, object: impl Object, mut refusal: Refusal) -> c_int {
    // A panic has been printed.
    let _ = catch_unwind(AssertUnwindSafe(|| refusal.note(call, object)));
    set_errno(refusal.errno().abs());
    refusal.errno()
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// A thread cannot be cancelled while this exists.
struct Uncancelled(c_int);

impl Uncancelled {
    fn new() -> Self {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: the call writes the old state there.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: restores the old state.
        unsafe { pthread_setcancelstate(self.0, &raw mut self.0) };
    }
}

/// The ways out of the library, a row for each: how the verb is run, its result, and the value for
/// C.
macro_rules! ways_out {
    ($(
        $(#[$meta:meta])*
        $name:ident $(<$type:ident $(: $bound:path)?>)?: $run:ident, $result:ty => $value:ty,
            |$left:ident| $expr:expr;
    )*) => { $(
        $(#[$meta])*
        pub(crate) fn $name<O: Object $(, $type $(: $bound)?)?>(
            call: &'static str,
            object: O,
            verb: impl FnOnce(O::Found) -> Result<$result>,
        ) -> $value {
            let $left = $run(call, object, verb);
            $expr
        }
    )* };
}

ways_out! {
    /// 0, or an errno value: most verbs.
    status: guarded, () => c_int, |left| left.map_or_else(|errno| errno, |()| 0);
    /// 0, or an errno value, of verbs that programs call for each message.
    #[inline]
    quick_status: quickly, () => c_int, |left| left.map_or_else(|errno| errno, |()| 0);
    /// A count, or an errno value as a negative number.
    #[inline]
    count: quickly, c_int => c_int, |left| left.unwrap_or_else(|errno| -errno.abs());
    /// 0, or -1 and `errno`.
    zero_or_minus_one: guarded, () => c_int, |left| left.map_or(-1, |()| 0);
    /// The result of the verb, or -1 and `errno`.
    or_minus_one: guarded, c_int => c_int, |left| left.unwrap_or(-1);
    /// The result of the verb, or 0 and `errno`.
    or_zero<T: Default>: guarded, T => T, |left| left.unwrap_or_default();
    /// Nothing.
    #[inline]
    silent: quickly, () => (), |left| left.unwrap_or_default();
    /// A pointer, or null and `errno`.
    pointer<T>: guarded, *mut T => *mut T, |left| left.unwrap_or(null_mut());
    /// The program's pointer to an object that the verb has made, or null and `errno`.
    new_object<K: Kind>: guarded, Found<K> => *mut K::Seen,
        |left| left.map_or(null_mut(), |made| made.seen());
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: gives the place of this thread's own number, which may be written.
    unsafe { *libc::__errno_location() = errno };
}

/// The errno value of the last function of C.
pub(crate) fn last_errno() -> c_int {
    let error = std::io::Error::last_os_error();
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Refuses a null pointer. The memory may be misaligned.
#[inline]
pub(crate) fn not_null<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() {
        return Err(absent(pointer));
    }
    Ok(())
}

/// Refuses a pointer that Rust cannot use: null, or misaligned.
#[inline]
pub(crate) fn present<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(absent(pointer));
    }
    Ok(())
}

/// A structure that a program passes.
///
/// # Safety
/// If the pointer can be that of a `T`, it is valid for the call (C's contract).
#[inline]
pub(crate) unsafe fn passed<T>(pointer: *const T) -> Result<T> {
    present(pointer)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { pointer.read() })
}

#[cold]
fn absent<T>(pointer: *const T) -> Refusal {
    let what = format!("a {}", name_of::<T>());
    Refusal::new(libc::EINVAL, nowhere(&what, pointer))
}

/// Refuses bits of a mask that no device here knows: `EOPNOTSUPP`.
#[inline]
pub(crate) fn known_bits(field: &str, mask: u32, known: u32) -> Result<()> {
    match mask & !known {
        0 => Ok(()),
        unknown => Err(Refusal::unsupported(format!(
            "{field} has {unknown:#x}, which no device here knows"
        ))),
    }
}

/// Refuses an object that is not of this context.
pub(crate) fn same_context(handle: impl Handle, context: Context) -> Result<()> {
    if handle.context() == context {
        return Ok(());
    }
    let what = format!("{handle} is of another context");
    Err(Refusal::of(Class::OtherParent, libc::EINVAL, what))
}

/// `count` values that a program passes.
///
/// If the pointer can be that of `count` values, they are there, and nothing changes them while
/// they are used (C's contract).
#[inline]
pub(crate) unsafe fn values<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    // SAFETY: the caller's promise.
    unsafe { verbs_abi::slice(first, count) }.ok_or_else(|| no_values(first, count))
}

/// Refuses a pointer at which `count` values cannot be.
#[cold]
pub(crate) fn no_values<T>(first: *const T, count: usize) -> Refusal {
    let what = match name_of::<T>().as_str() {
        "byte" => format!("{count} bytes"),
        name => format!("{count} {name}"),
    };
    Refusal::new(libc::EFAULT, nowhere(&what, first))
}

/// The reason why an address cannot be used.
fn nowhere<T>(what: &str, address: *const T) -> String {
    if address.is_null() {
        format!("the address of {what} is NULL")
    } else if !address.is_aligned() {
        format!("the address of {what} is not aligned ({address:p})")
    } else {
        format!("too little memory follows the address of {what} ({address:p})")
    }
}

/// The name of a type in C.
fn name_of<T>() -> String {
    let path = std::any::type_name::<T>();
    match path.rsplit("::").next().unwrap_or(path) {
        "u8" | "c_void" => "byte".to_owned(),
        "u16" | "u32" | "u64" | "i32" => "number".to_owned(),
        "Sge" => "struct ibv_sge".to_owned(),
        name => format!("struct {name}"),
    }
}
