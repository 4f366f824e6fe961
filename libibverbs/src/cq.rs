//! Completion channels and completion queues.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, OwnedFd};

use verbs_abi::{ibv_comp_channel, ibv_context, ibv_cq, ibv_wc, int};
use verbs_api::sync::Mutex;
use verbs_api::{Arm, Context, CqInit, Verb, Verbs, Wait, Wc};
use verbs_sim::Sleeping;

use crate::blocking::{self, Begun, Next};
use crate::cq_ex::{self, Iteration};
use crate::domain::Pd;
use crate::engine::{engine, unobserved};
use crate::object::{CObject, Finding, Holding, context_of, kinds};
use crate::result::{Refusal, Result, count, not_null, pointer, quick_status, silent, status};
use crate::stuck::Vain;

kinds! {
    /// Completion channels.
    Channel in channels: ibv_comp_channel as ibv_comp_channel, CompChannel, Mutex<Option<OwnedFd>>;
    /// Completion queues. Each has room for the extended structure, of which the plain one is the start.
    Cq in cqs: ibv_cq_ex as ibv_cq, Cq, More, Cq;
}

/// What a CQ has in addition to its structure.
pub(crate) struct More {
    /// Of an extended one.
    pub(crate) iteration: Option<Iteration>,
    /// The parent domain that it was made with.
    parent: Option<Holding<Pd>>,
    /// Polls that found nothing.
    pub(crate) vain: Vain,
}

pub(crate) extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    pointer("ibv_create_comp_channel", context, || {
        let sim = &engine().sim;
        let handle = sim.create_comp_channel(context_of(context)?)?;
        let fd = sim.channel_fd(handle).inspect_err(|_| {
            let _ = sim.destroy_comp_channel(handle);
        })?;
        set_blocking(&fd)?;
        let raw_fd = fd.as_raw_fd();
        let channel = CObject::<Channel>::make(handle, Mutex::new(Some(fd)), || ibv_comp_channel {
            context,
            fd: raw_fd,
            refcnt: 0,
        });
        Ok(channel?.seen())
    })
}

pub(crate) extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    status("ibv_destroy_comp_channel", channel, || {
        let channel = CObject::<Channel>::find(channel)?;
        // A thread that waits on it finds both gone, or neither.
        let mut fd = channel.more.lock();
        engine().sim.destroy_comp_channel(channel.handle)?;
        drop(fd.take());
        drop(fd);
        channel.retire();
        Ok(())
    })
}

pub(crate) extern "C-unwind" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let attempt = |begun: Begun| {
        let Some(channel) = begun.find::<Channel>(channel)? else {
            return Ok(Next::GONE);
        };
        let take = || engine().sim.get_cq_event(channel.handle, Wait::Poll);
        let event = match blocking::look(&channel.more, take)? {
            Next::Taken(event) => event,
            Next::Sleep(fd) => return Ok(Next::Sleep(fd)),
        };
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
        Ok(Next::Taken(()))
    };
    let sleeping = || {
        let channel = CObject::<Channel>::find(channel).ok()?;
        blocking::is_diagnosed().then(|| Sleeping::on(&engine().sim, channel.handle))
    };
    blocking::call("ibv_get_cq_event", channel, attempt, sleeping)
}

/// Makes a descriptor as the kernel gives them; the program may change it.
pub(crate) fn set_blocking(fd: &OwnedFd) -> Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: reads and writes the flags of a descriptor that is ours.
    let result = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK)
    };
    if result < 0 {
        return Err(Refusal::by_system("fcntl"));
    }
    Ok(())
}

pub(crate) extern "C" fn create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    pointer("ibv_create_cq", context, || {
        let made = make(
            context,
            (cqe, comp_vector),
            cq_context,
            channel,
            None,
            |of, init| Ok((engine().sim.create_cq(of, init)?, None)),
        );
        Ok(made?.seen())
    })
}

