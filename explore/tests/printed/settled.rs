#[test]
#[allow(unused)]
fn settled_program_0() {
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 14
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 15
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 16
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 17
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 18
    let ah1 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 19
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Uc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 20
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Uc, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 21
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 22
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 23
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 24
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 25
    let error = verbs.post_send(qp3, &[SendWr::new(0x1900000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(3432), imm_data: [151, 191, 39, 210] }, &[mem1.sge(840, 0), mem1.sge(272, 0), mem1.sge(416, 1)]), SendWr::new(0x1900000001, SendOp::SendWithImm { imm_data: [10, 222, 105, 156] }, &[mem1.sge(384, 13), mem1.sge(952, 13), mem1.sge(200, 14)]), SendWr::new(0x1900000002, SendOp::Send, &[mem1.sge(8, 1000)]).flags(SendFlags::SOLICITED), SendWr::new(0x1900000003, SendOp::RdmaWrite { remote: mem0.remote(2872) }, &[mem1.sge(448, 16)]).flags(SendFlags::SOLICITED), SendWr::new(0x1900000004, SendOp::RdmaWrite { remote: mem0.remote(2424) }, &[mem1.sge(160, 32), mem1.sge(104, 32)]).flags(SendFlags::FENCE), SendWr::new(0x1900000005, SendOp::Send, &[mem1.sge(24, 1000)]).unsignaled().flags(SendFlags::FENCE), SendWr::new(0x1900000006, SendOp::RdmaWriteWithImm { remote: mem0.remote(2792), imm_data: [91, 236, 67, 119] }, &[mem1.sge(104, 8), mem1.sge(984, 8)]), SendWr::new(0x1900000007, SendOp::SendWithImm { imm_data: [100, 187, 109, 236] }, &[mem1.sge(24, 1000)]).flags(SendFlags::SOLICITED)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (7, ErrorKind::NoMemory));
    verbs.lab().unwrap().settle().unwrap();
    // Call 26
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 27
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 28
    verbs.post_recv(qp3, &[RecvWr::new(0x1c00000000, &[mem1.sge(1432, 48)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    verbs.post_send(qp2, &[SendWr::new(0x1d00000000, SendOp::RdmaWriteWithImm { remote: mem1.remote(1208), imm_data: [52, 175, 225, 58] }, &[mem0.sge(800, 40)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1c00000000, WcStatus::Success)]);
    // Call 31
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 32
    let ah2 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 33
    verbs.write_mr(mr2, 954, &[189; 10]).unwrap();
    // Call 34
    verbs.post_send(qp2, &[SendWr::new(0x2200000000, SendOp::RdmaWrite { remote: mem1.remote(1256) }, &[mem0.sge(736, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 35
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1d00000000, WcStatus::Success)]);
    // Call 36
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 37
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    verbs.post_recv(qp1, &[RecvWr::new(0x2600000000, &[mem2.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 39
    verbs.post_recv(qp1, &[RecvWr::new(0x2700000000, &[mem2.sge(1024, 1040)]), RecvWr::new(0x2700000001, &[mem1.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 40
    verbs.post_send(qp0, &[SendWr::new(0x2800000000, SendOp::Send, &[mem1.sge(648, 333), mem1.sge(416, 333), mem1.sge(232, 334)]).unsignaled().flags(SendFlags::FENCE).flags(SendFlags::SOLICITED).to(ah0, num1, 0x11111111), SendWr::new(0x2800000001, SendOp::Send, &[mem1.sge(840, 8)]).to(ah0, num1, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1900000000, WcStatus::Success), (0x1900000001, WcStatus::Success), (0x1900000002, WcStatus::Success), (0x1900000003, WcStatus::Success), (0x1900000004, WcStatus::Success), (0x1900000006, WcStatus::Success), (0x2800000001, WcStatus::Success)]);
    // Call 42
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2600000000, WcStatus::Success), (0x2700000000, WcStatus::Success)]);
    // Call 43
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 44
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 45
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 46
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 47
    let ah3 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 48
    let ah4 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 49
    verbs.post_recv(qp1, &[RecvWr::new(0x3100000000, &[mem1.sge(1072, 48)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    verbs.post_send(qp0, &[SendWr::new(0x3200000000, SendOp::SendWithImm { imm_data: [32, 5, 125, 42] }, &[mem1.sge(312, 8)]).to(ah0, num1, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 51
    verbs.resize_cq(cq2, 30).unwrap();
    // Call 52
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 53
    verbs.post_recv(qp0, &[RecvWr::new(0x3500000000, &[mem1.sge(1344, 140)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    verbs.post_recv(qp0, &[RecvWr::new(0x3600000000, &[mem1.sge(1344, 140)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 55
    verbs.post_send(qp1, &[SendWr::new(0x3700000000, SendOp::SendWithImm { imm_data: [247, 15, 193, 237] }, &[]).to(ah0, num0, 0x11111111), SendWr::new(0x3700000001, SendOp::SendWithImm { imm_data: [37, 3, 42, 167] }, &[mem1.sge(600, 50), mem1.sge(8, 50)]).to(ah0, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    assert_eq!(poll(cq3, 64).unwrap(), [(0x3100000000, WcStatus::Success), (0x3500000000, WcStatus::Success), (0x3600000000, WcStatus::Success)]);
    // Call 57
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
}
#[test]
#[allow(unused)]
fn settled_program_1() {
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 14
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 15
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 16
    verbs.post_recv(qp1, &[RecvWr::new(0x1000000000, &[mem3.sge(3336, 64)]), RecvWr::new(0x1000000001, &[mem2.sge(1648, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 17
    verbs.post_send(qp0, &[SendWr::new(0x1100000000, SendOp::SendWithImm { imm_data: [205, 203, 168, 184] }, &[mem3.sge(1200, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 18
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1100000000, WcStatus::Success)]);
    // Call 19
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1000000000, WcStatus::Success)]);
    // Call 20
    verbs.resize_cq(cq1, 1).unwrap();
    // Call 21
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 22
    verbs.post_recv(qp0, &[RecvWr::new(0x1600000000, &[mem2.sge(1576, 8)]), RecvWr::new(0x1600000001, &[mem3.sge(3880, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    verbs.post_send(qp1, &[SendWr::new(0x1700000000, SendOp::RdmaWriteWithImm { remote: mem2.remote(1968), imm_data: [83, 213, 141, 6] }, &[mem2.sge(760, 4), mem3.sge(872, 4)]).flags(SendFlags::SOLICITED), SendWr::new(0x1700000001, SendOp::CompareAndSwap { remote: mem3.remote(2784), compare: 0, swap: 1 }, &[mem2.sge(2960, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 25
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 26
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    let params = RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() };
    connect::endpoint(&verbs, qp0, &params).and_then(|peer| connect::to_state(&verbs, qp1, &peer, &params, QpState::Rtr)).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 28
    let params = RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() };
    connect::endpoint(&verbs, qp1, &params).and_then(|peer| connect::to_state(&verbs, qp0, &peer, &params, QpState::Rts)).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    verbs.post_recv(qp0, &[RecvWr::new(0x1d00000000, &[mem3.sge(2120, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    verbs.lab().unwrap().settle().unwrap();
    // Call 31
    let error = verbs.post_send(qp1, &[SendWr::new(0x1f00000000, SendOp::CompareAndSwap { remote: mem3.remote(2208), compare: 1, swap: 2 }, &[mem2.sge(3064, 8)]), SendWr::new(0x1f00000001, SendOp::RdmaRead { remote: mem3.remote(520) }, &[mem3.sge(5320, 64)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 32
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1700000000, WcStatus::Success), (0x1700000001, WcStatus::Success)]);
    // Call 33
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 34
    assert_eq!(verbs.destroy_cq(cq3, Wait::Poll).unwrap_err().kind(), ErrorKind::Busy);
    // Call 35
    verbs.post_send(qp0, &[SendWr::new(0x2300000000, SendOp::SendWithImm { imm_data: [152, 210, 203, 75] }, &[Sge { lkey: mem3.lkey ^ 0x5a5a5a00, ..mem3.sge(1600, 64) }]).unsignaled().flags(SendFlags::INLINE), SendWr::new(0x2300000001, SendOp::RdmaRead { remote: mem2.remote(728) }, &[mem3.sge(4600, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 36
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2300000000, WcStatus::RnrRetryExcErr), (0x2300000001, WcStatus::WrFlushErr)]);
    // Call 37
    verbs.post_recv(qp0, &[RecvWr::new(0x2500000000, &[mem3.sge(3552, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    verbs.post_recv(qp0, &[RecvWr::new(0x2600000000, &[mem2.sge(1048, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 39
    let error = verbs.post_send(qp1, &[SendWr::new(0x2700000000, SendOp::Send, &[mem2.sge(80, 16)]).unsignaled().flags(SendFlags::SOLICITED), SendWr::new(0x2700000001, SendOp::Send, &[mem3.sge(1992, 8), mem2.sge(992, 8)]).flags(SendFlags::SOLICITED), SendWr::new(0x2700000002, SendOp::Send, &[mem3.sge(1640, 8)]).flags(SendFlags::INLINE), SendWr::new(0x2700000003, SendOp::Send, &[mem2.sge(176, 100)]), SendWr::new(0x2700000004, SendOp::CompareAndSwap { remote: mem3.remote(3800), compare: 2, swap: 3 }, &[mem2.sge(2968, 8)]), SendWr::new(0x2700000005, SendOp::RdmaRead { remote: mem3.remote(1064) }, &[mem3.sge(4944, 300)]).unsignaled(), SendWr::new(0x2700000006, SendOp::RdmaRead { remote: mem3.remote(1096) }, &[mem2.sge(2168, 8)]).unsignaled().flags(SendFlags::FENCE).flags(SendFlags::SOLICITED)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 40
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 41
    let modify = QpModify::to(QpState::Rtr);
    assert_eq!(verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 42
    verbs.lab().unwrap().settle().unwrap();
    // Call 43
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 44
    verbs.post_send(qp0, &[SendWr::new(0x2c00000000, SendOp::RdmaRead { remote: mem3.remote(512) }, &[mem3.sge(4496, 64)]).flags(SendFlags::SOLICITED)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 45
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2c00000000, WcStatus::WrFlushErr)]);
    // Call 46
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1600000000, WcStatus::Success), (0x1d00000000, WcStatus::WrFlushErr), (0x2500000000, WcStatus::WrFlushErr), (0x2600000000, WcStatus::WrFlushErr)]);
    // Call 47
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 48
    let cq4 = verbs.create_cq(context0, &CqInit::new(15).context(4).channel(channel0)).unwrap();
    // Call 49
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    verbs.post_recv(qp1, &[RecvWr::new(0x3200000000, &[mem2.sge(1032, 1008)]), RecvWr::new(0x3200000001, &[mem3.sge(2400, 1008)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 51
    verbs.post_send(qp0, &[SendWr::new(0x3300000000, SendOp::Send, &[mem2.sge(608, 100)]).flags(SendFlags::FENCE), SendWr::new(0x3300000001, SendOp::Send, &[mem2.sge(16, 1000)]).unsignaled()]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 52
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3300000000, WcStatus::WrFlushErr), (0x3300000001, WcStatus::WrFlushErr)]);
    // Call 53
    verbs.post_send(qp0, &[SendWr::new(0x3500000000, SendOp::RdmaWrite { remote: mem3.remote(2424) }, &[mem2.sge(456, 1)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    let ah0 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 55
    verbs.post_send(qp0, &[SendWr::new(0x3700000000, SendOp::Send, &[mem2.sge(408, 100)]).unsignaled()]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    verbs.post_recv(qp0, &[RecvWr::new(0x3800000000, &[mem2.sge(1264, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 57
    verbs.post_recv(qp0, &[RecvWr::new(0x3900000000, &[mem2.sge(1336, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 58
    let error = verbs.post_send(qp1, &[SendWr::new(0x3a00000000, SendOp::Send, &[]), SendWr::new(0x3a00000001, SendOp::SendWithImm { imm_data: [72, 46, 86, 169] }, &[mem2.sge(216, 300)]).flags(SendFlags::FENCE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 59
    verbs.post_recv(qp0, &[RecvWr::new(0x3b00000000, &[mem3.sge(3136, 72)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 60
    verbs.post_recv(qp1, &[RecvWr::new(0x3c00000000, &[mem3.sge(4000, 40)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 61
    verbs.post_send(qp0, &[SendWr::new(0x3d00000000, SendOp::Send, &[mem3.sge(1544, 20), mem2.sge(624, 20)]).unsignaled().flags(SendFlags::SOLICITED)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 62
    assert_eq!(poll(cq3, 64).unwrap(), [(0x3800000000, WcStatus::WrFlushErr), (0x3900000000, WcStatus::WrFlushErr), (0x3b00000000, WcStatus::WrFlushErr)]);
    // Call 63
    verbs.lab().unwrap().settle().unwrap();
    // Call 64
    let error = verbs.post_send(qp0, &[SendWr::new(0x4000000000, SendOp::RdmaWrite { remote: mem2.remote(3022) }, &[mem3.sge(1840, 100)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 65
    let error = verbs.post_send(qp0, &[SendWr::new(0x4100000000, SendOp::RdmaWrite { remote: mem3.remote(4088) }, &[mem3.sge(232, 0), mem3.sge(736, 0), mem2.sge(648, 1)]).flags(SendFlags::FENCE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 66
    verbs.post_recv(qp1, &[RecvWr::new(0x4200000000, &[mem2.sge(1240, 0)]), RecvWr::new(0x4200000001, &[mem3.sge(2544, 0)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 67
    let error = verbs.post_send(qp0, &[SendWr::new(0x4300000000, SendOp::Send, &[mem3.sge(1040, 0)]).flags(SendFlags::INLINE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
}
#[test]
#[allow(unused)]
fn settled_program_2() {
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 15
    let cq4 = verbs.create_cq(context0, &CqInit::new(16).context(4)).unwrap();
    // Call 16
    let qp1 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq4).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 17
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 18
    let qp2 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 19
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 20
    connect::ud_to_rts(&verbs, qp2, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 21
    connect::ud_to_rts(&verbs, qp3, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 22
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 23
    let ah1 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 24
    verbs.post_recv(qp3, &[RecvWr::new(0x1800000000, &[mem2.sge(2384, 152), mem2.sge(3272, 152)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 25
    verbs.post_recv(qp3, &[RecvWr::new(0x1900000000, &[mem2.sge(3624, 148)]), RecvWr::new(0x1900000001, &[mem2.sge(2528, 148)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 26
    verbs.post_send(qp2, &[SendWr::new(0x1a00000000, SendOp::Send, &[mem2.sge(880, 64)]).to(ah0, num3, 0x11111111), SendWr::new(0x1a00000001, SendOp::Send, &[mem3.sge(272, 256)]).flags(SendFlags::SOLICITED).to(ah0, num3, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 28
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x1c00000000, &[mem0.sge(1152, 128), mem0.sge(1576, 128)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    verbs.post_send(qp0, &[SendWr::new(0x1d00000000, SendOp::RdmaWrite { remote: mem0.remote(1304) }, &[mem3.sge(688, 256)]).unsignaled(), SendWr::new(0x1d00000001, SendOp::Send, &[mem3.sge(48, 8)]).flags(SendFlags::FENCE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1a00000000, WcStatus::Success), (0x1a00000001, WcStatus::Success), (0x1d00000000, WcStatus::Success), (0x1d00000001, WcStatus::Success)]);
    // Call 31
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 32
    let error = verbs.post_recv(qp3, &[RecvWr::new(0x2000000000, &[mem2.sge(3312, 32), mem2.sge(3376, 32)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 33
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 34
    assert_eq!(verbs.query_qp(qp1, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Rts);
    // Call 35
    verbs.lab().unwrap().settle().unwrap();
    // Call 36
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 37
    verbs.post_recv(qp0, &[RecvWr::new(0x2500000000, &[mem2.sge(2912, 100)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    verbs.post_send(qp1, &[SendWr::new(0x2600000000, SendOp::Send, &[mem0.sge(320, 100)]), SendWr::new(0x2600000001, SendOp::RdmaRead { remote: mem3.remote(120) }, &[mem1.sge(184, 0), mem1.sge(160, 0), mem0.sge(2352, 1)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 39
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2600000000, WcStatus::Success), (0x2600000001, WcStatus::Success)]);
    // Call 40
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1800000000, WcStatus::Success), (0x2500000000, WcStatus::Success)]);
    // Call 41
    verbs.req_notify_cq(cq2, Arm::NEXT).unwrap();
    // Call 42
    verbs.post_send(qp1, &[SendWr::new(0x2a00000000, SendOp::FetchAndAdd { remote: mem2.remote(2352), add: 1 }, &[mem1.sge(168, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 43
    assert_eq!(verbs.query_qp(qp3, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Rts);
    // Call 44
    verbs.post_recv(qp2, &[RecvWr::new(0x2c00000000, &[mem2.sge(2696, 340)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 45
    verbs.post_send(qp3, &[SendWr::new(0x2d00000000, SendOp::SendWithImm { imm_data: [15, 120, 205, 5] }, &[mem2.sge(48, 300)]).unsignaled().to(ah0, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 46
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 47
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2c00000000, WcStatus::Success)]);
    // Call 48
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 49
    // There is no event to acknowledge.
    // Call 50
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2a00000000, WcStatus::Success)]);
    // Call 51
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 52
    let mr4 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem4 = verbs.query_mr(mr4).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(125)).collect();
    verbs.write_mr(mr4, 0, &bytes).unwrap();
    // Call 53
    verbs.post_send(qp0, &[SendWr::new(0x3500000000, SendOp::RdmaWrite { remote: mem1.remote(112) }, &[mem2.sge(1904, 1)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    verbs.post_recv(qp2, &[RecvWr::new(0x3600000000, &[mem4.sge(1480, 52), mem2.sge(2112, 52)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 55
    verbs.post_send(qp3, &[SendWr::new(0x3700000000, SendOp::Send, &[mem4.sge(384, 64)]).to(ah0, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3500000000, WcStatus::Success), (0x3700000000, WcStatus::Success)]);
    // Call 57
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 58
    verbs.post_send(qp3, &[SendWr::new(0x3a00000000, SendOp::Send, &[mem3.sge(728, 4), mem3.sge(744, 4)]).unsignaled().to(ah0, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 59
    verbs.post_recv(qp2, &[RecvWr::new(0x3b00000000, &[mem4.sge(1760, 80)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 60
    verbs.post_send(qp3, &[SendWr::new(0x3c00000000, SendOp::SendWithImm { imm_data: [86, 167, 128, 70] }, &[mem4.sge(520, 40)]).flags(SendFlags::INLINE).to(ah0, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 61
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3c00000000, WcStatus::Success)]);
    // Call 62
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 3);
    // Call 63
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 2);
    // Call 64
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x4000000000, &[mem1.sge(80, 8)]), RecvWr::new(0x4000000001, &[mem1.sge(112, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 65
    verbs.post_send(qp0, &[SendWr::new(0x4100000000, SendOp::RdmaWriteWithImm { remote: mem1.remote(88), imm_data: [109, 44, 112, 224] }, &[mem4.sge(912, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 66
    assert_eq!(poll(cq2, 64).unwrap(), [(0x4100000000, WcStatus::Success)]);
    // Call 67
    assert_eq!(poll(cq4, 64).unwrap(), [(0x1c00000000, WcStatus::Success), (0x4000000000, WcStatus::Success)]);
    // Call 68
    verbs.resize_cq(cq0, 30).unwrap();
    // Call 69
    verbs.post_send(qp0, &[SendWr::new(0x4500000000, SendOp::RdmaWrite { remote: mem0.remote(1072) }, &[mem2.sge(240, 300)]), SendWr::new(0x4500000001, SendOp::Send, &[mem4.sge(792, 4), mem4.sge(880, 4)]).flags(SendFlags::INLINE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 70
    assert_eq!(poll(cq2, 64).unwrap(), [(0x4500000000, WcStatus::Success), (0x4500000001, WcStatus::Success)]);
    // Call 71
    assert_eq!(poll(cq4, 64).unwrap(), [(0x4000000001, WcStatus::Success)]);
    // Call 72
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x4800000000, &[mem0.sge(1912, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 73
    verbs.post_send(qp0, &[SendWr::new(0x4900000000, SendOp::RdmaWrite { remote: mem0.remote(1928) }, &[mem4.sge(696, 33), mem4.sge(144, 33), mem3.sge(48, 34)]), SendWr::new(0x4900000001, SendOp::Send, &[mem2.sge(1488, 150), mem2.sge(1568, 150)]).unsignaled()]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 74
    assert_eq!(verbs.destroy_srq(srq0, Wait::Poll).unwrap_err().kind(), ErrorKind::Busy);
}
#[test]
#[allow(unused)]
fn settled_program_3() {
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
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 12
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 13
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 14
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 15
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 16
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 17
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 18
    let qp3 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 3, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 19
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_READ, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 20
    let qp4 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 21
    let qp5 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 22
    connect::by_attributes(&verbs, qp4, qp5, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    verbs.post_recv(qp5, &[RecvWr::new(0x1700000000, &[mem0.sge(2272, 16)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    verbs.post_send(qp4, &[SendWr::new(0x1800000000, SendOp::Send, &[mem1.sge(160, 16)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 25
    assert_eq!(poll(cq1, 64).unwrap(), [(0x1700000000, WcStatus::Success)]);
    // Call 26
    verbs.post_recv(qp0, &[RecvWr::new(0x1a00000000, &[mem0.sge(2592, 72)]), RecvWr::new(0x1a00000001, &[mem0.sge(2536, 36), mem0.sge(3472, 36)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    assert_eq!(verbs.get_async_event(Context::default(), Wait::Poll).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 28
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    verbs.req_notify_cq(cq0, Arm::NEXT).unwrap();
    // Call 30
    verbs.post_send(qp1, &[SendWr::new(0x1e00000000, SendOp::SendWithImm { imm_data: [45, 137, 175, 25] }, &[mem1.sge(936, 8)]).unsignaled().to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 31
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1800000000, WcStatus::Success)]);
    // Call 32
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 33
    verbs.post_recv(qp5, &[RecvWr::new(0x2100000000, &[mem0.sge(4000, 1)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    verbs.post_send(qp4, &[SendWr::new(0x2200000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(3936), imm_data: [128, 219, 179, 84] }, &[mem1.sge(456, 1)]).flags(SendFlags::INLINE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 35
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2200000000, WcStatus::Success)]);
    // Call 36
    assert_eq!(poll(cq1, 64).unwrap(), [(0x1a00000000, WcStatus::Success), (0x2100000000, WcStatus::Success)]);
    // Call 37
    verbs.write_mr(mr1, 116, &[121; 21]).unwrap();
    // Call 38
    assert_eq!(poll(cq2, 64).unwrap(), []);
}
