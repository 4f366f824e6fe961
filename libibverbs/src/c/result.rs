//! What C functions return, and how nothing else leaves them.
//!
//! A verb that does not do what it was asked for returns a [`Refusal`]: the errno value, and what a
//! diagnosis says of it. The helpers here are the only way out of the library, and each adds that
//! to the diagnosis.

use std::ffi::c_int;
use std::fmt::Display;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use verbs_api::{Context, Error, ErrorKind, Handle, PostError, ReregError};
use verbs_sim::{Class, Misuse};

use super::caller;
use crate::engine::engine;

pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// The subject of a call: the pointer to an object that a program passes.
pub(crate) trait Object: Copy {
    /// The context of the object, if it has one, and its name in findings, which may be empty.
    /// `None` if the pointer does not name an object.
    fn named(self) -> Option<(Option<Context>, String)>;

    /// Refuses a pointer that does not name an object.
    fn check(self) -> Result<()>;
}

/// A call that has no object.
impl Object for () {
    fn named(self) -> Option<(Option<Context>, String)> {
        None
    }

    fn check(self) -> Result<()> {
        Ok(())
    }
}

/// Why a call does not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// As the call returns it: positive, but for profiles of drivers that err there.
    errno: NonZero<c_int>,
    /// What the diagnosis is to say of it; `None` if that is said already, or if nothing is wrong.
    finding: Option<Box<Finding>>,
}

#[derive(Debug)]
struct Finding {
    class: Class,
    /// The fact.
    what: String,
}

impl Refusal {
    /// A call that is refused for this reason. The diagnosis says before it which call that was,
    /// and on which object.
    #[cold]
    pub(crate) fn new(errno: c_int, what: impl Into<String>) -> Self {
        Self::of(Class::Refused, errno, what)
    }

    /// The same as [`new`](Self::new), where another class says better what to do.
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

    /// What no device here can do: `EOPNOTSUPP`.
    #[cold]
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::new(libc::EOPNOTSUPP, what)
    }

    /// A function of C has failed, which left its reason in `errno`.
    #[cold]
    pub(crate) fn by_system(function: &str) -> Self {
        Self::new(last_errno(), format!("{function} failed"))
    }

    /// An error that the engine gave to the library itself, so that it has not noted it.
    #[cold]
    pub(crate) fn unobserved(error: Error) -> Self {
        let what = error.cause().to_string();
        match Class::of_refusal(&error) {
            Some(class) => Self::of(class, errno_of(&error), what),
            None => error.into(),
        }
    }

    /// What a program without mistakes meets: nothing is there yet, a signal came, the peer has
    /// refused.
    pub(crate) fn expected(errno: c_int) -> Self {
        Self {
            errno: NonZero::new(errno).unwrap_or(IO),
            finding: None,
        }
    }

    /// A call within this one was refused, and has said why.
    pub(crate) fn noted(errno: c_int) -> Self {
        Self::expected(errno)
    }

    /// The same refusal, of a part of what was passed, such as a work request.
    #[cold]
    pub(crate) fn of_part(mut self, part: impl Display) -> Self {
        if let Some(finding) = &mut self.finding {
            finding.what = format!("{part}: {}", finding.what);
        }
        self
    }

    /// Moves it out of its place.
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

    /// Adds the finding to the diagnosis, at the place of the present call on this object.
    #[cold]
    pub(crate) fn note(&mut self, call: &'static str, object: impl Object) {
        let Some(finding) = self.finding.take() else {
            return;
        };
        let Finding { class, what } = *finding;
        let kind = ErrorKind::from_errno(self.errno().abs());
        let symbol = match kind {
            ErrorKind::Os(errno) => format!("errno {errno}"),
            _ => kind.symbol().to_owned(),
        };
        let (context, what) = match object.named() {
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
        misuse.note(&engine().sim);
    }
}

const IO: NonZero<c_int> = NonZero::new(libc::EIO).unwrap();

fn errno_of(error: &Error) -> c_int {
    error.raw().unwrap_or(error.kind().errno())
}

/// The engine has noted it, as far as a program without mistakes does not meet it.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::noted(errno_of(&error))
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

/// Runs a verb; `call` is its name, and `object` what it is called on. The error is the errno
/// value, which is in `errno` too. A panic, which could only be a mistake of the simulator, has
/// been printed and is `EIO`: it must not go on through C. Nor may the unwinding of a thread that
/// is cancelled come here, which is no panic.
#[inline]
pub(crate) fn guarded<R>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<R>,
) -> Result<R, c_int> {
    let _uncancelled = Uncancelled::new();
    quickly(call, object, verb)
}

