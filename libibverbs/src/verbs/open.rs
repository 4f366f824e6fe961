//! Opening, importing and closing contexts, and the table of their operations.
//!
//! `ibv_import_device` names a context by a duplicate of its command descriptor. All contexts of
//! one descriptor are one context for the engine, and so are their objects. Objects of another
//! process are in another engine and cannot be imported.

use std::ffi::c_int;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::memfd::{MFdFlags, memfd_create};
use verbs_abi::{EXTENDED, ibv_context, ibv_context_ops, ibv_device, int, verbs_context};
use verbs_api::{Cause, Context, Error, Verbs};

use super::context::{More, Open, OpenDevice, open};
use super::device::number_of;
use super::{absent, cq, cq_ex, dm, domain, mw, post, qp_ex, query, region, srq, sysfs, xrc};
use crate::base::output::say;
use crate::base::record::{self, FileId};
use crate::base::thread::{entries, entry};
use crate::c::blocking::Descriptor;
use crate::c::{CObject, Held, Refusal, Result, pointer, status};
use crate::engine::{sim, unobserved};

/// The name of command descriptors, which another process can see.
const NAME: &std::ffi::CStr = c"verbsim-context";

/// A command descriptor. It leads to no kernel device: programs only compare and duplicate it.
pub(crate) fn command_fd() -> Result<OwnedFd> {
    let made = memfd_create(NAME, MFdFlags::MFD_CLOEXEC);
    made.map_err(|_| Refusal::by_system("memfd_create"))
}

pub(crate) extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    pointer("ibv_open_device", (), |()| {
        let number = number_of(device)?;
        let handle = sim().open_device(&format!("sim{number}"));
        let handle = handle.inspect_err(say_reason)?;
        let context = make(&mut open().lock(), device, handle, command_fd);
        let context = context.inspect_err(|_| {
            let _ = sim().close_device(handle);
        })?;
        // The files show the addresses, which the device has from now on.
        sysfs::opened(number, handle);
        Ok(context)
    })
}

/// Says why a device cannot be opened. No errno value can explain why it has no address.
pub(crate) fn say_reason(error: &Error) {
    if matches!(error.cause(), Cause::Text(_)) {
        say(error);
    }
}

/// Makes the structure of a context of the engine, among those that are `open`. `cmd_fd` gives its
/// command descriptor. It is called last, since a program keeps a descriptor whose import fails.
pub(crate) fn make(
    open: &mut Open,
    device: *mut ibv_device,
    handle: Context,
    cmd_fd: impl FnOnce() -> Result<OwnedFd>,
) -> Result<*mut ibv_context> {
    let async_fd = sim().async_fd(handle)?;
    let vectors = int(unobserved().query_device(handle)?.num_comp_vectors);
    let raw_fd = async_fd.as_raw_fd();
    let async_fd = Descriptor::new(async_fd)?;
    let cmd_fd = cmd_fd()?;
    let file = FileId::of(cmd_fd.as_raw_fd()).ok_or_else(|| Refusal::by_system("fstat"))?;
    let plain = ibv_context {
        device,
        cmd_fd: cmd_fd.as_raw_fd(),
        async_fd: raw_fd,
        num_comp_vectors: vectors,
        ..ibv_context::default()
    };
    let more = More {
        async_fd,
        cmd_fd: cmd_fd.into(),
        file,
    };
    let context = CObject::<OpenDevice>::make(handle, more, || filled(plain))?;
    open.entry(file).or_default().push(context.hold());
    record::opened();
    Ok(context.seen())
}

/// Closes a context. The engine's context is closed with the last one of its command descriptor.
pub(crate) extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    status("ibv_close_device", context, |context| {
        let mut open = open().lock();
        let is_this = |of: &Held<OpenDevice>| std::ptr::eq(&**of, &*context);
        match open.get_mut(&context.more.file) {
            // Another context of the descriptor stays open.
            Some(same) if !same.iter().all(is_this) => {
                context.end()?;
                same.retain(|of| !is_this(of));
            }
            _ => {
                sim().close_device(context.handle)?;
                open.remove(&context.more.file);
                context.retire();
            }
        }
        context.more.async_fd.close();
        context.more.cmd_fd.close();
        Ok(())
    })
}

