//! Handles whose numbers a program has changed.

use verbs_api::table::{Id, Table};
use verbs_api::{DriverObject, Handle};

use super::Node;
use crate::device::{InContext, Result, bad_handle, find_unchecked, invalid, opening};

impl Node {
    /// Makes the handle of an object invalid, or valid again.
    pub(crate) fn garble(&mut self, object: DriverObject, garbled: bool) -> Result<()> {
        let device = &mut self.device;
        match object {
            DriverObject::Pd(pd) => garble(&mut device.domains.pds, pd, garbled),
            DriverObject::Mr(mr) => garble(&mut device.domains.regions, mr, garbled),
            DriverObject::Mw(mw) => garble(&mut device.domains.windows.table, mw, garbled),
            DriverObject::Cq(cq) => garble(&mut device.cqs.table, cq, garbled),
            DriverObject::Qp(qp) => match opening(qp) {
                Some(opening) => garble(&mut device.xrcds.openings, opening, garbled),
                None => garble(&mut self.qps, qp, garbled),
            },
            DriverObject::Ah(ah) => garble(&mut device.domains.ahs, ah, garbled),
            DriverObject::Srq(srq) => garble(&mut device.srqs, srq, garbled),
            other => Err(invalid(other.kind().name(), "has no number")),
        }
    }
}

fn garble<H: Handle, T: InContext>(table: &mut Table<T>, handle: H, garbled: bool) -> Result<()> {
    find_unchecked(table, handle)?;
    let (index, generation) = (handle.index(), handle.generation());
    let id = Id { index, generation };
    let done = table.garble(id, garbled);
    done.map_err(|problem| bad_handle(H::OBJECT, problem))
}
