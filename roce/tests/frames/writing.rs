//! What cannot be a packet is not written.

use std::net::{Ipv4Addr, Ipv6Addr};

use verbs_api::lab::{PacketOpcode, Syndrome};
use verbs_roce::{
    Aeth, Bth, Data, Deth, Extended, Frame, Ip, Ipv4, Ipv6, Operation, Transport, WriteError,
};

fn v4() -> Ip {
    Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).into()
}

fn v6() -> Ipv6 {
    Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
}

/// The error of writing, which has written nothing.
fn refusal(frame: Frame<'_>) -> WriteError {
    let mut out = vec![1, 2, 3];
    let error = frame.write(&mut out).unwrap_err();
    assert_eq!(frame.write_udp(&mut out), Err(error));
    assert_eq!(out, [1, 2, 3]);
    error
}

/// The headers of every opcode with every other opcode: only those of the same kinds are written.
#[test]
fn other_headers_than_those_of_the_opcode_are_refused() {
    let kinds = |opcode| format!("{:?}", Extended::of(opcode).unwrap());
    let mut written = 0;
    for opcode in PacketOpcode::ALL.iter().copied() {
        for other in PacketOpcode::ALL.iter().copied() {
            let headers = Extended::of(other).unwrap();
            let frame = Frame::new(v4(), 0, Bth::new(opcode, 0, 0), headers, &[]);
            if kinds(opcode) == kinds(other) {
                frame.write(&mut Vec::new()).unwrap();
                written += 1;
            } else {
                assert_eq!(refusal(frame), WriteError::Headers(opcode));
            }
        }
    }
    assert!(written > PacketOpcode::ALL.len());
    let unknown = PacketOpcode::from(0x81);
    let frame = Frame::new(v4(), 0, Bth::new(unknown, 0, 0), Extended::NONE, &[]);
    assert_eq!(refusal(frame), WriteError::UnknownOpcode(unknown));
}

#[test]
fn values_that_do_not_fit_are_refused() {
    const TOO_MUCH: u32 = 1 << 24;
    let frame = |opcode, change: &dyn Fn(&mut Frame<'_>)| {
        let extended = Extended::of(opcode).unwrap();
        let mut frame = Frame::new(v4(), 0, Bth::new(opcode, 0, 0), extended, &[]);
        change(&mut frame);
        match refusal(frame) {
            WriteError::OutOfRange { field, .. } => field,
            error => panic!("{error}"),
        }
    };
    let plain = PacketOpcode::RcSendOnly;
    assert_eq!(
        frame(plain, &|f| f.bth.dest_qpn = TOO_MUCH),
        "destination QPN"
    );
    assert_eq!(frame(plain, &|f| f.bth.psn = u32::MAX), "PSN");
    let label = |f: &mut Frame<'_>| {
        f.ip = Ip::V6(Ipv6 {
            flow_label: 1 << 20,
            ..v6()
        });
    };
    assert_eq!(frame(plain, &label), "flow label");
    let deth = Deth {
        qkey: 0,
        src_qpn: TOO_MUCH,
    };
    let datagram = |f: &mut Frame<'_>| f.extended.transport = Transport::Deth(deth);
    assert_eq!(frame(PacketOpcode::UdSendOnly, &datagram), "source QPN");
    let srq = |f: &mut Frame<'_>| f.extended.transport = Transport::Xrceth { srqn: TOO_MUCH };
    assert_eq!(frame(PacketOpcode::XrcSendOnly, &srq), "SRQ number");
    for (aeth, field) in [
        ((Syndrome::Ack, TOO_MUCH), "MSN"),
        ((Syndrome::from(0x100), 0), "syndrome"),
    ] {
        let (syndrome, msn) = aeth;
        let aeth = Aeth { syndrome, msn };
        let ack = |f: &mut Frame<'_>| f.extended.operation = Operation::Aeth(aeth);
        assert_eq!(frame(PacketOpcode::RcAcknowledge, &ack), field);
        let original = 0;
        let ack =
            |f: &mut Frame<'_>| f.extended.operation = Operation::AtomicAck { aeth, original };
        assert_eq!(frame(PacketOpcode::XrcAtomicAcknowledge, &ack), field);
    }
}

/// The longest packet that IP can say is written and read; the next one is not.
#[test]
fn packets_longer_than_ip_can_say_are_refused() {
    let bytes = vec![7; 70_000];
    // BTH, ImmDt and ICRC, and what counts before them; rounded down to words.
    for (ip, longest) in [(v4(), 65_532 - 28 - 20), (v6().into(), 65_532 - 8 - 20)] {
        let bth = Bth::new(PacketOpcode::UcSendLastImm, 1, 2);
        let extended = Extended {
            data: Data::ImmDt([1; 4]),
            ..Extended::NONE
        };
        let frame = |length: usize| Frame::new(ip, 0xffff, bth, extended, &bytes[..length]);
        let mut packet = Vec::new();
        frame(longest).write(&mut packet).unwrap();
        assert_eq!(Frame::read(&packet).unwrap().verify(), Ok(frame(longest)));
        for length in [longest + 1, longest + 4, bytes.len()] {
            assert!(
                matches!(refusal(frame(length)), WriteError::TooLong { length } if length > 65_535)
            );
        }
    }
}
