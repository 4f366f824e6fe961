//! Waking tasks: a thread that watches descriptors for them, so that no runtime has to.
//!
//! A descriptor is watched for one readiness (`EPOLLONESHOT`), again with each call. The kernel
//! reports it at once if it is readable already, so no event is missed between a look and the call.

use std::collections::BTreeMap;
use std::mem;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::{Errno, read, write};
use verbs_api::{Error, Result, Verb};

/// Wakes tasks. The thread starts with the first that waits, and ends with this.
#[derive(Debug, Default)]
pub(crate) struct Reactor(Mutex<Option<(Arc<Shared>, JoinHandle<()>)>>);

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    /// Readable when the thread has something else to do.
    bell: OwnedFd,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// How many sources were watched.
    sources: u64,
    /// The waker of each source for which a task waits.
    wakers: BTreeMap<u64, Waker>,
    /// Those of sources that were dropped.
    orphans: Vec<Waker>,
    has_ended: bool,
}

/// What the bell's readiness is named. Sources count from 1.
const BELL: u64 = 0;

impl Reactor {
    fn shared(&self, verb: Verb) -> Result<Arc<Shared>> {
        let mut started = self.0.lock();
        if let Some((shared, _)) = &*started {
            return Ok(shared.clone());
        }
        let shared = Arc::new(Shared::new().map_err(|errno| os(verb, errno))?);
        let run = {
            let shared = shared.clone();
            move || shared.run()
        };
        let thread = thread::Builder::new().name("verbs-hw tasks".to_owned());
        let thread = thread.spawn(run).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
            Error::from_raw(verb, errno)
        })?;
        *started = Some((shared.clone(), thread));
        Ok(shared)
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        let Some((shared, thread)) = self.0.get_mut().take() else {
            return;
        };
        shared.waiting.lock().has_ended = true;
        shared.ring();
        // A waker may have dropped the last owner of the backend.
        if thread.thread().id() != thread::current().id() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new() -> rustix::io::Result<Self> {
        let shared = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            waiting: Mutex::default(),
        };
        let bell = epoll::EventData::new_u64(BELL);
        epoll::add(&shared.epoll, &shared.bell, bell, epoll::EventFlags::IN)?;
        Ok(shared)
    }

    fn ring(&self) {
        // It never counts as far as a write would block.
        let _ = write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Calls wakers, each without the lock, until the reactor ends.
    fn run(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for event in events.drain(..) {
                let source = event.data.u64();
                if source == BELL {
                    let _ = read(&self.bell, &mut [0; 8]);
                }
                let mut waiting = self.waiting.lock();
                let woken = match source {
                    BELL => mem::take(&mut waiting.orphans),
                    _ => Vec::from_iter(waiting.wakers.remove(&source)),
                };
                let has_ended = waiting.has_ended;
                drop(waiting);
                for waker in woken {
                    // A panic in one task must not leave the others asleep.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
                if has_ended {
                    return;
                }
            }
        }
    }
}

/// A source of events. It is watched from the first task on that waits for it.
#[derive(Debug, Default)]
pub(crate) struct Source(Mutex<Option<Watched>>);

#[derive(Debug)]
struct Watched {
    shared: Arc<Shared>,
    fd: OwnedFd,
    number: u64,
}

impl Source {
    /// Wakes a task once the descriptor of the source is readable. `fd` duplicates that.
    pub(crate) fn wake_on(
        &self,
        reactor: &Reactor,
        verb: Verb,
        fd: impl FnOnce() -> Result<OwnedFd>,
        waker: &Waker,
    ) -> Result<()> {
        let mut watched = self.0.lock();
        if watched.is_none() {
            *watched = Some(Watched::new(reactor.shared(verb)?, fd()?, verb)?);
        }
        let replaced = watched.as_ref().map(|watched| watched.arm(verb, waker));
        drop(watched);
        // Only now, since a task may end with its last waker.
        replaced.transpose().map(drop)
    }
}

