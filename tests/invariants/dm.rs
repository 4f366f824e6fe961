//! A program that copies to and from device memory, which an RDMA Write reaches too.

use verbs_api::{Access, CqInit, DmInit, QpInit, QpType, RcParams, SendWr, Verbs, Wc, connect};

/// Bytes of the device memory. A peer writes the second half.
const LENGTH: usize = 64;
const HALF: usize = LENGTH / 2;

pub(crate) fn program(verbs: &dyn Verbs) {
    let context = verbs.open_device("sim0").unwrap();
    let pd = verbs.alloc_pd(context).unwrap();
    let dm = verbs.alloc_dm(context, &DmInit::new(LENGTH)).unwrap();
    verbs.copy_to_dm(dm, 0, &[5; LENGTH]).unwrap();
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::ZERO_BASED;
    let target = verbs.reg_dm_mr(pd, dm, HALF as u64, HALF, access).unwrap();
    let source = verbs.alloc_mr(pd, HALF, Access::empty()).unwrap();
    let cq = verbs.create_cq(context, &CqInit::new(4)).unwrap();
    let qp = || verbs.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq));
    let (near, far) = (qp().unwrap(), qp().unwrap());
    connect::by_attributes(verbs, near, far, &RcParams::default()).unwrap();
    let list = [verbs.query_mr(source).unwrap().sge(0, HALF as u32)];
    let remote = verbs.query_mr(target).unwrap().remote(0);
    verbs
        .post_send(near, &[SendWr::rdma_write(1, &list, remote)])
        .unwrap();
    verbs.lab().unwrap().settle().unwrap();
    assert_eq!(verbs.poll_cq(cq, &mut [Wc::default()]), Ok(1));
    let mut bytes = [0; LENGTH];
    verbs.copy_from_dm(dm, 0, &mut bytes).unwrap();
    assert_eq!(bytes[HALF..], [0; HALF]);
}
