//! Extended reliable connections: domains, and the queue pairs in them.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_abi::{
    IBV_QP_INIT_ATTR_XRCD, IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_TYPE, IBV_QP_OPEN_ATTR_XRCD,
    IBV_XRCD_INIT_ATTR_FD, IBV_XRCD_INIT_ATTR_OFLAGS, ibv_context, ibv_qp, ibv_qp_init_attr_ex,
    ibv_qp_open_attr, ibv_xrcd, ibv_xrcd_init_attr, inline,
};
use verbs_api::{
    Context, Cq as CqHandle, Error, Handle, Qp as QpHandle, QpAttr, QpInit, QpType, Result,
    Srq as SrqHandle, Verb, Xrcd as XrcdHandle, XrcdInit,
};

use crate::hw::{Hw, destroy};
use crate::objects::{Qp, Xrcd};

impl Hw {
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
        // The kernel keeps the inode, so the descriptor may be closed.
        let file: Option<File> = init.file.map(open).transpose()?;
        let mut attr = ibv_xrcd_init_attr {
            comp_mask: IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
            fd: file.as_ref().map_or(-1, |file| file.as_raw_fd()),
            oflags: create | flag(init.exclusive, libc::O_EXCL),
        };
        // SAFETY: the context is live, and the descriptor open or none; the domain is new.
        let raw = unsafe {
            device
                .raw
                .make(verb, |context| inline::open_xrcd(context, &mut attr))
        }?;
        let xrcd = Xrcd {
            raw,
            context,
            device,
        };
        Ok(self.insert(|t| &mut t.xrcds, XrcdHandle::from_parts, context, xrcd))
    }

    /// `ibv_close_xrcd`
    pub(crate) fn close_domain(&self, xrcd: XrcdHandle) -> Result<()> {
        let verb = Verb::CloseXrcd;
        let found = self.xrcd(verb, xrcd)?;
        destroy(verb, &found.raw)?;
        self.tables.lock().xrcds.remove(xrcd.index());
        Ok(())
    }

    /// `ibv_create_qp_ex` of XRC_RECV
    pub(crate) fn make_target(&self, xrcd: XrcdHandle) -> Result<QpHandle> {
        self.target(Verb::CreateQp, xrcd, |context, xrcd| {
            let mut attr = ibv_qp_init_attr_ex {
                qp_type: QpType::XrcRecv.into(),
                comp_mask: IBV_QP_INIT_ATTR_XRCD,
                xrcd,
                ..ibv_qp_init_attr_ex::default()
            };
            // SAFETY: context and domain are live.
            unsafe { inline::create_qp_ex(context, &mut attr) }
        })
    }

    /// `ibv_open_qp`
    pub(crate) fn open_target(&self, xrcd: XrcdHandle, qp_num: u32) -> Result<QpHandle> {
        self.target(Verb::OpenQp, xrcd, |context, xrcd| {
            let mut attr = ibv_qp_open_attr {
                comp_mask: IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                qp_num,
                xrcd,
                qp_type: QpType::XrcRecv.into(),
                ..ibv_qp_open_attr::default()
            };
            // SAFETY: context and domain are live.
            unsafe { inline::open_qp(context, &mut attr) }
        })
    }

    fn target(
        &self,
        verb: Verb,
        xrcd: XrcdHandle,
        make: impl FnOnce(*mut ibv_context, *mut ibv_xrcd) -> *mut ibv_qp,
    ) -> Result<QpHandle> {
        let parent = self.xrcd(verb, xrcd)?;
        // SAFETY: the domain is live, and the QP new.
        let raw = unsafe {
            let make = |xrcd: *mut ibv_xrcd| make((*xrcd).context, xrcd);
            parent.raw.make(verb, make)
        }?;
        // SAFETY: the QP is live.
        let qp_num = raw.with(verb, |qp: *mut ibv_qp| unsafe { (*qp).qp_num })?;
        let (none, address) = (CqHandle::default(), raw.address());
        let qp = Qp {
            raw,
            context: xrcd.context(),
            init: QpInit::new(QpType::XrcRecv, none, none).cap(QpAttr::default().cap),
            qp_num,
            async_unacked: AtomicU32::new(0),
            connection: Mutex::new(None),
            id: None,
            cqs: Vec::new(),
            srq: None,
            pd: None,
            device: parent.device.clone(),
            _xrcd: Some(parent),
        };
        let handle = self.insert(|t| &mut t.qps, QpHandle::from_parts, xrcd.context(), qp);
        self.tables.lock().qp_handles.insert(address, handle);
        Ok(handle)
    }

    /// `ibv_get_srq_num`
    pub(crate) fn number_of_srq(&self, srq: SrqHandle) -> Result<u32> {
        let verb = Verb::GetSrqNum;
        let found = self.srq(verb, srq)?;
        let mut number = 0;
        // SAFETY: the SRQ is live.
        let ask = |srq| unsafe { inline::get_srq_num(srq, &mut number) };
        found.raw.call(verb, ask)?;
        Ok(number)
    }
}
