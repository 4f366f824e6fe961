//! What threads do when a signal ends the program, other than waiting in verbs: CQs that they poll
//! without result, and channels that they wait for in `poll`, `select` or epoll.
//!
//! The kernel reports the system call of each thread. The thread that runs the handler of the
//! signal is in another one by then; the registers that were saved for the handler have its call.

use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use verbs_sim::BlockedThread;

use crate::c::blocking::Descriptor;
use crate::c::{Kind, symbols};
use crate::cm::channel::EventChannel;
use crate::verbs::cq::{Channel, Cq};

/// A program that polls this many times without result is waiting, not just looking.
const MANY: u64 = 16;

/// The waits of all threads.
pub(super) fn now() -> Vec<BlockedThread> {
    let polls = Cq::arena().iter().filter_map(|cq| {
        let (count, site) = cq.more.empty_polls.get();
        (count >= MANY).then(|| BlockedThread::polls(cq.handle, count, site))
    });
    let sleeps = sleeps().into_iter();
    let sleeps = sleeps.flat_map(|(call, arguments)| call.on_channels(arguments));
    polls.chain(sleeps).collect()
}

/// A call that sleeps until a descriptor has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Poll,
    Ppoll,
    Select,
    EpollWait,
    EpollPwait2,
}

/// The arguments of a call.
type Arguments = [usize; 5];

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Poll | Self::Ppoll => "poll",
            Self::Select => "select",
            Self::EpollWait | Self::EpollPwait2 => "epoll_wait",
        }
    }

    fn of_number(number: i64) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_poll => return Some(Self::Poll),
            libc::SYS_select => return Some(Self::Select),
            libc::SYS_epoll_wait => return Some(Self::EpollWait),
            _ => {}
        }
        match number {
            libc::SYS_ppoll => Some(Self::Ppoll),
            libc::SYS_pselect6 => Some(Self::Select),
            libc::SYS_epoll_pwait => Some(Self::EpollWait),
            libc::SYS_epoll_pwait2 => Some(Self::EpollPwait2),
            _ => None,
        }
    }

    /// The call that a function of C makes.
    fn of_function(name: &str) -> Option<Self> {
        match name.trim_start_matches('_') {
            "poll" => Some(Self::Poll),
            "ppoll" => Some(Self::Ppoll),
            "select" | "pselect" => Some(Self::Select),
            "epoll_wait" | "epoll_pwait" => Some(Self::EpollWait),
            "epoll_pwait2" => Some(Self::EpollPwait2),
            _ => None,
        }
    }

    /// Whether the call has a time limit. The limit is a number, where a negative one means none,
    /// or a pointer.
    fn has_limit(self, arguments: Arguments) -> bool {
        let is_limit = |argument: usize| argument as c_int >= 0;
        match self {
            Self::Poll => is_limit(arguments[2]),
            Self::Ppoll => arguments[2] != 0,
            Self::Select => arguments[4] != 0,
            Self::EpollWait => is_limit(arguments[3]),
            Self::EpollPwait2 => arguments[3] != 0,
        }
    }

    /// The descriptors that the call waits to read from, and whether it waits for something else.
    fn descriptors(self, arguments: Arguments) -> Option<(Vec<RawFd>, bool)> {
        let [first, second, ..] = arguments;
        match self {
            Self::Poll | Self::Ppoll => {
                let entries = memory(first, second.checked_mul(8)?)?;
                let entries = entries.as_chunks::<8>().0.iter().map(|entry| {
                    let [a, b, c, d, events, more, ..] = *entry;
                    (
                        RawFd::from_ne_bytes([a, b, c, d]),
                        i16::from_ne_bytes([events, more]),
                    )
                });
                // `poll` ignores negative descriptors.
                let entries = entries.filter(|(fd, _)| *fd >= 0);
                let (read, others): (Vec<_>, Vec<_>) =
                    entries.partition(|(_, events)| events & libc::POLLIN != 0);
                let read = read.into_iter().map(|(fd, _)| fd).collect();
                Some((read, !others.is_empty()))
            }
            Self::Select => {
                let bits = memory(second, first.div_ceil(64) * 8)?;
                let is_set = |fd: &usize| bits[fd / 8] & 1 << (fd % 8) != 0;
                let read = (0..first).filter(is_set).map(|fd| fd as RawFd).collect();
                Some((read, arguments[2] != 0 || arguments[3] != 0))
            }
            Self::EpollWait | Self::EpollPwait2 => {
                let known = fs::read_to_string(format!("/proc/self/fdinfo/{first}")).ok()?;
                let fd = |line: &str| {
                    let number = line.strip_prefix("tfd:")?.split_whitespace().next()?;
                    number.parse().ok()
                };
                Some((known.lines().filter_map(fd).collect(), false))
            }
        }
    }

    /// The waits of a thread in the call for channels of CQs and of rdma_cm.
    fn on_channels(self, arguments: Arguments) -> Vec<BlockedThread> {
        let Some((descriptors, for_others)) = self.descriptors(arguments) else {
            return Vec::new();
        };
        let of_cqs = with_one_of::<Channel>(&descriptors);
        let of_cm = with_one_of::<EventChannel>(&descriptors);
        // A thread that waits for other descriptors too is not certain to be stuck.
        let others = descriptors.len() - of_cqs.len() - of_cm.len();
        let or = if others > 0 || for_others {
            Some("for other descriptors")
        } else if self.has_limit(arguments) {
            Some("until its time is over")
        } else {
            None
        };
        let call = self.name();
        let of_cqs = of_cqs
            .into_iter()
            .map(|of| BlockedThread::asleep(call, of, or));
        let of_cm = of_cm
            .into_iter()
            .map(|of| BlockedThread::asleep_cm(call, of, or));
        of_cqs.chain(of_cm).collect()
    }
}

