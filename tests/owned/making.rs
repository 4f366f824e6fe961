//! Making objects: sizes.

use verbs_api::{CqFlags, ErrorKind, WcFields};

use crate::bench::Bench;

/// What no `int` of C can hold is refused in the name of the verb, and the device is not asked.
#[test]
fn a_size_that_c_cannot_say_is_refused() {
    const MOST: u32 = i32::MAX as u32;
    let bench = Bench::stepped();
    let context = bench.open("sim0");
    let cq = context.cq(1).create().unwrap();
    for too_many in [MOST + 1, u32::MAX] {
        let of = |what, min| format!("EINVAL: {what} is {too_many}, allowed are {min} to {MOST}");
        let extended = context.cq(too_many);
        let extended = extended.extended(WcFields::STANDARD, CqFlags::empty());
        for (refused, text) in [
            (context.cq(too_many).create().map(drop), "ibv_create_cq: "),
            (extended.create().map(drop), "ibv_create_cq_ex: "),
            (cq.resize(too_many), "ibv_resize_cq: "),
        ] {
            let text = text.to_owned() + &of("cqe", 1);
            assert_eq!(refused.unwrap_err().to_string(), text);
        }
        let refused = context.cq(1).comp_vector(too_many).create().unwrap_err();
        let text = "ibv_create_cq: ".to_owned() + &of("comp_vector", 0);
        assert_eq!(refused.to_string(), text);
    }
    // The device has its own limits.
    for refused in [
        context.cq(MOST).create().map(drop),
        context.cq(1).comp_vector(MOST).create().map(drop),
        cq.resize(MOST),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
