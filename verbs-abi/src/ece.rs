//! Enhanced connection establishment.

use verbs_api::Ece;

structures! {
    ibv_ece [12] { vendor_id: u32, options: u32, comp_mask: u32 }
}

conversions! {
    ibv_ece, Ece { vendor_id, options, comp_mask, }
}
