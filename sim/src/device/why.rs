//! Why memory cannot be used as a work request or a peer wants it, in words.

use verbs_api::{Access, Object, Sge};

use super::base::Base;
use super::check::InContext;
use super::history::Reason;
use super::key::Regions;
use super::mw::is_window_key;
use super::region::{Mr, RKEY};

/// What lies further from a region is not told in relation to it: it would depend on where the machine
/// has put things.
const NEAR: u64 = 1 << 20;

impl Regions {
    /// Why a peer of a queue pair of this protection domain cannot use the memory that it names.
    pub(crate) fn why_not_remote(
        &self,
        base: &Base,
        pd: Option<u32>,
        rkey: u32,
        place: (u64, u64),
        need: Access,
    ) -> Reason {
        if is_window_key(rkey) {
            return format!("no window of rkey {rkey:#x} opens that").into();
        }
        match self.of_key(rkey & !RKEY) {
            None => self.no_region("rkey", rkey),
            Some(mr) if mr.attr.rkey != rkey && mr.attr.lkey == rkey => {
                let name = self.name_of_key(rkey);
                format!("{rkey:#x} is the lkey of {name}, not its rkey").into()
            }
            Some(mr) => {
                let why = self.why_not_in(base, mr, pd, place, need);
                let why = why.or_else(|| self.why_unmapped(rkey));
                let name = self.name_of_key(rkey);
                why.unwrap_or_else(|| format!("{name} cannot be used so").into())
            }
        }
    }

    /// Why work of a queue pair of this protection domain cannot use the memory that it names.
    pub(crate) fn why_not_local(
        &self,
        base: &Base,
        pd: u32,
        list: &[Sge],
        need: Access,
    ) -> Option<Reason> {
        list.iter().find_map(|sge| {
            let Some(mr) = self.of_key(sge.lkey) else {
                let is_rkey = sge.lkey & RKEY != 0;
                let of_key = self.of_key(sge.lkey & !RKEY).filter(|_| is_rkey);
                let (lkey, name) = (sge.lkey, self.name_of_key(sge.lkey));
                return Some(match of_key {
                    Some(_) => format!("{lkey:#x} is the rkey of {name}, not its lkey").into(),
                    None => self.no_region("lkey", lkey),
                });
            };
            let place = (sge.addr, u64::from(sge.length));
            let why = self.why_not_in(base, mr, Some(pd), place, need);
            why.or_else(|| self.why_unmapped(sge.lkey))
        })
    }

    /// Of the region of a key some memory was not mapped.
    fn why_unmapped(&self, key: u32) -> Option<Reason> {
        let why = self.registered.why(self.keys().slot(key & !RKEY)?)?;
        Some(why.into())
    }

    /// There may have been one.
    fn no_region(&self, what: &str, key: u32) -> Reason {
        match self.gone(key) {
            Some(gone) => {
                let name = &gone.name;
                let why = format!("{name}, of the {what} {key:#x}, was deregistered");
                Reason::from(why).at("at", gone.site)
            }
            None => format!("no region has the {what} {key:#x}").into(),
        }
    }

    /// The region of a key, as handles are printed.
    fn name_of_key(&self, key: u32) -> String {
        format!("mr#{}", self.keys().slot(key).unwrap_or_default())
    }

    fn why_not_in(
        &self,
        base: &Base,
        mr: &Mr,
        pd: Option<u32>,
        place: (u64, u64),
        need: Access,
    ) -> Option<Reason> {
        let name = self.name_of_key(mr.attr.lkey);
        let why = Reason::from(why_not_in(mr, &name, pd, place, need)?);
        let index = self.keys().slot(mr.attr.lkey)?;
        let registered = base.made_at(mr.context(), Object::Mr, index);
        Some(why.at("registered at", registered))
    }
}

/// Rights, in words.
pub(crate) fn access_names(access: Access) -> String {
    let names: Vec<_> = access.iter_names().map(|(name, _)| name).collect();
    names.join(" and ")
}

fn why_not_in(
    mr: &Mr,
    name: &str,
    pd: Option<u32>,
    (addr, length): (u64, u64),
    need: Access,
) -> Option<String> {
    if Some(mr.pd) != pd {
        return Some(format!("{name} is of another protection domain"));
    }
    let missing = need - mr.access;
    if !missing.is_empty() {
        return Some(format!("{name} does not allow {}", access_names(missing)));
    }
    if mr.part(addr, length).is_ok() {
        return None;
    }
    let (start, bytes) = (mr.attr.addr, mr.attr.length);
    Some(match addr.checked_sub(start) {
        Some(offset) if offset <= bytes + NEAR => {
            format!("{length} bytes from {offset:#x} on are not in {name}, which has {bytes}")
        }
        _ => format!("the address is not in {name}"),
    })
}
