//! Regions of a dma-buf: memory of another device, which a program names by a descriptor.

#[cfg(unix)]
use std::os::fd::BorrowedFd;

use verbs_api::Mr as MrHandle;
#[cfg(unix)]
use verbs_api::{Access, Pd as PdHandle};

use super::Kind;
#[cfg(unix)]
use super::{PAGE, check_iova, check_length, check_mapping_is_seen};
use crate::device::{Device, Result, find, invalid};
#[cfg(unix)]
use crate::memory::Mapping;

/// The access that such a region can allow.
#[cfg(unix)]
const LEGAL: Access = Access::ALL_RDMA
    .union(Access::REMOTE_ATOMIC)
    .union(Access::RELAXED_ORDERING);

impl Device {
    /// `ibv_reg_dmabuf_mr`
    #[cfg(unix)]
    pub(crate) fn reg_dmabuf_mr(
        &mut self,
        pd: PdHandle,
        offset: u64,
        length: usize,
        iova: u64,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<MrHandle> {
        self.base.check_has_dmabufs()?;
        // The file may be shortened.
        check_mapping_is_seen()?;
        check_iova(Some(iova), offset, length)?;
        // The kernel looks at the access before the driver does.
        if !LEGAL.contains(access) {
            let problem = "has bits that a region of a dma-buf cannot have";
            return Err(invalid("access", problem));
        }
        self.check_new_mr(pd, length, access)?;
        self.check_bytes(length, 0)?;
        check_length(&self.base, length, offset)?;
        let writes = access.contains(Access::LOCAL_WRITE);
        let mapping = Mapping::new(fd, offset, length, writes)?;
        let region = self.domains.memory.lock().add_mapped(mapping);
        // Addresses of the process differ from run to run.
        let in_page = offset % PAGE;
        let addr = self.domains.regions.new_addr(length + in_page as usize) + in_page;
        let backing = self.domains.backing(region, addr, Kind::Dmabuf);
        self.insert_mr(pd, backing, iova, length as u64, access)
    }

    /// The exporter withdraws the memory of a region of a dma-buf.
    pub(crate) fn revoke_dmabuf(&mut self, mr: MrHandle) -> Result<()> {
        let index = find(&self.domains.regions.table, mr)?;
        let regions = &mut self.domains.regions;
        let backing = &mut regions.table.at_mut(index).backing;
        if !matches!(backing.kind, Kind::Dmabuf | Kind::Revoked) {
            return Err(invalid("mr", "is not a region of a dma-buf"));
        }
        (backing.kind, backing.whole) = (Kind::Revoked, None);
        regions.checks = true;
        self.domains.memory.lock().withdraw(backing.region);
        Ok(())
    }
}
