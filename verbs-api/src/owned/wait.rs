//! Waiting for completions, of one CQ and of all on a channel, and for their events: in threads,
//! and in tasks.

use core::fmt;

use super::event::in_time;
use super::tasks::from_here;
use super::{CompChannel, Completions, Cq};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::site::{Site, Standing};
use crate::verbs::Wait;

impl Cq {
    /// Waits for completions. Returns some, or `None` if none comes within `wait`. Use it for a CQ
    /// that is alone on its channel, and [`CompChannel::wait`] for several CQs on one channel.
    ///
    /// ```no_run
    /// # use verbs_api::{Result, Wait, owned::Cq};
    /// # fn f(cq: &Cq) -> Result<()> {
    /// while let Some(completions) = cq.wait(Wait::Forever)? {
    ///     for wc in completions {
    ///         println!("{wc}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The order matters. `wait` polls; if the CQ is empty, it arms and *polls again*, because a
    /// completion from before the arming makes no event (CQ-ARM-03). Only then does it wait for the
    /// event, acknowledge it, and start over. When it returns `None`, the CQ is armed and no event
    /// is queued, so the next completion makes the channel readable.
    ///
    /// Several threads may wait. Each gets the completions that it polled, and should wait again or
    /// poll until the CQ is empty: the others sleep until the next completion comes. [`Wait::For`]
    /// starts over after an event whose completions another thread took.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can bring a completion any more. `Invalid` without a
    /// channel, `Usage` if other CQs are on it. Those of polling and arming.
    #[track_caller]
    pub fn wait(&self, wait: Wait) -> Result<Option<Completions>> {
        let _standing = Standing::at(Site::here());
        let channel = self.own_channel()?;
        loop {
            if let Some(completions) = look(self)? {
                return Ok(Some(completions));
            }
            if channel.cqs() > 1 {
                let problem = "is not alone on its channel: wait for them all, on the channel";
                return Err(refused(ErrorKind::Usage, problem));
            }
            if channel.get_event(wait)?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Waits for completions, however long it takes: [`wait`](Self::wait) with [`Wait::Forever`],
    /// which always returns some.
    ///
    /// # Errors
    /// The errors of `wait`.
    #[track_caller]
    pub fn wait_forever(&self) -> Result<Completions> {
        let completions = self.wait(Wait::Forever)?;
        Ok(completions.expect("a wait without a limit ends with completions or an error"))
    }

    /// The next completions: [`wait`](Self::wait) for a task of any executor.
    ///
    /// Completions are taken only as the future returns them, so dropping it loses none. Several
    /// tasks may wait, and threads too: all tasks are woken for each event, and each returns when
    /// it has polled something.
    ///
    /// ```no_run
    /// # use verbs_api::{Result, owned::Cq};
    /// async fn print(cq: Cq) -> Result<()> {
    ///     loop {
    ///         for wc in cq.next().await? {
    ///             println!("{wc}");
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of `wait` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next(&self) -> impl Future<Output = Result<Completions>> {
        from_here(async move {
            let channel = self.own_channel()?;
            channel.until(|| self.wait(Wait::Poll)).await
        })
    }

    fn own_channel(&self) -> Result<&CompChannel> {
        let lacks = || refused(ErrorKind::Invalid, "has no completion channel");
        self.channel().ok_or_else(lacks)
    }
}

fn refused(kind: ErrorKind, problem: &'static str) -> Error {
    let what = "the cq";
    let cause = Cause::Argument { what, problem };
    Error::new(Verb::GetCqEvent, kind, cause)
}

impl CompChannel {
    /// Waits for completions of any CQ on the channel. Returns some of one CQ
    /// ([`Completions::cq`]), or `None` if none comes in the time that `wait` gives. CQs take
    /// turns, so a busy one holds up no other.
    ///
    /// ```no_run
    /// # use verbs_api::{Result, Wait, owned::CompChannel};
    /// # fn f(channel: &CompChannel) -> Result<()> {
    /// while let Some(completions) = channel.wait(Wait::Forever)? {
    ///     for wc in completions {
    ///         println!("{wc}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The order matters. For each CQ it is: poll; if there is nothing, arm, and *poll again*,
    /// since a completion that came before the arming makes no event (CQ-ARM-03); only then wait
    /// for an event; acknowledge it; poll the CQ it names.
    ///
    /// With [`Wait::Poll`] anything that watches the channel's descriptor can drive it. When it
    /// gives `None`, every CQ is armed and empty and no event is queued, so the next completion
    /// makes the channel readable, even for an edge-triggered watcher.
    ///
    /// Several threads may wait. Each gets the completions that it polled, and should wait again:
    /// only that returns the rest of the CQ, because no other thread is woken. [`Wait::For`] starts
    /// over after an event whose completions another thread took.
    ///
    /// # Errors
    /// The errors of [`get_event`](Self::get_event), of polling and of arming. After the error of
    /// one CQ the next call goes on with the others.
    #[track_caller]
    pub fn wait(&self, wait: Wait) -> Result<Option<Completions>> {
        let _standing = Standing::at(Site::here());
        loop {
            while let Some(cq) = self.next_listed() {
                cq.unlisted();
                let found = look(&cq);
                if !matches!(found, Ok(None)) {
                    cq.list();
                }
                if let Some(completions) = found? {
                    return Ok(Some(completions));
                }
            }
            let event = self.get_event(wait);
            self.stop_waiting();
            if event?.is_none() {
                return Ok(None);
            }
        }
    }

    /// The next completions of any CQ on the channel: [`wait`](Self::wait) for a task, as
    /// [`Cq::next`] is for one CQ. A CQ that is attached while a task waits wakes it.
    ///
    /// # Errors
    /// The errors of `wait` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next(&self) -> impl Future<Output = Result<Completions>> {
        from_here(self.until(|| self.wait(Wait::Poll)))
    }

    /// The next event: [`get_event`](Self::get_event) for a task.
    ///
    /// # Errors
    /// The errors of `get_event` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next_event(&self) -> impl Future<Output = Result<CqEvent>> {
        from_here(self.until(|| self.get_event(Wait::Poll)))
    }

