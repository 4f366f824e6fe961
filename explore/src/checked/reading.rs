//! What is read apart from the program, before it cannot be read any more.

use std::mem;

use smallvec::{SmallVec, smallvec};
use verbs_api::{Cq, Verb};

use super::Checked;
use super::books::Books;
use super::memory::Readable;

impl Checked {
    /// Reads the completion that an iteration has come to and that the program has left unread.
    pub(super) fn read_unread(&self, books: &mut Books, verb: Verb, cq: Cq) {
        if books.queues.is_unread(cq) {
            match self.device_unobserved().read_wc(cq) {
                Ok(read) => books.read_wc(verb, cq, read),
                Err(_) => books.queues.lose(cq),
            }
        }
    }

    /// Compares the bytes with what they must be, as far as they can be read.
    pub(super) fn read_bytes(&self, books: &mut Books, verb: Verb, of: Readable) {
        let Some(length) = books.memory.length(of).filter(|_| books.are_open()) else {
            return;
        };
        let whole = 0..length;
        let mut parts: SmallVec<[_; 1]> = smallvec![whole];
        let mut room = mem::take(&mut books.room);
        while let Some(part) = parts.pop() {
            if part.len() > CHUNK {
                let (first, rest) = (part.start..part.start + CHUNK, part.start + CHUNK..part.end);
                parts.extend([rest, first]);
                continue;
            }
            room.resize(room.len().max(part.len()), 0);
            let bytes = &mut room[..part.len()];
            let device = self.device_unobserved();
            let read = match of {
                Readable::Mr(mr) => device.read_mr(mr, part.start, bytes),
                Readable::Dm(dm) => device.copy_from_dm(dm, part.start as u64, bytes),
            };
            if read.is_ok() {
                books.read(verb, of, part.start, bytes);
            } else if part.len() > SMALL {
                // A part that posted work owns cannot be read.
                let middle = part.start + part.len() / 2;
                parts.extend([middle..part.end, part.start..middle]);
            }
        }
        books.room = room;
    }
}

/// Bytes that are compared at a time.
const CHUNK: usize = 1 << 16;

/// Bytes that are left out together where work owns some of them.
const SMALL: usize = 32;
