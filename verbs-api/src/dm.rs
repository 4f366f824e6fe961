//! Device memory: a small memory of the device itself (DM-01).
//!
//! Programs reach it by copies ([`Verbs::copy_to_dm`](crate::Verbs::copy_to_dm)), and work requests
//! through regions of it ([`Verbs::reg_dm_mr`](crate::Verbs::reg_dm_mr)), in which addresses are
//! offsets.

/// The device memory to allocate (`struct ibv_alloc_dm_attr`).
///
/// ```
/// use verbs_api::DmInit;
///
/// // Atomics need addresses that are multiples of 8.
/// let counters = DmInit::new(64).log_align(3);
/// assert_eq!((counters.length, counters.log_align), (64, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DmInit {
    /// Bytes, from 1 to [`DeviceAttrEx::max_dm_size`](crate::DeviceAttrEx::max_dm_size).
    pub length: usize,
    /// The memory starts at a multiple of 2 to this power (`log_align_req`). Default: 0.
    pub log_align: u32,
}

impl DmInit {
    /// Memory of this many bytes, which may start anywhere.
    pub const fn new(length: usize) -> Self {
        Self {
            length,
            log_align: 0,
        }
    }

    /// With a start at a multiple of 2 to this power.
    #[must_use]
    pub const fn log_align(self, log_align: u32) -> Self {
        Self { log_align, ..self }
    }
}
