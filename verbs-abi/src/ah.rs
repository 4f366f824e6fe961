//! Address handles and address vectors.

use verbs_api::{AhAttr, GlobalRoute};

use crate::border::Border;
use crate::{ibv_context, ibv_gid, ibv_pd};

structures! {
    ibv_global_route {
        dgid: ibv_gid,
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
    }

    /// In wire order.
    ibv_grh {
        version_tclass_flow: u32,
        paylen: u16,
        next_hdr: u8,
        hop_limit: u8,
        sgid: ibv_gid,
        dgid: ibv_gid,
    }

    ibv_ah_attr [32] {
        grh: ibv_global_route,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }

    ibv_ah { context: *mut ibv_context, pd: *mut ibv_pd, handle: u32 }
}

conversions! {
    ibv_global_route, GlobalRoute { dgid, flow_label, sgid_index, hop_limit, traffic_class, }

    ibv_ah_attr, AhAttr { dlid, sl, src_path_bits, port_num, }
    => from |raw| { grh: (raw.is_global != 0).then(|| ibv_global_route::from_c(&raw.grh)) }
    to |attr| {
        is_global: attr.grh.is_some().into(),
        grh: attr.grh.as_ref().map(ibv_global_route::to_c).unwrap_or_default(),
    }
}

/// C has a path always. Whether it means anything the mask says; one that is not there is 0.
impl Border<Option<AhAttr>> for ibv_ah_attr {
    fn from_c(raw: &Self) -> Option<AhAttr> {
        Some(ibv_ah_attr::from_c(raw))
    }

    fn to_c(path: &Option<AhAttr>) -> Self {
        path.as_ref().map(Self::to_c).unwrap_or_default()
    }
}
