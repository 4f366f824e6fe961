//! Limits of devices that a simulation sets: the reported limits are the real ones.

mod common;

use common::End;
use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{
    Access, AhAttr, CqInit, ErrorKind, MwType, QpCap, QpInit, QpType, Result, SrqAttr, SrqInit,
    Verbs,
};
use verbs_sim::{Sim, SimConfig};

/// A device with one limit lowered.
fn limited(name: &str, value: u64) -> Sim {
    let mut limits = DeviceLimits::SPEC;
    limits.lower(name, value).unwrap();
    Sim::new(SimConfig::new().limits(limits))
}

type Make = fn(&Sim, &End<'_>) -> Result<()>;
type MakeSized = fn(&Sim, &End<'_>, u32) -> Result<()>;

/// DEV-04: exactly this number of each kind can be created. One domain, CQ and region exist.
#[test]
fn so_many_objects_can_be_made() {
    let cases: [(&str, u64, Make); 7] = [
        ("max_pd", 1, |sim, end| sim.alloc_pd(end.context).map(drop)),
        ("max_cq", 1, |sim, end| {
            sim.create_cq(end.context, &CqInit::new(1)).map(drop)
        }),
        ("max_mr", 1, |sim, end| {
            sim.alloc_mr(end.pd, 8, Access::empty()).map(drop)
        }),
        ("max_qp", 0, |sim, end| qp(sim, end, QpCap::default())),
        ("max_mw", 0, |sim, end| {
            sim.alloc_mw(end.pd, MwType::Type1).map(drop)
        }),
        ("max_srq", 0, |sim, end| {
            sim.create_srq(end.pd, &SrqInit::new(1)).map(drop)
        }),
        ("max_ah", 0, |sim, end| {
            let gid = sim.query_gid(end.context, 1, 0)?;
            sim.create_ah(end.pd, &AhAttr::global(1, 0, gid)).map(drop)
        }),
    ];
    for (name, present, make) in cases {
        let sim = limited(name, 3);
        let end = End::open(&sim, "sim1", 4, 64);
        for _ in present..3 {
            make(&sim, &end).unwrap();
        }
        let error = make(&sim, &end).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{name}: {error}");
    }
}

/// DEV-04: no device says that it has more queue pairs than there are numbers for.
#[test]
fn each_queue_pair_can_have_a_number() {
    for profile in Profile::ALL {
        let sim = Sim::new(SimConfig::new().profile(*profile));
        let context = sim.open_device("sim0").unwrap();
        let max_qp = sim.query_device(context).unwrap().max_qp;
        assert!(
            max_qp <= DeviceLimits::SPEC.max_qp,
            "{}: {max_qp}",
            profile.name
        );
    }
}

/// DEV-04: nothing can be larger.
#[test]
fn objects_can_be_so_large() {
    let cases: [(&str, u32, MakeSized); 8] = [
        ("max_cqe", 100, |sim, end, size| {
            sim.create_cq(end.context, &CqInit::new(size as i32))
                .map(drop)
        }),
        ("num_comp_vectors", 3, |sim, end, size| {
            let init = CqInit::new(1).comp_vector(size as i32 - 1);
            sim.create_cq(end.context, &init).map(drop)
        }),
        ("max_mr_size", 100, |sim, end, size| {
            sim.alloc_mr(end.pd, size as usize, Access::empty())
                .map(drop)
        }),
        ("max_qp_wr", 100, |sim, end, size| {
            let max_send_wr = size;
            qp(
                sim,
                end,
                QpCap {
                    max_send_wr,
                    ..QpCap::default()
                },
            )
        }),
        ("max_sge", 7, |sim, end, size| {
            let max_recv_sge = size;
            qp(
                sim,
                end,
                QpCap {
                    max_recv_sge,
                    ..QpCap::default()
                },
            )
        }),
        ("max_inline_data", 100, |sim, end, size| {
            let max_inline_data = size;
            qp(
                sim,
                end,
                QpCap {
                    max_inline_data,
                    ..QpCap::default()
                },
            )
        }),
        ("max_srq_wr", 100, |sim, end, size| {
            sim.create_srq(end.pd, &SrqInit::new(size)).map(drop)
        }),
        ("max_srq_sge", 7, |sim, end, size| {
            let mut init = SrqInit::new(1);
            init.attr = SrqAttr {
                max_sge: size,
                ..init.attr
            };
            sim.create_srq(end.pd, &init).map(drop)
        }),
    ];
    for (name, limit, make) in cases {
        let sim = limited(name, limit.into());
        let end = End::open(&sim, "sim0", 4, 64);
        make(&sim, &end, limit).unwrap();
        let error = make(&sim, &end, limit + 1).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NoMemory),
            "{name}: {error}"
        );
    }
}

fn qp(sim: &Sim, end: &End<'_>, cap: QpCap) -> Result<()> {
    let init = QpInit::new(QpType::Rc, end.cq, end.cq).cap(cap);
    sim.create_qp(end.pd, &init).map(drop)
}
