#[test]
#[allow(unused)]
fn free_program_89() {
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
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq0).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 21
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq3, cq2).cap(QpCap { max_send_wr: 3, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 22
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 23
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
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
    assert_eq!(poll(cq3, 0).unwrap(), []);
    // Call 36
    assert_eq!(poll(cq3, 2).unwrap(), []);
    // Call 37
    verbs.post_recv(qp0, &[RecvWr::new(0x2500000000, &[mem0.sge(4000, 24), mem0.sge(3024, 24)])]).unwrap();
    // Call 38
    verbs.post_send(qp1, &[SendWr::new(0x2600000000, SendOp::SendWithImm { imm_data: [8, 199, 68, 10] }, &[mem2.sge(1976, 4), mem2.sge(1160, 4)]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 39
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2600000000, WcStatus::Success)]);
    // Call 40
    verbs.post_recv(qp0, &[RecvWr::new(0x2800000000, &[mem0.sge(2696, 340)]), RecvWr::new(0x2800000001, &[mem0.sge(2312, 340)])]).unwrap();
    // Call 41
    verbs.post_send(qp1, &[SendWr::new(0x2900000000, SendOp::SendWithImm { imm_data: [225, 67, 98, 226] }, &[mem2.sge(968, 300)]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 42
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2900000000, WcStatus::Success)]);
    // Call 43
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 44
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 45
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 46
    verbs.copy_to_dm(dm0, 1220, &[225; 32]).unwrap();
    // Call 47
    assert_eq!(verbs.query_cq(cq4).map(|attr| attr.cqe).unwrap(), 35);
    // Call 48
    verbs.post_recv(qp1, &[RecvWr::new(0x3000000000, &[mem2.sge(2920, 148), mem2.sge(3504, 148)])]).unwrap();
    // Call 49
    verbs.post_recv(qp1, &[RecvWr::new(0x3100000000, &[mem2.sge(3152, 148), mem2.sge(3776, 148)])]).unwrap();
    // Call 50
    verbs.post_recv(qp1, &[RecvWr::new(0x3200000000, &[mem2.sge(2560, 304)]), RecvWr::new(0x3200000001, &[mem2.sge(3440, 304)])]).unwrap();
    // Call 51
    let error = verbs.post_send(qp0, &[SendWr::new(0x3300000000, SendOp::SendWithImm { imm_data: [122, 202, 144, 157] }, &[mem0.sge(1520, 16)]).flags(SendFlags::FENCE).to(ah0, num1, 0x11111111), SendWr::new(0x3300000001, SendOp::Send, &[mem0.sge(1376, 8), mem0.sge(2000, 8)]).to(ah0, num1, 0x11111111), SendWr::new(0x3300000002, SendOp::SendWithImm { imm_data: [53, 161, 115, 0] }, &[mem0.sge(528, 256)]).to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 52
    assert_eq!(poll(cq0, 64).unwrap(), [(0x2500000000, WcStatus::Success), (0x2800000000, WcStatus::Success)]);
    // Call 53
    verbs.req_notify_cq(cq2, Arm::NEXT).unwrap();
    // Call 54
    verbs.post_recv(qp1, &[RecvWr::new(0x3600000000, &[mem2.sge(2064, 1040)])]).unwrap();
    // Call 55
    let error = verbs.post_send(qp0, &[SendWr::new(0x3700000000, SendOp::Send, &[mem0.sge(640, 1000)]).flags(SendFlags::SOLICITED).to(ah0, num1, 0x11111111), SendWr::new(0x3700000001, SendOp::SendWithImm { imm_data: [79, 147, 213, 196] }, &[mem0.sge(584, 1)]).to(ah0, num1, 0x11111111)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 56
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 57
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 58
    verbs.lab().unwrap().settle().unwrap();
}
#[test]
#[allow(unused)]
fn free_program_105() {
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq3, cq3).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 27
    let qp1 = verbs.create_qp(pd2, &QpInit::new(QpType::Ud, cq5, cq4).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).srq(srq0)).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 28
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 29
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    // Call 30
    let ah0 = verbs.query_gid(context2, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 31
    let ah1 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd2, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 32
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2000000000, &[mem2.sge(3328, 104)])]).unwrap();
    // Call 33
    verbs.post_srq_recv(srq0, &[RecvWr::new(0x2100000000, &[mem2.sge(2656, 112)])]).unwrap();
    // Call 34
    verbs.post_send(qp0, &[SendWr::new(0x2200000000, SendOp::Send, &[mem1.sge(664, 4), mem1.sge(920, 4)]).to(ah0, num1, 0x11111111), SendWr::new(0x2200000001, SendOp::Send, &[mem1.sge(592, 64)]).flags(SendFlags::INLINE).to(ah0, num1, 0x11111111)]).unwrap();
    // Call 35
    assert_eq!(verbs.query_qp(qp0, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Rts);
    // Call 36
    verbs.post_recv(qp0, &[RecvWr::new(0x2400000000, &[mem1.sge(1176, 40), mem1.sge(1056, 40)])]).unwrap();
    // Call 37
    verbs.post_send(qp1, &[SendWr::new(0x2500000000, SendOp::SendWithImm { imm_data: [233, 197, 149, 167] }, &[mem3.sge(224, 20), mem3.sge(176, 20)]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 38
    let dm0 = verbs.alloc_dm(context1, &DmInit::new(3080).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..3080u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 39
    assert_eq!(verbs.reg_dm_mr(pd3, dm0, 8, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 40
    verbs.post_recv(qp0, &[RecvWr::new(0x2800000000, &[mem1.sge(1320, 56)])]).unwrap();
    // Call 41
    verbs.post_send(qp1, &[SendWr::new(0x2900000000, SendOp::SendWithImm { imm_data: [191, 191, 132, 60] }, &[mem3.sge(16, 4), mem3.sge(224, 4)]).flags(SendFlags::SOLICITED).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 42
    assert_eq!(poll(cq5, 0).unwrap(), []);
    // Call 43
    verbs.post_recv(qp0, &[RecvWr::new(0x2b00000000, &[mem1.sge(1208, 56)])]).unwrap();
    // Call 44
    verbs.post_send(qp1, &[SendWr::new(0x2c00000000, SendOp::Send, &[mem2.sge(1448, 8)]).unsignaled().flags(SendFlags::FENCE).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 45
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2200000000, WcStatus::Success), (0x2200000001, WcStatus::Success)]);
    // Call 46
    verbs.dereg_mr(mr1).unwrap();
    // Call 47
    verbs.free_dm(dm0).unwrap();
    // Call 48
    assert_eq!(verbs.get_cq_event(channel2, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 49
    assert_eq!(poll(cq7, 4).unwrap(), []);
    // Call 50
    verbs.query_rt_values(context2).map(|_| ()).unwrap();
    // Call 51
    verbs.req_notify_cq(cq4, Arm::SOLICITED).unwrap();
    // Call 52
    let error = verbs.post_recv(qp0, &[RecvWr::new(0x3400000000, &[mem3.sge(448, 56)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::NoMemory));
    // Call 53
    verbs.post_send(qp1, &[SendWr::new(0x3500000000, SendOp::Send, &[mem3.sge(112, 16)]).unsignaled().flags(SendFlags::FENCE).to(ah1, num0, 0x1)]).unwrap();
    // Call 54
    assert_eq!(poll(cq5, 64).unwrap(), [(0x2500000000, WcStatus::Success), (0x2900000000, WcStatus::Success)]);
    // Call 55
    assert_eq!(verbs.get_cq_event(channel2, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 56
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    // Call 57
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp0, &modify.attr, modify.mask).unwrap();
    // Call 58
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    // Call 59
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 60
    let ah2 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd2, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 61
    let ah3 = verbs.query_gid(context2, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 62
    assert_eq!(poll(cq2, 1).unwrap(), []);
    // Call 63
    assert_eq!(verbs.query_qp_data_in_order(qp1, WrOpcode::LocalInv, InOrderQuery::from_bits_retain(2)).map(|promised| promised.bits()).unwrap(), 0);
}
#[test]
#[allow(unused)]
fn free_program_123() {
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
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq1, cq1).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 27
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq2).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 28
    connect::ud_to_rts(&verbs, qp0, 1, 0x11111111).unwrap();
    // Call 29
    connect::ud_to_rts(&verbs, qp1, 1, 0x11111111).unwrap();
    // Call 30
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 31
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 32
    let qp2 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq0, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num2 = verbs.qp_num(qp2).unwrap();
    // Call 33
    let qp3 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq2).cap(QpCap { max_send_wr: 7, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num3 = verbs.qp_num(qp3).unwrap();
    // Call 34
    connect::ud_to_rts(&verbs, qp2, 1, 0x11111111).unwrap();
    // Call 35
    connect::ud_to_rts(&verbs, qp3, 1, 0x11111111).unwrap();
    // Call 36
    let ah2 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 37
    let ah3 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 38
    let qp4 = verbs.create_qp(pd0, &QpInit::new(QpType::Ud, cq1, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 7, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num4 = verbs.qp_num(qp4).unwrap();
    // Call 39
    let qp5 = verbs.create_qp(pd1, &QpInit::new(QpType::Ud, cq2, cq2).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 })).unwrap();
    let num5 = verbs.qp_num(qp5).unwrap();
    // Call 40
    connect::ud_to_rts(&verbs, qp4, 1, 0x11111111).unwrap();
    // Call 41
    connect::ud_to_rts(&verbs, qp5, 1, 0x11111111).unwrap();
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
    // Call 49
    verbs.post_recv(qp0, &[RecvWr::new(0x3100000000, &[mem0.sge(1896, 80)])]).unwrap();
    // Call 50
    verbs.post_send(qp1, &[SendWr::new(0x3200000000, SendOp::Send, &[mem2.sge(8, 20), mem1.sge(1288, 20)]).unsignaled().to(ah1, num0, 0x11111111), SendWr::new(0x3200000001, SendOp::Send, &[]).to(ah1, num0, 0x11111111)]).unwrap();
    // Call 51
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3200000001, WcStatus::Success)]);
    // Call 52
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 53
    assert_eq!(verbs.get_cq_event(channel2, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 54
    verbs.resize_cq(cq6, 30).unwrap();
    // Call 55
    verbs.destroy_qp(qp0, Wait::Poll).unwrap();
    // Call 56
    assert_eq!(poll(cq7, 64).unwrap(), []);
    // Call 57
    let td0 = verbs.alloc_td(context2).unwrap();
    // Call 58
    let pd2 = verbs.alloc_parent_domain(pd2, Some(td0)).unwrap();
    // Call 59
    assert_eq!(verbs.query_cq(cq2).map(|attr| attr.cqe).unwrap(), 4);
    // Call 60
    verbs.resize_cq(cq7, 30).unwrap();
    // Call 61
    verbs.post_send(qp2, &[SendWr::new(0x3d00000000, SendOp::SendWithImm { imm_data: [181, 239, 35, 91] }, &[mem0.sge(24, 1000)]).unsignaled().to(ah0, num3, 0x1)]).unwrap();
    // Call 62
    assert_eq!(poll(cq0, 64).unwrap(), []);
    // Call 63
    verbs.post_recv(qp3, &[RecvWr::new(0x3f00000000, &[mem1.sge(2760, 148)]), RecvWr::new(0x3f00000001, &[mem1.sge(2968, 148)])]).unwrap();
    // Call 64
    verbs.post_send(qp2, &[SendWr::new(0x4000000000, SendOp::SendWithImm { imm_data: [202, 158, 206, 81] }, &[mem0.sge(40, 50), mem0.sge(96, 50)]).to(ah0, num3, 0x11111111), SendWr::new(0x4000000001, SendOp::SendWithImm { imm_data: [152, 230, 238, 51] }, &[mem0.sge(768, 50), mem0.sge(272, 50)]).to(ah0, num3, 0x11111111)]).unwrap();
    // Call 65
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 66
    verbs.lab().unwrap().settle().unwrap();
    // Call 67
    assert_eq!(poll(cq4, 4).unwrap(), []);
    // Call 68
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 69
    let td1 = verbs.alloc_td(context2).unwrap();
    // Call 70
    let pd2 = verbs.alloc_parent_domain(pd2, Some(td1)).unwrap();
    // Call 71
    let ah6 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 72
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 73
    verbs.post_recv(qp4, &[RecvWr::new(0x4900000000, &[mem0.sge(1664, 41)])]).unwrap();
    // Call 74
    verbs.post_send(qp5, &[SendWr::new(0x4a00000000, SendOp::Send, &[mem1.sge(632, 1)]).flags(SendFlags::SOLICITED).to(ah1, num4, 0x11111111)]).unwrap();
    // Call 75
    assert_eq!(poll(cq2, 64).unwrap(), [(0x3f00000000, WcStatus::Success), (0x3f00000001, WcStatus::Success), (0x4a00000000, WcStatus::Success)]);
    // Call 76
    assert_eq!(poll(cq1, 64).unwrap(), [(0x3000000000, WcStatus::Success)]);
    // Call 77
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 78
    verbs.lab().unwrap().settle().unwrap();
    // Call 79
    verbs.post_recv(qp4, &[RecvWr::new(0x4f00000000, &[mem0.sge(1640, 48)])]).unwrap();
    // Call 80
    verbs.post_send(qp5, &[SendWr::new(0x5000000000, SendOp::Send, &[mem1.sge(600, 8)]).to(ah1, num4, 0x11111111)]).unwrap();
    // Call 81
    verbs.post_recv(qp5, &[RecvWr::new(0x5100000000, &[mem1.sge(3848, 148)])]).unwrap();
    // Call 82
    verbs.post_send(qp4, &[SendWr::new(0x5200000000, SendOp::Send, &[mem0.sge(712, 100)]).to(ah0, num5, 0x11111111)]).unwrap();
    // Call 83
    let dm0 = verbs.alloc_dm(context3, &DmInit::new(3080).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..3080u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 84
    let mr5 = verbs.reg_dm_mr(pd3, dm0, 8, 3072, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap();
    let mem5 = verbs.query_mr(mr5).unwrap();
    // Call 85
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 86
    assert_eq!(verbs.copy_to_dm(dm0, 1951, &[242; 4]).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 87
    verbs.post_recv(qp5, &[RecvWr::new(0x5700000000, &[mem2.sge(64, 48)])]).unwrap();
    // Call 88
    verbs.post_send(qp4, &[SendWr::new(0x5800000000, SendOp::Send, &[mem0.sge(792, 8)]).flags(SendFlags::FENCE).to(ah0, num5, 0x11111111)]).unwrap();
    // Call 89
    assert_eq!(poll(cq1, 64).unwrap(), [(0x4900000000, WcStatus::Success), (0x5200000000, WcStatus::Success), (0x5800000000, WcStatus::Success)]);
    // Call 90
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 91
    // There is no event to acknowledge.
    // Call 92
    verbs.copy_from_dm(dm0, 2916, &mut [0; 8]).unwrap();
    // Call 93
    assert_eq!(poll(cq6, 1).unwrap(), []);
    // Call 94
    verbs.post_recv(qp4, &[RecvWr::new(0x5e00000000, &[mem0.sge(1024, 1048)])]).unwrap();
    // Call 95
    verbs.post_send(qp5, &[SendWr::new(0x5f00000000, SendOp::SendWithImm { imm_data: [0, 186, 148, 53] }, &[mem1.sge(736, 1000)]).to(ah1, num4, 0x11111111)]).unwrap();
    // Call 96
    assert_eq!(poll(cq2, 64).unwrap(), [(0x5000000000, WcStatus::Success), (0x5f00000000, WcStatus::Success)]);
    // Call 97
    let error = verbs.post_recv(qp5, &[RecvWr::new(0x6100000000, &[mem2.sge(64, 48)]), RecvWr::new(0x6100000001, &[mem1.sge(3672, 48)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::NoMemory));
    // Call 98
    verbs.post_send(qp4, &[SendWr::new(0x6200000000, SendOp::Send, &[mem0.sge(296, 4), mem0.sge(192, 4)]).flags(SendFlags::INLINE).to(ah0, num5, 0x11111111)]).unwrap();
    // Call 99
    assert_eq!(poll(cq1, 64).unwrap(), [(0x4f00000000, WcStatus::Success), (0x6200000000, WcStatus::Success)]);
    // Call 100
    assert_eq!(poll(cq6, 0).unwrap(), []);
    // Call 101
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 102
    verbs.copy_from_dm(dm0, 312, &mut [0; 8]).unwrap();
}
#[test]
#[allow(unused)]
fn free_program_131() {
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
    let qp0 = verbs.create_qp(pd1, &QpInit::new(QpType::Uc, cq3, cq2).cap(QpCap { max_send_wr: 3, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 })).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 13
    let qp1 = verbs.create_qp(pd0, &QpInit::new(QpType::Uc, cq1, cq1).cap(QpCap { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).sq_sig_all()).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 14
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu512, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC, timeout: 12, retry_cnt: 2, rnr_retry: 2, min_rnr_timer: 1, max_rd_atomic: 1, ..RcParams::default() }).unwrap();
    // Call 15
    verbs.req_notify_cq(cq0, Arm::SOLICITED).unwrap();
    // Call 16
    let dm0 = verbs.alloc_dm(context1, &DmInit::new(6152).log_align(3)).unwrap();
    let bytes: Vec<u8> = (0..6152u32).map(|at| (at as u8).wrapping_mul(7).wrapping_add(1)).collect();
    verbs.copy_to_dm(dm0, 0, &bytes).unwrap();
    // Call 17
    let mr1 = verbs.reg_dm_mr(pd1, dm0, 8, 6144, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::ZERO_BASED).unwrap();
    let mem1 = verbs.query_mr(mr1).unwrap();
    // Call 18
    let modify = QpModify::to(QpState::Reset);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    // Call 19
    verbs.copy_from_dm(dm0, 5520, &mut [0; 32]).unwrap();
    // Call 20
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 21
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x1500000000, &[mem0.sge(3608, 4), mem0.sge(3880, 4)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 22
    verbs.post_send(qp0, &[SendWr::new(0x1600000000, SendOp::Send, &[mem2.sge(32, 8)]).flags(SendFlags::FENCE)]).unwrap();
    // Call 23
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1600000000, WcStatus::Success)]);
    // Call 24
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 3);
    // Call 25
    verbs.copy_to_dm(dm0, 1232, &[209; 8]).unwrap();
    // Call 26
    verbs.req_notify_cq(cq3, Arm::NEXT).unwrap();
    // Call 27
    verbs.post_send(qp0, &[SendWr::new(0x1b00000000, SendOp::RdmaWrite { remote: mem0.remote(3280) }, &[mem2.sge(8, 33), mem2.sge(0, 33), mem2.sge(16, 34)])]).unwrap();
    // Call 28
    assert_eq!(poll(cq3, 64).unwrap(), [(0x1b00000000, WcStatus::Success)]);
    // Call 29
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).unwrap(), 3);
    // Call 30
    assert_eq!(poll(cq0, 4).unwrap(), []);
    // Call 31
    verbs.req_notify_cq(cq1, Arm::NEXT).unwrap();
    // Call 32
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x2000000000, &[mem0.sge(2552, 8)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 33
    verbs.post_send(qp0, &[SendWr::new(0x2100000000, SendOp::RdmaWrite { remote: mem0.remote(2096) }, &[mem2.sge(0, 8)]).unsignaled(), SendWr::new(0x2100000001, SendOp::Send, &[])]).unwrap();
    // Call 34
    assert_eq!(poll(cq3, 64).unwrap(), [(0x2100000001, WcStatus::Success)]);
    // Call 35
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 36
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 37
    verbs.copy_from_dm(dm0, 2404, &mut [0; 32]).unwrap();
    // Call 38
    assert_eq!(verbs.destroy_comp_channel(channel0).unwrap_err().kind(), ErrorKind::Busy);
    // Call 39
    verbs.post_recv(qp0, &[RecvWr::new(0x2700000000, &[mem1.sge(3680, 64)]), RecvWr::new(0x2700000001, &[mem1.sge(2384, 64)])]).unwrap();
    // Call 40
    verbs.lab().unwrap().settle().unwrap();
    // Call 41
    verbs.resize_cq(cq2, 60).unwrap();
    // Call 42
    verbs.ack_cq_events(cq2, 0).unwrap();
    // Call 43
    verbs.destroy_qp(qp0, Wait::Poll).unwrap();
    // Call 44
    assert_eq!(verbs.query_cq(cq3).map(|attr| attr.cqe).unwrap(), 2);
    // Call 45
    verbs.req_notify_cq(cq0, Arm::NEXT).unwrap();
    // Call 46
    assert_eq!(verbs.alloc_mr(pd1, 192, Access::REMOTE_WRITE | Access::REMOTE_ATOMIC).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 47
    assert_eq!(verbs.get_cq_event(channel0, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 48
    verbs.resize_cq(cq2, 1).unwrap();
    // Call 49
    verbs.dereg_mr(mr1).unwrap();
    // Call 50
    verbs.free_dm(dm0).unwrap();
    // Call 51
    verbs.req_notify_cq(cq0, Arm::NEXT).unwrap();
    // Call 52
    let srq0 = verbs.create_srq(pd0, &SrqInit::new(3).max_sge(2)).unwrap();
    // Call 53
    let cq4 = verbs.create_cq(context0, &CqInit::new(31).context(4)).unwrap();
    // Call 54
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x3600000000, &[mem0.sge(3800, 8)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 55
    let error = verbs.post_send(qp0, &[SendWr::new(0x3700000000, SendOp::RdmaWriteWithImm { remote: mem0.remote(2472), imm_data: [167, 90, 39, 129] }, &[mem2.sge(24, 8)]).unsignaled().flags(SendFlags::SOLICITED)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (0, ErrorKind::Invalid));
    // Call 56
    assert_eq!(verbs.query_cq(cq0).map(|attr| attr.cqe).unwrap(), 1);
    // Call 57
    assert_eq!(verbs.query_qp(qp0, QpAttrMask::STATE).map(|query| query.attr.qp_state).map(|_| ()).unwrap_err().kind(), ErrorKind::Invalid);
    // Call 58
    assert_eq!(poll(cq0, 0).unwrap(), []);
    // Call 59
    assert_eq!(poll(cq0, 4).unwrap(), []);
    // Call 60
    verbs.lab().unwrap().settle().unwrap();
    // Call 61
    assert_eq!(verbs.query_qp(qp1, QpAttrMask::STATE).map(|query| query.attr.qp_state).unwrap(), QpState::Reset);
    // Call 62
    assert_eq!(poll(cq1, 2).unwrap(), []);
    // Call 63
    let srq1 = verbs.create_srq(pd1, &SrqInit::new(3).max_sge(1)).unwrap();
    // Call 64
    assert_eq!(poll(cq1, 4).unwrap(), []);
    // Call 65
    let ah0 = verbs.query_gid(context1, 1, 0).and_then(|gid| verbs.create_ah(pd1, &AhAttr::global(1, 0, gid))).unwrap();
    // Call 66
    let ah1 = verbs.query_gid(context0, 1, 0).and_then(|gid| verbs.create_ah(pd0, &AhAttr::global(1, 0, gid))).unwrap();
}
#[test]
#[allow(unused)]
fn free_program_245() {
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
    let qp0 = verbs.create_qp(pd0, &QpInit::new(QpType::Rc, cq1, cq1).cap(QpCap { max_send_wr: 7, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 1, max_inline_data: 64 }).send_ops(SendOps::from_bits_retain(0x1815))).unwrap();
    let num0 = verbs.qp_num(qp0).unwrap();
    // Call 16
    let qp1 = verbs.create_qp(pd1, &QpInit::new(QpType::Rc, cq2, cq2).cap(QpCap { max_send_wr: 15, max_recv_wr: 3, max_send_sge: 4, max_recv_sge: 2, max_inline_data: 64 }).send_ops(SendOps::from_bits_retain(0x1815))).unwrap();
    let num1 = verbs.qp_num(qp1).unwrap();
    // Call 17
    connect::by_attributes(&verbs, qp0, qp1, &RcParams { path_mtu: Mtu::Mtu1024, access: Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::FLUSH_GLOBAL, timeout: 12, retry_cnt: 0, rnr_retry: 0, min_rnr_timer: 1, max_rd_atomic: 4, ..RcParams::default() }).unwrap();
    // Call 18
    verbs.post_batch(qp0, &[SendWr::new(0x1200000000, SendOp::Flush { remote: mem3.remote(1024), length: 256, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Range }, &[])], BatchEnd::Complete).unwrap();
    // Call 19
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 20
    assert_eq!(poll(cq2, 0).unwrap(), []);
    // Call 21
    verbs.modify_srq(srq0, &SrqAttr { srq_limit: 1, ..SrqAttr::default() }, SrqAttrMask::LIMIT).unwrap();
    // Call 22
    verbs.post_batch(qp1, &[SendWr::new(0x1600000000, SendOp::AtomicWrite { remote: mem2.remote(1024), value: [0, 0, 0, 0, 104, 60, 33, 105] }, &[]).unsignaled(), SendWr::new(0x1600000001, SendOp::Flush { remote: mem2.remote(1024), length: 1, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[]).flags(SendFlags::SOLICITED)], BatchEnd::Complete).unwrap();
    // Call 23
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 24
    assert_eq!(verbs.get_cq_event(channel1, Wait::Poll).map(|event| event.cq_context).map(|_| ()).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 25
    assert_eq!(verbs.get_async_event(context1, Wait::Poll).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Call 26
    // There is no event to acknowledge.
    // Call 27
    let error = verbs.post_send(qp1, &[SendWr::new(0x1b00000000, SendOp::RdmaWrite { remote: mem2.remote(1024) }, &[mem3.sge(0, 1000)]), SendWr::new(0x1b00000001, SendOp::Flush { remote: mem2.remote(1024), length: 64, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[]).flags(SendFlags::INLINE)]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::Invalid));
    // Call 28
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 29
    verbs.post_recv(qp1, &[RecvWr::new(0x1d00000000, &[mem1.sge(1840, 128), mem3.sge(1784, 128)])]).unwrap();
    // Call 30
    verbs.post_recv(qp1, &[RecvWr::new(0x1e00000000, &[mem3.sge(1584, 256)])]).unwrap();
    // Call 31
    assert_eq!(verbs.post_batch(qp0, &[SendWr::new(0x1f00000000, SendOp::Send, &[mem0.sge(592, 8)]), SendWr::new(0x1f00000001, SendOp::RdmaWrite { remote: mem3.remote(1024) }, &[mem2.sge(64, 256)]), SendWr::new(0x1f00000002, SendOp::RdmaWrite { remote: mem3.remote(1024) }, &[mem2.sge(560, 64)]).flags(SendFlags::SOLICITED), SendWr::new(0x1f00000003, SendOp::RdmaWrite { remote: mem3.remote(1024) }, &[mem2.sge(744, 40)]).unsignaled().flags(SendFlags::INLINE), SendWr::new(0x1f00000004, SendOp::Flush { remote: mem3.remote(1024), length: 100, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Range }, &[]).unsignaled().flags(SendFlags::SOLICITED), SendWr::new(0x1f00000005, SendOp::Send, &[]), SendWr::new(0x1f00000006, SendOp::RdmaWrite { remote: mem3.remote(1024) }, &[mem0.sge(584, 40)]), SendWr::new(0x1f00000007, SendOp::RdmaWrite { remote: mem1.remote(1552) }, &[mem2.sge(704, 128), mem2.sge(816, 128)]).flags(SendFlags::SOLICITED)], BatchEnd::Complete).unwrap_err().kind(), ErrorKind::NoMemory);
    // Call 32
    assert_eq!(poll(cq1, 64).unwrap(), [(0x1200000000, WcStatus::Success)]);
    // Call 33
    verbs.post_send(qp0, &[SendWr::new(0x2100000000, SendOp::RdmaRead { remote: mem3.remote(504) }, &[mem0.sge(2856, 16)])]).unwrap();
    // Call 34
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 35
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 36
    let modify = QpModify::to(QpState::Sqd);
    verbs.modify_qp(qp1, &modify.attr, modify.mask).unwrap();
    // Call 37
    verbs.post_batch(qp1, &[SendWr::new(0x2500000000, SendOp::AtomicWrite { remote: mem2.remote(1024), value: [0, 0, 0, 0, 157, 221, 47, 109] }, &[]), SendWr::new(0x2500000001, SendOp::RdmaRead { remote: mem2.remote(88) }, &[mem3.sge(2216, 85), mem3.sge(2296, 85), mem3.sge(2952, 86)]).unsignaled().flags(SendFlags::FENCE), SendWr::new(0x2500000002, SendOp::RdmaRead { remote: mem2.remote(608) }, &[mem1.sge(2056, 300)])], BatchEnd::Complete).unwrap();
    // Call 38
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 39
    let error = verbs.post_recv(qp1, &[RecvWr::new(0x2700000000, &[mem1.sge(1640, 0)]), RecvWr::new(0x2700000001, &[mem1.sge(1696, 0), mem3.sge(1672, 0)])]).unwrap_err();
    assert_eq!((error.bad_wr, error.error.kind()), (1, ErrorKind::NoMemory));
    // Call 40
    verbs.post_batch(qp0, &[SendWr::new(0x2800000000, SendOp::Send, &[]).unsignaled()], BatchEnd::Complete).unwrap();
    // Call 41
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 42
    verbs.post_batch(qp0, &[SendWr::new(0x2a00000000, SendOp::Send, &[mem0.sge(464, 333), mem0.sge(440, 333), mem0.sge(112, 334)])], BatchEnd::Complete).unwrap();
    // Call 43
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 44
    assert_eq!(poll(cq2, 4).unwrap(), [(0x1600000001, WcStatus::Success)]);
    // Call 45
    verbs.post_recv(qp0, &[RecvWr::new(0x2d00000000, &[mem0.sge(1136, 16)])]).unwrap();
    // Call 46
    verbs.post_batch(qp1, &[SendWr::new(0x2e00000000, SendOp::Send, &[mem3.sge(792, 16)])], BatchEnd::Complete).unwrap();
    // Call 47
    assert_eq!(poll(cq2, 64).unwrap(), []);
    // Call 48
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 49
    verbs.post_batch(qp0, &[SendWr::new(0x3100000000, SendOp::AtomicWrite { remote: mem3.remote(1024), value: [0, 0, 0, 0, 18, 142, 7, 254] }, &[])], BatchEnd::Complete).unwrap();
    // Call 50
    assert_eq!(poll(cq2, 64).unwrap(), [(0x1b00000000, WcStatus::Success), (0x1d00000000, WcStatus::Success)]);
    // Call 51
    verbs.post_batch(qp1, &[SendWr::new(0x3300000000, SendOp::Flush { remote: mem2.remote(1024), length: 1000, placement: PlacementType::from_bits_retain(1), level: SelectivityLevel::Mr }, &[])], BatchEnd::Complete).unwrap();
    // Call 52
    verbs.dereg_mr(mr1).unwrap();
    // Call 53
    verbs.post_send(qp1, &[SendWr::new(0x3500000000, SendOp::RdmaWrite { remote: mem0.remote(1728) }, &[mem3.sge(672, 85), mem3.sge(440, 85), mem3.sge(368, 86)])]).unwrap();
    // Call 54
    verbs.destroy_qp(qp1, Wait::Poll).unwrap();
    // Call 55
    assert_eq!(poll(cq1, 64).unwrap(), []);
    // Call 56
    let cq4 = verbs.create_cq(context1, &CqInit::new(12).context(4)).unwrap();
}
