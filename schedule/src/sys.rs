//! The system calls that no safe interface has: seccomp, descriptors and memory of other processes.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_long, c_ulong, sock_filter, sock_fprog};

pub(crate) use namespace::{drop_capabilities, start_loopback, try_in_copy};
pub(crate) use signals::Signals;
pub(crate) use start::{Guardian, Started, start};

mod namespace;
mod signals;
mod start;

/// A call that a thread has made, and that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    /// What the kernel calls the call.
    pub(crate) id: u64,
    pub(crate) tid: i32,
    pub(crate) number: i32,
    pub(crate) args: [u64; 6],
}

/// How a call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel carries it out.
    Continue,
    /// It returns a value, or the negative number of an error, without being carried out.
    Return(i64),
}

/// The calls that a filter stops.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

fn checked(result: c_long) -> io::Result<RawFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(RawFd::try_from(result).expect("the kernel returns a descriptor"))
}

fn owned(result: c_long) -> io::Result<OwnedFd> {
    let fd = checked(result)?;
    // SAFETY: the kernel has just made the descriptor for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Filters the calls of this thread, and of all threads and processes that it starts, for good.
/// Returns the descriptor of the listener. Allocates nothing, so that a new process may call it.
pub(crate) fn install(filter: &[sock_filter]) -> io::Result<RawFd> {
    let program = sock_fprog {
        len: filter.len().try_into().expect("a short filter"),
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: prctl takes no pointers here, and the kernel only reads the program.
    unsafe {
        if libc::prctl(
            libc::PR_SET_NO_NEW_PRIVS,
            1 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
            0 as c_ulong,
        ) != 0
        {
            return Err(io::Error::last_os_error());
        }
        checked(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // Linux 5.19. A call that is stopped goes on when it is answered, and a signal waits.
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            &raw const program,
        ))
    }
}

impl Listener {
    /// Takes over the listener `fd` of a process.
    pub(crate) fn of(process: BorrowedFd<'_>, fd: RawFd) -> io::Result<Self> {
        let listener = copy_of(process, fd)?;
        // Wakes the other side on the same CPU: a call takes half as long. Linux 6.6; a hint.
        const SYNC_WAKE_UP: c_ulong = 1;
        // SAFETY: the argument is a number.
        let _older_kernel = unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
                SYNC_WAKE_UP,
            )
        };
        Ok(Self(listener))
    }

    /// The next call. Fails with `ENOENT` if its thread has ended.
    pub(crate) fn receive(&self) -> io::Result<Notification> {
        let mut raw = MaybeUninit::<libc::seccomp_notif>::zeroed();
        // SAFETY: the kernel writes one notification; all its fields are numbers.
        let raw = unsafe {
            let fd = self.0.as_raw_fd();
            if libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, raw.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            raw.assume_init()
        };
        Ok(Notification {
            id: raw.id,
            tid: raw.pid.cast_signed(),
            number: raw.data.nr,
            args: raw.data.args,
        })
    }

    /// Answers a call. Fails with `ENOENT` if a signal has ended the call, or its thread.
    pub(crate) fn answer(&self, id: u64, answer: Answer) -> io::Result<()> {
        let (val, error, flags) = match answer {
            Answer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Return(value @ ..0) => (0, value as i32, 0),
            Answer::Return(value) => (value, 0, 0),
        };
        let response = libc::seccomp_notif_resp {
            id,
            val,
            error,
            flags,
        };
        // SAFETY: the kernel reads one response.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const response,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Whether the thread still waits in the call.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one number.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        result == 0
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }
}

/// A descriptor that is readable once the process has ended.
pub(crate) fn open_process(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A copy of another process's descriptor.
pub(crate) fn copy_of(process: BorrowedFd<'_>, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

/// A copy of the descriptor of a thread whose process has no first thread any more. Linux 6.9.
pub(crate) fn copy_of_thread(tid: i32, fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers.
    let thread =
        owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, libc::O_EXCL as c_ulong) })?;
    copy_of(std::os::fd::AsFd::as_fd(&thread), fd)
}

/// Ends a process at once.
pub(crate) fn kill(process: BorrowedFd<'_>) {
    let none = std::ptr::null::<c_int>();
    // SAFETY: without a structure, the signal has no more data.
    let _ended_before = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            none,
            0,
        )
    };
}

/// Sends a signal to a process. Fails with the number of the error.
pub(crate) fn send_signal(pid: i32, signal: c_int) -> Result<(), i32> {
    // SAFETY: the arguments are numbers.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::ESRCH)),
    }
}

/// A page that the program reads the time from.
#[derive(Debug)]
pub(crate) struct Page(std::ptr::NonNull<std::sync::atomic::AtomicU64>);

