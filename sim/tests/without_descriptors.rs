//! The simulator without file descriptors: without feature `fd`, or on another system than Linux.
#![cfg(all(unix, not(all(feature = "fd", target_os = "linux"))))]

use verbs_api::cm::Cm;
use verbs_api::{Capabilities, ErrorKind, Verbs};
use verbs_sim::{Sim, SimConfig};

#[test]
fn a_descriptor_is_refused_with_what_it_needs() {
    let sim = Sim::new(SimConfig::new());
    let context = sim.open_device("sim0").unwrap();
    let channel = sim.create_comp_channel(context).unwrap();
    let cm_channel = sim.create_event_channel().unwrap();
    let capabilities = sim.capabilities(context).unwrap();
    assert!(!capabilities.contains(Capabilities::FD));
    for refused in [
        sim.channel_fd(channel),
        sim.async_fd(context),
        sim.event_channel_fd(cm_channel),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        let text = error.to_string();
        assert!(text.contains("on Linux, with feature `fd`"), "{text}");
    }
}