/// Imports a context. The context owns the descriptor then, and closes it.
pub(crate) extern "C" fn import_device(cmd_fd: c_int) -> *mut ibv_context {
    pointer("ibv_import_device", (), |()| {
        let file = FileId::of(cmd_fd)
            .ok_or_else(|| Refusal::invalid(format!("{cmd_fd} is not a descriptor")))?;
        let open = &mut *open().lock();
        let same = open.get(&file).map_or(&[][..], Vec::as_slice);
        if same
            .iter()
            .any(|of| of.more.cmd_fd.number() == Some(cmd_fd))
        {
            // Both contexts would close it.
            return Err(Refusal::invalid(format!(
                "descriptor {cmd_fd} is that of an open context, and no duplicate of it"
            )));
        }
        if let Some(context) = same.first().cloned() {
            // SAFETY: one of ours, and held.
            let device = unsafe { (*context.seen()).device };
            return make(open, device, context.handle, || {
                // SAFETY: the program gives it away (C's contract).
                Ok(unsafe { OwnedFd::from_raw_fd(cmd_fd) })
            });
        }
        let name = fs::read_link(format!("/proc/self/fd/{cmd_fd}")).unwrap_or_default();
        if name.to_string_lossy().contains(&*NAME.to_string_lossy()) {
            return Err(Refusal::unsupported("the context is of another process"));
        }
        Err(Refusal::invalid(format!(
            "descriptor {cmd_fd} is of no context"
        )))
    })
}

/// The address of an operation. A context has only addresses of those that no device supports, so
/// their further arguments do not matter.
fn address<T, R>(operation: extern "C" fn(*mut T) -> R) -> usize {
    operation as usize
}

/// The structure of a context, with its operations. Operations that are 0 need an object that no
/// device here can make.
fn filled(plain: ibv_context) -> verbs_context {
    verbs_context {
        query_port: Some(entry!(query::query_port_sized)),
        counters: [0, 0, address(entry!(absent::create_counters)), 0],
        flow_actions: [0, 0, address(entry!(absent::create_flow_action_esp))],
        modify_qp_rate_limit: address(entry!(absent::modify_qp_rate_limit)),
        post_srq_ops: address(entry!(absent::post_srq_ops)),
        work_queues: [
            0,
            address(entry!(absent::create_rwq_ind_table)),
            0,
            0,
            address(entry!(absent::create_wq)),
        ],
        create_flow: address(entry!(absent::create_flow)),
        sz: size_of::<verbs_context>(),
        context: ibv_context {
            ops: entries!(ibv_context_ops:
                mw { alloc_mw bind_mw dealloc_mw }
                cq { poll_cq req_notify_cq }
                srq { post_srq_recv }
                post { post_send post_recv }
            ),
            abi_compat: EXTENDED,
            ..plain
        },
        // Programs call `close_xrcd` without testing that it exists.
        ..entries!(verbs_context:
            region { advise_mr alloc_null_mr reg_dm_mr }
            dm { alloc_dm free_dm }
            domain { alloc_parent_domain alloc_td dealloc_td }
            cq_ex { create_cq_ex modify_cq }
            query { query_rt_values query_device_ex }
            qp_ex { create_qp_ex open_qp }
            srq { create_srq_ex get_srq_num }
            xrc { open_xrcd close_xrcd }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closing a context looks only at those of its descriptor, however many there were.
    #[test]
    fn what_is_closed_is_not_among_the_open_contexts() {
        let device = crate::verbs::device::devices().next().unwrap();
        let opened = || {
            let context = open_device(device);
            assert!(!context.is_null());
            context
        };
        let counts = || {
            let all = super::open().lock();
            all.values().map(Vec::len).collect::<Vec<_>>()
        };
        let kept = opened();
        for _ in 0..1000 {
            assert_eq!(close_device(opened()), 0);
        }
        assert_eq!(counts(), [1]);
        // SAFETY: it is open; a descriptor may be duplicated.
        let duplicate = unsafe { libc::dup((*kept).cmd_fd) };
        let imported = import_device(duplicate);
        assert!(!imported.is_null());
        assert_eq!(counts(), [2]);
        assert_eq!(close_device(kept), 0);
        assert_eq!(close_device(kept), libc::EINVAL);
        assert_eq!(counts(), [1], "the engine's is open for the other");
        let pd = domain::alloc_pd(imported);
        assert!(!pd.is_null());
        assert_eq!(domain::dealloc_pd(pd), 0);
        assert_eq!(close_device(imported), 0);
        assert_eq!(counts(), [0; 0]);
    }
}
