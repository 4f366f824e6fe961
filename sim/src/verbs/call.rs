//! How a call of a verb runs: on the node of its handle, under the lock, with fault rules and the
//! trace.

#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::task::Waker;

use verbs_api::lab::TraceEvent;
use verbs_api::{
    Capabilities, Context, Cq, EventSource, Handle, Mr, Object, PostError, Qp, Result, SendWr,
    Verb, Wait, Wc,
};

use super::sim::Sim;
use super::trace_args::{self, TraceArgs};
use crate::config::Mode;
use crate::device::{self, Answer, EventQueue, Refusal, Refused};
use crate::direct::keeps_paths;
use crate::fabric::{Fabric, Look, WaitFor, Waiting};
#[cfg(unix)]
use crate::memory;
use crate::node::Node;
use crate::runtime::idle;
use crate::sync::MutexGuard;

impl Sim {
    /// The result of a verb. Notes that a call of the program was refused, if it was.
    #[inline]
    pub(crate) fn answer<R, E: Refused>(
        &self,
        fabric: &mut Fabric,
        node: u32,
        verb: Verb,
        result: Result<R, E>,
    ) -> Result<R, E::Error> {
        result.map_err(|refusal| self.refused(fabric, node, verb, refusal))
    }

    // Out of line, so that a call that succeeds keeps its arguments in registers.
    #[cold]
    #[inline(never)]
    fn refused<E: Refused>(
        &self,
        fabric: &mut Fabric,
        node: u32,
        verb: Verb,
        refusal: E,
    ) -> E::Error {
        let error = refusal.by(verb);
        if self.is_observed() {
            fabric.note_refusal(node, E::plain(&error));
        }
        error
    }

    /// The node of a handle.
    pub(crate) fn node<H: Handle>(&self, verb: Verb, handle: H) -> Result<u32> {
        self.node_of(verb, H::OBJECT, handle.context())
    }

    pub(crate) fn node_of(&self, verb: Verb, object: Object, context: Context) -> Result<u32> {
        self.runtime.check_thread(verb)?;
        self.runtime.node_of(verb, object, context)
    }

    /// Refuses a call on a dead device, and one that a fault rule lets fail.
    #[inline]
    pub(crate) fn check_call(
        &self,
        fabric: &mut Fabric,
        node: u32,
        verb: Verb,
    ) -> Result<(), Refusal> {
        fabric.node(node).device.base.check_alive(verb)?;
        self.check_faults(fabric, node, verb)
    }

    /// Refuses a call that a fault rule lets fail.
    #[inline]
    pub(crate) fn check_faults(
        &self,
        fabric: &mut Fabric,
        node: u32,
        verb: Verb,
    ) -> Result<(), Refusal> {
        // Fault rules fire only on calls of the program.
        if self.is_observed() {
            fabric.fail_call(node, verb)
        } else {
            Ok(())
        }
    }

    /// Reads from a node without calling a verb.
    pub(crate) fn look<R>(&self, context: Context, look: impl FnOnce(&Node) -> R) -> Result<R> {
        let verb = Verb::QueryDevice;
        let node = self.node(verb, context)?;
        let seen = self.runtime.with(|fabric| {
            let node = fabric.node(node);
            let context = node.device.base.check_context(context);
            context.map(|()| look(node))
        });
        seen.by(verb)
    }

    /// Runs a verb that changes nothing.
    #[track_caller]
    pub(crate) fn query<R>(
        &self,
        verb: Verb,
        handle: impl Handle,
        look: impl FnOnce(&Node) -> device::Result<R>,
    ) -> Result<R> {
        let node = self.node(verb, handle)?;
        self.runtime.with(|fabric| {
            let called = self.check_call(fabric, node, verb);
            let seen = called.and_then(|()| {
                let node = fabric.node(node);
                node.device.base.check_context(handle)?;
                look(node)
            });
            self.answer(fabric, node, verb, seen)
        })
    }

    /// Copies bytes into or out of a region. The trace shows it only if it shows threads.
    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn access(
        &self,
        verb: Verb,
        mr: Mr,
        offset: usize,
        length: usize,
        copy: impl FnOnce(&mut Node) -> device::Result<()>,
    ) -> Result<()> {
        // Programs copy often, and the copies cause nothing, so a plain trace leaves them out.
        if !self.runtime.config.trace_threads {
            let node = self.node(verb, mr)?;
            let copied = self.runtime.with(|fabric| {
                self.check_call(fabric, node, verb)?;
                copy(fabric.node_mut(node))
            });
            return copied.by(verb);
        }
        let args = || format!("{mr}+{offset:#x}, {length} B");
        self.call(verb, mr, args, |node| copy(node))
    }