/// Bytes of this process. Other threads may unmap them at any time, so the kernel copies them.
fn memory(address: usize, length: usize) -> Option<Vec<u8>> {
    /// More descriptors than a process has by default.
    const MOST: usize = 1 << 16;
    let mut bytes = vec![0; Some(length).filter(|length| *length <= MOST)?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, address as u64).ok()?;
    Some(bytes)
}

/// The channels of a kind that have one of these descriptors.
fn with_one_of<K: Kind<More = Descriptor>>(descriptors: &[RawFd]) -> Vec<K::Handle> {
    let is_one = |fd: RawFd| descriptors.contains(&fd);
    let all = K::arena().iter();
    let found = all.filter(|of| of.more.number().is_some_and(is_one));
    found.map(|of| of.handle).collect()
}

/// The calls of the threads that sleep in one. Empty where the kernel does not report them.
fn sleeps() -> Vec<(Call, Arguments)> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let sleep = |thread: fs::DirEntry| {
        let number: c_int = thread.file_name().to_str()?.parse().ok()?;
        match INTERRUPTED.of(number) {
            Some((at, arguments)) => Some((Call::of_function(&symbols::exported(at)?)?, arguments)),
            None => running(&fs::read_to_string(thread.path().join("syscall")).ok()?),
        }
    };
    threads.flatten().filter_map(sleep).collect()
}

