//! Completion channels and completion queues.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use verbs_abi::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_wc, int,
};
use verbs_api::site::Site;
use verbs_api::{Arm, Context, CqFlags, CqInitEx, ErrorKind, Handle, Verb, Verbs, Wait, Wc};
use verbs_sim::WaitGuard;

use super::context::{context_of, is_context};
use super::exclusive::{Exclusive, InUse};
use super::iteration::Iteration;
use crate::c::blocking::{self, Descriptor};
use crate::c::schedule;
use crate::c::{
    CObject, Found, Held, Later, Refusal, Result, caller, count, kinds, new_object, not_null,
    quick_status, silent, status,
};
use crate::engine::{sim, unobserved};

kinds! {
    /// Completion channels.
    Channel: ibv_comp_channel as ibv_comp_channel, CompChannel, Descriptor;
    /// Completion queues. Each has the extended structure, which starts with the plain one.
    Cq: ibv_cq_ex as ibv_cq | ibv_cq_ex, Cq, More, numbered Cq;
}

/// Values of a CQ that its structure lacks.
pub(crate) struct More {
    /// The iteration over an extended one.
    pub(super) iteration: Option<Iteration>,
    /// Its use, if it is for one thread at a time.
    pub(super) exclusive: Option<Exclusive>,
    pub(crate) empty_polls: EmptyPolls,
}

/// Polls of a CQ that found nothing since its last completion.
#[derive(Default)]
pub(crate) struct EmptyPolls {
    count: AtomicU64,
    /// The return address of the last of them.
    at: AtomicUsize,
}

impl EmptyPolls {
    /// A poll has found this number of completions.
    #[inline]
    pub(super) fn note(&self, found: usize) {
        if caller::is_named() {
            self.count(found);
        }
    }

    fn count(&self, found: usize) {
        // Two threads may count one poll: the number need not be exact.
        let count = self.count.load(Ordering::Relaxed);
        let count = if found == 0 { count + 1 } else { 0 };
        self.count.store(count, Ordering::Relaxed);
        if let (0, Some(at)) = (found, caller::returns_to()) {
            self.at.store(at, Ordering::Relaxed);
        }
    }

    /// The number, and the place of the last one if it is known.
    pub(crate) fn get(&self) -> (u64, Option<Site>) {
        let at = self.at.load(Ordering::Relaxed);
        let site = (at != 0).then_some(Site::Address(at));
        (self.count.load(Ordering::Relaxed), site)
    }
}

impl CObject<Cq> {
    /// Waits until no other thread iterates over the queue. Returns whether one did.
    fn waited(&self, verb: Verb) -> bool {
        let Some(iteration) = &self.more.iteration else {
            return false;
        };
        let others = !iteration.0.is_owned_by_current_thread();
        drop(iteration.turn(self.handle, verb.name()));
        others
    }

    /// A poll has found this number of completions.
    #[inline]
    pub(super) fn note_poll(&self, found: usize) {
        self.more.empty_polls.note(found);
        if found == 0 {
            schedule::found_nothing(ptr::from_ref(self).addr());
        }
    }

    /// A call polls it.
    #[inline]
    pub(super) fn in_use(&self, verb: Verb) -> Option<InUse<'_>> {
        let exclusive = self.more.exclusive.as_ref()?;
        exclusive.enter(verb.name(), self.handle.context(), self.handle)
    }

    /// Calls a verb that the engine refuses during an iteration: between the iterations of other
    /// threads. During one of this thread it is refused, because the thread would wait for itself.
    #[inline]
    fn in_turn<T>(&self, verb: Verb, call: impl FnOnce() -> T) -> T {
        let iteration = self.more.iteration.as_ref();
        let _turn = iteration.map(|iteration| iteration.turn(self.handle, verb.name()));
        call()
    }
}

