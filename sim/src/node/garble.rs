//! Handles that are garbled on purpose.

use verbs_api::table::{Id, Table};
use verbs_api::{BadHandle, DriverObject, Handle, Result, Verb};

use super::{InContext, Node, invalid, xrc};

impl Node {
    /// Makes the handle of an object bad, or good again.
    pub fn garble(&mut self, object: DriverObject, garbled: bool) -> Result<()> {
        match object {
            DriverObject::Pd(pd) => garble(&mut self.pds, pd, garbled),
            DriverObject::Mr(mr) => garble(&mut self.mrs, mr, garbled),
            DriverObject::Mw(mw) => garble(&mut self.mws, mw, garbled),
            DriverObject::Cq(cq) => garble(&mut self.cqs, cq, garbled),
            DriverObject::Qp(qp) => match xrc::opening(qp) {
                Some(opening) => garble(&mut self.xrc.openings, opening, garbled),
                None => garble(&mut self.qps, qp, garbled),
            },
            DriverObject::Ah(ah) => garble(&mut self.ahs, ah, garbled),
            DriverObject::Srq(srq) => garble(&mut self.srqs, srq, garbled),
            other => Err(invalid(Verb::Garble, other.kind().name(), "has no number")),
        }
    }

    /// As [`find`](Self::find), for a driver that does not look at the number of an object.
    pub(super) fn find_unchecked<H: Handle, T: InContext>(
        table: &Table<T>,
        verb: Verb,
        handle: H,
    ) -> Result<u32> {
        match Self::is_garbled(table, handle) {
            true => Ok(handle.index()),
            false => Self::find(table, verb, handle),
        }
    }

    /// Whether a handle is good but for being garbled.
    fn is_garbled<H: Handle, T: InContext>(table: &Table<T>, handle: H) -> bool {
        let found = table.get(handle.index(), handle.generation());
        found.err() == Some(BadHandle::Garbled)
            && table.at(handle.index()).context() == handle.context()
    }
}

fn garble<H: Handle, T: InContext>(table: &mut Table<T>, handle: H, garbled: bool) -> Result<()> {
    Node::find_unchecked(table, Verb::Garble, handle)?;
    let (index, generation) = (handle.index(), handle.generation());
    let id = Id { index, generation };
    table
        .garble(id, garbled)
        .map_err(|problem| super::bad_handle(Verb::Garble, H::OBJECT, problem))
}