    /// Runs a verb that changes something. `args` formats its arguments for the trace.
    #[track_caller]
    pub(crate) fn call<R: TraceArgs, E: From<Refusal> + Refused>(
        &self,
        verb: Verb,
        handle: impl Handle,
        args: impl FnOnce() -> String,
        work: impl FnOnce(&mut Node) -> Result<R, E>,
    ) -> Result<R, E::Error> {
        self.call_node(self.node(verb, handle)?, verb, args, move |node| {
            node.device.base.check_context(handle)?;
            work(node)
        })
    }

    #[track_caller]
    pub(crate) fn call_node<R: TraceArgs, E: From<Refusal> + Refused>(
        &self,
        node: u32,
        verb: Verb,
        args: impl FnOnce() -> String,
        work: impl FnOnce(&mut Node) -> Result<R, E>,
    ) -> Result<R, E::Error> {
        // The closures own what they use, so that the optimizer knows the verb.
        self.runtime.call(verb, move |fabric| {
            self.traced(fabric, node, verb, args, move |fabric| {
                self.check_call(fabric, node, verb)?;
                fabric.work_for(verb, node, work)
            })
        })
    }

    /// Posts the work requests after the first `done`, which took the fast path.
    #[inline(never)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn post_packets(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        node: u32,
        qp: Qp,
        list: &[SendWr<'_>],
        done: usize,
    ) -> Result<(), PostError> {
        let verb = Verb::PostSend;
        let rest = &list[done..];
        let args = || format!("{qp}, {}", trace_args::sends(rest));
        let posted = self.traced(fabric, node, verb, args, |fabric| {
            self.check_call(fabric, node, verb)?;
            fabric.post(node, |node| node.push_sends(qp, rest))
        });
        // The caller counts from the start of its list.
        posted.map_err(|failed| PostError::new(failed.bad_wr + done, failed.error))
    }