impl Page {
    /// The first page of a file.
    pub(crate) fn of(file: &std::fs::File) -> io::Result<Self> {
        let length = std::num::NonZero::new(4096).expect("a length");
        let rights = nix::sys::mman::ProtFlags::PROT_READ | nix::sys::mman::ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses an address where nothing is.
        let page = unsafe {
            nix::sys::mman::mmap(
                None,
                length,
                rights,
                nix::sys::mman::MapFlags::MAP_SHARED,
                file,
                0,
            )
        }?;
        Ok(Self(page.cast()))
    }

    pub(crate) fn set(&self, time: u64) {
        // SAFETY: the page is mapped until this is dropped, and is aligned.
        let word = unsafe { self.0.as_ref() };
        word.store(time, std::sync::atomic::Ordering::Release);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: nothing else refers to the page.
        let _unmapped = unsafe { nix::sys::mman::munmap(self.0.cast(), 4096) };
    }
}

/// Makes the descriptor of a timer readable after a time in nanoseconds, or never if that is 0.
/// Returns whether it is one.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, nanos: i64) -> bool {
    let zero = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let time = libc::itimerspec {
        it_interval: zero,
        it_value: libc::timespec {
            tv_sec: 0,
            tv_nsec: nanos as _,
        },
    };
    // SAFETY: the kernel reads one time, and writes none.
    let result = unsafe {
        libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const time, std::ptr::null_mut())
    };
    result == 0
}

/// Whether a descriptor of another thread is of the same file, which was opened once. If that
/// cannot be known, it is.
pub(crate) fn is_same_file(own: BorrowedFd<'_>, tid: i32, fd: RawFd) -> bool {
    const KCMP_FILE: c_int = 0;
    // SAFETY: the arguments are numbers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            libc::getpid(),
            tid,
            KCMP_FILE,
            c_long::from(own.as_raw_fd()),
            c_long::from(fd),
        )
    };
    let error = || io::Error::last_os_error().raw_os_error();
    result == 0 || result < 0 && !matches!(error(), Some(libc::EBADF | libc::ESRCH))
}

/// Queues the signal of a timer for a thread, or for any thread of the process.
pub(crate) fn queue_signal(pid: i32, tid: Option<i32>, signal: i32, value: u64) {
    /// As the kernel has it.
    #[repr(C)]
    struct Info {
        signal: c_int,
        error: c_int,
        code: c_int,
        padding: c_int,
        timer: c_int,
        overrun: c_int,
        value: u64,
        rest: [u64; 12],
    }
    const OF_TIMER: c_int = -2;
    let info = Info {
        signal,
        error: 0,
        code: OF_TIMER,
        padding: 0,
        timer: 0,
        overrun: 0,
        value,
        rest: [0; 12],
    };
    // SAFETY: the kernel reads the information, which has the size of its own.
    let _ended_before = unsafe {
        match tid {
            Some(tid) => libc::syscall(
                libc::SYS_rt_tgsigqueueinfo,
                pid,
                tid,
                signal,
                &raw const info,
            ),
            None => libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, &raw const info),
        }
    };
}

/// Lets a TCP socket send small writes at once, as others do: no time decides when they arrive.
pub(crate) fn send_at_once(socket: BorrowedFd<'_>) {
    let one: c_int = 1;
    // SAFETY: the kernel reads one number.
    let _no_socket = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const one).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
}

/// How many bytes a pipe has.
pub(crate) fn unread(pipe: BorrowedFd<'_>) -> c_int {
    let mut count = 0;
    // SAFETY: there is room for a number.
    let _other_file = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    count
}

/// Whether a descriptor is a TCP socket.
pub(crate) fn is_tcp(socket: BorrowedFd<'_>) -> bool {
    let mut protocol: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: there is room for a number.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PROTOCOL,
            (&raw mut protocol).cast(),
            &raw mut length,
        )
    };
    result == 0 && protocol == libc::IPPROTO_TCP
}

/// Takes the lock of `flock` for the descriptor, if it is free.
pub(crate) fn lock(file: BorrowedFd<'_>, work: c_int) -> io::Result<()> {
    // SAFETY: the arguments are numbers.
    checked(unsafe { libc::flock(file.as_raw_fd(), work | libc::LOCK_NB) }.into()).map(drop)
}

/// `SO_RCVTIMEO` of a socket, in nanoseconds, if it is set.
pub(crate) fn receive_timeout(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timeval>::zeroed();
    let mut length = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: there is room for a time.
    let time = unsafe {
        let fd = socket.as_raw_fd();
        let result = libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            time.as_mut_ptr().cast(),
            &raw mut length,
        );
        if result != 0 {
            return None;
        }
        time.assume_init()
    };
    let nanos = (time.tv_sec as u64).saturating_mul(1_000_000_000);
    let nanos = nanos.saturating_add(time.tv_usec as u64 * 1000);
    (nanos > 0).then_some(nanos)
}
