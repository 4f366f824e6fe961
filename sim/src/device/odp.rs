//! On-demand regions: whose work may use them, memory that comes and goes, and advice.

use verbs_api::{
    Access, Advice, AdviseFlags, Capabilities, Cause, ErrorKind, Mr as MrHandle, Object, OdpOps,
    Pd as PdHandle, QpType, SendFlags, SendOp, Sge,
};

use super::Device;
use super::check::{find, invalid, lacks};
use super::domain::Peer;
use super::key::{Regions, is_window_key};
use super::refusal::{Refusal, Result};
use super::region::{Kind, Mr, ProtectionFault, no_memory};
use super::work::Send;
use crate::memory::is_permitted;

impl Device {
    /// Creates a region of all memory of the process.
    ///
    /// # Safety
    /// The promise of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[expect(unsafe_code, reason = "passes on the promise of the trait's method")]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) unsafe fn reg_all(
        &mut self,
        pd: PdHandle,
        iova: Option<u64>,
        access: Access,
    ) -> Result<MrHandle> {
        self.check_new_mr(pd, 0, access)?;
        let Self { base, domains, .. } = self;
        // Drivers without such regions read the length as one that no memory has.
        if base.lacks.contains(Capabilities::ODP_IMPLICIT) {
            return Err(invalid(
                "length",
                "is that of all memory, which the device lacks",
            ));
        }
        if iova.is_some_and(|iova| iova != 0) {
            return Err(invalid("iova", "is not 0, and the region is of all memory"));
        }
        // Not all pages are huge.
        if access.contains(Access::HUGETLB) {
            return Err(invalid(
                "access",
                "has HUGETLB, and the region is of all memory",
            ));
        }
        check_mapping_is_seen()?;
        let all = (std::ptr::null_mut(), usize::MAX);
        // SAFETY: the promise covers the time until `dereg_mr`, which removes the region. The
        // kernel looks at what is mapped.
        let region = unsafe { domains.memory.lock().add_of_caller(all.0, all.1, true) };
        let backing = domains.backing(region, 0, Kind::Caller);
        self.insert_mr(pd, backing, 0, u64::MAX, access)
    }

    /// Takes away the memory of a region, or gives it zeros.
    pub(crate) fn map_mr(&mut self, mr: MrHandle, mapped: bool) -> Result<()> {
        let index = find(&self.domains.regions.table, mr)?;
        let found = self.domains.regions.table.at(index);
        if found.backing.kind != Kind::Own || !found.is_on_demand() {
            return Err(invalid("mr", "is not on-demand, or of memory that stays"));
        }
        let region = found.backing.region;
        let done = self.domains.memory.lock().map(region, mapped);
        done.ok_or_else(no_memory)
    }

    /// `ibv_advise_mr`. Pages are always present for the device, so only errors matter.
    pub(crate) fn advise_mr(
        &mut self,
        pd: PdHandle,
        advice: Advice,
        flags: AdviseFlags,
        list: &[Sge],
    ) -> Result<()> {
        let pd = self.domains.find_pd(&self.base, pd)?;
        self.base
            .check_has(Capabilities::ODP, "takes no advice about regions")?;
        if !AdviseFlags::FLUSH.contains(flags) {
            return Err(invalid("flags", "has bits other than FLUSH"));
        }
        if list.is_empty() {
            return Err(invalid("sg_list", "is empty"));
        }
        if let Advice::Unknown(_) = advice {
            return Err(lacks("does not know the advice"));
        }
        for sge in list {
            let mr = self.advised(pd, advice, sge.lkey)?;
            // Later the device drops what it cannot do.
            if flags.contains(AdviseFlags::FLUSH) {
                let fault = |problem| Refusal::argument(ErrorKind::Fault, "sg_list", problem);
                let bytes = mr.part(sge.addr, sge.length.into());
                let bytes = bytes.map_err(|_| fault("is not within its region"))?;
                let mapped = match advice {
                    Advice::PrefetchNoFault => Ok(()),
                    _ => self.domains.memory.lock().fault_in(&bytes),
                };
                mapped.map_err(|_| fault("is not mapped"))?;
            }
        }
        Ok(())
    }

    /// The region that an advice is about.
    fn advised(&self, pd: u32, advice: Advice, lkey: u32) -> Result<&Mr> {
        let what = "lkey";
        if is_window_key(lkey) {
            return Err(invalid(what, "is the key of a window"));
        }
        let found = self.domains.regions.of_key(lkey);
        let found = found.filter(|mr| mr.is_on_demand());
        let mr = found.ok_or_else(|| {
            let problem = "is not that of an on-demand region";
            Refusal::argument(ErrorKind::NotFound, what, problem)
        })?;
        if mr.pd != pd {
            let cause = Cause::Mismatch {
                object: Object::Mr,
                must_share: "pd",
            };
            return Err(Refusal::new(ErrorKind::Permission, cause));
        }
        if advice == Advice::PrefetchWrite && !mr.access.contains(Access::LOCAL_WRITE) {
            let problem = "is that of a region without LOCAL_WRITE";
            return Err(Refusal::argument(ErrorKind::Permission, what, problem));
        }
        Ok(mr)
    }
}

