//! Extended reliable connections: domains, the XRC_RECV queue pairs in them, and numbers of SRQs.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use verbs_abi::{
    IBV_QP_OPEN_ATTR_CONTEXT, IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_TYPE, IBV_QP_OPEN_ATTR_XRCD,
    IBV_XRCD_INIT_ATTR_FD, IBV_XRCD_INIT_ATTR_OFLAGS, ibv_context, ibv_qp, ibv_qp_open_attr,
    ibv_srq, ibv_xrcd, ibv_xrcd_init_attr,
};
use verbs_api::sync::Mutex;
use verbs_api::{ErrorKind, QpAttrMask, QpType, Verbs, XrcdInit};

use crate::batch;
use crate::engine::{engine, unobserved};
use crate::object::{CObject, Finding, context_of, kinds};
use crate::qp::{More, Qp};
use crate::result::{Refusal, Result, known_bits, pointer, present, same_context, status};
use crate::srq::Srq;
use crate::verdict;

kinds! {
    /// XRC domains, each with the file that names it: no other file gets its number meanwhile.
    Xrcd in xrcds: ibv_xrcd as ibv_xrcd, Xrcd, Mutex<Option<File>>;
}

const FD_AND_OFLAGS: u32 = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

/// Descriptors of one file name one domain, whatever its paths.
pub(crate) extern "C" fn open_xrcd(
    context: *mut ibv_context,
    attr: *mut ibv_xrcd_init_attr,
) -> *mut ibv_xrcd {
    pointer("ibv_open_xrcd", context, || {
        let of = context_of(context)?;
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        known_bits("comp_mask", attr.comp_mask, FD_AND_OFLAGS)?;
        if attr.comp_mask != FD_AND_OFLAGS {
            let what = "comp_mask does not name both fd and oflags";
            return Err(Refusal::new(libc::EINVAL, what));
        }
        let file = match attr.fd {
            -1 => None,
            fd => Some(again(fd)?),
        };
        let name = file.as_ref().map(name).transpose()?;
        let mut init = match &name {
            None => XrcdInit::private(),
            Some(name) => XrcdInit::of(Path::new(name)),
        };
        init.create = attr.oflags & libc::O_CREAT != 0;
        init.exclusive = attr.oflags & libc::O_EXCL != 0;
        let handle = engine().sim.open_xrcd(of, &init);
        let handle = handle.map_err(|error| match error.kind() {
            // As the kernel says it.
            ErrorKind::NotFound => Refusal::noted(libc::EAGAIN),
            _ => error.into(),
        })?;
        let xrcd = CObject::<Xrcd>::make(handle, Mutex::new(file), || ibv_xrcd { context });
        Ok(xrcd?.seen())
    })
}

fn again(fd: c_int) -> Result<File> {
    // SAFETY: the number may be of no descriptor, and then is refused.
    let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Refusal::by_system("duplicating the descriptor"));
    }
    // SAFETY: just made, and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// What the engine calls a file.
fn name(file: &File) -> Result<String> {
    let of = file
        .metadata()
        .map_err(|_| Refusal::by_system("fstat of the descriptor"))?;
    Ok(format!("device {} inode {}", of.dev(), of.ino()))
}

pub(crate) extern "C" fn close_xrcd(xrcd: *mut ibv_xrcd) -> c_int {
    status("ibv_close_xrcd", xrcd, || {
        let xrcd = CObject::<Xrcd>::find(xrcd)?;
        engine().sim.close_xrcd(xrcd.handle)?;
        drop(xrcd.more.lock().take());
        xrcd.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn get_srq_num(srq: *mut ibv_srq, number: *mut u32) -> c_int {
    status("ibv_get_srq_num", srq, || {
        let srq = CObject::<Srq>::find(srq)?;
        present(number)?;
        let found = engine().sim.srq_num(srq.handle)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { number.write(found) };
        Ok(())
    })
}

const NUM_XRCD_AND_TYPE: u32 = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

pub(crate) extern "C" fn open_qp(
    context: *mut ibv_context,
    attr: *mut ibv_qp_open_attr,
) -> *mut ibv_qp {
    pointer("ibv_open_qp", context, || {
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        let known = NUM_XRCD_AND_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
        known_bits("comp_mask", attr.comp_mask, known)?;
        let names_all = attr.comp_mask & NUM_XRCD_AND_TYPE == NUM_XRCD_AND_TYPE;
        if !names_all || QpType::from(attr.qp_type) != QpType::XrcRecv {
            let what =
                "comp_mask and qp_type do not name a queue pair of XRC_RECV by number and xrcd";
            return Err(Refusal::new(libc::EINVAL, what));
        }
        let qp_context = match attr.comp_mask & IBV_QP_OPEN_ATTR_CONTEXT {
            0 => std::ptr::null_mut(),
            _ => attr.qp_context,
        };
        let number = attr.qp_num;
        let open = |xrcd| engine().sim.open_qp(xrcd, number);
        Ok(target(context, attr.xrcd, qp_context, open)?.seen())
    })
}

/// `ibv_create_qp_ex` of XRC_RECV, which has neither queues nor a protection domain.
pub(crate) fn create_target(
    context: *mut ibv_context,
    xrcd: *mut ibv_xrcd,
    qp_context: *mut c_void,
) -> Result<Finding<Qp>> {
    let create = |xrcd| engine().sim.create_xrc_recv_qp(xrcd);
    target(context, xrcd, qp_context, create)
}

fn target(
    context: *mut ibv_context,
    xrcd: *mut ibv_xrcd,
    qp_context: *mut c_void,
    make: impl FnOnce(verbs_api::Xrcd) -> verbs_api::Result<verbs_api::Qp>,
) -> Result<Finding<Qp>> {
    let xrcd = CObject::<Xrcd>::find(xrcd)?.handle;
    same_context(xrcd, context_of(context)?)?;
    let handle = make(xrcd)?;
    verdict::has_queue_pair(engine());
    let got = unobserved().query_qp(handle, QpAttrMask::STATE)?;
    let mut raw = batch::extended(false);
    raw.qp_base = ibv_qp {
        context,
        qp_context,
        qp_num: got.qp_num,
        state: got.attr.qp_state.into(),
        qp_type: QpType::XrcRecv.into(),
        ..ibv_qp::default()
    };
    let more = More::without_queues(got.init.cap);
    let qp = CObject::<Qp>::make(handle, more, || raw)?;
    engine().xrc_targets.lock().insert(handle, qp.hold());
    Ok(qp)
}
