//! Objects that come and go.

use verbs_api::{Element, Handle, Mr, MrInit, Pd, Result, Verb, Verbs};

use super::Checked;
use super::books::Books;
use super::broken::Invariant;
use super::objects::Id;

impl Checked {
    pub(super) fn made_mr(&self, books: &mut Books, pd: Pd, mr: Mr, init: &MrInit) {
        books.made(mr, &[Id::of(pd)]);
        if let Ok(attr) = self.device_unobserved().query_mr(mr) {
            let device = books.device(mr.context());
            books.memory.made(mr, device, attr, init);
        }
    }

    /// A verb that destroys something and does not wait.
    pub(super) fn remove<H: Handle>(
        &self,
        verb: Verb,
        object: H,
        call: impl FnOnce(&dyn Verbs) -> Result<()>,
    ) -> Result<()> {
        let mut books = self.begin();
        let before = books.objects.leaving(Id::of(object));
        let result = self.take_apart(call);
        match &result {
            Ok(()) => books.gone(verb, object),
            Err(error) => books.stays(object, before, error),
        }
        result
    }

    /// A verb that destroys something and may wait until its events are acknowledged.
    pub(super) fn destroy<H: Handle>(
        &self,
        verb: Verb,
        handle: H,
        element: Element,
        call: impl FnOnce(&dyn Verbs) -> Result<()>,
        gone: impl FnOnce(&mut Books),
    ) -> Result<()> {
        let before = self.begin().objects.leaving(Id::of(handle));
        let result = self.take_apart(call);
        let mut books = self.books.lock();
        match &result {
            Ok(()) => {
                books.gone(verb, handle);
                let wrong = books.events.gone(element);
                books.judge(Invariant::Acknowledgement, verb, wrong);
                gone(&mut books);
            }
            Err(error) => books.stays(handle, before, error),
        }
        result
    }
}