/// The call in a line such as `7 0x7ffd0010 0x1 ...`: its number, and its arguments.
fn running(line: &str) -> Option<(Call, Arguments)> {
    let mut words = line.split_whitespace();
    let call = Call::of_number(words.next()?.parse().ok()?)?;
    let mut arguments = Arguments::default();
    for argument in &mut arguments {
        *argument = usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((call, arguments))
}

/// The thread that runs the handler, and the call that it was in before.
struct Interrupted {
    thread: AtomicI32,
    at: AtomicUsize,
    arguments: [AtomicUsize; 5],
}

static INTERRUPTED: Interrupted = Interrupted {
    thread: AtomicI32::new(0),
    at: AtomicUsize::new(0),
    arguments: [const { AtomicUsize::new(0) }; 5],
};

impl Interrupted {
    /// The address at which this thread was interrupted, and its registers for arguments.
    fn of(&self, thread: c_int) -> Option<(usize, Arguments)> {
        let is_it = self.thread.load(Ordering::Acquire) == thread;
        let read = |word: &AtomicUsize| word.load(Ordering::Relaxed);
        is_it.then(|| (read(&self.at), self.arguments.each_ref().map(read)))
    }
}

/// Keeps the registers of the thread that a handler has interrupted. A handler may call this.
/// Machines other than x86-64 overwrite the first argument with the result of the call.
///
/// # Safety
/// `context` is the third argument of a handler.
pub(super) unsafe fn interrupts(context: *const c_void) {
    // SAFETY: the third argument points to this type.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    {
        let read = |at: c_int| registers.gregs[at as usize] as usize;
        INTERRUPTED.at.store(read(libc::REG_RIP), Ordering::Relaxed);
        let of_call = [
            libc::REG_RDI,
            libc::REG_RSI,
            libc::REG_RDX,
            libc::REG_R10,
            libc::REG_R8,
        ];
        for (argument, register) in INTERRUPTED.arguments.iter().zip(of_call) {
            argument.store(read(register), Ordering::Relaxed);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = registers;
    // SAFETY: the call has no preconditions.
    let thread = unsafe { libc::gettid() };
    INTERRUPTED.thread.store(thread, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_which_call_a_thread_sleeps_in() {
        let number = libc::SYS_ppoll;
        let line = format!("{number} 0x7ffd0010 0x1 0xffffffff 0x0 0x2 0x0 0x7ffd0000 0x7f00");
        let arguments = [0x7ffd_0010, 1, 0xffff_ffff, 0, 2];
        assert_eq!(running(&line), Some((Call::Ppoll, arguments)));
        let other = format!("{} 0x0 0x0 0x0 0x0 0x0", libc::SYS_futex);
        assert_eq!(running(&other), None);
        assert_eq!(running("running"), None);
        assert_eq!(running(""), None);
    }

    #[test]
    fn the_descriptors_are_those_of_its_arguments() {
        let of = |fd, events| libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        let entries = [of(5, libc::POLLIN), of(-1, 0), of(7, libc::POLLIN)];
        let at = entries.as_ptr().expose_provenance();
        assert_eq!(
            Call::Poll.descriptors([at, 3, 0, 0, 0]),
            Some((vec![5, 7], false))
        );
        let sends = [of(5, libc::POLLIN), of(7, libc::POLLOUT)];
        let at = sends.as_ptr().expose_provenance();
        assert_eq!(
            Call::Ppoll.descriptors([at, 2, 0, 0, 0]),
            Some((vec![5], true))
        );
        let sets = [0b1001_u64, 1];
        let at = sets.as_ptr().expose_provenance();
        let read = vec![0, 3, 64];
        assert_eq!(
            Call::Select.descriptors([65, at, 0, 0, 0]),
            Some((read.clone(), false))
        );
        assert_eq!(
            Call::Select.descriptors([65, at, at, 0, 0]),
            Some((read, true))
        );
        assert_eq!(Call::Poll.descriptors([8, 1, 0, 0, 0]), None, "not mapped");
        assert_eq!(Call::Poll.descriptors([0, usize::MAX, 0, 0, 0]), None);
        assert_eq!(Call::EpollWait.descriptors([usize::MAX, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_call_may_have_a_limit() {
        let forever = 0xffff_ffff;
        assert!(!Call::Poll.has_limit([0, 0, forever, 0, 0]));
        assert!(Call::Poll.has_limit([0, 0, 100, 0, 0]));
        assert!(!Call::EpollWait.has_limit([0, 0, 0, forever, 0]));
        assert!(Call::EpollWait.has_limit([0, 0, 0, 0, 0]));
        assert!(!Call::Select.has_limit([1, 1, 1, 1, 0]));
        assert!(Call::Select.has_limit([0, 0, 0, 0, 8]));
    }
}
