//! Tasks that sleep.

use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::Executor;

/// The wakers of the tasks that sleep, by when they wake and in the order in which they fell
/// asleep.
#[derive(Default)]
pub(super) struct Sleepers {
    wakers: RefCell<BTreeMap<(Duration, u64), Waker>>,
    places: Cell<u64>,
}

impl Sleepers {
    /// When the first of them wakes.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let wakers = self.wakers.borrow();
        wakers.first_key_value().map(|((at, _), _)| *at)
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<(Duration, Waker)> {
        let wakers = self.wakers.borrow();
        wakers
            .iter()
            .map(|((at, _), waker)| (*at, waker.clone()))
            .collect()
    }

    /// Wakes those that are due.
    pub(super) fn wake_due(&self, now: Duration) {
        while self.next_due().is_some_and(|at| at <= now) {
            let first = self.wakers.borrow_mut().pop_first();
            first.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }
}

/// A future that is ready at a time: see [`Executor::sleep`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep<'a> {
    executor: Executor<'a>,
    at: Duration,
    place: Option<u64>,
}

impl<'a> Executor<'a> {
    /// Sleeps for a time. It counts from the call.
    pub fn sleep(&self, time: Duration) -> Sleep<'a> {
        self.sleep_until(self.now().saturating_add(time))
    }

    /// Sleeps until a time since the start of the simulation.
    pub fn sleep_until(&self, at: Duration) -> Sleep<'a> {
        Sleep {
            executor: self.clone(),
            at,
            place: None,
        }
    }

    /// What a future returns, or `None` if it takes longer than `time`, which counts from the call.
    /// The future is then dropped. If both happen at the same time, it is the future that counts.
    ///
    /// ```
    /// use std::future;
    /// use std::time::Duration;
    /// use verbs_sim::rt::{self, Order};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new());
    /// let late = rt::block_on(&sim, Order::Fifo, async |rt| {
    ///     Ok(rt.timeout(Duration::from_secs(3600), future::pending::<()>()).await)
    /// })?;
    /// assert_eq!(late, None);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    pub fn timeout<F: Future>(
        &self,
        time: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + use<'a, F> {
        let sleep = self.sleep(time);
        async move {
            let (mut future, mut sleep) = (pin!(future), pin!(sleep));
            poll_fn(|context| match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
            })
            .await
        }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.executor.now() >= this.at {
            return Poll::Ready(());
        }
        let sleepers = &this.executor.0.sleepers;
        let place = *this.place.get_or_insert_with(|| {
            sleepers.places.set(sleepers.places.get() + 1);
            sleepers.places.get()
        });
        let waker = context.waker().clone();
        let replaced = sleepers.wakers.borrow_mut().insert((this.at, place), waker);
        // It may own a future, which ends its sleep when it is dropped.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let sleepers = &self.executor.0.sleepers;
        let removed = sleepers.wakers.borrow_mut().remove(&(self.at, place));
        drop(removed);
    }
}
