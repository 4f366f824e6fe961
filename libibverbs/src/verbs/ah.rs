//! Address handles and address vectors.

use std::ffi::c_int;

use verbs_abi::{ibv_ah, ibv_ah_attr, ibv_context, ibv_grh, ibv_pd, ibv_wc};
use verbs_api::{AhAttr, Context, GidType, Grh, Verbs};

use super::context::{context_of, is_context};
use super::domain::Pd;
use crate::c::{
    CObject, Found, Later, Refusal, Result, kinds, new_object, not_null, passed, present, status,
    zero_or_minus_one,
};
use crate::engine::{sim, unobserved};

kinds! {
    /// Address handles.
    Ah: ibv_ah as ibv_ah, Ah, (), numbered Ah;
}

pub(crate) extern "C" fn create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    new_object("ibv_create_ah", Later(pd), |()| {
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        create(&CObject::<Pd>::find_in_context(pd)?, &attr)
    })
}

fn create(pd: &Found<Pd>, attr: &ibv_ah_attr) -> Result<Found<Ah>> {
    let handle = sim().create_ah(pd.handle, &ibv_ah_attr::from_c(attr))?;
    CObject::<Ah>::make(handle, (), || ibv_ah {
        context: pd.context(),
        pd: pd.seen(),
        handle: 0,
    })
}

pub(crate) extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    status("ibv_destroy_ah", ah, |ah| {
        sim().destroy_ah(ah.handle)?;
        ah.retire();
        Ok(())
    })
}

/// `ibv_init_ah_from_wc`: writes the address of the sender of a datagram.
pub(crate) extern "C" fn init_ah_from_wc(
    context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    attr: *mut ibv_ah_attr,
) -> c_int {
    zero_or_minus_one("ibv_init_ah_from_wc", Later(context), |()| {
        present(attr)?;
        let back = back(context, port, wc, grh)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { attr.write(back) };
        Ok(())
    })
}

pub(crate) extern "C" fn create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    port: u8,
) -> *mut ibv_ah {
    new_object("ibv_create_ah_from_wc", pd, |pd| {
        create(&pd, &back(pd.context(), port, wc, grh)?)
    })
}

/// The address of the sender of a datagram.
fn back(
    context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
) -> Result<ibv_ah_attr> {
    /// `IBV_WC_GRH`
    const GRH: u32 = 1;
    // SAFETY: the program's, valid for the call (C's contract).
    let wc = unsafe { passed(wc) }?;
    let route = match wc.wc_flags & GRH {
        // Without a GRH the LID leads back.
        0 => None,
        _ => {
            not_null(grh)?;
            // SAFETY: the program's, valid for the call. It need not be aligned: it is read as
            // bytes (C's contract).
            let bytes = unsafe { grh.cast::<[u8; Grh::BYTES]>().read() };
            let grh = Grh::read(&bytes).ok_or_else(no_grh)?;
            Some(grh.back(own_gid(context_of(context)?, port, &grh)?))
        }
    };
    Ok(ibv_ah_attr::to_c(&AhAttr {
        grh: route,
        dlid: wc.slid,
        sl: wc.sl,
        src_path_bits: wc.dlid_path_bits,
        port_num: port,
    }))
}

/// The index of the GID to which a datagram was sent. A multicast GID is not in the port's table.
fn own_gid(context: Context, port: u8, grh: &Grh) -> Result<u8> {
    let gid_types = match grh.next_header {
        // RoCE version 1 and InfiniBand share a next header.
        Grh::UDP => [GidType::RoceV2; 2],
        Grh::IBA => [GidType::Ib, GidType::RoceV1],
        _ => return Err(no_grh()),
    };
    let attr = unobserved().query_port(context, port);
    let gids = attr.map_err(Refusal::unobserved)?.gid_tbl_len;
    let is_own = |index: &u32| {
        let entry = unobserved().query_gid_ex(context, port, *index);
        entry.is_ok_and(|entry| entry.gid == grh.dgid && gid_types.contains(&entry.gid_type))
    };
    let own = (0..gids).find(is_own);
    own.and_then(|index| u8::try_from(index).ok())
        .ok_or_else(|| {
            let gid = grh.dgid;
            Refusal::invalid(format!(
                "the datagram came to {gid}, which is not a GID of port {port}"
            ))
        })
}

fn no_grh() -> Refusal {
    let what = "the GRH is neither of RoCE nor of InfiniBand";
    Refusal::new(libc::EPROTONOSUPPORT, what)
}
