//! Enhanced connection establishment (ECE).

/// What two devices of one vendor agree on before they connect, such as a way to control congestion
/// (`struct ibv_ece`, [`Verbs::query_ece`](crate::Verbs::query_ece)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ece {
    /// The vendor of the options. Messages of rdma_cm carry its lower 24 bits; 0 means that there
    /// are no options.
    pub vendor_id: u32,
    /// The options, whose bits only the vendor knows.
    pub options: u32,
    /// Further fields that are valid. There are none, so it is 0.
    pub comp_mask: u32,
}

impl Ece {
    /// These options of a vendor.
    pub const fn new(vendor_id: u32, options: u32) -> Self {
        Self {
            vendor_id,
            options,
            comp_mask: 0,
        }
    }
}
