//! Checks whether a program changes the bytes of a send that is posted. They belong to the device
//! until its completion is polled.

use std::num::NonZeroU64;

use crc32fast::Hasher as Crc32;
use verbs_api::{Access, SendFlags, WcStatus};

use super::common::Common;
use super::requester::Requester;
use crate::device::{Device, Domains, Send, touch};
use crate::diagnosis::problem::Changed;
use crate::memory::Gone;
use crate::packet::{Op, Packet};

/// The number of bytes that are read at a time.
const PART: usize = 64 << 10;

/// A send was posted. A fenced send is not summed yet: a read before it may still write its bytes.
pub(super) fn note_posted(domains: &Domains, pd: u32, send: &mut Send) {
    send.sum = None;
    if !send.flags.contains(SendFlags::FENCE) {
        note(domains, pd, send);
    }
}

/// A send has taken its bytes.
pub(super) fn note_started(domains: &Domains, pd: u32, send: &mut Send) {
    if send.flags.contains(SendFlags::FENCE) {
        note(domains, pd, send);
    }
}

fn note(domains: &Domains, pd: u32, send: &mut Send) {
    // If its memory is not mapped it fails when it starts.
    send.sum = sum_of(domains, pd, send).unwrap_or_default();
}

/// The sum of the bytes that a send takes from regions. None if it takes none, or if it names
/// memory that it may not use, with which it fails.
fn sum_of(domains: &Domains, pd: u32, send: &Send) -> Result<Option<NonZeroU64>, Gone> {
    if send.is_read() || send.is_local() || send.flags.contains(SendFlags::INLINE) {
        return Ok(None);
    }
    let length = send.length.into();
    let named = touch(&domains.regions, pd, &send.list, 0, length, Access::empty());
    let Ok(slices) = named else { return Ok(None) };
    let mut sum = Crc32::new();
    // The memory lock is held for one part at a time.
    let mut bytes = vec![0; PART.min(send.length as usize)];
    for slice in &*slices {
        let mut done = 0;
        while done < slice.length {
            let now = PART.min(slice.length - done);
            let (part, into) = (slice.part(done, now), &mut bytes[..now]);
            domains.memory.lock().read(&part, into)?;
            sum.update(into);
            done += now;
        }
    }
    // The sum 0 stands for "none": a send with this sum is not checked.
    Ok(NonZeroU64::new(sum.finalize().into()))
}

/// A failed send was not sent, or without effect: its bytes are not compared.
#[inline(always)]
pub(super) fn forget_failed(requester: &mut Requester, seq: u64, status: WcStatus) {
    if status != WcStatus::Success {
        requester.sq.get_mut(seq).sum = None;
    }
}

/// Compares the bytes of all sends up to this one, where memory is checked. Their slots are about
/// to be free, because the program polls a completion.
#[inline(always)]
pub(super) fn compare(requester: &mut Requester, qp: &Common, device: &mut Device, seq: u64) {
    if device.base.checks_memory {
        compare_all(requester, qp, device, seq);
    }
}

/// A message of the peer has arrived. It may answer the sends posted so far, so the peer has their
/// bytes, and the program may use them again.
#[inline(always)]
pub(super) fn note_message(requester: &mut Option<Requester>, device: &Device, packet: &Packet) {
    let is_answer = matches!(
        packet.op,
        Op::Acknowledge(_) | Op::ReadResponse | Op::AtomicResponse
    );
    if device.base.checks_memory
        && !is_answer
        && let Some(requester) = requester
    {
        requester.answered = requester.sq.end();
    }
}

#[cold]
fn compare_all(requester: &mut Requester, qp: &Common, device: &mut Device, seq: u64) {
    for send in requester.sq.between(requester.answered, seq) {
        // Sends without a sum took no bytes from regions.
        let Some(before) = send.sum else { continue };
        match sum_of(&device.domains, requester.pd, send) {
            Ok(Some(now)) if now != before => {
                let (qp_num, wr_id) = (qp.qp_num, send.label);
                let problem = Changed { qp_num, wr_id };
                device.base.journal.note(problem, send.site);
            }
            Ok(_) => {}
            Err(gone) => {
                device.note_unmapped(gone);
            }
        }
    }
}
