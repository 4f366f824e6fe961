//! A device between the program and a simulator, which changes some verbs.

#[cfg(unix)]
use std::os::fd::{BorrowedFd, OwnedFd};

use verbs_api::behavior::Declared;
use verbs_api::cm::Cm;
use verbs_api::lab::Lab;
use verbs_api::*;
use verbs_sim::Sim;

/// The verbs of a device around a simulator. By default each calls the simulator.
pub(crate) struct Through<T>(pub(crate) T);

macro_rules! verbs {
    ($( $(#[$meta:meta])* fn $verb:ident(&self $(, $name:ident: $type:ty)*) -> $result:ty; )*) => {
        /// What a device around a simulator does.
        pub(crate) trait Interpose: Send + Sync {
            /// The simulator.
            fn sim(&self) -> &Sim;

            $( $(#[$meta])* fn $verb(&self $(, $name: $type)*) -> $result {
                self.sim().$verb($($name),*)
            } )*
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: Interpose> Verbs for Through<T> {
            $( $(#[$meta])* fn $verb(&self $(, $name: $type)*) -> $result {
                self.0.$verb($($name),*)
            } )*

            unsafe fn reg_mr(
                &self,
                pd: Pd,
                addr: *mut u8,
                length: usize,
                access: Access,
            ) -> Result<Mr> {
                // SAFETY: the caller's promise, which is about this call and the same memory.
                unsafe { self.0.sim().reg_mr(pd, addr, length, access) }
            }
        }
    };
}

verbs! {
    fn devices(&self) -> Result<Vec<DeviceInfo>>;
    fn open_device(&self, name: &str) -> Result<Context>;
    fn close_device(&self, context: Context) -> Result<()>;
    fn capabilities(&self, context: Context) -> Result<Capabilities>;
    fn behavior(&self, context: Context) -> Result<Declared>;
    fn query_device(&self, context: Context) -> Result<DeviceAttr>;
    fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx>;
    fn query_port(&self, context: Context, port: u8) -> Result<PortAttr>;
    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid>;
    fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry>;
    fn query_gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize>;
    fn query_pkey(&self, context: Context, port: u8, index: u16) -> Result<u16>;
    fn query_rt_values(&self, context: Context) -> Result<RtValues>;
    fn alloc_pd(&self, context: Context) -> Result<Pd>;
    fn dealloc_pd(&self, pd: Pd) -> Result<()>;
    fn alloc_td(&self, context: Context) -> Result<Td>;
    fn dealloc_td(&self, td: Td) -> Result<()>;
    fn alloc_parent_domain(&self, pd: Pd, td: Option<Td>) -> Result<Pd>;
    fn alloc_mr(&self, pd: Pd, length: usize, access: Access) -> Result<Mr>;
    fn alloc_mr_as(&self, pd: Pd, init: &MrInit) -> Result<Mr>;
    fn alloc_null_mr(&self, pd: Pd) -> Result<Mr>;
    #[cfg(unix)]
    fn reg_dmabuf_mr(
        &self, pd: Pd, offset: u64, length: usize, iova: u64, fd: BorrowedFd<'_>, access: Access
    ) -> Result<Mr>;
    fn rereg_mr(&self, mr: Mr, change: &MrChange) -> Result<(), ReregError>;
    fn dereg_mr(&self, mr: Mr) -> Result<()>;
    fn advise_mr(&self, pd: Pd, advice: Advice, flags: AdviseFlags, list: &[Sge]) -> Result<()>;
    fn alloc_mw(&self, pd: Pd, mw_type: MwType) -> Result<Mw>;
    fn dealloc_mw(&self, mw: Mw) -> Result<()>;
    fn query_mw(&self, mw: Mw) -> Result<MwAttr>;
    fn bind_mw(&self, qp: Qp, mw: Mw, bind: &MwBind) -> Result<()>;
    fn query_mr(&self, mr: Mr) -> Result<MrAttr>;
    fn read_mr(&self, mr: Mr, offset: usize, bytes: &mut [u8]) -> Result<()>;
    fn write_mr(&self, mr: Mr, offset: usize, bytes: &[u8]) -> Result<()>;
    fn map_mr(&self, mr: Mr, mapped: bool) -> Result<()>;
    fn alloc_dm(&self, context: Context, init: &DmInit) -> Result<Dm>;
    fn free_dm(&self, dm: Dm) -> Result<()>;
    fn reg_dm_mr(
        &self, pd: Pd, dm: Dm, offset: u64, length: usize, access: Access
    ) -> Result<Mr>;
    fn copy_to_dm(&self, dm: Dm, offset: u64, bytes: &[u8]) -> Result<()>;
    fn copy_from_dm(&self, dm: Dm, offset: u64, bytes: &mut [u8]) -> Result<()>;
    fn create_comp_channel(&self, context: Context) -> Result<CompChannel>;
    fn destroy_comp_channel(&self, channel: CompChannel) -> Result<()>;
    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent>;
    fn create_cq(&self, context: Context, init: &CqInit) -> Result<Cq>;
    fn query_cq(&self, cq: Cq) -> Result<CqAttr>;
    fn resize_cq(&self, cq: Cq, cqe: i32) -> Result<()>;
    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()>;
    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize>;
    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()>;
    fn destroy_cq(&self, cq: Cq, wait: Wait) -> Result<()>;
    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<Cq>;
    fn start_poll(&self, cq: Cq) -> Result<()>;
    fn next_poll(&self, cq: Cq) -> Result<()>;
    fn read_wc(&self, cq: Cq) -> Result<WcEx>;
    fn end_poll(&self, cq: Cq) -> Result<()>;
    fn modify_cq(&self, cq: Cq, moderation: &CqModeration) -> Result<()>;
    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp>;
    fn qp_num(&self, qp: Qp) -> Result<u32>;
    fn query_qp(&self, qp: Qp, mask: QpAttrMask) -> Result<QpQuery>;
    fn query_qp_data_in_order(
        &self, qp: Qp, opcode: WrOpcode, flags: InOrderQuery
    ) -> Result<InOrder>;
    fn modify_qp(&self, qp: Qp, attr: &QpAttr, mask: QpAttrMask) -> Result<()>;
    fn query_ece(&self, qp: Qp) -> Result<Ece>;
    fn set_ece(&self, qp: Qp, ece: &Ece) -> Result<()>;
    fn destroy_qp(&self, qp: Qp, wait: Wait) -> Result<()>;
    fn connect_rc(&self, a: Qp, b: Qp, params: &RcParams) -> Result<()>;
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError>;
    fn post_batch(&self, qp: Qp, list: &[SendWr<'_>], end: BatchEnd) -> Result<()>;
    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError>;
    fn create_ah(&self, pd: Pd, attr: &AhAttr) -> Result<Ah>;
    fn destroy_ah(&self, ah: Ah) -> Result<()>;
    fn attach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;
    fn detach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;
    fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq>;
    fn srq_init(&self, srq: Srq) -> Result<SrqInit>;
    fn query_srq(&self, srq: Srq) -> Result<SrqAttr>;
    fn modify_srq(&self, srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()>;
    fn destroy_srq(&self, srq: Srq, wait: Wait) -> Result<()>;
    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError>;
    fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<Xrcd>;
    fn close_xrcd(&self, xrcd: Xrcd) -> Result<()>;
    fn create_xrc_recv_qp(&self, xrcd: Xrcd) -> Result<Qp>;
    fn open_qp(&self, xrcd: Xrcd, qp_num: u32) -> Result<Qp>;
    fn srq_num(&self, srq: Srq) -> Result<u32>;
    fn get_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent>;
    fn ack_async_event(&self, context: Context, event: &AsyncEvent) -> Result<()>;
    #[cfg(unix)]
    fn channel_fd(&self, channel: CompChannel) -> Result<OwnedFd>;
    #[cfg(unix)]
    fn async_fd(&self, context: Context) -> Result<OwnedFd>;
    #[cfg(unix)]
    fn export_dmabuf(&self, context: Context, length: usize) -> Result<OwnedFd>;
    fn corrupt_handle(&self, object: DriverObject, corrupt: bool) -> Result<()>;
    fn wake_on(&self, source: EventSource, waker: &std::task::Waker) -> Result<()>;
    fn cm(&self) -> Option<&dyn Cm>;
    fn lab(&self) -> Option<&dyn Lab>;
}
