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
        let vain = &cq.more.vain;
        let (times, at) = (&vain.times, &vain.at);
        let [times, at] = [
            times.load(Ordering::Relaxed),
            at.load(Ordering::Relaxed) as u64,
        ];
        let site = (at != 0).then_some(Site::Address(at as usize));
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
    Select,
    EpollWait,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Select => "select",
            Self::EpollWait => "epoll_wait",
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
            libc::SYS_ppoll => Some(Self::Poll),
            libc::SYS_pselect6 => Some(Self::Select),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Self::EpollWait),
            _ => None,
        }
    }

    /// The function of C that makes it.
    fn of_function(name: &str) -> Option<Self> {
        match name.trim_start_matches('_') {
            "poll" | "ppoll" => Some(Self::Poll),
            "select" | "pselect" => Some(Self::Select),
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => Some(Self::EpollWait),
            _ => None,
        }
    }

    /// The descriptors that it waits to read of, by its first two arguments.
    fn descriptors(self, [first, second]: [usize; 2]) -> Option<Vec<RawFd>> {
        match self {
            Self::Poll => {
                let entries = memory(first, second.checked_mul(8)?)?;
                let entries = entries.as_chunks::<8>().0.iter();
                let fd = |entry: &[u8; 8]| {
                    RawFd::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]])
                };
                Some(entries.map(fd).filter(|fd| *fd >= 0).collect())
            }
            Self::Select => {
                let bits = memory(second, first.div_ceil(64) * 8)?;
                let is_set = |fd: &usize| bits[fd / 8] & 1 << (fd % 8) != 0;
                Some((0..first).filter(is_set).map(|fd| fd as RawFd).collect())
            }
            Self::EpollWait => {
                let known = fs::read_to_string(format!("/proc/self/fdinfo/{first}")).ok()?;
                let fd = |line: &str| {
                    line.strip_prefix("tfd:")?
                        .split_whitespace()
                        .next()?
                        .parse()
                        .ok()
                };
                Some(known.lines().filter_map(fd).collect())
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
    descriptors: Vec<RawFd>,
}

impl Sleep {
    /// The channels of CQs and of rdma_cm that it sleeps for.
    fn of_channels(&self) -> Vec<Stuck> {
        let is_here = |fd: &Mutex<Option<OwnedFd>>| {
            let fd = fd.lock().as_ref().map(AsRawFd::as_raw_fd);
            fd.is_some_and(|fd| self.descriptors.contains(&fd))
        };
        let of_cqs = Channel::arena().iter();
        let of_cqs: Vec<_> = of_cqs.filter(|channel| is_here(&channel.more)).collect();
        let of_cm = EventChannel::arena().iter();
        let of_cm: Vec<_> = of_cm.filter(|channel| is_here(&channel.more)).collect();
        let among_others = of_cqs.len() + of_cm.len() < self.descriptors.len();
        let call = self.call.name();
        let of_cqs = of_cqs.into_iter().map(|channel| channel.handle);
        let of_cqs = of_cqs.map(|channel| Stuck::asleep(call, channel, among_others));
        let of_cm = of_cm.into_iter().map(|channel| channel.handle);
        let of_cm = of_cm.map(|channel| Stuck::asleep_cm(call, channel, among_others));
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
        let descriptors = call.descriptors(arguments)?;
        Some(Sleep { call, descriptors })
    };
    threads.flatten().filter_map(sleep).collect()
}

/// Of a line such as `7 0x7ffd0010 0x1 ...`: number and arguments of a call.
fn running(line: &str) -> Option<(Call, [usize; 2])> {
    let mut words = line.split_whitespace();
    let call = Call::of_number(words.next()?.parse().ok()?)?;
    let mut argument = || usize::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((call, [argument()?, argument()?]))
}

/// The thread that runs the handler, and what it did before.
struct Interrupted {
    thread: AtomicI32,
    at: AtomicUsize,
    arguments: [AtomicUsize; 2],
}

static INTERRUPTED: Interrupted = Interrupted {
    thread: AtomicI32::new(0),
    at: AtomicUsize::new(0),
    arguments: [const { AtomicUsize::new(0) }; 2],
};

impl Interrupted {
    /// Where this thread was, and what the registers of the first two arguments held.
    fn of(&self, thread: c_int) -> Option<(usize, [usize; 2])> {
        let is_it = self.thread.load(Ordering::Acquire) == thread;
        let read = |word: &AtomicUsize| word.load(Ordering::Relaxed);
        is_it.then(|| (read(&self.at), self.arguments.each_ref().map(read)))
    }
}

/// Keeps what the handler of a signal was given of the thread that it has interrupted. A handler may do that.
///
/// # Safety
/// `context` is the third argument of a handler.
pub(crate) unsafe fn interrupts(context: *const c_void) {
    // SAFETY: that is what the third argument points to.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let words = [libc::REG_RIP, libc::REG_RDI, libc::REG_RSI]
        .map(|at| registers.gregs[at as usize] as usize);
    #[cfg(target_arch = "aarch64")]
    let words = [registers.pc, registers.regs[0], registers.regs[1]].map(|word| word as usize);
    let [at, first, second] = words;
    INTERRUPTED.at.store(at, Ordering::Relaxed);
    INTERRUPTED.arguments[0].store(first, Ordering::Relaxed);
    INTERRUPTED.arguments[1].store(second, Ordering::Relaxed);
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
        let line = format!("{number} 0x7ffd0010 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd0000 0x7f00");
        assert_eq!(running(&line), Some((Call::Poll, [0x7ffd_0010, 1])));
        let other = format!("{} 0x0 0x0 0x0", libc::SYS_futex);
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
        let arguments = [entries.as_ptr().expose_provenance(), 3];
        assert_eq!(Call::Poll.descriptors(arguments), Some(vec![5, 7]));
        let sets = [0b1001_u64, 1];
        let arguments = [65, sets.as_ptr().expose_provenance()];
        assert_eq!(Call::Select.descriptors(arguments), Some(vec![0, 3, 64]));
        assert_eq!(Call::Poll.descriptors([8, 1]), None, "not mapped");
        assert_eq!(Call::Poll.descriptors([0, usize::MAX]), None);
        assert_eq!(Call::EpollWait.descriptors([usize::MAX, 0]), None);
    }
}