impl Watched {
    fn new(shared: Arc<Shared>, fd: OwnedFd, verb: Verb) -> Result<Self> {
        let number = {
            let mut waiting = shared.waiting.lock();
            waiting.sources += 1;
            waiting.sources
        };
        let data = epoll::EventData::new_u64(number);
        let added = epoll::add(&shared.epoll, &fd, data, epoll::EventFlags::ONESHOT);
        added.map_err(|errno| os(verb, errno))?;
        Ok(Self { shared, fd, number })
    }

    /// Watches for the next readiness. Returns the waker that is replaced.
    fn arm(&self, verb: Verb, waker: &Waker) -> Result<Option<Waker>> {
        let Self { shared, fd, number } = self;
        let replaced = {
            let mut waiting = shared.waiting.lock();
            waiting.wakers.insert(*number, waker.clone())
        };
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let data = epoll::EventData::new_u64(*number);
        let armed = epoll::modify(&shared.epoll, fd, data, flags);
        armed.map_err(|errno| os(verb, errno))?;
        Ok(replaced)
    }
}

impl Drop for Watched {
    /// Wakes the task, which finds that the source was destroyed. Locks may be held here, so the
    /// thread calls the waker.
    fn drop(&mut self) {
        let _ = epoll::delete(&self.shared.epoll, &self.fd);
        let mut waiting = self.shared.waiting.lock();
        if let Some(waker) = waiting.wakers.remove(&self.number) {
            waiting.orphans.push(waker);
            drop(waiting);
            self.shared.ring();
        }
    }
}

fn os(verb: Verb, errno: Errno) -> Error {
    Error::from_raw(verb, errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::time::{Duration, Instant};

    use super::*;

    const VERB: Verb = Verb::GetCqEvent;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A source with the descriptor that makes it readable, and a waker.
    struct Watch {
        source: Source,
        fd: OwnedFd,
        count: Arc<Count>,
    }

    impl Watch {
        fn new() -> Self {
            Self {
                source: Source::default(),
                fd: eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
                count: Arc::default(),
            }
        }

        fn wake_on(&self, reactor: &Reactor) {
            let fd = || Ok(self.fd.try_clone().unwrap());
            let waker = Waker::from(self.count.clone());
            self.source.wake_on(reactor, VERB, fd, &waker).unwrap();
        }

        fn write(&self) {
            write(&self.fd, &1u64.to_ne_bytes()).unwrap();
        }
    }

    fn wait_for(count: &Count, woken: usize) {
        let start = Instant::now();
        while count.0.load(Ordering::SeqCst) < woken {
            assert!(start.elapsed() < Duration::from_secs(60), "not woken");
            thread::yield_now();
        }
        assert_eq!(count.0.load(Ordering::SeqCst), woken);
    }

    /// CHAN-30: a task is woken by what comes after the call, and by what is there at the call;
    /// once for each call, and only the task of the source.
    #[test]
    fn a_task_is_woken_once_for_each_call() {
        let reactor = Reactor::default();
        let [watch, other] = [Watch::new(), Watch::new()];
        other.wake_on(&reactor);
        for round in 0..100 {
            watch.wake_on(&reactor);
            watch.write();
            wait_for(&watch.count, 2 * round + 1);
            watch.wake_on(&reactor);
            wait_for(&watch.count, 2 * round + 2);
            read(&watch.fd, &mut [0; 8]).unwrap();
        }
        assert_eq!(other.count.0.load(Ordering::SeqCst), 0);
    }

    /// Only the last waker is kept; it is called when its source is dropped, and the reactor ends.
    #[test]
    fn a_source_that_is_dropped_wakes_its_task() {
        let reactor = Reactor::default();
        let watch = Watch::new();
        (0..10_000).for_each(|_| watch.wake_on(&reactor));
        assert_eq!(Arc::strong_count(&watch.count), 2);
        let Watch { source, count, .. } = watch;
        drop(source);
        wait_for(&count, 1);
        drop(reactor);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
