//! Tasks that wait for events, as futures for any executor.

use core::future::poll_fn;
use core::pin::pin;
use core::task::{Poll, Waker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Wake;

use crate::error::Result;
use crate::event::EventSource;
use crate::site::{Site, Standing};
use crate::sync::Mutex;
use crate::verbs::Verbs;

/// The tasks that wait for a source of events. The backend knows one waker for all of them.
pub(super) struct Tasks {
    source: EventSource,
    waiting: Arc<Waiting>,
    /// Wakes them all.
    waker: Waker,
}

impl Tasks {
    pub(super) fn new(source: EventSource) -> Self {
        let waiting = Arc::<Waiting>::default();
        let waker = waiting.clone().into();
        Self {
            source,
            waiting,
            waker,
        }
    }

    /// Wakes them, because there is something to see without a new event.
    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// What `look` finds, once it finds something. If it finds nothing, it has seen that no event
    /// is queued.
    pub(super) async fn until<T>(
        &self,
        verbs: &dyn Verbs,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut task = Task {
            among: &self.waiting,
            place: None,
        };
        poll_fn(|context| {
            // An executor may poll a task for another of its futures.
            if task.still_sleeps(context.waker()) {
                return Poll::Pending;
            }
            loop {
                let wakes = self.waiting.0.lock().wakes;
                if let Some(found) = look().transpose() {
                    return Poll::Ready(found);
                }
                if task.sleeps(wakes, context.waker()) {
                    break;
                }
            }
            // An event that was queued after the look wakes the task at once.
            match verbs.wake_on(self.source, &self.waker) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }
}

/// A future of the program: verbs that it calls are called from where this function is called.
#[track_caller]
pub(super) fn from_here<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let site = Site::here();
    async move {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _standing = Standing::at(site);
            future.as_mut().poll(context)
        })
        .await
    }
}

/// The wakers of the tasks. They are called and dropped without the lock: a waker may drop its
/// task, which ends the waits of the task.
#[derive(Default)]
struct Waiting(Mutex<Wakers>);

#[derive(Default)]
struct Wakers {
    /// How often the tasks were woken.
    wakes: u64,
    /// How many places were given out.
    places: u64,
    by_place: BTreeMap<u64, Waker>,
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut wakers = self.0.lock();
        wakers.wakes += 1;
        let all = core::mem::take(&mut wakers.by_place);
        drop(wakers);
        all.into_values().for_each(Waker::wake);
    }
}

/// A task that waits. Its waker leaves when this is dropped.
struct Task<'a> {
    among: &'a Waiting,
    place: Option<u64>,
}

impl Task<'_> {
    /// Replaces its waker, unless there was a wake-up since it began to sleep.
    fn still_sleeps(&self, waker: &Waker) -> bool {
        let Some(place) = self.place else {
            return false;
        };
        let mut wakers = self.among.0.lock();
        let Some(kept) = wakers.by_place.get_mut(&place) else {
            return false;
        };
        let replaced = (!kept.will_wake(waker)).then(|| core::mem::replace(kept, waker.clone()));
        drop(wakers);
        drop(replaced);
        true
    }

    /// Keeps its waker until the next wake-up. Returns false if there was one after the first
    /// `wakes`.
    fn sleeps(&mut self, wakes: u64, waker: &Waker) -> bool {
        let mut wakers = self.among.0.lock();
        if wakers.wakes != wakes {
            return false;
        }
        let place = *self.place.get_or_insert_with(|| {
            wakers.places += 1;
            wakers.places
        });
        let replaced = wakers.by_place.insert(place, waker.clone());
        drop(wakers);
        drop(replaced);
        true
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let removed = self.among.0.lock().by_place.remove(&place);
        drop(removed);
    }
}
