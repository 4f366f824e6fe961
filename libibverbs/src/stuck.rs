//! What threads do when a signal ends the program, beside waiting in verbs: which CQs they poll in vain, and which
//! sleep in `poll`, `select` or epoll until a channel has something.
//!
//! The kernel says in which call each thread is. Of the thread that runs the handler of the signal, the registers that
//! were saved for it say so.

use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use verbs_api::site::Site;
use verbs_api::sync::Mutex;
use verbs_sim::Stuck;

use crate::cm::channel::EventChannel;
use crate::cq::{Channel, Cq};
use crate::object::Kind;
use crate::{caller, place};

/// So many polls that find nothing, one after the other, are no look at a queue but a wait.
const MANY: u64 = 16;

/// How often a CQ was polled and had nothing, since its last completion.
#[derive(Default)]
pub(crate) struct Vain {
    times: AtomicU64,
    /// What the last of these polls returned to.
    at: AtomicUsize,
}

impl Vain {
    /// A poll has found so many completions.
    #[inline]
    pub(crate) fn note(&self, found: usize) {
        if caller::is_named() {
            self.count(found);
        }
    }

    /// Threads may take a count from each other: it need not be exact.
    fn count(&self, found: usize) {
        let times = self.times.load(Ordering::Relaxed);
        let times = if found == 0 { times + 1 } else { 0 };
        self.times.store(times, Ordering::Relaxed);
        if let (0, Some(at)) = (found, caller::returns_to()) {
            self.at.store(at, Ordering::Relaxed);
        }
    }
}

/// All there is to say of threads.
pub(crate) fn now() -> Vec<Stuck> {
    let polls = Cq::arena().iter().filter_map(|cq| {
        let Vain { times, at } = &cq.more.vain;
        let (times, at) = (times.load(Ordering::Relaxed), at.load(Ordering::Relaxed));
        let site = (at != 0).then_some(Site::Address(at));
        (times >= MANY).then(|| Stuck::polls(cq.handle, times, site))
    });
    let sleeps = sleeps();
    polls
        .chain(sleeps.iter().flat_map(Sleep::of_channels))
        .collect()
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

/// What a call was given.
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

    /// The function of C that makes it.
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

    /// The time until it returns is given as a number, of which a negative one is for ever, or by a pointer.
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

    /// The descriptors that it waits to read of, and whether it waits for something else.
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
}

/// Bytes of this process, which other threads may unmap meanwhile.
fn memory(address: usize, length: usize) -> Option<Vec<u8>> {
    /// More descriptors than a process has by default.
    const MOST: usize = 1 << 16;
    let mut bytes = vec![0; Some(length).filter(|length| *length <= MOST)?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, address as u64).ok()?;
    Some(bytes)
}

/// A thread that sleeps.
#[derive(Debug)]
struct Sleep {
    call: Call,
    arguments: Arguments,
}

impl Sleep {
    /// The channels of CQs and of rdma_cm that it sleeps for.
    fn of_channels(&self) -> Vec<Stuck> {
        let Some((descriptors, for_others)) = self.call.descriptors(self.arguments) else {
            return Vec::new();
        };
        let is_here = |fd: &Mutex<Option<OwnedFd>>| {
            let fd = fd.lock().as_ref().map(AsRawFd::as_raw_fd);
            fd.is_some_and(|fd| descriptors.contains(&fd))
        };
        let of_cqs = Channel::arena().iter();
        let of_cqs: Vec<_> = of_cqs.filter(|channel| is_here(&channel.more)).collect();
        let of_cm = EventChannel::arena().iter();
        let of_cm: Vec<_> = of_cm.filter(|channel| is_here(&channel.more)).collect();
        let others = descriptors.len() - of_cqs.len() - of_cm.len();
        let or = match () {
            () if others > 0 || for_others => Some("for other descriptors"),
            () if self.call.has_limit(self.arguments) => Some("until its time is over"),
            () => None,
        };
        let call = self.call.name();
        let of_cqs = of_cqs.into_iter().map(|channel| channel.handle);
        let of_cqs = of_cqs.map(|channel| Stuck::asleep(call, channel, or));
        let of_cm = of_cm.into_iter().map(|channel| channel.handle);
        let of_cm = of_cm.map(|channel| Stuck::asleep_cm(call, channel, or));
        of_cqs.chain(of_cm).collect()
    }
}

/// None where the kernel does not say.
fn sleeps() -> Vec<Sleep> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let sleep = |thread: fs::DirEntry| {
        let number: c_int = thread.file_name().to_str()?.parse().ok()?;
        let (call, arguments) = match INTERRUPTED.of(number) {
            Some((at, arguments)) => (Call::of_function(&place::exported(at)?)?, arguments),
            None => running(&fs::read_to_string(thread.path().join("syscall")).ok()?)?,
        };
        Some(Sleep { call, arguments })
    };
    threads.flatten().filter_map(sleep).collect()
}

/// Of a line such as `7 0x7ffd0010 0x1 ...`: number and arguments of a call.
fn running(line: &str) -> Option<(Call, Arguments)> {
    let mut words = line.split_whitespace();
    let call = Call::of_number(words.next()?.parse().ok()?)?;
    let mut arguments = Arguments::default();
    for argument in &mut arguments {
        *argument = usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((call, arguments))
}

/// The thread that runs the handler, and what it did before.
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
    /// Where this thread was, and what the registers of arguments held.
    fn of(&self, thread: c_int) -> Option<(usize, Arguments)> {
        let is_it = self.thread.load(Ordering::Acquire) == thread;
        let read = |word: &AtomicUsize| word.load(Ordering::Relaxed);
        is_it.then(|| (read(&self.at), self.arguments.each_ref().map(read)))
    }
}

/// Keeps what the handler of a signal was given of the thread that it has interrupted. A handler may do that. Other
/// machines than x86-64 have the result of the call where its first argument was.
///
/// # Safety
/// `context` is the third argument of a handler.
pub(crate) unsafe fn interrupts(context: *const c_void) {
    // SAFETY: that is what the third argument points to.
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
    // SAFETY: reads a number.
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
