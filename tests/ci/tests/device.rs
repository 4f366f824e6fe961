#[test]
fn a_queue_pair_is_created() {
    assert!(device::works());
}
