#[test]
#[allow(unused)]
fn free_program_0() {
    use verbs_api::profile::Profile;
    use verbs_api::*;
    use verbs_sim::{Mode, Sim, SimConfig};
    let verbs = Sim::new(SimConfig::new().nodes(4));
    let poll = |cq, max| {
        let mut wc = vec![Wc::default(); max];
        let count = verbs.poll_cq(cq, &mut wc)?;
        let mut seen: Vec<_> = wc[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect();
        seen.sort();
        Ok::<_, Error>(seen)
    };
    // Call 0
    let context0 = verbs.open_device("sim0").unwrap();
    // Call 1
    let pd0 = verbs.alloc_pd(context0).unwrap();
    // Call 2
    let channel0 = verbs.create_comp_channel(context0).unwrap();
    // Call 3
    let mr0 = verbs.alloc_mr(pd0, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem0 = verbs.query_mr(mr0).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.write_mr(mr0, 0, &bytes).unwrap();
    // Call 4
    let cq0 = verbs.create_cq(context0, &CqInit::new(1).context(0).channel(channel0)).unwrap();
    // Call 5
    let cq1 = verbs.create_cq(context0, &CqInit::new(21).context(1).channel(channel0)).unwrap();
    // Call 6
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 7
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 8
    let channel1 = verbs.create_comp_channel(context1).unwrap();
    // Call 9
    let mr1 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 10
    let mr2 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 11
    let cq2 = verbs.create_cq(context1, &CqInit::new(40).context(2).channel(channel1)).unwrap();
    // Call 12
    let cq3 = verbs.create_cq(context1, &CqInit::new(27).context(3).channel(channel1)).unwrap();
    // Call 13
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq3, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 14
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq3, cq2).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 15
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 16
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    // Call 17
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 18
    let ah1 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 19
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Uc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 20
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Uc, cq3, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 21
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 3, rnr_retry: 3, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 22
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 23
    assert_eq!(verbs.get_async_event(context0, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 24
    assert_eq!(verbs.dealloc_pd(pd0).unwrap_err().kind(), ErrorKind::Busy);
    // Call 25
    verbs.post_recv(qp2, &[RecvWr::new(0x1900000000, &[mem0.sge(2904, 16)])]).unwrap();
    // Call 26
    verbs.post_send(qp3, &[SendWr::new(0x1a00000000, SendOp::SendWithImm { imm_data: [40, 180, 19, 0] }, &[mem1.sge(40, 8)])]).unwrap();
    // Call 27
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1a00000000, WcStatus::Success)]);
    // Call 28
    verbs.post_recv(qp0, &[RecvWr::new(0x1c00000000, &[mem1.sge(1624, 52), mem1.sge(1352, 52)])]).unwrap();
    // Call 29
    verbs.post_recv(qp0, &[RecvWr::new(0x1d00000000, &[mem1.sge(1648, 104)]), RecvWr::new(0x1d00000001, &[mem1.sge(1144, 104)])]).unwrap();
    // Call 30
    verbs.post_send(qp1, &[SendWr::new(0x1e00000000, SendOp::SendWithImm { imm_data: [158, 110, 232, 114] }, &[]).to(ah0, num0, 0x11111111), SendWr::new(0x1e00000001, SendOp::Send, &[mem1.sge(88, 64)]).to(ah0, num0, 0x11111111), SendWr::new(0x1e00000002, SendOp::Send, &[mem1.sge(416, 1)]).unsignaled().flags(SendFlags::INLINE).to(ah0, num0, 0x11111111)]).unwrap();
    // Call 31
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1e00000000, WcStatus::Success), (0x1e00000001, WcStatus::Success)]);
    // Call 32
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 33
    assert_eq!(verbs.destroy_cq(cq1, Wait::Poll).unwrap_err().kind(), ErrorKind::Busy);
    // Call 34
    verbs.post_send(qp0, &[SendWr::new(0x2200000000, SendOp::Send, &[mem1.sge(64, 0), mem1.sge(472, 1)]).flags(SendFlags::INLINE).to(ah0, num1, 0x11111111)]).unwrap();
    // Call 35
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp2, &modify.attr, modify.mask).unwrap();
    // Call 36
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp3, &modify.attr, modify.mask).unwrap();
    // Call 37
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 2, rnr_retry: 2, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 38
    verbs.post_recv(qp2, &[RecvWr::new(0x2600000000, &[mem0.sge(3792, 300)])]).unwrap();
    // Call 39
    verbs.post_send(qp3, &[SendWr::new(0x2700000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(3608), imm_data: [35, 61, 2, 189] }, &[mem1.sge(40, 150), mem1.sge(216, 150)]).flags(SendFlags::FENCE)]).unwrap();
    // Call 40
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2200000000, WcStatus::Success), (0x2700000000, WcStatus::Success)]);
    // Call 41
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    verbs.post_recv(qp2, &[RecvWr::new(0x2a00000000, &[mem0.sge(3400, 16)])]).unwrap();
    // Call 43
    verbs.post_recv(qp2, &[RecvWr::new(0x2b00000000, &[mem0.sge(3912, 8)])]).unwrap();
    // Call 44
    verbs.post_send(qp3, &[SendWr::new(0x2c00000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(3400), imm_data: [102, 13, 50, 225] }, &[mem1.sge(864, 0), mem1.sge(72, 1)]).unsignaled(), SendWr::new(0x2c00000001, SendOp::Send, &[mem1.sge(960, 8)])]).unwrap();
    // Call 45
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1c00000000, WcStatus::Success), (0x1d00000000, WcStatus::Success), (0x1d00000001, WcStatus::Success), (0x2c00000001, WcStatus::Success)]);
    // Call 46
    assert_eq!(poll(cq2, 1).unwrap(), []);
    // Call 47
    verbs.lab().unwrap().settle().unwrap();
    // Call 48
    verbs.post_recv(qp0, &[RecvWr::new(0x3000000000, &[mem1.sge(1432, 520)])]).unwrap();
    // Call 49
    verbs.post_recv(qp0, &[RecvWr::new(0x3100000000, &[mem1.sge(1504, 520), mem1.sge(1416, 520)])]).unwrap();
    // Call 50
    verbs.post_send(qp1, &[SendWr::new(0x3200000000, SendOp::Send, &[mem1.sge(16, 1000)]).to(ah0, num0, 0x11111111), SendWr::new(0x3200000001, SendOp::Send, &[mem1.sge(168, 256)]).to(ah0, num0, 0x11111111)]).unwrap();
    // Call 51
    assert_eq!(poll(cq3, 64).unwrap(), [(0x3200000000, WcStatus::Success), (0x3200000001, WcStatus::Success)]);
    // Call 52
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 53
    verbs.post_recv(qp0, &[RecvWr::new(0x3500000000, &[mem1.sge(1120, 104)])]).unwrap();
    // Call 54
    verbs.post_send(qp1, &[SendWr::new(0x3600000000, SendOp::Send, &[mem1.sge(864, 64)]).to(ah0, num0, 0x11111111)]).unwrap();
    // Call 55
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 56
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 57
    verbs.post_recv(qp0, &[RecvWr::new(0x3900000000, &[mem1.sge(1344, 140)])]).unwrap();
    // Call 58
    verbs.post_recv(qp0, &[RecvWr::new(0x3a00000000, &[mem1.sge(1344, 140)])]).unwrap();
    // Call 59
    verbs.post_send(qp1, &[SendWr::new(0x3b00000000, SendOp::SendWithImm { imm_data: [247, 15, 193, 237] }, &[]).to(ah0, num0, 0x11111111), SendWr::new(0x3b00000001, SendOp::SendWithImm { imm_data: [37, 3, 42, 167] }, &[mem1.sge(600, 50), mem1.sge(8, 50)]).to(ah0, num0, 0x11111111)]).unwrap();
    // Call 60
    assert_eq!(poll(cq3, 64).unwrap(), [(0x3600000000, WcStatus::Success), (0x3b00000000, WcStatus::Success), (0x3b00000001, WcStatus::Success)]);
    // Call 61
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 62
    verbs.req_notify_cq(cq0, Arm::NEXT).unwrap();
    // Call 63
    verbs.post_recv(qp2, &[RecvWr::new(0x3f00000000, &[mem0.sge(2232, 1000)])]).unwrap();
    // Call 64
    verbs.post_send(qp3, &[SendWr::new(0x4000000000, SendOp::Send, &[mem1.sge(24, 1000)]).unsignaled()]).unwrap();
    // Call 65
    assert_eq!(poll(cq1, 64).unwrap(), [(0x1900000000, WcStatus::Success), (0x2600000000, WcStatus::Success), (0x2a00000000, WcStatus::Success), (0x2b00000000, WcStatus::Success)]);
    // Call 66
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 67
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 68
    verbs.post_recv(qp2, &[RecvWr::new(0x4400000000, &[mem0.sge(2536, 64)]), RecvWr::new(0x4400000001, &[mem0.sge(2784, 64)])]).unwrap();
    // Call 69
    assert_eq!(verbs.write_mr(mr1, 348, &[171; 16]).unwrap_err().kind(), ErrorKind::Usage);
    // Call 70
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 71
    verbs.post_recv(qp1, &[RecvWr::new(0x4700000000, &[mem1.sge(1504, 340)]), RecvWr::new(0x4700000001, &[mem1.sge(1032, 340)])]).unwrap();
    // Call 72
    verbs.post_send(qp0, &[SendWr::new(0x4800000000, SendOp::Send, &[mem1.sge(352, 150), mem1.sge(864, 150)]).flags(SendFlags::FENCE).flags(SendFlags::SOLICITED).to(ah0, num1, 0x11111111)]).unwrap();
    // Call 73
    assert_eq!(poll(cq3, 64).unwrap(), [(0x4800000000, WcStatus::Success)]);
    // Call 74
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
}
#[test]
#[allow(unused)]
fn free_program_1() {
    use verbs_api::profile::Profile;
    use verbs_api::*;
    use verbs_sim::{Mode, Sim, SimConfig};
    let verbs = Sim::new(SimConfig::new().nodes(4));
    let poll = |cq, max| {
        let mut wc = vec![Wc::default(); max];
        let count = verbs.poll_cq(cq, &mut wc)?;
        let mut seen: Vec<_> = wc[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect();
        seen.sort();
        Ok::<_, Error>(seen)
    };
    // Call 0
    let context0 = verbs.open_device("sim0").unwrap();
    // Call 1
    let pd0 = verbs.alloc_pd(context0).unwrap();
    // Call 2
    let channel0 = verbs.create_comp_channel(context0).unwrap();
    // Call 3
    let mr0 = verbs.alloc_mr(pd0, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem0 = verbs.query_mr(mr0).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.write_mr(mr0, 0, &bytes).unwrap();
    // Call 4
    let mr1 = verbs.alloc_mr(pd0, 768, Access::LOCAL_WRITE | Access::REMOTE_WRITE).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..768u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 5
    let cq0 = verbs.create_cq(context0, &CqInit::new(23).context(0).channel(channel0)).unwrap();
    // Call 6
    let cq1 = verbs.create_cq(context0, &CqInit::new(13).context(1).channel(channel0)).unwrap();
    // Call 7
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 8
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 9
    let mr2 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 10
    let mr3 = verbs.alloc_mr(pd1, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 11
    let cq2 = verbs.create_cq(context1, &CqInit::new(12).context(2)).unwrap();
    // Call 12
    let cq3 = verbs.create_cq(context1, &CqInit::new(23).context(3)).unwrap();
    // Call 13
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq3, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 14
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq3, cq2).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 15
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 1, rnr_retry: 1, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 16
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 17
    verbs.close_device(context1).unwrap();
    // Call 18
    verbs.req_notify_cq(cq1, Arm::NEXT).unwrap();
    // Call 19
    assert_eq!(verbs.get_async_event(context0, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 20
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 21
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x1500000000, &[mem2.sge(1832, 108)]), RecvWr::new(0x1500000001, &[mem2.sge(1928, 54), mem3.sge(2096, 54)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 22
    let error = verbs.post_send(qp0, &[SendWr::new(0x1600000000, SendOp::SendWithImm { imm_data: [154, 141, 91, 129] }, &[mem3.sge(920, 100)]).flags(SendFlags::FENCE), SendWr::new(0x1600000001, SendOp::RdmaWriteWithImm { remote: mem2.remote(1736), imm_data: [61, 149, 141, 228] }, &[mem3.sge(1400, 8), mem3.sge(1344, 8)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 23
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    let error = verbs.post_send(qp1, &[SendWr::new(0x1800000000, SendOp::RdmaWrite { remote: mem2.remote(1336) }, &[mem2.sge(560, 300)]).unsignaled()]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 25
    assert_eq!(verbs.ack_cq_events(cq1, 2).unwrap_err().kind(), ErrorKind::Usage);
}
#[test]
#[allow(unused)]
fn free_program_2() {
    use verbs_api::profile::Profile;
    use verbs_api::*;
    use verbs_sim::{Mode, Sim, SimConfig};
    let verbs = Sim::new(SimConfig::new().nodes(4));
    let poll = |cq, max| {
        let mut wc = vec![Wc::default(); max];
        let count = verbs.poll_cq(cq, &mut wc)?;
        let mut seen: Vec<_> = wc[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect();
        seen.sort();
        Ok::<_, Error>(seen)
    };
    // Call 0
    let context0 = verbs.open_device("sim0").unwrap();
    // Call 1
    let pd0 = verbs.alloc_pd(context0).unwrap();
    // Call 2
    let mr0 = verbs.alloc_mr(pd0, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem0 = verbs.query_mr(mr0).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.write_mr(mr0, 0, &bytes).unwrap();
    // Call 3
    let mr1 = verbs.alloc_mr(pd0, 192, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..192u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 4
    let cq0 = verbs.create_cq(context0, &CqInit::new(4).context(0)).unwrap();
    // Call 5
    assert_eq!(verbs.create_cq(context0, &CqInit::new(0).context(1)).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 6
    let srq0 = verbs.create_srq(pd0, &SrqInit::new(7).max_sge(2)).unwrap();
    // Call 7
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 8
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 9
    let channel0 = verbs.create_comp_channel(context1).unwrap();
    // Call 10
    let mr2 = verbs.alloc_mr(pd1, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 11
    let mr3 = verbs.alloc_mr(pd1, 3072, Access::REMOTE_READ).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 12
    let cq2 = verbs.create_cq(context1, &CqInit::new(30).context(2).channel(channel0)).unwrap();
    // Call 13
    let cq3 = verbs.create_cq(context1, &CqInit::new(27).context(3).channel(channel0)).unwrap();
    // Call 14
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq2).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 15
    let qp1 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq0).cap(QpCap { max_send_wr: 3, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 16
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 2, rnr_retry: 2, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 17
    let qp2 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq2).cap(QpCap { max_send_wr: 3, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 18
    let qp3 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq0).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 19
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 2, rnr_retry: 2, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 20
    assert_eq!(verbs.resize_cq(cq0, -1).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 21
    verbs.post_send(qp2, &[SendWr::new(0x1500000000, SendOp::CompareAndSwap { remote: mem0.remote(1024), compare: 1, swap: 2 }, &[mem2.sge(5856, 8)])]).unwrap();
    // Call 22
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 23
    verbs.post_recv(qp2, &[RecvWr::new(0x1700000000, &[mem2.sge(3968, 4), mem2.sge(2824, 4)])]).unwrap();
    // Call 24
    verbs.post_send(qp3, &[SendWr::new(0x1800000000, SendOp::Send, &[mem1.sge(40, 8)]).flags(SendFlags::INLINE)]).unwrap();
    // Call 25
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 26
    let modify = QpModify::to(QpState::Sqd);
    verbs.modify_qp(qp3, &modify.attr, modify.mask).unwrap();
    // Call 27
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x1b00000000, &[mem0.sge(1056, 32), mem1.sge(72, 32)])]).unwrap();
    // Call 28
    verbs.dereg_mr(mr3).unwrap();
    // Call 29
    verbs.post_send(qp2, &[SendWr::new(0x1d00000000, SendOp::RdmaRead { remote: mem0.remote(8) }, &[mem2.sge(5600, 256)])]).unwrap();
    // Call 30
    verbs.post_send(qp1, &[SendWr::new(0x1e00000000, SendOp::RdmaWrite { remote: mem2.remote(3760) }, &[mem0.sge(976, 1)]).unsignaled()]).unwrap();
    // Call 31
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 32
    verbs.post_send(qp0, &[SendWr::new(0x2000000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(1496), imm_data: [185, 26, 93, 106] }, &[mem2.sge(616, 300)]).flags(SendFlags::FENCE), SendWr::new(0x2000000001, SendOp::RdmaRead { remote: mem0.remote(200) }, &[mem2.sge(5376, 300)])]).unwrap();
    // Call 33
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2100000000, &[mem0.sge(1088, 4), mem1.sge(112, 4)])]).unwrap();
    // Call 34
    verbs.post_send(qp0, &[SendWr::new(0x2200000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(1488), imm_data: [247, 243, 210, 2] }, &[mem2.sge(1264, 8)])]).unwrap();
    // Call 35
    verbs.read_mr(mr0, 1108, &mut [0; 1]).unwrap();
    // Call 36
    let error = verbs.post_send(qp0, &[SendWr::new(0x2400000000, SendOp::CompareAndSwap { remote: mem0.remote(1120), compare: 2, swap: 3 }, &[mem2.sge(5072, 8)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 37
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1500000000, WcStatus::Success), (0x1700000000, WcStatus::Success)]);
    // Call 38
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 39
    verbs.post_send(qp3, &[SendWr::new(0x2700000000, SendOp::FetchAndAdd { remote: mem2.remote(3704), add: 1 }, &[mem1.sge(128, 8)])]).unwrap();
    // Call 40
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 41
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    // Call 42
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    // Call 43
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 1, rnr_retry: 1, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() }).unwrap();
    // Call 44
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2c00000000, &[mem0.sge(1912, 64)])]).unwrap();
    // Call 45
    verbs.post_send(qp3, &[SendWr::new(0x2d00000000, SendOp::RdmaRead { remote: mem2.remote(1400) }, &[mem0.sge(2848, 85), mem0.sge(2848, 85), mem0.sge(2200, 86)])]).unwrap();
    // Call 46
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 47
    let ah0 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 48
    verbs.post_send(qp2, &[SendWr::new(0x3000000000, SendOp::CompareAndSwap { remote: mem0.remote(1232), compare: 2, swap: 3 }, &[mem2.sge(4848, 8)]).unsignaled(), SendWr::new(0x3000000001, SendOp::Send, &[mem2.sge(1392, 8), mem2.sge(2040, 8)]).flags(SendFlags::INLINE)]).unwrap();
    // Call 49
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1800000000, WcStatus::Success)]);
    // Call 50
    assert_eq!(verbs.query_qp(qp2, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Rts);
    // Call 51
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x3300000000, &[mem1.sge(64, 40)])]).unwrap();
    // Call 52
    verbs.post_send(qp0, &[SendWr::new(0x3400000000, SendOp::SendWithImm { imm_data: [208, 143, 11, 62] }, &[mem2.sge(1952, 40)]).flags(SendFlags::FENCE).flags(SendFlags::INLINE)]).unwrap();
    // Call 53
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 54
    verbs.modify_srq(srq0, &SrqAttr { srq_limit: 2, ..SrqAttr::default() }, SrqAttrMask::LIMIT).unwrap();
    // Call 55
    assert_eq!(poll(cq3, 0).unwrap(), []);
    // Call 56
    verbs.post_send(qp1, &[SendWr::new(0x3800000000, SendOp::RdmaWrite { remote: mem2.remote(2600) }, &[mem0.sge(608, 300)]).flags(SendFlags::FENCE)]).unwrap();
    // Call 57
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1b00000000, WcStatus::Success)]);
    // Call 58
    verbs.post_send(qp1, &[SendWr::new(0x3a00000000, SendOp::RdmaRead { remote: mem2.remote(88) }, &[mem0.sge(2632, 300)]).unsignaled()]).unwrap();
    // Call 59
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 60
    verbs.post_recv(qp0, &[RecvWr::new(0x3c00000000, &[mem2.sge(3184, 256)])]).unwrap();
    // Call 61
    verbs.post_recv(qp0, &[RecvWr::new(0x3d00000000, &[mem2.sge(2496, 256)])]).unwrap();
    // Call 62
    let error = verbs.post_send(qp1, &[SendWr::new(0x3e00000000, SendOp::SendWithImm { imm_data: [25, 108, 151, 77] }, &[mem0.sge(560, 256)]).flags(SendFlags::SOLICITED), SendWr::new(0x3e00000001, SendOp::RdmaWriteWithImm { remote: mem2.remote(2944), imm_data: [29, 168, 171, 57] }, &[mem0.sge(944, 32), mem0.sge(312, 32)]).flags(SendFlags::INLINE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::NoMemory));
    // Call 63
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 64
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 65
    verbs.post_recv(qp0, &[RecvWr::new(0x4100000000, &[mem2.sge(2424, 1000)])]).unwrap();
    // Call 66
    let error = verbs.post_send(qp1, &[SendWr::new(0x4200000000, SendOp::Send, &[mem0.sge(0, 1000)]).unsignaled(), SendWr::new(0x4200000001, SendOp::RdmaWrite { remote: mem2.remote(2752) }, &[mem0.sge(16, 1000)]), SendWr::new(0x4200000002, SendOp::RdmaRead { remote: mem2.remote(336) }, &[mem0.sge(2696, 300)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 67
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2100000000, WcStatus::Success)]);
    // Call 68
    assert_eq!(poll(cq0, 4).unwrap(), []);
}
#[test]
#[allow(unused)]
fn free_program_3() {
    use verbs_api::profile::Profile;
    use verbs_api::*;
    use verbs_sim::{Mode, Sim, SimConfig};
    let verbs = Sim::new(SimConfig::new().nodes(4));
    let poll = |cq, max| {
        let mut wc = vec![Wc::default(); max];
        let count = verbs.poll_cq(cq, &mut wc)?;
        let mut seen: Vec<_> = wc[..count].iter().map(|wc| (wc.wr_id, wc.status)).collect();
        seen.sort();
        Ok::<_, Error>(seen)
    };
    // Call 0
    let context0 = verbs.open_device("sim0").unwrap();
    // Call 1
    let pd0 = verbs.alloc_pd(context0).unwrap();
    // Call 2
    let channel0 = verbs.create_comp_channel(context0).unwrap();
    // Call 3
    let mr0 = verbs.alloc_mr(pd0, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem0 = verbs.query_mr(mr0).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.write_mr(mr0, 0, &bytes).unwrap();
    // Call 4
    let cq0 = verbs.create_cq(context0, &CqInit::new(4).context(0).channel(channel0)).unwrap();
    // Call 5
    let cq1 = verbs.create_cq(context0, &CqInit::new(14).context(1).channel(channel0)).unwrap();
    // Call 6
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 7
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 8
    let mr1 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 9
    let cq2 = verbs.create_cq(context1, &CqInit::new(34).context(2)).unwrap();
    // Call 10
    let cq3 = verbs.create_cq(context1, &CqInit::new(15).context(3)).unwrap();
    // Call 11
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq1, cq0).cap(QpCap { max_send_wr: 15, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 12
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 13
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 14
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    // Call 15
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 16
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 17
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq1, cq0).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 18
    let qp3 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq1, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 19
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 2, rnr_retry: 2, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 20
    let qp4 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 21
    let qp5 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq3, cq2).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 22
    connect::by_attributes(&verbs, qp4, qp5, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 23
    verbs.write_mr(mr1, 407, &[96; 7]).unwrap();
    // Call 24
    verbs.req_notify_cq(cq3, Arm::SOLICITED).unwrap();
    // Call 25
    verbs.destroy_qp(qp4, Wait::Poll).unwrap();
    // Call 26
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 27
    verbs.post_recv(qp2, &[RecvWr::new(0x1b00000000, &[mem0.sge(2568, 148), mem0.sge(2360, 148)])]).unwrap();
    // Call 28
    verbs.post_recv(qp0, &[RecvWr::new(0x1c00000000, &[mem0.sge(2240, 148), mem0.sge(2312, 148)])]).unwrap();
    // Call 29
    verbs.post_send(qp1, &[SendWr::new(0x1d00000000, SendOp::Send, &[mem1.sge(344, 256)]).to(ah1, num0, 0x11111111), SendWr::new(0x1d00000001, SendOp::SendWithImm { imm_data: [131, 232, 91, 148] }, &[mem1.sge(16, 8)]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 30
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1d00000000, WcStatus::Success), (0x1d00000001, WcStatus::Success)]);
    // Call 31
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 32
    verbs.post_recv(qp2, &[RecvWr::new(0x2000000000, &[mem0.sge(3208, 0)]), RecvWr::new(0x2000000001, &[])]).unwrap();
    // Call 33
    verbs.post_send(qp3, &[SendWr::new(0x2100000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(2856), imm_data: [137, 159, 37, 94] }, &[]).flags(SendFlags::INLINE)]).unwrap();
    // Call 34
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 35
    verbs.req_notify_cq(cq2, Arm::NEXT).unwrap();
    // Call 36
    verbs.post_send(qp3, &[SendWr::new(0x2400000000, SendOp::RdmaWrite { remote: mem0.remote(3096) }, &[mem0.sge(592, 40)]).unsignaled(), SendWr::new(0x2400000001, SendOp::Send, &[mem0.sge(1472, 50), mem0.sge(856, 50)]).flags(SendFlags::SOLICITED)]).unwrap();
    // Call 37
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 38
    verbs.post_recv(qp2, &[RecvWr::new(0x2600000000, &[mem0.sge(3696, 32), mem0.sge(3120, 32)])]).unwrap();
    // Call 39
    verbs.post_recv(qp3, &[RecvWr::new(0x2700000000, &[mem0.sge(3280, 8)])]).unwrap();
    // Call 40
    verbs.post_send(qp2, &[SendWr::new(0x2800000000, SendOp::Send, &[mem0.sge(1880, 8)])]).unwrap();
    // Call 41
    verbs.post_recv(qp2, &[RecvWr::new(0x2900000000, &[mem0.sge(2464, 500), mem0.sge(3048, 500)])]).unwrap();
    // Call 42
    verbs.post_send(qp3, &[SendWr::new(0x2a00000000, SendOp::Send, &[mem0.sge(640, 40)]).unsignaled(), SendWr::new(0x2a00000001, SendOp::RdmaWrite { remote: mem0.remote(2792) }, &[mem0.sge(1264, 500), mem0.sge(536, 500)]).flags(SendFlags::FENCE), SendWr::new(0x2a00000002, SendOp::Send, &[mem0.sge(1872, 16)]).flags(SendFlags::INLINE)]).unwrap();
    // Call 43
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 44
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1c00000000, WcStatus::Success)]);
    // Call 45
    verbs.post_recv(qp0, &[RecvWr::new(0x2d00000000, &[mem0.sge(3728, 48)]), RecvWr::new(0x2d00000001, &[mem0.sge(2768, 48)])]).unwrap();
    // Call 46
    verbs.post_send(qp1, &[SendWr::new(0x2e00000000, SendOp::SendWithImm { imm_data: [141, 17, 178, 60] }, &[mem1.sge(696, 8)]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 47
    verbs.lab().unwrap().settle().unwrap();
    // Call 48
    verbs.post_recv(qp2, &[RecvWr::new(0x3000000000, &[mem0.sge(3376, 300)])]).unwrap();
    // Call 49
    verbs.post_recv(qp2, &[RecvWr::new(0x3100000000, &[mem0.sge(3432, 300)]), RecvWr::new(0x3100000001, &[mem0.sge(2096, 300)])]).unwrap();
    // Call 50
    let error = verbs.post_send(qp3, &[SendWr::new(0x3200000000, SendOp::Send, &[mem0.sge(584, 150), mem0.sge(1880, 150)]).unsignaled(), SendWr::new(0x3200000001, SendOp::Send, &[mem0.sge(1288, 8), mem0.sge(424, 8)]), SendWr::new(0x3200000002, SendOp::RdmaWriteWithImm { remote: mem0.remote(2208), imm_data: [214, 23, 92, 228] }, &[mem0.sge(96, 2), mem0.sge(1464, 2), mem0.sge(1040, 4)]).unsignaled()]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::NoMemory));
    // Call 51
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1b00000000, WcStatus::Success), (0x2000000000, WcStatus::LocLenErr), (0x2000000001, WcStatus::WrFlushErr), (0x2600000000, WcStatus::WrFlushErr)]);
}
