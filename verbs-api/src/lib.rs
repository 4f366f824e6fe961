//! RDMA verbs as an object-safe trait, shared by every backend of verbsim.
//!
//! Start with [`Verbs`]: it is what libibverbs is to a process. A program, a scenario of the
//! conformance suite or a test is written once against `&dyn Verbs` and runs on the simulator
//! (`verbs-sim`) and on real devices. [`Lab`](lab::Lab) has the controls that only a simulator
//! offers (hold the clock, lose a packet). Programs that use RDMA, rather than test a device,
//! should use [`owned`]: the same objects with owners, and memory that stays as long as work uses
//! it.
//!
//! ```no_run
//! use std::sync::Arc;
//! use verbs_api::owned::{Context, RecvWr, SendWr};
//! use verbs_api::{Access, QpType, RcParams, Result, Verbs};
//!
//! /// Sends a greeting from a device to itself: on the simulator or on a NIC.
//! fn greet(verbs: Arc<dyn Verbs>, device: &str) -> Result<Vec<u8>> {
//!     let pd = Context::open(verbs, device)?.alloc_pd()?;
//!     let channel = pd.context().create_comp_channel()?;
//!     let sent = pd.context().cq(16).create()?;
//!     let received = pd.context().cq(16).channel(&channel).create()?;
//!     let near = pd.qp(QpType::Rc, &sent, &sent).create()?;
//!     let far = pd.qp(QpType::Rc, &received, &received).create()?;
//!     near.connect_rc(&far, &RcParams::default())?;
//!
//!     let mr = pd.alloc_mr(4096, Access::LOCAL_WRITE)?;
//!     mr.write(0, b"hello")?;
//!     far.post_recv(RecvWr::new(1, &[mr.sge(2048..)]))?;
//!     near.post_send(SendWr::send(2, &[mr.sge(..5)]))?;
//!     for wc in received.wait_forever()? {
//!         wc.ok()?;
//!     }
//!     mr.read_vec(2048, 5)
//! }
//! ```
//!
//! | | |
//! |---|---|
//! | [`Verbs`], [`Wait`] | the trait |
//! | handles: [`Context`], [`Pd`], [`Td`], [`Mr`], [`Mw`], [`Dm`], [`CompChannel`], [`Cq`], [`Qp`], [`Ah`], [`Srq`], [`Xrcd`] | `Copy` names of objects |
//! | [`Error`], [`ErrorKind`], [`Cause`] | what went wrong, and the facts |
//! | [`Wc`], [`Arm`], [`SendWr`], [`RecvWr`], ... | the structures of verbs |
//! | [`Capabilities`] | what a device can do |
//! | [`behavior`] | how it answers where it has a choice |
//! | [`profile`] | devices by name, and their limits |
//! | [`transition`] | the QP state machine as data |
//! | [`connect`] | connecting QPs by their attributes |
//! | [`cm`] | connecting them by rdma_cm |
//! | [`wr`] | work requests, whatever they name objects by |
//! | [`owned`] | objects that own what they need, for programs |
//! | [`drive`] | several parties on one thread |
//! | [`lab`] | the test controls: clock, faults, packets, trace |
//! | [`table`] | what a backend keeps behind its handles |
//! | [`random`] | random numbers that a seed decides |
//! | [`sync`] | locks and threads, which a model checker can replace |
//!
//! Rule ids such as CQ-ARM-03 name the rules that the suite checks: `verbsim explain CQ-ARM-03`.
#![deny(unsafe_code)]

mod ah;
mod batch;
pub mod behavior;
mod c_enum;
mod capability;
pub mod cm;
pub mod connect;
mod cq;
mod cq_ex;
mod device;
mod dm;
mod drive;
mod ece;
mod error;
mod event;
mod fault;
mod flush;
mod grh;
mod handle;
mod in_order;
pub mod lab;
mod limits;
mod mr;
mod mw;
mod odp;
pub mod owned;
mod packet;
pub mod profile;
mod qp;
pub mod random;
mod rc;
mod report;
mod reported;
mod shown;
pub mod site;
mod srq;
pub mod sync;
pub mod table;
mod trace;
pub mod transition;
mod verbs;
pub mod wr;
mod xrc;

pub use ah::{AhAttr, GlobalRoute};
pub use batch::{BatchEnd, SendOps};
pub use capability::Capabilities;
pub use cq::{Arm, CqAttr, CqEvent, CqInit, Wc, WcFlags, WcOpcode, WcStatus};
pub use cq_ex::{CqFlags, CqInitEx, CqModeration, WcEx, WcFields};
pub use device::{
    AtomicCap, DeviceAttr, DeviceAttrEx, DeviceInfo, Gid, GidEntry, GidType, LinkLayer, LinkSpeed,
    LinkWidth, Mtu, PortAttr, PortState, RtValues, Transport, TsoCaps,
};
pub use dm::DmInit;
pub use drive::{Party, drive};
pub use ece::Ece;
pub use error::{BadHandle, Cause, Error, ErrorKind, FullQueue, PostError, Result, Verb};
pub use event::{AsyncEvent, AsyncEventType, Element, EventSource};
pub use flush::{PlacementType, SelectivityLevel};
pub use grh::Grh;
pub use handle::{
    Ah, CmChannel, CmId, CompChannel, Context, Cq, Dm, DriverObject, Handle, Mr, Mw, Object, Pd,
    Qp, Srq, Td, Xrcd,
};
pub use in_order::{InOrder, InOrderQuery, WrOpcode};
pub use mr::{Access, AfterRereg, MrAttr, MrChange, MrInit, MrMemory, ReregError, Sge};
pub use mw::{MwAttr, MwBind, MwBindInfo, MwType, inc_rkey};
pub use odp::{Advice, AdviseFlags, OdpCaps, OdpGeneral, OdpOps};
pub use qp::{MigState, QpAttr, QpAttrMask, QpCap, QpInit, QpModify, QpQuery, QpState, QpType};
pub use rc::RcParams;
pub use srq::{SrqAttr, SrqAttrMask, SrqInit};
pub use verbs::{Verbs, Wait};
pub use wr::{MULTICAST_QPN, Remote, SendFlags};
pub use xrc::{XrcSrq, XrcdInit};

/// A send work request that names handles.
pub type SendWr<'a> = wr::SendWr<'a, wr::Handles>;

/// The operation of a send work request that names handles.
pub type SendOp = wr::SendOp<wr::Handles>;

/// The destination of a send that names handles.
pub type Dest = wr::Dest<wr::Handles>;

/// A receive work request that names handles.
pub type RecvWr<'a> = wr::RecvWr<'a, wr::Handles>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
