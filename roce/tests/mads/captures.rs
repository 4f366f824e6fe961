//! What the kernel sent is read as what it says, and written back byte for byte.

use std::collections::BTreeMap;

use verbs_roce::Frame;
use verbs_roce::mad::{
    CmAttribute, CmMad, CmMessage, Drep, Dreq, Ece, IP_CM, IpCm, MAD, Path, PrivateData, Rej,
    Rejected, Rep, Req, Rtu, SidrRep, SidrReq, attribute, service_id, service_port,
};

use crate::captured::ip_packets;

#[test]
fn captured_messages_are_written_back_byte_for_byte() {
    let mut seen = BTreeMap::new();
    for packet in ip_packets() {
        let received = Frame::read(&packet).unwrap();
        let frame = received.frame();
        let read = CmMad::read(frame.payload);
        if frame.bth.dest_qpn != 1 {
            assert!(read.is_err(), "{read:?}");
            continue;
        }
        let mad = read.unwrap();
        assert_eq!(attribute(frame.payload), Some(mad.message.attribute()));
        assert_eq!(mad.write(), frame.payload, "{mad:?}");
        *seen.entry(mad.message.attribute().name()).or_default() += 1;
    }
    let expected = [("REQ", 19), ("REJ", 9), ("REP", 10), ("RTU", 10)];
    let expected =
        expected
            .into_iter()
            .chain([("DREQ", 10), ("DREP", 9), ("SIDR_REQ", 2), ("SIDR_REP", 2)]);
    assert_eq!(seen, expected.collect::<BTreeMap<&str, u32>>());
}

/// Client 10.1.0.2 to port 7174 of 10.1.0.1.
#[test]
fn request_of_rping_says_what_was_asked() {
    let req = "0107020300000000 00000006d72e1f0d 0010000000000000
        0d1f2ed7 00000000 0000000001061c06 149f81fffe25ec48 00000000 00000000
        00001b01 00000001 000000a0 4f3d33a7 ffff57f0
        ffffffff 00000000000000000000ffff0a010002 00000000000000000000ffff0a010001 8a338000 00400098
        00000000 00000000000000000000000000000000 00000000000000000000000000000000 00000000 00000000
        0040ca8e 0000000000000000000000000a010002 0000000000000000000000000a010001";
    let private_data = read_back(req, 0x6_d72e_1f0d, |message| {
        let CmMessage::Req(req) = message else {
            return None;
        };
        let mapped = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, last];
        let expected = Req {
            local_comm_id: 0x0d1f_2ed7,
            ece: Ece::default(),
            service_id: service_id(0x0106, 7174),
            ca_guid: 0x149f_81ff_fe25_ec48,
            qkey: 0,
            qpn: 0x1b,
            responder_resources: 1,
            initiator_depth: 1,
            remote_cm_response_timeout: 20,
            transport: 0,
            flow_control: false,
            starting_psn: 0x4f_3d33,
            local_cm_response_timeout: 20,
            retry_count: 7,
            pkey: 0xffff,
            path_mtu: 5,
            rnr_retry_count: 7,
            max_cm_retries: 15,
            srq: false,
            extended_transport: 0,
            primary: Path {
                local_lid: 0xffff,
                remote_lid: 0xffff,
                local_gid: mapped(2),
                remote_gid: mapped(1),
                flow_label: 0x8a338,
                packet_rate: 0,
                traffic_class: 0,
                hop_limit: 64,
                sl: 0,
                subnet_local: false,
                local_ack_timeout: 19,
            },
            alternate: Path::default(),
            private_data: req.private_data,
        };
        assert_eq!(**req, expected);
        Some(req.private_data)
    });
    let ip_cm = IpCm {
        version: 0,
        source_port: 0xca8e,
        source: [10, 1, 0, 2].into(),
        destination: [10, 1, 0, 1].into(),
    };
    assert_eq!(IpCm::read(&*private_data), Ok(ip_cm));
    assert_eq!(PrivateData::new(&ip_cm.write()), Ok(private_data));
}

#[test]
fn answers_to_rping_say_what_was_answered() {
    let (client, server) = (0x0d1f_2ed7, 0x0e1f_2ed7);
    let transaction = 0x6_d72e_1f0d;
    let rep = "0107020300000000 00000006d72e1f0d 0013000000000000
        0e1f2ed7 0d1f2ed7 00000000 00001b00 00000000 50ef0e00 010178e0 505de9fffe7aa87e";
    let expected = Rep {
        local_comm_id: server,
        remote_comm_id: client,
        qpn: 0x1b,
        starting_psn: 0x50_ef0e,
        responder_resources: 1,
        initiator_depth: 1,
        target_ack_delay: 15,
        rnr_retry_count: 7,
        ca_guid: 0x505d_e9ff_fe7a_a87e,
        ..Rep::default()
    };
    says(rep, transaction, CmMessage::Rep(expected));

    let rtu = "0107020300000000 00000006d72e1f0d 0014000000000000 0d1f2ed7 0e1f2ed7";
    let expected = Rtu {
        local_comm_id: client,
        remote_comm_id: server,
        private_data: PrivateData::default(),
    };
    says(rtu, transaction, CmMessage::Rtu(expected));

    let dreq = "0107020300000000 00000006d72e1f0d 0015000000000000 0d1f2ed7 0e1f2ed7 00001b00";
    let expected = Dreq {
        local_comm_id: client,
        remote_comm_id: server,
        remote_qpn: 0x1b,
        private_data: PrivateData::default(),
    };
    says(dreq, transaction, CmMessage::Dreq(expected));

    let drep = "0107020300000000 00000006d72e1f0d 0016000000000000 0e1f2ed7 0d1f2ed7";
    let expected = Drep {
        local_comm_id: server,
        remote_comm_id: client,
        private_data: PrivateData::default(),
    };
    says(drep, transaction, CmMessage::Drep(expected));
}

