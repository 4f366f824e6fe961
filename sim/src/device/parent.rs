//! Parent domains and thread domains. An object that is made in a parent domain is an object of the
//! protection domain behind it; the parent domain only counts it.
//!
//! ```text
//!     object ── parent domain ──┬── protection domain
//!                               └── thread domain
//! ```

use std::collections::BTreeMap;

use verbs_api::table::Table;
use verbs_api::{Capabilities, Context, Handle, Object, Pd as PdHandle, Td as TdHandle};

use super::Device;
use super::base::Base;
use super::check::{check_unused, find, find_in, in_context};
use super::domain::Domains;
use super::refusal::Result;

/// The parent domains and thread domains of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parents {
    pub(crate) table: Table<Parent>,
    pub(crate) tds: Table<Td>,
    /// The parent domains of the objects that were made in one.
    homes: BTreeMap<(Object, u32), u32>,
}

/// A parent domain.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    context: Context,
    /// The protection domain.
    pd: u32,
    /// The domain that it was made from: that one, or another parent domain.
    from: PdHandle,
    td: Option<u32>,
    /// The number of parent domains that were made from it.
    parents: u32,
}

/// A thread domain.
#[derive(Clone, Debug)]
pub(crate) struct Td {
    context: Context,
    /// The number of parent domains that have it.
    parents: u32,
}

in_context!(Parent, context);
in_context!(Td, context);

/// The first index of handles that name parent domains. All protection domains have smaller ones.
const FIRST: u32 = 100_000_000;

/// The slot of a parent domain, if a handle with this index names one.
pub(crate) fn parent_at(index: u32) -> Option<u32> {
    index.checked_sub(FIRST)
}

/// The handle as the table of parent domains has it.
pub(crate) fn parent(pd: PdHandle) -> Option<PdHandle> {
    let index = parent_at(pd.index())?;
    Some(PdHandle::from_parts(pd.context(), index, pd.generation()))
}

/// The index of the handle of a parent domain.
pub(crate) fn index_of(slot: u32) -> u32 {
    FIRST + slot
}

impl Domains {
    /// The index of the protection domain of a handle, which may be that of a parent domain.
    pub(crate) fn find_pd(&self, base: &Base, pd: PdHandle) -> Result<u32> {
        match parent(pd) {
            Some(parent) => {
                let slot = find(&base.parents.table, parent)?;
                Ok(base.parents.table.at(slot).pd)
            }
            None => find(&self.pds, pd),
        }
    }

    /// Counts one more parent domain that was made from a domain, or one less.
    fn count_parent(&mut self, base: &mut Base, from: PdHandle, more: i32) {
        let count = match parent_at(from.index()) {
            Some(slot) => &mut base.parents.table.at_mut(slot).parents,
            None => &mut self.pds.at_mut(from.index()).parents,
        };
        *count = count.saturating_add_signed(more);
    }
}

impl Parents {
    /// Records the domain in which an object was made.
    pub(super) fn enter(&mut self, pd: PdHandle, object: Object, index: u32) {
        if let Some(slot) = parent_at(pd.index()) {
            self.homes.insert((object, index), slot);
        }
    }

    /// Forgets an object.
    pub(super) fn leave(&mut self, object: Object, index: u32) {
        self.homes.remove(&(object, index));
    }

    /// What was made in a parent domain, of the first kind of which there is something.
    fn users(&self, slot: u32) -> Option<(Object, u32)> {
        let mut users = self.homes.iter().filter(|(_, home)| **home == slot);
        let ((object, _), _) = users.next()?;
        let same = users.filter(|((other, _), _)| other == object);
        Some((*object, same.count() as u32 + 1))
    }
}

impl Device {
    /// `ibv_alloc_td`
    pub(crate) fn alloc_td(&mut self, context: Context) -> Result<TdHandle> {
        let base = &mut self.base;
        base.check_has(Capabilities::PARENT_DOMAIN, "has no thread domains")?;
        base.check_room("thread domains", &base.parents.tds, u32::MAX)?;
        let parents = 0;
        let id = base.parents.tds.insert(|_| Td { context, parents });
        Ok(base.added(context, id, TdHandle::from_parts))
    }

    /// `ibv_dealloc_td`
    pub(crate) fn dealloc_td(&mut self, td: TdHandle) -> Result<()> {
        let index = find(&self.base.parents.tds, td)?;
        let parents = self.base.parents.tds.at(index).parents;
        check_unused(Object::Td, &[(Object::Pd, parents)])?;
        self.remove_td(index);
        Ok(())
    }

    pub(super) fn remove_td(&mut self, index: u32) {
        let td = self.base.parents.tds.remove(index);
        self.base.remove_object(td.context, Object::Td, index);
    }

    /// `ibv_alloc_parent_domain`
    pub(crate) fn alloc_parent_domain(
        &mut self,
        from: PdHandle,
        td: Option<TdHandle>,
    ) -> Result<PdHandle> {
        let Self { base, domains, .. } = self;
        let context = from.context();
        let pd = domains.find_pd(base, from)?;
        let of_td = |td| find_in(&base.parents.tds, context, td);
        let td = td.map(of_td).transpose()?;
        base.check_has(Capabilities::PARENT_DOMAIN, "has no parent domains")?;
        base.check_room("parent domains", &base.parents.table, u32::MAX)?;
        domains.count_parent(base, from, 1);
        if let Some(td) = td {
            base.parents.tds.at_mut(td).parents += 1;
        }
        let id = base.parents.table.insert(|_| Parent {
            context,
            pd,
            from,
            td,
            parents: 0,
        });
        let index = index_of(id.index);
        base.add_object(context, Object::Pd, index);
        Ok(PdHandle::from_parts(context, index, id.generation))
    }

    /// `ibv_dealloc_pd` of a parent domain, by its handle in the table
    pub(super) fn dealloc_parent(&mut self, pd: PdHandle) -> Result<()> {
        let Self { base, domains, .. } = self;
        let slot = find(&base.parents.table, pd)?;
        let Parent {
            from, td, parents, ..
        } = *base.parents.table.at(slot);
        let users = base.parents.users(slot).unwrap_or((Object::Qp, 0));
        check_unused(Object::Pd, &[users, (Object::Pd, parents)])?;
        domains.count_parent(base, from, -1);
        if let Some(td) = td {
            base.parents.tds.at_mut(td).parents -= 1;
        }
        self.remove_parent(slot);
        Ok(())
    }

    /// Removes a parent domain that nothing counts any more.
    pub(super) fn remove_parent(&mut self, slot: u32) {
        let parent = self.base.parents.table.remove(slot);
        self.base
            .remove_object(parent.context, Object::Pd, index_of(slot));
    }
}
