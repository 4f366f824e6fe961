//! Handles whose numbers a program has changed.

use verbs_api::table::{Id, Table};
use verbs_api::{DriverObject, Handle};

use super::Node;
use crate::device::{InContext, Result, bad_handle, find_unchecked, invalid, opening, parent};

impl Node {
    /// Makes the handle of an object invalid, or valid again.
    pub(crate) fn corrupt_handle(&mut self, object: DriverObject, corrupt: bool) -> Result<()> {
        let device = &mut self.device;
        match object {
            DriverObject::Pd(pd) => match parent(pd) {
                Some(parent) => mark(&mut device.base.parents.table, parent, corrupt),
                None => mark(&mut device.domains.pds, pd, corrupt),
            },
            DriverObject::Mr(mr) => mark(&mut device.domains.regions.table, mr, corrupt),
            DriverObject::Mw(mw) => mark(&mut device.domains.windows.table, mw, corrupt),
            DriverObject::Cq(cq) => mark(&mut device.cqs.table, cq, corrupt),
            DriverObject::Qp(qp) => match opening(qp) {
                Some(opening) => mark(&mut device.xrcds.openings, opening, corrupt),
                None => mark(&mut self.qps, qp, corrupt),
            },
            DriverObject::Ah(ah) => mark(&mut device.domains.ahs, ah, corrupt),
            DriverObject::Srq(srq) => mark(&mut device.srqs, srq, corrupt),
            other => Err(invalid(other.kind().name(), "has no number")),
        }
    }
}

fn mark<H: Handle, T: InContext>(table: &mut Table<T>, handle: H, corrupt: bool) -> Result<()> {
    find_unchecked(table, handle)?;
    let (index, generation) = (handle.index(), handle.generation());
    let id = Id { index, generation };
    let done = table.corrupt_handle(id, corrupt);
    done.map_err(|problem| bad_handle(H::OBJECT, problem))
}