    async fn until<T>(&self, look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let verbs = self.context().verbs();
        self.tasks().until(&**verbs, look).await
    }

    /// Takes the oldest event (`ibv_get_cq_event`), for programs that handle events themselves;
    /// `None` if none comes in the time that `wait` gives. It is acknowledged when the guard is
    /// dropped.
    ///
    /// An event of a CQ that was dropped before the event was read is skipped, and the wait starts
    /// over. So is an event of a CQ that was attached by the raw handle.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can bring an event any more.
    #[track_caller]
    pub fn get_event(&self, wait: Wait) -> Result<Option<CqEvent>> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        loop {
            let Some(event) = in_time(verbs.get_cq_event(self.handle(), wait))? else {
                return Ok(None);
            };
            if let Some(cq) = self.context().find(event.cq).map(Cq) {
                cq.event_was_read();
                return Ok(Some(CqEvent { cq }));
            }
            verbs.ack_cq_events(event.cq, 1)?;
            // It may have been in the way of the CQ's destruction.
            self.context().try_kept_again();
        }
    }
}

/// Completions, or else the CQ is armed and the next one makes an event.
fn look(cq: &Cq) -> Result<Option<Completions>> {
    let completions = Completions::fill(cq, |wcs| cq.poll_or_arm(wcs))?;
    Ok((completions.len() > 0).then_some(completions))
}

/// An event of a CQ that was read. It is acknowledged when it is dropped, and holds the CQ until
/// then.
///
/// An event that is never dropped ([`core::mem::forget`]) is never acknowledged: its CQ and
/// everything that the CQ was created from stay forever, and nothing waits for them.
///
/// ```compile_fail,E0382
/// # use verbs_api::owned::CqEvent;
/// # fn f(event: CqEvent) {
/// drop(event);
/// let cq = event.cq(); // borrow of moved value: it has been acknowledged
/// # }
/// ```
#[must_use = "dropping it acknowledges the event"]
pub struct CqEvent {
    cq: Cq,
}

impl CqEvent {
    /// The CQ that got the event.
    pub fn cq(&self) -> &Cq {
        &self.cq
    }
}

impl Drop for CqEvent {
    fn drop(&mut self) {
        let verbs = self.cq.context().verbs();
        // It fails only if the CQ was destroyed, or the event acknowledged, by the raw handle.
        let _ = verbs.ack_cq_events(self.cq.handle(), 1);
    }
}

impl fmt::Debug for CqEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event of {}", self.cq)
    }
}