/// Calls a verb that the engine refuses during an iteration over one of these queues. The verb may
/// wait for threads that need their turn, so it is called without one, and again if another thread
/// has started an iteration.
pub(super) fn after_others<T>(
    cqs: &[Held<Cq>],
    verb: Verb,
    mut call: impl FnMut() -> verbs_api::Result<T>,
) -> verbs_api::Result<T> {
    loop {
        // The engine notes a refusal as a mistake of the program. Waiting first mostly avoids that.
        have_waited(verb, cqs);
        match call() {
            Err(error) if error.kind() == ErrorKind::Usage && have_waited(verb, cqs) => {}
            result => return result,
        }
    }
}

/// Waits until no other thread iterates over these queues. Returns whether one did.
fn have_waited(verb: Verb, cqs: &[Held<Cq>]) -> bool {
    cqs.iter()
        .fold(false, |waited, cq| cq.waited(verb) | waited)
}

pub(crate) extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    new_object("ibv_create_comp_channel", context, |of| {
        let handle = sim().create_comp_channel(of.handle)?;
        // Without a descriptor the program could not wait, so the channel is not kept.
        let fd = sim().channel_fd(handle).inspect_err(|_| {
            let _ = sim().destroy_comp_channel(handle);
        })?;
        let raw_fd = fd.as_raw_fd();
        CObject::<Channel>::make(handle, Descriptor::new(fd)?, || ibv_comp_channel {
            context,
            fd: raw_fd,
            refcnt: 0,
        })
    })
}

pub(crate) extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    status("ibv_destroy_comp_channel", channel, |channel| {
        let destroy = || Ok(sim().destroy_comp_channel(channel.handle)?);
        channel.more.close_after(destroy)?;
        channel.retire();
        Ok(())
    })
}

pub(crate) extern "C-unwind" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let attempt = |channel: &CObject<Channel>| {
        let take = || sim().get_cq_event(channel.handle, Wait::Poll);
        blocking::look(&channel.more, take)?.give(|event| {
            let found = CObject::<Cq>::numbered(event.cq_context)?;
            // SAFETY: the program's, to be written (C's contract); the CQ is one of ours.
            unsafe {
                if !cq.is_null() {
                    cq.write_unaligned(found.seen());
                }
                if !cq_context.is_null() {
                    cq_context.write_unaligned((*found.raw()).cq_base.cq_context);
                }
            }
            Ok(())
        })
    };
    let sleeping = |channel: &CObject<Channel>| Some(WaitGuard::on(sim(), channel.handle));
    blocking::call("ibv_get_cq_event", channel, attempt, sleeping)
}

pub(crate) extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    new_object("ibv_create_cq", Later(context), |()| {
        let asked = ibv_cq_init_attr_ex {
            cqe: cqe as u32,
            cq_context,
            channel,
            comp_vector: comp_vector as u32,
            ..ibv_cq_init_attr_ex::default()
        };
        make(context, &asked, |of, init| {
            let handle = sim().create_cq(of, &init.cq)?;
            Ok((handle, ibv_cq_ex::default(), None))
        })
    })
}

/// The engine's part of a queue: its handle, the structure without its plain part, and the
/// iteration of an extended one.
pub(super) type Created = (verbs_api::Cq, ibv_cq_ex, Option<Iteration>);

/// Makes a queue. `create` makes it in the engine.
pub(super) fn make(
    context: *mut ibv_context,
    asked: &ibv_cq_init_attr_ex,
    create: impl FnOnce(Context, &CqInitEx) -> Result<Created>,
) -> Result<Found<Cq>> {
    let of = context_of(context)?;
    let channel = CObject::<Channel>::find_some(asked.channel)?;
    let channel = channel.map(|channel| channel.handle);
    let mut init = ibv_cq_init_attr_ex::from_c(asked, channel);
    let make = |number| {
        // Events name the object by this number.
        init.cq.cq_context = number;
        let (handle, mut raw, iteration) = create(of, &init)?;
        raw.cq_base = ibv_cq {
            context,
            channel: asked.channel,
            cq_context: asked.cq_context,
            // A device may give more entries than were asked for.
            cqe: int(unobserved().query_cq(handle)?.cqe),
            ..ibv_cq::default()
        };
        let by_flag = init.flags.contains(CqFlags::SINGLE_THREADED);
        let by_flag = by_flag.then(|| Exclusive::new("IBV_CREATE_CQ_ATTR_SINGLE_THREADED"));
        let more = More {
            iteration,
            exclusive: by_flag,
            empty_polls: EmptyPolls::default(),
        };
        Ok((handle, more, raw))
    };
    CObject::<Cq>::make_with(make)
}

