//! What only the end of a run shows: what is missing, and what is left.

use std::thread;

use verbs_api::behavior::{Declared, FlushPostInErr};
use verbs_api::lab::Lab;
use verbs_api::{Element, Handle, Object, QpModify, QpState, Verb, Verbs, Wait, Wc};

use super::Checked;
use super::books::Books;
use super::broken::{Broken, Invariant};
use super::memory::Readable;
use super::objects::counted;
use super::polled::Polled;
use super::summary::Summary;
use super::work::{What, Work};

impl Checked {
    /// Ends the run: polls the remaining completions, and reads the events, the regions and the
    /// device memories. On a
    /// simulator it first brings every QP to ERR and completes all pending activity, and then
    /// compares the number of objects. Later calls are forwarded and not checked.
    ///
    /// # Errors
    /// The first invariant that is broken.
    pub fn finish(&self) -> Result<Summary, Broken> {
        let mut books = self.books.lock();
        if books.are_open() {
            books.ending = true;
            drop(books);
            self.end();
            books = self.books.lock();
        }
        books.closed = true;
        match &books.broken {
            Some(broken) => Err(broken.clone()),
            None => Ok(books.summary),
        }
    }

    fn end(&self) {
        self.end_iterations();
        if self.lab().is_some_and(|lab| lab.settle().is_ok()) {
            self.poll_all(&mut self.books.lock());
        }
        let settled = self.inner.lab().is_some_and(|lab| self.flush(lab));
        let mut books = self.books.lock();
        let polled = self.poll_all(&mut books);
        if settled && polled && books.are_open() {
            self.find_missing(&mut books);
        }
        self.read_events(&mut books);
        self.read_memory(&mut books);
        if let Some(lab) = self.inner.lab() {
            count_objects(&mut books, lab);
        }
    }

    /// Ends what the program has left open: it keeps CQs from being polled, and QPs from being
    /// changed.
    fn end_iterations(&self) {
        let mut books = self.books.lock();
        for cq in books.queues.iterations() {
            self.read_unread(&mut books, Verb::EndPoll, cq);
            if self.device_unobserved().end_poll(cq).is_ok() {
                books.queues.iterated(cq);
            }
        }
    }

    /// Lets all work that is outstanding complete; whether it had the time.
    fn flush(&self, lab: &dyn Lab) -> bool {
        let to_err = QpModify::to(QpState::Err);
        let mut books = self.books.lock();
        for qp in books.queues.qps_with_work() {
            if self
                .device_unobserved()
                .modify_qp(qp, &to_err.attr, to_err.mask)
                .is_ok()
            {
                books.queues.flushed(qp);
            }
        }
        drop(books);
        lab.settle().is_ok()
    }

    /// Whether all CQs could be emptied.
    fn poll_all(&self, books: &mut Books) -> bool {
        let mut all = true;
        for cq in books.queues.cqs() {
            let mut wc = [Wc::default(); 64];
            loop {
                match self.device_unobserved().poll_cq(cq, &mut wc) {
                    Ok(n) => {
                        for wc in &wc[..n] {
                            books.polled(Verb::PollCq, cq, &Polled::from(*wc));
                        }
                        if n < wc.len() {
                            books.seen_empty(cq);
                        }
                        if n == 0 || !books.are_open() {
                            break;
                        }
                    }
                    Err(_) => {
                        books.queues.lose(cq);
                        all = false;
                        break;
                    }
                }
            }
        }
        all
    }

    fn find_missing(&self, books: &mut Books) {
        let declared = |work: &Work| -> Option<Declared> {
            self.device_unobserved().behavior(work.qp?.context()).ok()
        };
        // What a device never completes that gets it in ERR.
        let exempt = |work: &Work| {
            let flushes = declared(work).and_then(|declared| declared.flush_post_in_err);
            match flushes {
                Some(FlushPostInErr::All) => false,
                Some(FlushPostInErr::Sends) => work.what == What::Recv,
                _ => true,
            }
        };
        let missing = books.queues.missing(exempt);
        let wrong = missing.map_or(Ok(()), Err);
        books.judge(Invariant::Lost, Verb::PollCq, wrong);
    }

    fn read_events(&self, books: &mut Books) {
        for channel in books.events.channels() {
            while books.are_open()
                && let Ok(event) = self.device_unobserved().get_cq_event(channel, Wait::Poll)
            {
                books.summary.events += 1;
                let wrong = books.events.read(channel, &event);
                books.judge(Invariant::Event, Verb::GetCqEvent, wrong);
                // A device may wait for that before it releases the CQ.
                if self.device_unobserved().ack_cq_events(event.cq, 1).is_ok() {
                    let wrong = books.events.acknowledged(Element::Cq(event.cq), 1);
                    books.judge(Invariant::Acknowledgement, Verb::AckCqEvents, wrong);
                }
            }
        }
    }

    fn read_memory(&self, books: &mut Books) {
        for of in books.memory.all() {
            let verb = match of {
                Readable::Mr(_) => Verb::ReadMr,
                Readable::Dm(_) => Verb::CopyFromDm,
            };
            self.read_bytes(books, verb, of);
        }
    }
}

impl Drop for Checked {
    /// # Panics
    /// If an invariant is broken and [`finish`](Self::finish) was not called.
    fn drop(&mut self) {
        if self.is_view || thread::panicking() || self.books.lock().closed {
            return;
        }
        if let Err(broken) = self.finish() {
            panic!("{broken}");
        }
    }
}

/// The simulator counts the same objects.
fn count_objects(books: &mut Books, lab: &dyn Lab) {
    if !books.objects.is_still() {
        return;
    }
    for (name, contexts) in books.devices() {
        let Ok(live) = lab.live(contexts[0]) else {
            continue;
        };
        let seen = [(Object::Context, live.contexts)];
        for (kind, seen) in seen.into_iter().chain(counted(&live)) {
            let known = match kind {
                Object::Context => {
                    let own = contexts.iter().filter(|own| !books.of_ids.contains(own));
                    own.count() as u32
                }
                _ => {
                    let is_of = |context| contexts.contains(&context);
                    books.objects.count(kind, is_of)
                }
            };
            if seen != known {
                let facts = format!(
                    "{name} has {seen} objects of kind {kind}, and {known} were made and not destroyed"
                );
                books.judge(Invariant::Resource, Verb::Lab, Err(facts));
            }
        }
    }
}
