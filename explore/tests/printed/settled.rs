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
    verbs.write_mr(mr2, 380, &[151; 30]).unwrap();
    // Call 34
    verbs.post_recv(qp1, &[RecvWr::new(0x2200000000, &[mem1.sge(1360, 104)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 35
    verbs.post_send(qp0, &[SendWr::new(0x2300000000, SendOp::SendWithImm { imm_data: [101, 112, 11, 82] }, &[mem1.sge(872, 64)]).to(ah0, num1, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 36
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1900000000, WcStatus::Success), (0x1900000001, WcStatus::Success), (0x1900000002, WcStatus::Success), (0x1900000003, WcStatus::Success), (0x1900000004, WcStatus::Success), (0x1900000006, WcStatus::Success), (0x2300000000, WcStatus::Success)]);
    // Call 37
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2200000000, WcStatus::Success)]);
    // Call 38
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 39
    verbs.post_recv(qp0, &[RecvWr::new(0x2700000000, &[mem1.sge(1424, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 40
    let error = verbs.post_send(qp0, &[SendWr::new(0x2800000000, SendOp::RdmaWrite { remote: mem1.remote(1664) }, &[mem1.sge(752, 1)]).unsignaled().to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 41
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 42
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 43
    verbs.destroy_qp(qp2, Wait::Poll).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 44
    assert_eq!(verbs.query_cq(cq2).map(|attr| attr.cqe).unwrap(), 40);
    // Call 45
    verbs.dereg_mr(mr1).unwrap();
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
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 15
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 16
    verbs.post_recv(qp0, &[RecvWr::new(0x1000000000, &[mem3.sge(3768, 16)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 17
    verbs.post_send(qp1, &[SendWr::new(0x1100000000, SendOp::Send, &[mem3.sge(1472, 0)]).unsignaled(), SendWr::new(0x1100000001, SendOp::RdmaRead { remote: mem3.remote(960) }, &[mem3.sge(4952, 8)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 18
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1000000000, WcStatus::Success)]);
    // Call 19
    verbs.post_send(qp1, &[SendWr::new(0x1300000000, SendOp::SendWithImm { imm_data: [21, 1, 58, 29] }, &[mem2.sge(952, 0), mem3.sge(56, 1)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 20
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 21
    verbs.post_recv(qp1, &[RecvWr::new(0x1500000000, &[mem3.sge(2128, 1000)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 22
    verbs.post_recv(qp1, &[RecvWr::new(0x1600000000, &[mem2.sge(1496, 500), mem2.sge(1328, 500)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    verbs.post_send(qp0, &[SendWr::new(0x1700000000, SendOp::SendWithImm { imm_data: [109, 32, 187, 163] }, &[mem3.sge(496, 16)]).unsignaled(), SendWr::new(0x1700000001, SendOp::Send, &[mem3.sge(40, 1000)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1100000001, WcStatus::Success), (0x1300000000, WcStatus::RnrRetryExcErr), (0x1700000000, WcStatus::RetryExcErr), (0x1700000001, WcStatus::WrFlushErr)]);
    // Call 25
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 26
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 27
    verbs.post_recv(qp0, &[RecvWr::new(0x1b00000000, &[mem3.sge(2856, 1000)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 28
    verbs.post_send(qp1, &[SendWr::new(0x1c00000000, SendOp::Send, &[mem2.sge(0, 1000)]), SendWr::new(0x1c00000001, SendOp::RdmaWrite { remote: mem2.remote(1280) }, &[mem3.sge(1776, 40)]).unsignaled().flags(SendFlags::INLINE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1c00000000, WcStatus::WrFlushErr), (0x1c00000001, WcStatus::WrFlushErr)]);
    // Call 30
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1500000000, WcStatus::WrFlushErr), (0x1600000000, WcStatus::WrFlushErr), (0x1b00000000, WcStatus::WrFlushErr)]);
    // Call 31
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 32
    verbs.post_send(qp0, &[SendWr::new(0x2000000000, SendOp::RdmaWrite { remote: mem3.remote(3976) }, &[mem3.sge(384, 50), mem2.sge(432, 50)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 33
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 35
    verbs.post_recv(qp0, &[RecvWr::new(0x2300000000, &[mem3.sge(3552, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 36
    verbs.post_recv(qp0, &[RecvWr::new(0x2400000000, &[mem2.sge(1048, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    verbs.post_recv(qp0, &[RecvWr::new(0x2500000000, &[mem2.sge(1576, 300)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    verbs.post_send(qp1, &[SendWr::new(0x2600000000, SendOp::Send, &[mem2.sge(80, 16)]).unsignaled().flags(SendFlags::SOLICITED), SendWr::new(0x2600000001, SendOp::Send, &[mem3.sge(1992, 8), mem2.sge(992, 8)]).flags(SendFlags::SOLICITED), SendWr::new(0x2600000002, SendOp::Send, &[mem3.sge(1640, 8)]).flags(SendFlags::INLINE), SendWr::new(0x2600000003, SendOp::Send, &[mem2.sge(176, 100)]), SendWr::new(0x2600000004, SendOp::CompareAndSwap { remote: mem3.remote(3800), compare: 2, swap: 3 }, &[mem2.sge(2968, 8)]), SendWr::new(0x2600000005, SendOp::RdmaRead { remote: mem3.remote(1064) }, &[mem3.sge(4944, 300)]).unsignaled(), SendWr::new(0x2600000006, SendOp::RdmaRead { remote: mem3.remote(1096) }, &[mem2.sge(2168, 8)]).unsignaled().flags(SendFlags::FENCE).flags(SendFlags::SOLICITED)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 39
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2000000000, WcStatus::WrFlushErr), (0x2600000000, WcStatus::WrFlushErr), (0x2600000001, WcStatus::WrFlushErr), (0x2600000002, WcStatus::WrFlushErr), (0x2600000003, WcStatus::WrFlushErr), (0x2600000004, WcStatus::WrFlushErr), (0x2600000005, WcStatus::WrFlushErr), (0x2600000006, WcStatus::WrFlushErr)]);
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 15
    let cq4 = verbs.create_cq(context0, &CqInit::new(16).context(4)).unwrap();
    // Call 16
    let qp1 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq4).cap(QpCap { max_send_wr: 3, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 17
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 18
    let cq5 = verbs.create_cq(context0, &CqInit::new(16).context(5)).unwrap();
    // Call 19
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq5).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).srq(srq0).sq_sig_all()).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 20
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 21
    connect::ud_to_rts(&verbs, qp2, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 22
    connect::ud_to_rts(&verbs, qp3, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 24
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 25
    verbs.post_recv(qp3, &[RecvWr::new(0x1900000000, &[mem2.sge(3640, 340)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 26
    verbs.post_recv(qp3, &[RecvWr::new(0x1a00000000, &[mem2.sge(3416, 340)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    verbs.post_send(qp2, &[SendWr::new(0x1b00000000, SendOp::Send, &[mem0.sge(48, 300)]).unsignaled().to(ah0, num3, 0x11111111), SendWr::new(0x1b00000001, SendOp::Send, &[mem0.sge(592, 16)]).flags(SendFlags::FENCE).flags(SendFlags::SOLICITED).flags(SendFlags::INLINE).to(ah0, 0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 28
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1b00000000, WcStatus::Success), (0x1b00000001, WcStatus::Success)]);
    // Call 29
    let qp4 = verbs.create_qp(pd1, &QpInit::new(QpType::Uc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 30
    let cq6 = verbs.create_cq(context0, &CqInit::new(16).context(6)).unwrap();
    // Call 31
    let qp5 = verbs.create_qp(pd0, &QpInit::new(QpType::Uc, cq0, cq6).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 32
    connect::by_attributes(&verbs, qp4, qp5, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 33
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2100000000, &[mem1.sge(96, 32), mem1.sge(72, 32)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1900000000, WcStatus::Success)]);
    // Call 35
    verbs.write_mr(mr3, 227, &[143; 23]).unwrap();
    // Call 36
    verbs.post_send(qp5, &[SendWr::new(0x2400000000, SendOp::RdmaWrite { remote: mem2.remote(3728) }, &[mem0.sge(632, 8)]).unsignaled(), SendWr::new(0x2400000001, SendOp::RdmaWrite { remote: mem2.remote(2720) }, &[mem0.sge(624, 5), mem0.sge(616, 5), mem0.sge(24, 6)]).unsignaled().flags(SendFlags::SOLICITED)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    verbs.post_send(qp0, &[SendWr::new(0x2500000000, SendOp::RdmaWriteWithImm { remote: mem1.remote(64), imm_data: [115, 86, 20, 31] }, &[])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2500000000, WcStatus::Success)]);
    // Call 39
    verbs.post_recv(qp5, &[RecvWr::new(0x2700000000, &[mem0.sge(1896, 72)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 40
    verbs.post_recv(qp4, &[RecvWr::new(0x2800000000, &[mem2.sge(3816, 64)]), RecvWr::new(0x2800000001, &[mem2.sge(2976, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    verbs.post_send(qp5, &[SendWr::new(0x2900000000, SendOp::RdmaWrite { remote: mem2.remote(3272) }, &[mem0.sge(712, 64)]), SendWr::new(0x2900000001, SendOp::RdmaWriteWithImm { remote: mem2.remote(3704), imm_data: [3, 116, 77, 125] }, &[mem0.sge(32, 40)]).flags(SendFlags::INLINE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2900000000, WcStatus::Success), (0x2900000001, WcStatus::Success)]);
    // Call 43
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2800000000, WcStatus::Success)]);
    // Call 44
    verbs.dereg_mr(mr3).unwrap();
    // Call 45
    verbs.dereg_mr(mr2).unwrap();
    // Call 46
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2e00000000, &[mem0.sge(1288, 0)]), RecvWr::new(0x2e00000001, &[])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 47
    verbs.post_send(qp0, &[SendWr::new(0x2f00000000, SendOp::SendWithImm { imm_data: [208, 249, 250, 117] }, &[])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 48
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2f00000000, WcStatus::Success)]);
    // Call 49
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    assert_eq!(verbs.query_cq(cq3).map(|attr| attr.cqe).unwrap(), 27);
    // Call 51
    verbs.post_recv(qp5, &[RecvWr::new(0x3300000000, &[mem0.sge(1416, 150), mem0.sge(1656, 150)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 52
    let error = verbs.post_send(qp4, &[SendWr::new(0x3400000000, SendOp::SendWithImm { imm_data: [65, 89, 242, 78] }, &[mem3.sge(248, 300)]).unsignaled(), SendWr::new(0x3400000001, SendOp::RdmaWriteWithImm { remote: mem0.remote(1128), imm_data: [228, 147, 126, 33] }, &[mem3.sge(864, 1)]).unsignaled().flags(SendFlags::INLINE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::Fault));
    verbs.lab().unwrap().settle().unwrap();
    // Call 53
    verbs.post_send(qp0, &[SendWr::new(0x3500000000, SendOp::FetchAndAdd { remote: mem0.remote(1032), add: 1 }, &[mem2.sge(4688, 4)]).flags(SendFlags::FENCE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3400000000, WcStatus::LocProtErr), (0x3500000000, WcStatus::LocLenErr)]);
    // Call 55
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 56
    assert_eq!(verbs.get_async_event(context0, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 57
    // There is no event to acknowledge.
    // Call 58
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 59
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 60
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 61
    verbs.lab().unwrap().settle().unwrap();
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
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 18
    let qp3 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 19
    connect::by_attributes(&verbs, qp2, qp3, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 20
    let qp4 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 21
    let qp5 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 22
    connect::ud_to_rts(&verbs, qp4, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    connect::ud_to_rts(&verbs, qp5, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    let ah2 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 25
    let ah3 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 26
    verbs.resize_cq(cq3, 30).unwrap();
    // Call 27
    verbs.write_mr(mr0, 483, &[91; 16]).unwrap();
    // Call 28
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 29
    verbs.destroy_qp(qp4, Wait::Poll).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 31
    verbs.post_recv(qp2, &[RecvWr::new(0x1f00000000, &[mem0.sge(2568, 148), mem0.sge(2360, 148)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 32
    verbs.post_recv(qp0, &[RecvWr::new(0x2000000000, &[mem0.sge(2240, 148), mem0.sge(2312, 148)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 33
    verbs.post_send(qp1, &[SendWr::new(0x2100000000, SendOp::Send, &[mem1.sge(344, 256)]).to(ah1, num0, 0x11111111), SendWr::new(0x2100000001, SendOp::SendWithImm { imm_data: [131, 232, 91, 148] }, &[mem1.sge(16, 8)]).to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2100000000, WcStatus::Success), (0x2100000001, WcStatus::Success)]);
    // Call 35
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 36
    verbs.post_recv(qp2, &[RecvWr::new(0x2400000000, &[mem0.sge(3208, 0)]), RecvWr::new(0x2400000001, &[])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    verbs.post_send(qp3, &[SendWr::new(0x2500000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(2856), imm_data: [137, 159, 37, 94] }, &[]).flags(SendFlags::INLINE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2500000000, WcStatus::Success)]);
}