impl Regions {
    /// Whether work that needs this of its transport may use the memory of the first `length` bytes
    /// of a list (ODP-05). Memory that no byte touches needs no page.
    #[inline]
    pub(crate) fn may_page(
        &self,
        qp_type: QpType,
        need: OdpOps,
        list: &[Sge],
        length: u64,
    ) -> bool {
        let mut left = length;
        let touched = list.iter().take_while(|sge| {
            let is_touched = left > 0;
            left = left.saturating_sub(sge.length.into());
            is_touched
        });
        let is_on_demand =
            |sge: &Sge| sge.length > 0 && self.of_key(sge.lkey).is_some_and(Mr::is_on_demand);
        self.odp.of(qp_type).contains(need) || !touched.into_iter().any(is_on_demand)
    }
}

impl Peer {
    /// Refuses an operation that its transport lacks for an on-demand region (ODP-05).
    #[inline]
    pub(super) fn check_pages(self, mr: &Mr, need: Access) -> Result<(), ProtectionFault> {
        let op = match need {
            Access::REMOTE_READ => OdpOps::READ,
            Access::REMOTE_ATOMIC => OdpOps::ATOMIC,
            Access::REMOTE_WRITE => OdpOps::WRITE,
            _ => OdpOps::FLUSH,
        };
        if mr.is_on_demand() && !self.odp.contains(op) {
            return Err(ProtectionFault::Key);
        }
        Ok(())
    }
}

/// What a send needs of its transport for local memory of on-demand regions. Nothing, if it has no
/// local memory, as inline data.
pub(crate) fn odp_need(send: &Send) -> OdpOps {
    match send.op {
        _ if send.flags.contains(SendFlags::INLINE) => OdpOps::empty(),
        SendOp::RdmaWrite { .. } | SendOp::RdmaWriteWithImm { .. } => OdpOps::WRITE,
        SendOp::RdmaRead { .. } => OdpOps::READ,
        SendOp::CompareAndSwap { .. } | SendOp::FetchAndAdd { .. } => OdpOps::ATOMIC,
        SendOp::Send | SendOp::SendWithImm { .. } | SendOp::SendWithInv { .. } => OdpOps::SEND,
        _ => OdpOps::empty(),
    }
}

/// Refuses regions whose memory may be unmapped, where an access to such memory would end the
/// process.
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
pub(super) fn check_mapping_is_seen() -> Result<()> {
    if is_permitted() {
        return Ok(());
    }
    let cause = Cause::Text("the system does not say what is mapped (process_vm_readv)".into());
    Err(Refusal::new(ErrorKind::NotSupported, cause))
}
