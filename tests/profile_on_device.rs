//! The limits of a profile are those of its driver.
//!
//! `VERBSIM_DEVICE` names a device; without it that test is skipped, with a message.
//! `./check hardware` runs it on soft-RoCE and soft-iWARP.

use std::io::{self, Write};

use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{CqInit, QpCap, QpInit, QpType, Verbs};
use verbs_sim::{Sim, SimConfig};
use verbsim::backend::Kind;

/// DEV-04. A simulated device has at most 130,942 queue pairs.
#[test]
fn on_the_simulator() {
    for profile in Profile::ALL {
        let sim = Sim::new(SimConfig::new().profile(*profile));
        let mut expected = profile.limits;
        expected.max_qp = expected.max_qp.min(DeviceLimits::SPEC.max_qp);
        assert_eq!(shown(&sim, "sim0"), expected, "{profile}");
        inline_data_ends(&sim, "sim0", expected.max_inline_data);
    }
}

#[test]
fn on_a_device() {
    let Ok(device) = std::env::var("VERBSIM_DEVICE") else {
        // Not by a macro: those of a test that passes are not shown.
        writeln!(io::stderr(), "skipped: VERBSIM_DEVICE names no device").unwrap();
        return;
    };
    let verbs = Kind::Hw.verbs().expect("the system is Linux");
    let all = verbs.devices().unwrap();
    let info = all.iter().find(|info| info.name == device);
    let expected = Profile::named(&info.unwrap().driver).unwrap().limits;
    let mut seen = shown(verbs.as_ref(), &device);
    // The number of processors of the machine; and no query reports inline data.
    seen.num_comp_vectors = expected.num_comp_vectors;
    seen.max_inline_data = expected.max_inline_data;
    assert_eq!(seen, expected);
    inline_data_ends(verbs.as_ref(), &device, expected.max_inline_data);
}

fn shown(verbs: &dyn Verbs, device: &str) -> DeviceLimits {
    let context = verbs.open_device(device).unwrap();
    let attr = verbs.query_device(context).unwrap();
    verbs.close_device(context).unwrap();
    DeviceLimits::of(&attr)
}

/// What the attributes of a simulated device and its port say is what its profile reports.
#[test]
fn attributes_are_those_that_the_profile_reports() {
    for Profile { name, reported, .. } in Profile::ALL {
        let profile = Profile::named(name).unwrap();
        let sim = Sim::new(SimConfig::new().profile(profile));
        let context = sim.open_device("sim0").unwrap();
        let device = sim.query_device(context).unwrap();
        assert_eq!(device.fw_ver, reported.fw_ver, "{name}");
        assert_eq!(
            (device.vendor_id, device.vendor_part_id),
            (reported.vendor_id, reported.vendor_part_id),
            "{name}"
        );
        let port = sim.query_port(context, 1).unwrap();
        let seen = (port.max_msg_sz, port.pkey_tbl_len);
        assert_eq!(seen, (reported.max_msg_sz, reported.pkey_tbl_len), "{name}");
        let seen = (port.active_width, port.active_speed);
        assert_eq!(
            seen,
            (reported.active_width, reported.active_speed),
            "{name}"
        );
    }
}

/// A queue pair can be created with `most` bytes of inline data and no more.
fn inline_data_ends(verbs: &dyn Verbs, device: &str, most: u32) {
    let context = verbs.open_device(device).unwrap();
    let pd = verbs.alloc_pd(context).unwrap();
    let cq = verbs.create_cq(context, &CqInit::new(4)).unwrap();
    let made = [most, most + 1].map(|max_inline_data| {
        let cap = QpCap {
            max_inline_data,
            ..QpCap::default()
        };
        verbs.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq).cap(cap))
    });
    assert!(made[0].is_ok() && made[1].is_err(), "{most}: {made:?}");
    verbs.close_device(context).unwrap();
}