/// Makes a queue of so many entries on a vector, in a parent domain or none. `create` makes the engine's, which can be iterated
/// over or not.
pub(crate) fn make(
    context: *mut ibv_context,
    (cqe, comp_vector): (c_int, c_int),
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    parent: Option<Finding<Pd>>,
    create: impl FnOnce(Context, &CqInit) -> Result<(verbs_api::Cq, Option<Iteration>)>,
) -> Result<Finding<Cq>> {
    let of = context_of(context)?;
    let found = CObject::<Channel>::find_some(channel)?;
    let make = |number| {
        let init = CqInit {
            cqe,
            // By which the object is found when there is an event.
            cq_context: number,
            channel: found.as_ref().map(|channel| channel.handle),
            comp_vector,
        };
        let (handle, iteration) = create(of, &init)?;
        let plain = ibv_cq {
            context,
            channel,
            cq_context,
            cqe: int(unobserved().query_cq(handle)?.cqe),
            ..ibv_cq::default()
        };
        let raw = cq_ex::extended(plain, iteration.is_some());
        let more = More {
            iteration,
            parent: parent.as_ref().map(Finding::hold),
            vain: Vain::default(),
        };
        Ok((handle, more, raw))
    };
    match &parent {
        None => CObject::<Cq>::make_with(make),
        Some(parent) => parent.within(|| CObject::<Cq>::make_with(make)),
    }
}

pub(crate) extern "C" fn resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    status("ibv_resize_cq", cq, || {
        let cq = CObject::<Cq>::find(cq)?;
        let sim = &engine().sim;
        cq_ex::in_turn(&cq, Verb::ResizeCq, || sim.resize_cq(cq.handle, cqe))?;
        let cqe = int(unobserved().query_cq(cq.handle)?.cqe);
        // SAFETY: one of ours, which stays for the call; the call sets the size.
        unsafe { (*cq.raw()).cq_base.cqe = cqe };
        Ok(())
    })
}

pub(crate) extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    status("ibv_destroy_cq", cq, || {
        let cq = CObject::<Cq>::find(cq)?.hold();
        let destroy = || engine().sim.destroy_cq(cq.handle, Wait::Forever);
        cq_ex::after_others(std::slice::from_ref(&cq), Verb::DestroyCq, destroy)?;
        if let Some(parent) = &cq.more.parent {
            parent.left();
        }
        cq.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    quick_status("ibv_req_notify_cq", cq, || {
        let cq = CObject::<Cq>::find(cq)?;
        // Who looks again before it sleeps does not poll in vain.
        cq.more.vain.note(1);
        Ok(engine().sim.req_notify_cq(cq.handle, Arm(solicited_only))?)
    })
}

/// An acknowledgement too many is not counted; C has no way to say so.
pub(crate) extern "C" fn ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    silent("ibv_ack_cq_events", cq, || {
        let cq = CObject::<Cq>::find(cq)?;
        Ok(engine().sim.ack_cq_events(cq.handle, events)?)
    });
}

pub(crate) extern "C" fn poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    count("ibv_poll_cq", cq, || {
        let cq = CObject::<Cq>::find(cq)?;
        let entries = usize::try_from(entries).map_err(|_| {
            let what = format!("{entries} completions are asked for");
            Refusal::new(libc::EINVAL, what)
        })?;
        if entries > 0 {
            not_null(wc)?;
        }
        let taken = match entries {
            0 | 1 => take::<1>(&cq, entries, wc),
            _ => take_many(&cq, entries, wc),
        };
        let taken = taken?;
        if entries > 0 {
            cq.more.vain.note(taken);
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
            // What was taken before is the program's.
            Err(_) if taken > 0 => 0,
            got => got?,
        };
        taken += got;
        if got < now {
            break;
        }
    }
    Ok(taken)
}

/// Takes as many completions as are asked for, at most `N`.
#[inline]
fn take<const N: usize>(cq: &CObject<Cq>, asked: usize, wc: *mut ibv_wc) -> Result<usize> {
    let mut some = [Wc::default(); N];
    let some = &mut some[..asked];
    let got = cq_ex::in_turn(cq, Verb::PollCq, || engine().sim.poll_cq(cq.handle, some))?;
    for (at, one) in some[..got].iter().enumerate() {
        // SAFETY: the program has room for so many (C's contract).
        unsafe { wc.add(at).write_unaligned(ibv_wc::to_c(one)) };
    }
    Ok(got)
}