/// The same as [`guarded`], of a verb that comes to no call of the system at which threads are
/// cancelled.
#[inline]
fn quickly<R>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<R>,
) -> Result<R, c_int> {
    caller::settle();
    match catch_unwind(AssertUnwindSafe(verb)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(refusal)) => Err(refused(call, object, refusal)),
        Err(_) => Err(refused(call, (), Refusal::expected(libc::EIO))),
    }
}

/// Notes why a call is refused, and leaves the errno value.
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

/// While it lives, its thread cannot be cancelled.
struct Uncancelled(c_int);

impl Uncancelled {
    fn new() -> Self {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: there is room for what was before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: as it was.
        unsafe { pthread_setcancelstate(self.0, &raw mut self.0) };
    }
}

/// 0, or an errno value: most verbs.
pub(crate) fn status(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<()>,
) -> c_int {
    guarded(call, object, verb).map_or_else(|errno| errno, |()| 0)
}

/// The same as [`status`], of verbs that programs call for each message.
#[inline]
pub(crate) fn quick_status(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<()>,
) -> c_int {
    quickly(call, object, verb).map_or_else(|errno| errno, |()| 0)
}

/// A count, or an errno value as a negative number.
#[inline]
pub(crate) fn count(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<c_int>,
) -> c_int {
    quickly(call, object, verb).unwrap_or_else(|errno| -errno.abs())
}

/// What the verb gives, or -1 and `errno`.
pub(crate) fn or_minus_one<T: From<i8>>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<T>,
) -> T {
    guarded(call, object, verb).unwrap_or_else(|_| T::from(-1))
}

/// What the verb gives, or 0 and `errno`.
pub(crate) fn or_zero<T: Default>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<T>,
) -> T {
    guarded(call, object, verb).unwrap_or_default()
}

/// A pointer, or null and `errno`.
pub(crate) fn pointer<T>(
    call: &'static str,
    object: impl Object,
    verb: impl FnOnce() -> Result<*mut T>,
) -> *mut T {
    guarded(call, object, verb).unwrap_or(null_mut())
}

/// Nothing to return, whatever happens.
#[inline]
pub(crate) fn silent(call: &'static str, object: impl Object, verb: impl FnOnce() -> Result<()>) {
    let _ = quickly(call, object, verb);
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: gives the place of this thread's own number, which may be written.
    unsafe { *libc::__errno_location() = errno };
}

/// What the last call of C said.
pub(crate) fn last_errno() -> c_int {
    let error = std::io::Error::last_os_error();
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Refuses a null pointer to what a verb needs, wherever in memory that may be.
#[inline]
pub(crate) fn not_null<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() {
        return Err(absent(pointer));
    }
    Ok(())
}

/// Refuses a pointer at which Rust cannot have what a verb needs: null, or not aligned.
#[inline]
pub(crate) fn present<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(absent(pointer));
    }
    Ok(())
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
        unknown => {
            let what = format!("{field} has {unknown:#x}, which no device here knows");
            Err(Refusal::unsupported(what))
        }
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

/// So many values that a program passes.
///
/// # Safety
/// If the pointer can be that of so many, they are there, and nobody changes them while they are
/// used (C's contract).
#[inline]
pub(crate) unsafe fn values<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    // SAFETY: the caller's promise.
    unsafe { verbs_abi::slice(first, count) }.ok_or_else(|| no_values(first, count))
}

/// Refuses a pointer at which so many values cannot be.
#[cold]
pub(crate) fn no_values<T>(first: *const T, count: usize) -> Refusal {
    let what = match name_of::<T>().as_str() {
        "byte" => format!("{count} bytes"),
        name => format!("{count} {name}"),
    };
    Refusal::new(libc::EFAULT, nowhere(&what, first))
}

/// Why nothing that Rust can use is at an address.
fn nowhere<T>(what: &str, address: *const T) -> String {
    if address.is_null() {
        format!("the address of {what} is NULL")
    } else if !address.is_aligned() {
        format!("the address of {what} is not aligned ({address:p})")
    } else {
        format!("behind the address of {what} there is not so much memory ({address:p})")
    }
}

/// What C calls a type.
fn name_of<T>() -> String {
    let path = std::any::type_name::<T>();
    match path.rsplit("::").next().unwrap_or(path) {
        "u8" | "c_void" => "byte".to_owned(),
        "u16" | "u32" | "u64" | "i32" => "number".to_owned(),
        "Sge" => "struct ibv_sge".to_owned(),
        name => format!("struct {name}"),
    }
}
