#[test]
#[allow(unused)]
fn settled_program_89() {
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
    assert_eq!(verbs.export_dmabuf(pd0.context(), 0).and_then(|fd| verbs.reg_dmabuf_mr(pd0, 0, 0, 0x700000000000, std::os::fd::AsFd::as_fd(&fd), Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ON_DEMAND)).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 5
    let cq0 = verbs.create_cq(context0, &CqInit::new(2).context(0).channel(channel0)).unwrap();
    // Call 6
    let cq1 = verbs.create_cq(context0, &CqInit::new(37).context(1).channel(channel0)).unwrap();
    // Call 7
    let srq0 = verbs.create_srq(pd0, &SrqInit::new(3).max_sge(1)).unwrap();
    // Call 8
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 9
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 10
    let channel1 = verbs.create_comp_channel(context1).unwrap();
    // Call 11
    let mr2 = verbs.alloc_mr(pd1, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 12
    let cq2 = verbs.create_cq(context1, &CqInit::new(15).context(2).channel(channel1)).unwrap();
    // Call 13
    let cq3 = verbs.create_cq(context1, &CqInit::new(39).context(3).channel(channel1)).unwrap();
    // Call 14
    let context2 = verbs.open_device("sim2").unwrap();
    // Call 15
    let pd2 = verbs.alloc_pd(context2).unwrap();
    // Call 16
    let mr3 = verbs.alloc_mr(pd2, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 17
    let mr4 = verbs.alloc_mr(pd2, 192, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ).unwrap();
    let mem4 = verbs.query_mr(mr4).unwrap();
    let bytes: Vec<u8> = (0..192u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(125)).collect();
    verbs.write_mr(mr4, 0, &bytes).unwrap();
    // Call 18
    let cq4 = verbs.create_cq(context2, &CqInit::new(35).context(4)).unwrap();
    // Call 19
    let cq5 = verbs.create_cq(context2, &CqInit::new(3).context(5)).unwrap();
    // Call 20
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 21
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 22
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 23
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 25
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 26
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    verbs.query_rt_values(context2).map(|_| ()).unwrap();
    // Call 28
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    verbs.read_mr(mr3, 1488, &mut [0; 5]).unwrap();
    // Call 30
    let td0 = verbs.alloc_td(context1).unwrap();
    // Call 31
    let pd1 = verbs.alloc_parent_domain(pd1, Some(td0)).unwrap();
    // Call 32
    verbs.destroy_ah(ah0).unwrap();
    // Call 33
    let dm0 = verbs.alloc_dm(context1, &DmInit::new(6152).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..6152u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 34
    let mr2 = verbs.reg_dm_mr(pd1, dm0, 8, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    // Call 35
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 36
    verbs.post_recv(qp1, &[RecvWr::new(0x2400000000, &[mem2.sge(2864, 104)]), RecvWr::new(0x2400000001, &[mem2.sge(2632, 104)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    let error = verbs.post_send(qp0, &[SendWr::new(0x2500000000, SendOp::Send, &[mem0.sge(1832, 32), mem0.sge(656, 32)]).unsignaled().to(ah0, num1, 0x11111111), SendWr::new(0x2500000001, SendOp::Send, &[mem0.sge(1240, 0), mem0.sge(1792, 1)]).flags(SendFlags::FENCE).flags(SendFlags::INLINE).to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 39
    assert_eq!(poll(cq4, 64).unwrap(), []);
    // Call 40
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 41
    verbs.post_recv(qp1, &[RecvWr::new(0x2900000000, &[mem2.sge(3928, 20), mem2.sge(2992, 21)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    let error = verbs.post_send(qp0, &[SendWr::new(0x2a00000000, SendOp::SendWithImm { imm_data: [222, 168, 108, 112] }, &[mem0.sge(1560, 1)]).to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    verbs.lab().unwrap().settle().unwrap();
    // Call 43
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 44
    assert_eq!(verbs.ack_cq_events(cq2, 2).unwrap_err().kind(), ErrorKind::Usage);
    // Call 45
    verbs.copy_to_dm(dm0, 1220, &[225; 32]).unwrap();
    // Call 46
    verbs.req_notify_cq(cq4, Arm::NEXT).unwrap();
    // Call 47
    verbs.post_recv(qp1, &[RecvWr::new(0x2f00000000, &[mem2.sge(2864, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 48
    let error = verbs.post_send(qp0, &[SendWr::new(0x3000000000, SendOp::Send, &[mem0.sge(1608, 50), mem0.sge(1568, 50)]).unsignaled().to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    verbs.lab().unwrap().settle().unwrap();
    // Call 49
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 50
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 51
    verbs.post_recv(qp1, &[RecvWr::new(0x3300000000, &[mem2.sge(3168, 36), mem2.sge(2760, 36)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
}
#[test]
#[allow(unused)]
fn settled_program_105() {
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
    let cq0 = verbs.create_cq(context0, &CqInit::new(26).context(0)).unwrap();
    // Call 5
    assert_eq!(verbs.create_cq(context0, &CqInit::new(-1).context(1).channel(channel0)).unwrap_err().kind(), ErrorKind::Invalid);
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
    let cq2 = verbs.create_cq(context1, &CqInit::new(37).context(2).channel(channel1)).unwrap();
    // Call 11
    let cq3 = verbs.create_cq(context1, &CqInit::new(35).context(3).channel(channel1)).unwrap();
    // Call 12
    let context2 = verbs.open_device("sim2").unwrap();
    // Call 13
    let pd2 = verbs.alloc_pd(context2).unwrap();
    // Call 14
    let channel2 = verbs.create_comp_channel(context2).unwrap();
    // Call 15
    let mr2 = verbs.alloc_mr(pd2, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 16
    let mr3 = verbs.alloc_mr(pd2, 768, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..768u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 17
    let cq4 = verbs.create_cq(context2, &CqInit::new(1).context(4).channel(channel2)).unwrap();
    // Call 18
    let cq5 = verbs.create_cq(context2, &CqInit::new(21).context(5)).unwrap();
    // Call 19
    let srq0 = verbs.create_srq(pd2, &SrqInit::new(15).max_sge(1)).unwrap();
    // Call 20
    let context3 = verbs.open_device("sim3").unwrap();
    // Call 21
    let pd3 = verbs.alloc_pd(context3).unwrap();
    // Call 22
    let channel3 = verbs.create_comp_channel(context3).unwrap();
    // Call 23
    let mr4 = verbs.alloc_mr(pd3, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem4 = verbs.query_mr(mr4).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(125)).collect();
    verbs.write_mr(mr4, 0, &bytes).unwrap();
    // Call 24
    let cq6 = verbs.create_cq(context3, &CqInit::new(28).context(6).channel(channel3)).unwrap();
    // Call 25
    let cq7 = verbs.create_cq(context3, &CqInit::new(34).context(7).channel(channel3)).unwrap();
    // Call 26
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 27
    let qp1 = verbs.create_qp(pd2, &QpInit::new(QpType::Ud, cq4, cq5).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 28
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    let ah0 = verbs.query_gid(context2, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 31
    let ah1 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd2, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 32
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2000000000, &[mem2.sge(3328, 104)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 33
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2100000000, &[mem2.sge(2656, 112)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    verbs.post_send(qp0, &[SendWr::new(0x2200000000, SendOp::Send, &[mem1.sge(664, 4), mem1.sge(920, 4)]).to(ah0, num1, 0x11111111), SendWr::new(0x2200000001, SendOp::Send, &[mem1.sge(592, 64)]).flags(SendFlags::INLINE).to(ah0, num1, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 35
    assert_eq!(verbs.query_qp(qp0, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Rts);
    // Call 36
    verbs.post_recv(qp0, &[RecvWr::new(0x2400000000, &[mem1.sge(1176, 40), mem1.sge(1056, 40)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    verbs.post_send(qp1, &[SendWr::new(0x2500000000, SendOp::SendWithImm { imm_data: [233, 197, 149, 167] }, &[mem3.sge(224, 20), mem3.sge(176, 20)]).to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    let dm0 = verbs.alloc_dm(context1, &DmInit::new(3080).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..3080u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 39
    assert_eq!(verbs.reg_dm_mr(pd3, dm0, 8, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 40
    verbs.post_recv(qp0, &[RecvWr::new(0x2800000000, &[mem1.sge(1320, 56)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    verbs.post_send(qp1, &[SendWr::new(0x2900000000, SendOp::SendWithImm { imm_data: [191, 191, 132, 60] }, &[mem3.sge(16, 4), mem3.sge(224, 4)]).flags(SendFlags::SOLICITED).to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    assert_eq!(poll(cq5, 64).unwrap(), [(0x2000000000, WcStatus::Success), (0x2100000000, WcStatus::Success)]);
    // Call 43
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2b00000000, &[mem2.sge(2256, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 44
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2c00000000, &[mem2.sge(2160, 1040)]), RecvWr::new(0x2c00000001, &[mem2.sge(2424, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 45
    verbs.post_send(qp0, &[SendWr::new(0x2d00000000, SendOp::Send, &[mem1.sge(8, 1000)]).unsignaled().to(ah0, num1, 0x11111111), SendWr::new(0x2d00000001, SendOp::Send, &[]).unsignaled().flags(SendFlags::SOLICITED).to(ah0, num1, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 46
    assert_eq!(poll(cq5, 64).unwrap(), []);
    // Call 47
    verbs.dereg_mr(mr1).unwrap();
    // Call 48
    verbs.free_dm(dm0).unwrap();
    // Call 49
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x3100000000, &[mem2.sge(3616, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    assert_eq!(poll(cq5, 64).unwrap(), []);
    // Call 51
    verbs.query_rt_values(context2).map(|_| ()).unwrap();
    // Call 52
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 53
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 55
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    let ah2 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd2, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 57
    let ah3 = verbs.query_gid(context2, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 58
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2200000000, WcStatus::Success), (0x2200000001, WcStatus::Success)]);
    // Call 59
    verbs.post_recv(qp0, &[RecvWr::new(0x3b00000000, &[mem2.sge(2960, 41)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 60
    verbs.post_send(qp1, &[SendWr::new(0x3c00000000, SendOp::SendWithImm { imm_data: [1, 90, 188, 44] }, &[mem2.sge(552, 1)]).unsignaled().flags(SendFlags::SOLICITED).flags(SendFlags::INLINE).to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 61
    assert_eq!(poll(cq4, 64).unwrap(), [(0x2500000000, WcStatus::Success)]);
    // Call 62
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2400000000, WcStatus::Success), (0x2800000000, WcStatus::Success), (0x3b00000000, WcStatus::LocProtErr)]);
    // Call 63
    assert_eq!(verbs.query_qp_data_in_order(qp1, WrOpcode::LocalInv, InOrderQuery::from_bits_retain(2)).map(|promised| promised.bits()).unwrap(), 0);
}
#[test]
#[allow(unused)]
fn settled_program_123() {
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
    let cq0 = verbs.create_cq(context0, &CqInit::new(18).context(0)).unwrap();
    // Call 4
    let cq1 = verbs.create_cq(context0, &CqInit::new(25).context(1)).unwrap();
    // Call 5
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 6
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 7
    let channel0 = verbs.create_comp_channel(context1).unwrap();
    // Call 8
    let mr1 = verbs.alloc_mr(pd1, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 9
    let mr2 = verbs.alloc_mr(pd1, 192, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ON_DEMAND).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..192u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 10
    let cq2 = verbs.create_cq(context1, &CqInit::new(37).context(2).channel(channel0)).unwrap();
    // Call 11
    let cq3 = verbs.create_cq(context1, &CqInit::new(14).context(3).channel(channel0)).unwrap();
    // Call 12
    let context2 = verbs.open_device("sim2").unwrap();
    // Call 13
    let pd2 = verbs.alloc_pd(context2).unwrap();
    // Call 14
    let channel1 = verbs.create_comp_channel(context2).unwrap();
    // Call 15
    let mr3 = verbs.alloc_mr(pd2, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 16
    let mr4 = verbs.alloc_mr(pd2, 192, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem4 = verbs.query_mr(mr4).unwrap();
    let bytes: Vec<u8> = (0..192u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(125)).collect();
    verbs.write_mr(mr4, 0, &bytes).unwrap();
    // Call 17
    let cq4 = verbs.create_cq(context2, &CqInit::new(24).context(4).channel(channel1)).unwrap();
    // Call 18
    let cq5 = verbs.create_cq(context2, &CqInit::new(9).context(5).channel(channel1)).unwrap();
    // Call 19
    let context3 = verbs.open_device("sim3").unwrap();
    // Call 20
    let pd3 = verbs.alloc_pd(context3).unwrap();
    // Call 21
    let channel2 = verbs.create_comp_channel(context3).unwrap();
    // Call 22
    let mr5 = verbs.alloc_mr(pd3, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem5 = verbs.query_mr(mr5).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(155)).collect();
    verbs.write_mr(mr5, 0, &bytes).unwrap();
    // Call 23
    let mr6 = verbs.alloc_mr(pd3, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ).unwrap();
    let mem6 = verbs.query_mr(mr6).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(187)).collect();
    verbs.write_mr(mr6, 0, &bytes).unwrap();
    // Call 24
    let cq6 = verbs.create_cq(context3, &CqInit::new(36).context(6).channel(channel2)).unwrap();
    // Call 25
    let cq7 = verbs.create_cq(context3, &CqInit::new(3).context(7).channel(channel2)).unwrap();
    // Call 26
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 27
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 28
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 30
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 31
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 32
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 33
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 34
    connect::ud_to_rts(&verbs, qp2, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 35
    connect::ud_to_rts(&verbs, qp3, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 36
    let ah2 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 37
    let ah3 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 38
    let qp4 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 39
    let qp5 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 40
    connect::ud_to_rts(&verbs, qp4, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    connect::ud_to_rts(&verbs, qp5, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    let ah4 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 43
    let ah5 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 44
    verbs.query_ece(qp2).and_then(|own| verbs.set_ece(qp2, &Ece { options: 0xffffffff, ..own })).unwrap();
    // Call 45
    verbs.write_mr(mr0, 6, &[86; 5]).unwrap();
    // Call 46
    verbs.resize_cq(cq2, 4).unwrap();
    // Call 47
    verbs.req_notify_cq(cq5, Arm::NEXT).unwrap();
    // Call 48
    verbs.post_recv(qp0, &[RecvWr::new(0x3000000000, &[mem0.sge(1616, 80)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 49
    verbs.post_recv(qp0, &[RecvWr::new(0x3100000000, &[mem0.sge(1896, 80)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    verbs.post_send(qp1, &[SendWr::new(0x3200000000, SendOp::Send, &[mem2.sge(8, 20), mem1.sge(1288, 20)]).unsignaled().to(ah1, num0, 0x11111111), SendWr::new(0x3200000001, SendOp::Send, &[]).to(ah1, num0, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 51
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3200000001, WcStatus::Success)]);
    // Call 52
    assert_eq!(poll(cq1, 64).unwrap(), [(0x3000000000, WcStatus::Success), (0x3100000000, WcStatus::Success)]);
    // Call 53
    assert_eq!(verbs.get_cq_event(channel2, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 54
    verbs.resize_cq(cq6, 30).unwrap();
    // Call 55
    verbs.destroy_qp(qp0, Wait::Poll).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    assert_eq!(poll(cq7, 64).unwrap(), []);
    // Call 57
    let td0 = verbs.alloc_td(context2).unwrap();
    // Call 58
    let pd2 = verbs.alloc_parent_domain(pd2, Some(td0)).unwrap();
    // Call 59
    verbs.lab().unwrap().settle().unwrap();
    // Call 60
    assert_eq!(verbs.query_cq(cq2).map(|attr| attr.cqe).unwrap(), 4);
    // Call 61
    verbs.resize_cq(cq7, 30).unwrap();
    // Call 62
    verbs.post_send(qp2, &[SendWr::new(0x3e00000000, SendOp::SendWithImm { imm_data: [181, 239, 35, 91] }, &[mem0.sge(24, 1000)]).unsignaled().to(ah0, num3, 0x1)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 63
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 64
    verbs.post_recv(qp3, &[RecvWr::new(0x4000000000, &[mem1.sge(2760, 148)]), RecvWr::new(0x4000000001, &[mem1.sge(2968, 148)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 65
    verbs.post_send(qp2, &[SendWr::new(0x4100000000, SendOp::SendWithImm { imm_data: [202, 158, 206, 81] }, &[mem0.sge(40, 50), mem0.sge(96, 50)]).to(ah0, num3, 0x11111111), SendWr::new(0x4100000001, SendOp::SendWithImm { imm_data: [152, 230, 238, 51] }, &[mem0.sge(768, 50), mem0.sge(272, 50)]).to(ah0, num3, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 66
    assert_eq!(poll(cq3, 64).unwrap(), [(0x4000000000, WcStatus::Success), (0x4000000001, WcStatus::Success)]);
    // Call 67
    verbs.lab().unwrap().settle().unwrap();
    // Call 68
    assert_eq!(poll(cq4, 64).unwrap(), []);
    // Call 69
    let td1 = verbs.alloc_td(context2).unwrap();
    // Call 70
    let pd2 = verbs.alloc_parent_domain(pd2, Some(td1)).unwrap();
    // Call 71
    assert_eq!(verbs.ack_cq_events(cq5, 2).unwrap_err().kind(), ErrorKind::Usage);
    // Call 72
    let ah6 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 73
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 74
    verbs.post_recv(qp4, &[RecvWr::new(0x4a00000000, &[mem0.sge(1664, 41)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 75
    verbs.post_send(qp5, &[SendWr::new(0x4b00000000, SendOp::Send, &[mem1.sge(632, 1)]).flags(SendFlags::SOLICITED).to(ah1, num4, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 76
    assert_eq!(poll(cq2, 64).unwrap(), [(0x4b00000000, WcStatus::Success)]);
    // Call 77
    assert_eq!(poll(cq1, 64).unwrap(), [(0x4a00000000, WcStatus::Success)]);
    // Call 78
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 79
    verbs.lab().unwrap().settle().unwrap();
    // Call 80
    verbs.post_recv(qp4, &[RecvWr::new(0x5000000000, &[mem0.sge(1640, 48)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 81
    verbs.post_send(qp5, &[SendWr::new(0x5100000000, SendOp::Send, &[mem1.sge(600, 8)]).to(ah1, num4, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 82
    let dm0 = verbs.alloc_dm(context3, &DmInit::new(3080).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..3080u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 83
    let mr5 = verbs.reg_dm_mr(pd3, dm0, 8, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap();
    let mem5 = verbs.query_mr(mr5).unwrap();
    // Call 84
    verbs.post_recv(qp5, &[RecvWr::new(0x5400000000, &[mem1.sge(3848, 148)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 85
    verbs.post_send(qp4, &[SendWr::new(0x5500000000, SendOp::Send, &[mem0.sge(712, 100)]).to(ah0, num5, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 86
    assert_eq!(verbs.copy_to_dm(dm0, 1951, &[242; 4]).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 87
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 88
    verbs.post_recv(qp5, &[RecvWr::new(0x5800000000, &[mem2.sge(64, 48)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 89
    verbs.post_send(qp4, &[SendWr::new(0x5900000000, SendOp::Send, &[mem0.sge(792, 8)]).flags(SendFlags::FENCE).to(ah0, num5, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 90
    assert_eq!(poll(cq0, 64).unwrap(), [(0x4100000000, WcStatus::Success), (0x4100000001, WcStatus::Success), (0x5500000000, WcStatus::Success), (0x5900000000, WcStatus::Success)]);
    // Call 91
    verbs.copy_from_dm(dm0, 2916, &mut [0; 8]).unwrap();
    // Call 92
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 93
    // There is no event to acknowledge.
    // Call 94
    assert_eq!(poll(cq6, 64).unwrap(), []);
    // Call 95
    verbs.post_recv(qp3, &[RecvWr::new(0x5f00000000, &[mem1.sge(2096, 170)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 96
    verbs.post_send(qp2, &[SendWr::new(0x6000000000, SendOp::Send, &[mem0.sge(784, 100), mem0.sge(424, 100), mem0.sge(704, 100)]).flags(SendFlags::SOLICITED).to(ah0, num3, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 97
    assert_eq!(poll(cq0, 64).unwrap(), [(0x6000000000, WcStatus::Success)]);
    // Call 98
    verbs.req_notify_cq(cq1, Arm::NEXT).unwrap();
    // Call 99
    verbs.post_recv(qp2, &[RecvWr::new(0x6300000000, &[mem0.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 100
    verbs.post_recv(qp2, &[RecvWr::new(0x6400000000, &[mem0.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 101
    verbs.post_recv(qp2, &[RecvWr::new(0x6500000000, &[mem0.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 102
    let error = verbs.post_send(qp3, &[SendWr::new(0x6600000000, SendOp::SendWithImm { imm_data: [169, 75, 234, 92] }, &[mem1.sge(400, 100)]).flags(SendFlags::SOLICITED).to(ah1, num2, 0x11111111), SendWr::new(0x6600000001, SendOp::Send, &[mem1.sge(1072, 0)]).flags(SendFlags::SOLICITED).flags(SendFlags::INLINE).to(ah1, num2, 0x11111111), SendWr::new(0x6600000002, SendOp::Send, &[mem1.sge(856, 300)]).to(ah1, num2, 0x11111111), SendWr::new(0x6600000003, SendOp::SendWithImm { imm_data: [228, 46, 50, 49] }, &[mem1.sge(1264, 333), mem1.sge(280, 333), mem1.sge(712, 334)]).flags(SendFlags::FENCE).to(ah1, num2, 0x11111111), SendWr::new(0x6600000004, SendOp::Send, &[mem1.sge(320, 8)]).unsignaled().to(ah1, num2, 0x11111111), SendWr::new(0x6600000005, SendOp::SendWithImm { imm_data: [109, 70, 179, 213] }, &[mem1.sge(224, 1000)]).unsignaled().to(ah1, num2, 0x11111111), SendWr::new(0x6600000006, SendOp::SendWithImm { imm_data: [140, 130, 241, 213] }, &[mem1.sge(512, 256)]).to(ah1, num2, 0x11111111), SendWr::new(0x6600000007, SendOp::Send, &[mem2.sge(24, 40)]).unsignaled().to(ah1, num2, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (7, ErrorKind::NoMemory));
    verbs.lab().unwrap().settle().unwrap();
    // Call 103
    assert_eq!(poll(cq2, 64).unwrap(), [(0x5100000000, WcStatus::Success), (0x6600000000, WcStatus::Success), (0x6600000001, WcStatus::Success), (0x6600000002, WcStatus::Success)]);
    // Call 104
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 3);
    // Call 105
    let modify = QpModify::to(QpState::Rtr);
    assert_eq!(verbs.modify_qp(qp4, &modify.attr, modify.mask).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 106
    verbs.copy_from_dm(dm0, 312, &mut [0; 8]).unwrap();
}
#[test]
#[allow(unused)]
fn settled_program_131() {
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
    let mr0 = verbs.alloc_mr(pd0, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem0 = verbs.query_mr(mr0).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.write_mr(mr0, 0, &bytes).unwrap();
    // Call 3
    let cq0 = verbs.create_cq(context0, &CqInit::new(1).context(0)).unwrap();
    // Call 4
    let cq1 = verbs.create_cq(context0, &CqInit::new(19).context(1)).unwrap();
    // Call 5
    let context1 = verbs.open_device("sim1").unwrap();
    // Call 6
    let pd1 = verbs.alloc_pd(context1).unwrap();
    // Call 7
    let channel0 = verbs.create_comp_channel(context1).unwrap();
    // Call 8
    let mr1 = verbs.alloc_mr(pd1, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    let bytes: Vec<u8> = (0..6144u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(31)).collect();
    verbs.write_mr(mr1, 0, &bytes).unwrap();
    // Call 9
    let mr2 = verbs.alloc_mr(pd1, 192, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ON_DEMAND).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..192u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 10
    let cq2 = verbs.create_cq(context1, &CqInit::new(23).context(2).channel(channel0)).unwrap();
    // Call 11
    let cq3 = verbs.create_cq(context1, &CqInit::new(2).context(3).channel(channel0)).unwrap();
    // Call 12
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Uc, cq2, cq3).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 13
    let qp1 = verbs.create_qp(pd0, &QpInit::new(QpType::Uc, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 14
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 15
    verbs.lab().unwrap().settle().unwrap();
    // Call 16
    let dm0 = verbs.alloc_dm(context1, &DmInit::new(6152).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..6152u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 17
    let mr1 = verbs.reg_dm_mr(pd1, dm0, 8, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    // Call 18
    verbs.req_notify_cq(cq0, Arm::SOLICITED).unwrap();
    // Call 19
    verbs.copy_from_dm(dm0, 5520, &mut [0; 32]).unwrap();
    // Call 20
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 21
    verbs.copy_to_dm(dm0, 1232, &[209; 8]).unwrap();
    // Call 22
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 23
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x1700000000, &[mem0.sge(3608, 4), mem0.sge(3880, 4)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    verbs.lab().unwrap().settle().unwrap();
    // Call 24
    verbs.post_send(qp0, &[SendWr::new(0x1800000000, SendOp::Send, &[mem2.sge(32, 8)]).flags(SendFlags::FENCE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 25
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1800000000, WcStatus::Success)]);
    // Call 26
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 27
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 28
    verbs.post_send(qp0, &[SendWr::new(0x1c00000000, SendOp::RdmaWrite { remote: mem0.remote(3280) }, &[mem2.sge(8, 33), mem2.sge(0, 33), mem2.sge(16, 34)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 29
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1c00000000, WcStatus::Success)]);
    // Call 30
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 31
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 32
    verbs.copy_from_dm(dm0, 2404, &mut [0; 32]).unwrap();
    // Call 33
    let modify = QpModify::to(QpState::Sqd);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    assert_eq!(verbs.ack_cq_events(cq1, 2).unwrap_err().kind(), ErrorKind::Usage);
    // Call 35
    verbs.req_notify_cq(cq2, Arm::SOLICITED).unwrap();
    // Call 36
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 37
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    connect::by_attributes(&verbs, qp1, qp0, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 39
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 40
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 41
    let modify = QpModify::to(QpState::Rts);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    verbs.post_recv(qp0, &[RecvWr::new(0x2a00000000, &[mem2.sge(80, 40)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 43
    verbs.post_recv(qp0, &[RecvWr::new(0x2b00000000, &[mem2.sge(72, 40)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 44
    verbs.post_send(qp1, &[SendWr::new(0x2c00000000, SendOp::RdmaWriteWithImm { remote: mem2.remote(64), imm_data: [8, 128, 56, 182] }, &[mem0.sge(1368, 40)]), SendWr::new(0x2c00000001, SendOp::Send, &[mem0.sge(1440, 0), mem0.sge(1768, 0)]).unsignaled().flags(SendFlags::FENCE)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 45
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2c00000000, WcStatus::Success)]);
    // Call 46
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 3);
}
#[test]
#[allow(unused)]
fn settled_program_245() {
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
    let cq0 = verbs.create_cq(context0, &CqInit::new(27).context(0).channel(channel0)).unwrap();
    // Call 5
    let cq1 = verbs.create_cq(context0, &CqInit::new(26).context(1).channel(channel0)).unwrap();
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
    let cq2 = verbs.create_cq(context1, &CqInit::new(3).context(2).channel(channel1)).unwrap();
    // Call 11
    let cq3 = verbs.create_cq(context1, &CqInit::new(13).context(3).channel(channel1)).unwrap();
    // Call 12
    let srq0 = verbs.create_srq(pd1, &SrqInit::new(15).max_sge(1)).unwrap();
    // Call 13
    let mr2 = verbs.alloc_mr(pd0, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::FLUSH_GLOBAL).unwrap();
    let mem2 = verbs.query_mr(mr2).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(63)).collect();
    verbs.write_mr(mr2, 0, &bytes).unwrap();
    // Call 14
    let mr3 = verbs.alloc_mr(pd1, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::FLUSH_GLOBAL).unwrap();
    let mem3 = verbs.query_mr(mr3).unwrap();
    let bytes: Vec<u8> = (0..3072u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(93)).collect();
    verbs.write_mr(mr3, 0, &bytes).unwrap();
    // Call 15
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).send_ops(SendOps::from_bits_retain(0x1815))).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 16
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).send_ops(SendOps::from_bits_retain(0x1815))).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 17
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu256, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::FLUSH_GLOBAL, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 18
    assert_eq!(verbs.ack_cq_events(cq0, 1).unwrap_err().kind(), ErrorKind::Usage);
    // Call 19
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 20
    verbs.write_mr(mr1, 602, &[109; 28]).unwrap();
    // Call 21
    verbs.post_send(qp1, &[SendWr::new(0x1500000000, SendOp::RdmaWrite { remote: mem2.remote(1576) }, &[mem3.sge(448, 256)]).unsignaled()]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 22
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 23
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 24
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 25
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 26
    verbs.post_batch(qp0, &[SendWr::new(0x1a00000000, SendOp::RdmaWrite { remote: mem1.remote(1696) }, &[mem2.sge(672, 256)]).unsignaled()], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 27
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 28
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 29
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 30
    verbs.post_batch(qp0, &[SendWr::new(0x1e00000000, SendOp::AtomicWrite { remote: mem3.remote(1024), value: [0, 0, 0, 0, 55, 159, 211, 119] }, &[]).unsignaled(), SendWr::new(0x1e00000001, SendOp::Flush { remote: mem3.remote(1024), length: 8, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Range }, &[])], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 31
    assert_eq!(poll(cq0, 64).unwrap(), [(0x1e00000001, WcStatus::Success)]);
    // Call 32
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 33
    verbs.post_batch(qp1, &[SendWr::new(0x2100000000, SendOp::RdmaWrite { remote: mem2.remote(1024) }, &[mem3.sge(0, 1000)]), SendWr::new(0x2100000001, SendOp::Flush { remote: mem2.remote(1024), length: 8, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[])], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 34
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2100000000, WcStatus::Success), (0x2100000001, WcStatus::Success)]);
    // Call 35
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 36
    verbs.modify_srq(srq0, &SrqAttr { srq_limit: 0, ..SrqAttr::default() }, SrqAttrMask::LIMIT).unwrap();
    // Call 37
    verbs.post_batch(qp0, &[SendWr::new(0x2500000000, SendOp::Flush { remote: mem3.remote(1024), length: 8, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[]), SendWr::new(0x2500000001, SendOp::AtomicWrite { remote: mem3.remote(1024), value: [0, 0, 0, 0, 130, 222, 83, 249] }, &[]).unsignaled().flags(SendFlags::FENCE)], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 38
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2500000000, WcStatus::Success)]);
    // Call 39
    assert_eq!(poll(cq3, 64).unwrap(), []);
    // Call 40
    verbs.post_recv(qp1, &[RecvWr::new(0x2800000000, &[mem3.sge(1072, 4), mem1.sge(1024, 4)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    verbs.post_batch(qp0, &[SendWr::new(0x2900000000, SendOp::Send, &[mem2.sge(752, 8)]).unsignaled().flags(SendFlags::SOLICITED).flags(SendFlags::INLINE), SendWr::new(0x2900000001, SendOp::Flush { remote: mem3.remote(1024), length: 16, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[])], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 42
    verbs.post_batch(qp1, &[SendWr::new(0x2a00000000, SendOp::Flush { remote: mem2.remote(1024), length: 8, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[]), SendWr::new(0x2a00000001, SendOp::RdmaWrite { remote: mem2.remote(1024) }, &[mem1.sge(544, 0), mem1.sge(784, 0), mem3.sge(688, 0)]).unsignaled()], BatchEnd::Complete).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 43
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 44
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 45
    connect::ud_to_rts(&verbs, qp2, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 46
    connect::ud_to_rts(&verbs, qp3, 1, 0x11111111).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 47
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 48
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 49
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x3100000000, &[mem1.sge(1696, 170)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 50
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x3200000000, &[mem3.sge(1696, 340)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 51
    verbs.post_send(qp2, &[SendWr::new(0x3300000000, SendOp::Send, &[mem0.sge(376, 150), mem0.sge(160, 150)]).to(ah0, num3, 0x11111111), SendWr::new(0x3300000001, SendOp::SendWithImm { imm_data: [175, 194, 240, 147] }, &[mem0.sge(424, 256)]).flags(SendFlags::SOLICITED).to(ah0, num3, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 52
    verbs.post_recv(qp2, &[RecvWr::new(0x3400000000, &[mem0.sge(1024, 1048)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 53
    verbs.post_recv(qp2, &[RecvWr::new(0x3500000000, &[mem2.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 54
    verbs.post_recv(qp2, &[RecvWr::new(0x3600000000, &[mem0.sge(1024, 1040)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 55
    verbs.post_send(qp3, &[SendWr::new(0x3700000000, SendOp::Send, &[mem1.sge(16, 1000)]).flags(SendFlags::SOLICITED).to(ah1, num2, 0x11111111), SendWr::new(0x3700000001, SendOp::SendWithImm { imm_data: [134, 250, 55, 88] }, &[mem1.sge(128, 256)]).unsignaled().to(ah1, num2, 0x11111111), SendWr::new(0x3700000002, SendOp::Send, &[mem1.sge(784, 1)]).flags(SendFlags::INLINE).to(ah1, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 56
    assert_eq!(verbs.get_async_event(context0, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 57
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2800000000, WcStatus::Success)]);
    // Call 58
    let error = verbs.post_recv(qp2, &[RecvWr::new(0x3a00000000, &[mem2.sge(1192, 64)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    verbs.lab().unwrap().settle().unwrap();
    // Call 59
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x3b00000000, &[mem1.sge(1896, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 60
    verbs.post_recv(qp0, &[RecvWr::new(0x3c00000000, &[mem2.sge(1464, 64)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 61
    assert_eq!(poll(cq1, 64).unwrap(), [(0x3400000000, WcStatus::Success), (0x3500000000, WcStatus::Success), (0x3600000000, WcStatus::Success)]);
    // Call 62
    verbs.post_recv(qp2, &[RecvWr::new(0x3e00000000, &[mem0.sge(1648, 348)]), RecvWr::new(0x3e00000001, &[mem0.sge(1648, 348)])]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 63
    verbs.post_send(qp3, &[SendWr::new(0x3f00000000, SendOp::SendWithImm { imm_data: [44, 63, 251, 16] }, &[mem3.sge(552, 300)]).to(ah1, num2, 0x11111111), SendWr::new(0x3f00000001, SendOp::Send, &[mem3.sge(328, 16)]).to(ah1, num2, 0x11111111)]).unwrap();
    verbs.lab().unwrap().settle().unwrap();
    // Call 64
    assert_eq!(poll(cq2, 64).unwrap(), [(0x2a00000000, WcStatus::Success), (0x3700000000, WcStatus::Success), (0x3700000002, WcStatus::Success)]);
    // Call 65
    assert_eq!(poll(cq1, 64).unwrap(), [(0x3e00000000, WcStatus::Success)]);
    // Call 66
    assert_eq!(verbs.ack_cq_events(cq3, 1).unwrap_err().kind(), ErrorKind::Usage);
}