    /// Runs a verb that may wait.
    #[track_caller]
    pub(crate) fn wait<R: TraceArgs>(
        &self,
        verb: Verb,
        handle: impl Handle,
        wait: Wait,
        wait_for: WaitFor,
        args: impl FnOnce() -> String,
        mut attempt: impl FnMut(&mut Node) -> device::Result<R>,
    ) -> Result<R> {
        let node = self.node(verb, handle)?;
        self.runtime.call(verb, |fabric| {
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_call(fabric, node, verb).by(verb)?;
                self.runtime
                    .wait(fabric, node, verb, wait, wait_for, |fabric| {
                        fabric.work_for(verb, node, &mut attempt)
                    })
            })
        })
    }

    /// Wakes a task when the next event is queued.
    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn wake_task(&self, source: EventSource, waker: &Waker) -> Result<()> {
        let verb = source.verb();
        let (node, wait_for) = match source {
            EventSource::CompChannel(of) => (Some(self.node(verb, of)?), WaitFor::Event(of)),
            EventSource::Async(of) => {
                let node = self.node_of(verb, Object::Context, of)?;
                (Some(node), WaitFor::AsyncEvent(of))
            }
            EventSource::CmChannel(of) => (None, WaitFor::CmEvent(of)),
        };
        self.runtime.check_thread(verb)?;
        let place = node.unwrap_or(self.runtime.config.nodes);
        let wakeup = wait_for.ended_by();
        let replaced = self.runtime.with(|fabric| {
            if let Some(node) = node {
                fabric.node(node).device.base.check_alive(verb).by(verb)?;
            }
            let is_due = fabric.has_unread(source, place).by(verb)?;
            let look = if is_due {
                Look::Again
            } else {
                fabric.step_for_task(wakeup)
            };
            if look == Look::Again {
                fabric.call_waker(waker.clone());
                return Ok(None);
            }
            let waiting = Waiting {
                call: verb.name(),
                wait_for,
                place,
                since: fabric.now(),
                site: fabric.site,
                is_main: false,
            };
            if look == Look::Stalled && !fabric.closed {
                fabric.note_endless(&waiting);
            }
            if look == Look::Stalled || fabric.closed {
                return Err(self.runtime.stalled(fabric, place, verb, wait_for));
            }
            Ok(fabric.keep_waker(waiting, waker.clone()))
        })?;
        // The lock is free: a task may end with its last waker.
        drop(replaced);
        Ok(())
    }

    /// Duplicates the descriptor of a queue of events.
    #[cfg(unix)]
    pub(crate) fn descriptor(
        &self,
        verb: Verb,
        handle: impl Handle,
        of: EventQueue,
    ) -> Result<OwnedFd> {
        let node = self.node(verb, handle)?;
        self.runtime.with(|fabric| {
            let lacks = "has no file descriptors";
            self.check_call(fabric, node, verb).by(verb)?;
            let slot = &mut fabric.slots[node as usize];
            let device = &mut slot.node.device;
            device.base.check_has(Capabilities::FD, lacks).by(verb)?;
            slot.descriptors.open(verb, of, device)
        })
    }

    /// Exports a dma-buf of new memory.
    #[cfg(unix)]
    pub(crate) fn exported(&self, context: Context, length: usize) -> Result<OwnedFd> {
        self.query(Verb::ExportDmabuf, context, |node| {
            node.device.base.check_has_dmabufs()?;
            Ok(memory::export(length)?)
        })
    }

    /// Polls under the lock. It is separate from the poll without the lock, which so stays small.
    /// The handle is passed in parts, which keeps it in registers there.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn poll(
        &self,
        context: Context,
        index: u32,
        generation: u32,
        wc: &mut [Wc],
    ) -> Result<usize> {
        let cq = Cq::from_parts(context, index, generation);
        let verb = Verb::PollCq;
        let node = self.node(verb, cq)?;
        let count = self.runtime.call(verb, |fabric| {
            // No fault rule and no trace observes the call.
            let is_unobserved = fabric.direct.is_allowed && !fabric.node(node).device.base.dead;
            if !is_unobserved {
                self.check_call(fabric, node, verb).by(verb)?;
            }
            let count = fabric.poll_cq(node, cq, wc);
            match count {
                Ok(1..) => fabric.activity += 1,
                // A poll without room does not wait for a completion.
                Ok(0) if !wc.is_empty() => self.make_progress(fabric, node, cq),
                _ => {}
            }
            // The trace shows an empty poll only if it shows threads.
            let is_shown = match count {
                Ok(0) => self.runtime.config.trace_threads,
                _ => self.is_traced(fabric),
            };
            if is_unobserved || !is_shown {
                return self.answer(fabric, node, verb, count);
            }
            let args = || format!("{cq}, {}", wc.len());
            self.traced(fabric, node, verb, args, |_| count)
        });
        match count {
            Ok(0) => self.runtime.count_empty_poll(),
            _ => idle::polled(),
        }
        count
    }

    /// Runs a verb, and adds its call and its result to the trace.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn traced<R: TraceArgs, E: Refused>(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        node: u32,
        verb: Verb,
        args: impl FnOnce() -> String,
        run: impl FnOnce(&mut MutexGuard<'_, Fabric>) -> Result<R, E>,
    ) -> Result<R, E::Error> {
        let is_traced = self.is_traced(fabric);
        if is_traced {
            fabric.record_call(node, verb, args);
        }
        let result = run(fabric);
        if result.is_ok() {
            fabric.note_call(verb);
        }
        let result = self.answer(fabric, node, verb, result);
        if is_traced {
            fabric.record_return(node, &result);
        }
        result
    }

    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn is_traced(&self, fabric: &Fabric) -> bool {
        self.is_observed() && fabric.recorder.is_traced()
    }

    /// In virtual time, moves the clock for a program that polls and finds nothing.
    pub(crate) fn make_progress(&self, fabric: &mut Fabric, node: u32, cq: Cq) {
        if self.runtime.config.mode == Mode::Stepped {
            fabric.empty_poll(node, cq);
        } else if let Some(thread) = self.runtime.known_thread() {
            self.runtime.known_polls(fabric, thread, node, cq);
        }
    }
}

impl Fabric {
    /// Works on a node for a verb, and lets the effects happen.
    #[inline]
    fn work_for<R>(&mut self, verb: Verb, node: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        if keeps_paths(verb) {
            self.work_quietly(node, work)
        } else {
            self.work(node, work)
        }
    }

    /// Posts sends: `push` adds them to the queue of the slot that it returns.
    pub(super) fn post<R, E>(
        &mut self,
        index: u32,
        push: impl FnOnce(&mut Node) -> Result<(u32, Result<R, E>), E>,
    ) -> Result<R, E> {
        self.work(index, |node| {
            let (qp, posted) = push(node)?;
            node.qps.at_mut(qp).run_sends(&mut node.device);
            posted
        })
    }

    /// Adds a call to the trace.
    #[cold]
    pub(super) fn record_call(&mut self, node: u32, verb: Verb, args: impl FnOnce() -> String) {
        let call = format!("{verb}({})", args());
        self.record(node, TraceEvent::Call { call });
    }

    /// Adds the result of a call to the trace, unless it is empty.
    #[cold]
    pub(super) fn record_return<R: TraceArgs, E: std::fmt::Display>(
        &mut self,
        node: u32,
        result: &Result<R, E>,
    ) {
        let value = match result {
            Ok(value) => value.args(),
            Err(error) => error.to_string(),
        };
        // Most verbs return nothing.
        if !value.is_empty() {
            self.record(node, TraceEvent::Return { value });
        }
    }
}
