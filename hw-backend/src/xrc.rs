//! Extended reliable connections: domains, and the queue pairs in them.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_api::{
    Context, Cq as CqHandle, Error, Handle, Object, Qp as QpHandle, QpInit, QpType, Result,
    Srq as SrqHandle, Verb, Xrcd as XrcdHandle, XrcdInit,
};

use crate::errno::{check, destroyed, invalid, made};
use crate::hw::{Hw, destroy};
use crate::objects::{Qp, Xrcd};
use crate::owner::Owned;
use crate::{convert, sys};

impl Hw {
    pub(crate) fn xrcd(&self, verb: Verb, xrcd: XrcdHandle) -> Result<Arc<Xrcd>> {
        self.find(|tables| &tables.xrcds, verb, xrcd)
    }

    /// `ibv_open_xrcd`
    pub(crate) fn open_domain(&self, context: Context, init: &XrcdInit<'_>) -> Result<XrcdHandle> {
        let verb = Verb::OpenXrcd;
        let device = self.device(verb, context)?;
        let flag = |wanted: bool, flag: c_int| if wanted { flag } else { 0 };
        let create = flag(init.create, libc::O_CREAT);
        let open = |path| {
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(create)
                .mode(0o600)
                .open(path);
            let raw = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            opened.map_err(|error| Error::from_raw(verb, raw(error)))
        };
        // The kernel keeps the inode, not the descriptor.
        let file: Option<File> = init.file.map(open).transpose()?;
        let mut attr = sys::ibv_xrcd_init_attr {
            comp_mask: sys::XRCD_FD | sys::XRCD_OFLAGS,
            fd: file.as_ref().map_or(-1, |file| file.as_raw_fd()),
            oflags: create | flag(init.exclusive, libc::O_EXCL),
        };
        // SAFETY: the context is live, and the descriptor open or none.
        let open = |context| made(verb, || unsafe { sys::open_xrcd(context, &mut attr) });
        let raw = device.raw.with(open);
        let raw = raw.map_err(destroyed(verb, Object::Context))??;
        let xrcd = Xrcd {
            // SAFETY: just made, and ours.
            raw: unsafe { Owned::new(raw, sys::close_xrcd) },
            context,
            device,
        };
        Ok(self.insert(|t| &mut t.xrcds, context, xrcd))
    }

    /// `ibv_close_xrcd`
    pub(crate) fn close_domain(&self, xrcd: XrcdHandle) -> Result<()> {
        let verb = Verb::CloseXrcd;
        let found = self.xrcd(verb, xrcd)?;
        destroy(verb, Object::Xrcd, &found.raw)?;
        self.tables.lock().xrcds.remove(xrcd.index());
        Ok(())
    }

    /// `ibv_create_qp_ex` of XRC_RECV
    pub(crate) fn make_target(&self, xrcd: XrcdHandle) -> Result<QpHandle> {
        self.target(Verb::CreateQp, xrcd, |xrcd| {
            // SAFETY: the domain is live.
            unsafe { sys::create_xrc_recv_qp(xrcd) }
        })
    }

    /// `ibv_open_qp`
    pub(crate) fn open_target(&self, xrcd: XrcdHandle, qp_num: u32) -> Result<QpHandle> {
        self.target(Verb::OpenQp, xrcd, |xrcd| {
            // SAFETY: the domain is live.
            unsafe { sys::open_qp(xrcd, qp_num) }
        })
    }

    fn target(
        &self,
        verb: Verb,
        xrcd: XrcdHandle,
        make: impl FnOnce(*mut sys::ibv_xrcd) -> *mut sys::ibv_qp,
    ) -> Result<QpHandle> {
        let parent = self.xrcd(verb, xrcd)?;
        let raw = parent.raw.with(|xrcd| made(verb, || make(xrcd)));
        let raw = raw.map_err(destroyed(verb, Object::Xrcd))??;
        // SAFETY: just made, so it can be read.
        let qp_num = unsafe { (*raw).qp_num };
        let none = CqHandle::default();
        let qp = Qp {
            // SAFETY: just made, and ours.
            raw: unsafe { Owned::new(raw, sys::ibv_destroy_qp) },
            context: xrcd.context(),
            init: QpInit::new(QpType::XrcRecv, none, none).cap(convert::NO_QUEUES),
            qp_num,
            async_unacked: AtomicU32::new(0),
            connection: Mutex::new(None),
            cqs: Vec::new(),
            _srq: None,
            _pd: None,
            device: parent.device.clone(),
            _xrcd: Some(parent),
        };
        let handle = self.insert(|t| &mut t.qps, xrcd.context(), qp);
        self.tables.lock().qp_handles.insert(raw as usize, handle);
        Ok(handle)
    }

    /// `ibv_get_srq_num`
    pub(crate) fn number_of_srq(&self, srq: SrqHandle) -> Result<u32> {
        let verb = Verb::GetSrqNum;
        let found = self.srq(verb, srq)?;
        let mut number = 0;
        // SAFETY: the SRQ is live.
        let ask = |srq| unsafe { sys::get_srq_num(srq, &mut number) };
        let result = found.raw.with(ask);
        check(verb, result.map_err(destroyed(verb, Object::Srq))?)?;
        Ok(number)
    }
}

/// Refuses work on a queue pair without queues: libraries look for the queue all the same.
pub(crate) fn check_has_queues(verb: Verb, qp: &Qp) -> Result<()> {
    match qp.init.qp_type {
        QpType::XrcRecv => Err(invalid(verb, "qp", "is of XRC_RECV, and has no queues")),
        _ => Ok(()),
    }
}