/// Resources 3 and 2, retries 5 and 6, and private data of the consumer behind the header.
#[test]
fn request_tells_resources_apart() {
    let req = "0107020300000000 000000068274cab3 0010000000000000
        b3ca7482 00000000 0000000001061b58 64fbf1fffe729c30 00000000 00000000
        00001403 00000002 000000a0 6a609ea5 ffff56f0
        ffffffff 00000000000000000000ffff0a010002 00000000000000000000ffff0a010001 015e4000 00400098
        00000000 00000000000000000000000000000000 00000000000000000000000000000000 00000000 00000000
        004083f4 0000000000000000000000000a010002 0000000000000000000000000a010001 5178";
    let private_data = read_back(req, 0x6_8274_cab3, |message| {
        let CmMessage::Req(req) = message else {
            return None;
        };
        assert_eq!((req.responder_resources, req.initiator_depth), (3, 2));
        assert_eq!(
            (req.retry_count, req.rnr_retry_count, req.srq),
            (5, 6, false)
        );
        assert_eq!(service_port(req.service_id), Some((0x0106, 7000)));
        Some(req.private_data)
    });
    assert_eq!(private_data[IP_CM..][..3], *b"Qx\0");
}

#[test]
fn refusal_of_a_consumer_has_its_data() {
    let rej = "0107020300000000 000000068274cab7 0012000000000000 b4ca7482 b7ca7482 0000001c
        000000000000000000000000000000000000000000000000000000000000000000000000
        000000000000000000000000000000000000000000000000000000000000000000000000 4e6f21";
    let expected = Rej {
        local_comm_id: 0xb4ca_7482,
        remote_comm_id: 0xb7ca_7482,
        rejected: Rejected::Req,
        reason: 28,
        private_data: PrivateData::new(b"No!").unwrap(),
        ..Rej::default()
    };
    says(rej, 0x6_8274_cab7, CmMessage::Rej(expected));
}

#[test]
fn exchange_of_datagrams_tells_qp_and_q_key() {
    let (transaction, request_id) = (0x6_8274_caa8, 0xa8ca_7482);
    let service_id = service_id(0x0111, 7000);
    let req =
        "0107020300000000 000000068274caa8 0017000000000000 a8ca7482 ffff0000 0000000001111b58
        00408142 0000000000000000000000000a010002 0000000000000000000000000a010001 5578";
    let ip_cm = IpCm {
        version: 0,
        source_port: 0x8142,
        source: [10, 1, 0, 2].into(),
        destination: [10, 1, 0, 1].into(),
    };
    let expected = SidrReq {
        request_id,
        pkey: 0xffff,
        service_id,
        private_data: PrivateData::new(&[&ip_cm.write()[..], b"Ux"].concat()).unwrap(),
    };
    says(req, transaction, CmMessage::SidrReq(expected));

    let rep = "0107020300000000 000000068274caa8 0018000000000000
        a8ca7482 00000000 00001300 0000000001111b58 01234567
        000000000000000000000000000000000000000000000000000000000000000000000000
        000000000000000000000000000000000000000000000000000000000000000000000000 596573";
    let expected = SidrRep {
        request_id,
        qpn: 0x13,
        service_id,
        qkey: 0x0123_4567,
        private_data: PrivateData::new(b"Yes").unwrap(),
        ..SidrRep::default()
    };
    says(rep, transaction, CmMessage::SidrRep(expected));
}

fn says(hex: &str, transaction: u64, message: CmMessage) {
    let bytes = bytes(hex);
    let mad = CmMad {
        transaction,
        message,
    };
    assert_eq!(CmMad::read(&bytes).as_ref(), Ok(&mad));
    assert_eq!(mad.write(), bytes);
}

fn read_back<T>(hex: &str, transaction: u64, take: impl FnOnce(&CmMessage) -> Option<T>) -> T {
    let bytes = bytes(hex);
    assert_eq!(attribute(&bytes), Some(CmAttribute::Req));
    let mad = CmMad::read(&bytes).unwrap();
    assert_eq!(mad.transaction, transaction);
    assert_eq!(mad.write(), bytes);
    take(&mad.message).unwrap()
}

/// These bytes, and zeros.
fn bytes(hex: &str) -> [u8; MAD] {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let mut bytes = [0; MAD];
    for (byte, digits) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = (digits[0] << 4 | digits[1]) as u8;
    }
    bytes
}
