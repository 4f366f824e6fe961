//! Frames that can be written, for properties.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::FileFailurePersistence;
use verbs_api::lab::{PacketOpcode, Syndrome};
use verbs_roce::{
    Aeth, AtomicEth, Bth, Data, Deth, Extended, Feth, Frame, Ip, Ipv4, Ipv6, Operation, Reserved,
    Reth, Transport,
};

/// A frame that owns its payload.
#[derive(Clone, Debug)]
pub(crate) struct OwnedFrame {
    frame: Frame<'static>,
    payload: Vec<u8>,
}

impl OwnedFrame {
    pub(crate) fn frame(&self) -> Frame<'_> {
        Frame {
            payload: &self.payload,
            ..self.frame
        }
    }
}

/// How properties run. Failures go to a file next to the source.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Any frame, of any opcode, with up to `payload` bytes of payload.
pub(crate) fn frames(payload: usize) -> impl Strategy<Value = OwnedFrame> {
    let opcode = select(PacketOpcode::ALL);
    opcode.prop_flat_map(move |opcode| {
        (
            prop_oneof![v4(), v6()],
            any::<(u16, u16)>(),
            bth(opcode),
            extended(Extended::of(opcode).unwrap()),
            proptest::collection::vec(any::<u8>(), 0..=payload),
        )
            .prop_map(
                |(ip, (source_port, udp_checksum), bth, extended, payload)| {
                    let frame = Frame {
                        ip,
                        source_port,
                        udp_checksum,
                        bth,
                        extended,
                        payload: &[],
                        reserved: Reserved::ZERO,
                    };
                    OwnedFrame { frame, payload }
                },
            )
    })
}

fn v4() -> BoxedStrategy<Ip> {
    any::<(Ipv4Addr, Ipv4Addr, u8, u8, u16, bool)>()
        .prop_map(
            |(source, destination, tos, ttl, identification, dont_fragment)| {
                Ip::V4(Ipv4 {
                    source,
                    destination,
                    tos,
                    ttl,
                    identification,
                    dont_fragment,
                })
            },
        )
        .boxed()
}

fn v6() -> BoxedStrategy<Ip> {
    (any::<(Ipv6Addr, Ipv6Addr, u8, u8)>(), 0..1u32 << 20)
        .prop_map(
            |((source, destination, traffic_class, hop_limit), flow_label)| {
                Ip::V6(Ipv6 {
                    source,
                    destination,
                    traffic_class,
                    flow_label,
                    hop_limit,
                })
            },
        )
        .boxed()
}

fn bth(opcode: PacketOpcode) -> impl Strategy<Value = Bth> {
    (
        any::<(bool, bool, u16, bool, bool, bool)>(),
        number(),
        number(),
    )
        .prop_map(
            move |((solicited, migrated, pkey, fecn, becn, ack_req), dest_qpn, psn)| Bth {
                opcode,
                solicited,
                migrated,
                pkey,
                fecn,
                becn,
                dest_qpn,
                ack_req,
                psn,
            },
        )
}

/// These headers with any content.
fn extended(headers: Extended) -> impl Strategy<Value = Extended> {
    (
        any::<(u32, u32, u64, u64, u64, [u8; 4])>(),
        number(),
        any::<u8>(),
    )
        .prop_map(
            move |((key, length, va, first, second, bytes), number, syndrome)| {
                let aeth = Aeth {
                    syndrome: Syndrome::from(u32::from(syndrome)),
                    msn: number,
                };
                let rkey = key;
                let reth = Reth { va, rkey, length };
                let feth = Feth {
                    reserved: length >> 6,
                    selectivity: syndrome & 3,
                    placement: syndrome >> 4,
                };
                Extended {
                    transport: match headers.transport {
                        Transport::None => Transport::None,
                        Transport::Deth(_) => Transport::Deth(Deth {
                            qkey: key,
                            src_qpn: number,
                        }),
                        Transport::Xrceth { .. } => Transport::Xrceth { srqn: number },
                    },
                    operation: match headers.operation {
                        Operation::None => Operation::None,
                        Operation::Reth(_) => Operation::Reth(reth),
                        Operation::Flush { .. } => Operation::Flush { feth, reth },
                        Operation::AtomicEth(_) => Operation::AtomicEth(AtomicEth {
                            va,
                            rkey: key,
                            swap_or_add: first,
                            compare: second,
                        }),
                        Operation::Aeth(_) => Operation::Aeth(aeth),
                        Operation::AtomicAck { .. } => Operation::AtomicAck {
                            aeth,
                            original: first,
                        },
                    },
                    data: match headers.data {
                        Data::None => Data::None,
                        Data::ImmDt(_) => Data::ImmDt(bytes),
                        Data::Ieth(_) => Data::Ieth(u32::from_be_bytes(bytes)),
                    },
                }
            },
        )
}

/// 24 bits.
fn number() -> impl Strategy<Value = u32> {
    0..1u32 << 24
}