pub(crate) extern "C" fn resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    status("ibv_resize_cq", cq, |cq| {
        cq.in_turn(Verb::ResizeCq, || sim().resize_cq(cq.handle, cqe))?;
        let cqe = int(unobserved().query_cq(cq.handle)?.cqe);
        // SAFETY: one of ours, which stays for the call; the call sets the size.
        unsafe { (*cq.raw()).cq_base.cqe = cqe };
        Ok(())
    })
}

pub(crate) extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    status("ibv_destroy_cq", cq, |cq| {
        let cq = cq.held();
        let destroy = || sim().destroy_cq(cq.handle, Wait::Forever);
        after_others(std::slice::from_ref(&cq), Verb::DestroyCq, destroy)?;
        cq.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    quick_status("ibv_req_notify_cq", Later(cq), |()| {
        let cq = CObject::<Cq>::find(cq)?;
        // A program that arms the queue is about to sleep, so its next poll is not a busy one.
        cq.more.empty_polls.note(1);
        Ok(sim().req_notify_cq(cq.handle, Arm(solicited_only))?)
    })
}

/// `ibv_ack_cq_events`. Excess acknowledgements are ignored: C cannot report them.
pub(crate) extern "C" fn ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    silent("ibv_ack_cq_events", cq, |cq| {
        Ok(sim().ack_cq_events(cq.handle, events)?)
    });
}

pub(crate) extern "C" fn poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    count("ibv_poll_cq", Later(cq), |()| {
        let cq = CObject::<Cq>::find(cq)?;
        let entries = usize::try_from(entries)
            .map_err(|_| Refusal::invalid(format!("{entries} completions are asked for")))?;
        if entries > 0 {
            // Without room for completions the pointer is not used.
            not_null(wc)?;
        }
        let _in_use = cq.in_use(Verb::PollCq);
        let taken = match entries {
            // Most programs poll for one completion, which needs little room on the stack.
            0 | 1 => take::<1>(&cq, entries, wc),
            _ => take_many(&cq, entries, wc),
        };
        let taken = taken?;
        if entries > 0 {
            // A poll without room finds nothing, whatever is there.
            cq.note_poll(taken);
        }
        Ok(taken as c_int)
    })
}

#[inline(never)]
fn take_many(cq: &CObject<Cq>, asked: usize, wc: *mut ibv_wc) -> Result<usize> {
    const AT_A_TIME: usize = 16;
    let mut taken = 0;
    while taken < asked {
        let now = AT_A_TIME.min(asked - taken);
        let got = match take::<AT_A_TIME>(cq, now, wc.wrapping_add(taken)) {
            // The program needs the completions that were taken before.
            Err(_) if taken > 0 => 0,
            got => got?,
        };
        taken += got;
        // The queue is empty.
        if got < now {
            break;
        }
    }
    Ok(taken)
}

/// Takes at most `asked` completions, which is at most `N`.
#[inline]
fn take<const N: usize>(cq: &CObject<Cq>, asked: usize, wc: *mut ibv_wc) -> Result<usize> {
    let mut some = [Wc::default(); N];
    let some = &mut some[..asked];
    let got = cq.in_turn(Verb::PollCq, || sim().poll_cq(cq.handle, some))?;
    for (at, one) in some[..got].iter().enumerate() {
        // SAFETY: the program has room for `asked` completions (C's contract).
        unsafe { wc.add(at).write_unaligned(ibv_wc::to_c(one)) };
    }
    Ok(got)
}
