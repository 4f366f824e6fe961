//! Why memory cannot be used as a work request or a peer wants it, in words.

use verbs_api::{Access, Sge};

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
        pd: Option<u32>,
        rkey: u32,
        place: (u64, u64),
        need: Access,
    ) -> String {
        if is_window_key(rkey) {
            return format!("no window of rkey {rkey:#x} opens that");
        }
        let name = self.name_of_key(rkey);
        match self.of_key(rkey & !RKEY) {
            None => match self.gone(rkey) {
                Some(name) => format!("{name}, of the rkey {rkey:#x}, was deregistered"),
                None => format!("no region has the rkey {rkey:#x}"),
            },
            Some(mr) if mr.attr.rkey != rkey && mr.attr.lkey == rkey => {
                format!("{rkey:#x} is the lkey of {name}, not its rkey")
            }
            Some(mr) => {
                let why = why_not_in(mr, &name, pd, place, need);
                why.unwrap_or_else(|| format!("{name} cannot be used so"))
            }
        }
    }

    /// Why work of a queue pair of this protection domain cannot use the memory that it names.
    pub(crate) fn why_not_local(&self, pd: u32, list: &[Sge], need: Access) -> Option<String> {
        list.iter().find_map(|sge| {
            let Some(mr) = self.of_key(sge.lkey) else {
                let is_rkey = sge.lkey & RKEY != 0;
                let of_key = self.of_key(sge.lkey & !RKEY).filter(|_| is_rkey);
                let (lkey, name) = (sge.lkey, self.name_of_key(sge.lkey));
                return Some(match of_key {
                    Some(_) => format!("{lkey:#x} is the rkey of {name}, not its lkey"),
                    None => match self.gone(lkey) {
                        Some(name) => format!("{name}, of the lkey {lkey:#x}, was deregistered"),
                        None => format!("no region has the lkey {lkey:#x}"),
                    },
                });
            };
            let place = (sge.addr, u64::from(sge.length));
            why_not_in(mr, &self.name_of_key(sge.lkey), Some(pd), place, need)
        })
    }

    /// The region of a key, as handles are printed.
    fn name_of_key(&self, key: u32) -> String {
        format!("mr#{}", self.keys().slot(key).unwrap_or_default())
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
