//! The turns of threads: which of them made each trace record.

use parking_lot::Mutex;

use crate::sync::thread;

/// The turns of threads, in order.
#[derive(Default)]
pub(crate) struct Turns(pub(crate) Mutex<Vec<Turn>>);

pub(crate) struct Turn {
    pub(crate) thread: String,
    /// The index of the trace record from which on the thread made the records.
    pub(crate) start: usize,
    /// A note by the thread instead of records.
    pub(crate) note: Option<String>,
}

impl Turns {
    /// Notes that the calling thread makes the records from index `start` on, or a note there.
    pub(crate) fn push(&self, start: usize, note: Option<String>) {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        let turn = Turn {
            thread,
            start,
            note,
        };
        self.0.lock().push(turn);
    }
}
