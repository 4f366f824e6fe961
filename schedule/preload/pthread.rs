//! Points of the schedule at the locks of the C library, which makes no system call for one that
//! is free.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::libc::{self, clockid_t, timespec};
use super::page::is_scheduled;

/// The argument of a `sched_yield` that is a point: see `verbs_schedule::POINT`.
const POINT: u64 = 0x0076_5f70_6f69_6e74;

/// A function of the C library, which is looked up at its first use.
pub(super) struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    pub(super) const fn new(name: &'static CStr) -> Self {
        let found = AtomicPtr::new(null_mut());
        Self { name, found }
    }

    pub(super) fn get(&self) -> *mut c_void {
        let mut found = self.found.load(Ordering::Acquire);
        if found.is_null() {
            found = self.look_up();
            self.found.store(found, Ordering::Release);
        }
        found
    }

    /// Condition variables have two versions on x86-64, and some loaders give the older one if none
    /// is named.
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn look_up_version(&self) -> *mut c_void {
        if !self.name.to_bytes().starts_with(b"pthread_cond_") {
            return null_mut();
        }
        // SAFETY: the names are strings.
        unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) }
    }

    #[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
    fn look_up_version(&self) -> *mut c_void {
        null_mut()
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the names are strings.
        unsafe {
            let found = self.look_up_version();
            let found = if found.is_null() {
                libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr())
            } else {
                found
            };
            if found.is_null() {
                // It was called, though the C library lacks it.
                libc::abort();
            }
            found
        }
    }
}

/// Lets another thread go on, if the schedule wants that and there may be another one.
fn point() {
    if is_scheduled() && !is_single_threaded() {
        // SAFETY: the call changes nothing of this process but its error, which stays.
        unsafe {
            let error = *libc::__errno_location();
            libc::syscall(libc::SYS_SCHED_YIELD, POINT);
            *libc::__errno_location() = error;
        }
    }
}

/// Whether the process has had one thread only, as far as the C library says.
fn is_single_threaded() -> bool {
    const NOT_YET: *mut c_char = core::ptr::without_provenance_mut(1);
    static FLAG: AtomicPtr<c_char> = AtomicPtr::new(NOT_YET);
    let mut flag = FLAG.load(Ordering::Acquire);
    if flag == NOT_YET {
        // SAFETY: the name is a string.
        flag = unsafe {
            libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()).cast::<c_char>()
        };
        FLAG.store(flag, Ordering::Release);
    }
    // SAFETY: the C library's variable, of one byte, which it writes while one thread runs.
    !flag.is_null() && unsafe { flag.read_volatile() } != 0
}

/// Functions of the C library with a point before them, after them, or both.
macro_rules! with_points {
    ($($when:ident fn $name:ident($($argument:ident: $of:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $of),*) -> c_int {
            type Function = unsafe extern "C" fn($($of),*) -> c_int;
            const NAME: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("it ends with a zero"),
            };
            static REAL: Real = Real::new(NAME);
            if Point::$when.is_before() {
                point();
            }
            // SAFETY: the C library's function has this type, and the caller keeps its promises.
            let result = unsafe { transmute::<*mut c_void, Function>(REAL.get())($($argument),*) };
            if Point::$when.is_after() {
                point();
            }
            result
        }
    )*};
}

/// Where the point is: a thread that takes something lets others take it first, one that gives
/// something lets others have it before it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "they are words of the macro")]
enum Point {
    before,
    after,
    around,
}

impl Point {
    const fn is_before(self) -> bool {
        !matches!(self, Self::after)
    }

    const fn is_after(self) -> bool {
        !matches!(self, Self::before)
    }
}

with_points! {
    before fn pthread_mutex_lock(mutex: *mut c_void);
    before fn pthread_mutex_trylock(mutex: *mut c_void);
    before fn pthread_mutex_timedlock(mutex: *mut c_void, until: *const timespec);
    before fn pthread_mutex_clocklock(
        mutex: *mut c_void,
        clock: clockid_t,
        until: *const timespec
    );
    after fn pthread_mutex_unlock(mutex: *mut c_void);
    before fn mtx_lock(mutex: *mut c_void);
    before fn mtx_trylock(mutex: *mut c_void);
    before fn mtx_timedlock(mutex: *mut c_void, until: *const timespec);
    after fn mtx_unlock(mutex: *mut c_void);
    around fn pthread_cond_signal(condition: *mut c_void);
    around fn pthread_cond_broadcast(condition: *mut c_void);
    before fn pthread_rwlock_rdlock(lock: *mut c_void);
    before fn pthread_rwlock_tryrdlock(lock: *mut c_void);
    before fn pthread_rwlock_wrlock(lock: *mut c_void);
    before fn pthread_rwlock_trywrlock(lock: *mut c_void);
    before fn pthread_rwlock_timedrdlock(lock: *mut c_void, until: *const timespec);
    before fn pthread_rwlock_timedwrlock(lock: *mut c_void, until: *const timespec);
    after fn pthread_rwlock_unlock(lock: *mut c_void);
    before fn pthread_spin_trylock(lock: *mut c_void);
    after fn pthread_spin_unlock(lock: *mut c_void);
    before fn sem_wait(semaphore: *mut c_void);
    before fn sem_trywait(semaphore: *mut c_void);
    before fn sem_timedwait(semaphore: *mut c_void, until: *const timespec);
    before fn sem_clockwait(
        semaphore: *mut c_void,
        clock: clockid_t,
        until: *const timespec
    );
    around fn sem_post(semaphore: *mut c_void);
    after fn pthread_create(
        thread: *mut c_void,
        attributes: *const c_void,
        start: Option<extern "C" fn(*mut c_void) -> *mut c_void>,
        argument: *mut c_void
    );
}

/// `pthread_spin_lock`, which does not spin under a schedule: the thread that has the lock could
/// not go on.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_spin_lock(lock: *mut c_void) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void) -> c_int;
    static REAL: Real = Real::new(c"pthread_spin_lock");
    // SAFETY: the C library's function has this type, and the caller keeps its promises.
    unsafe {
        if !is_scheduled() {
            return transmute::<*mut c_void, Function>(REAL.get())(lock);
        }
        loop {
            match pthread_spin_trylock(lock) {
                libc::EBUSY => libc::sched_yield(),
                result => return result,
            };
        }
    }
}
