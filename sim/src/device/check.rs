//! Handles, ranges, and the errors that explain what is wrong with them.

use super::refusal::{PostRefusal, Refusal, Result};
use verbs_api::table::Table;
use verbs_api::{BadHandle, Cause, Context, ErrorKind, Handle, Object, Sge};

/// The names of arguments whose refusal has a class of its own in a diagnosis.
pub(crate) mod argument {
    pub(crate) const INLINE: &str = "INLINE";
    pub(crate) const INLINE_DATA: &str = "inline data";
    pub(crate) const MAX_INLINE_DATA: &str = "max_inline_data";
    pub(crate) const NUM_SGE: &str = "num_sge";
}

/// An object that belongs to a context.
pub(crate) trait InContext {
    fn context(&self) -> Context;
}

/// Says where the context of an object is.
macro_rules! in_context {
    ($name:ty, $($context:tt)+) => {
        impl $crate::device::InContext for $name {
            fn context(&self) -> verbs_api::Context {
                self.$($context)+
            }
        }
    };
}
pub(crate) use in_context;

/// The index of a handle's object, if the handle is valid.
pub(crate) fn find<H: Handle, T: InContext>(table: &Table<T>, handle: H) -> Result<u32> {
    let problem = match table.get(handle.index(), handle.generation()) {
        // Handles of another context are refused, although the slot and the generation match.
        Ok(object) if object.context() == handle.context() => return Ok(handle.index()),
        Ok(_) => BadHandle::Foreign,
        Err(problem) => problem,
    };
    Err(bad_handle(H::OBJECT, problem))
}

/// Like [`find`], for an object that must belong to this context.
pub(crate) fn find_in<H: Handle, T: InContext>(
    table: &Table<T>,
    context: Context,
    handle: H,
) -> Result<u32> {
    let index = find(table, handle)?;
    same_context(context, handle)?;
    Ok(index)
}

/// Like [`find`], for a driver that does not check the number of an object.
pub(crate) fn find_unchecked<H: Handle, T: InContext>(table: &Table<T>, handle: H) -> Result<u32> {
    let index = handle.index();
    match table.get(index, handle.generation()) {
        // Such a driver uses its own structure, and never looks at the number.
        Err(BadHandle::Corrupt) if table.at(index).context() == handle.context() => Ok(index),
        _ => find(table, handle),
    }
}

/// Refuses an object of another context.
pub(crate) fn same_context<H: Handle>(context: Context, handle: H) -> Result<()> {
    if handle.context() == context {
        return Ok(());
    }
    let cause = Cause::Mismatch {
        object: H::OBJECT,
        must_share: "context",
    };
    Err(Refusal::new(ErrorKind::Invalid, cause))
}

pub(crate) fn bad_handle(object: Object, problem: BadHandle) -> Refusal {
    let kind = match problem {
        // The kernel does not find the number in its table, whatever the driver.
        BadHandle::Corrupt => ErrorKind::NotFound,
        _ => ErrorKind::Invalid,
    };
    Refusal::new(kind, Cause::Handle { object, problem })
}

pub(crate) fn invalid(what: &'static str, problem: &'static str) -> Refusal {
    Refusal::argument(ErrorKind::Invalid, what, problem)
}

/// The error for a device that lacks what is asked for.
pub(crate) fn lacks(problem: &'static str) -> Refusal {
    Refusal::argument(ErrorKind::NotSupported, "the device", problem)
}

// Each post passes here. A call would cost more than the comparison.
#[inline(always)]
pub(crate) fn in_range(what: &'static str, value: i64, min: i64, max: i64) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Refusal::out_of_range(
        ErrorKind::Invalid,
        what,
        value,
        min,
        max,
    ))
}

/// Refuses to destroy an object that has users.
pub(crate) fn check_unused(object: Object, users: &[(Object, u32)]) -> Result<()> {
    let Some(&(by, count)) = users.iter().find(|(_, count)| *count > 0) else {
        return Ok(());
    };
    let cause = Cause::InUse { object, by, count };
    Err(Refusal::new(ErrorKind::Busy, cause))
}

/// Refuses to destroy an object with events that were read and not acknowledged.
pub(crate) fn check_acknowledged(object: Object, events: u32) -> Result<()> {
    if events == 0 {
        return Ok(());
    }
    let cause = Cause::Unacknowledged { object, events };
    Err(Refusal::new(ErrorKind::WouldBlock, cause))
}

/// Refuses a scatter/gather list that is too long.
pub(crate) fn check_sges(list: &[Sge], max: u32, kind: ErrorKind) -> Result<()> {
    if list.len() <= max as usize {
        return Ok(());
    }
    let count = list.len() as i64;
    Err(Refusal::out_of_range(
        kind,
        argument::NUM_SGE,
        count,
        0,
        max.into(),
    ))
}

/// A table of objects with visible numbers, which some devices reuse immediately.
pub(crate) fn numbered<T>(reuse: bool) -> Table<T> {
    if reuse {
        Table::without_quarantine()
    } else {
        Table::default()
    }
}

/// Posts the work requests of a list, up to the first one that is refused.
pub(crate) fn post_each<W>(
    list: &[W],
    mut post: impl FnMut(&W) -> Result<()>,
) -> Result<(), PostRefusal> {
    for (bad_wr, wr) in list.iter().enumerate() {
        post(wr).map_err(|error| PostRefusal::new(bad_wr, error))?;
    }
    Ok(())
}
