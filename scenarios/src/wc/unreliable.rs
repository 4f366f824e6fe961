//! What datagrams and unreliable connections add to the fields of completions.

use verbs_api::behavior::UdSl;
use verbs_api::{AhAttr, GidType, LinkLayer, QpType, SendWr, WcFlags};

use super::Kind;
use super::fields::{byte_lens, immediates};
use crate::failure::{check, check_eq};
use crate::ud::gid_type;
use crate::{End, Failure, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup};

scenario!(byte_len_of_a_receive_is_that_of_the_message_on_uc: "WC-06"; needs UC);
fn byte_len_of_a_receive_is_that_of_the_message_on_uc(setup: &Setup<'_>) -> Result {
    let options = PairOptions::of(QpType::Uc);
    let mtu = options.rc.path_mtu.bytes().unwrap_or(1024);
    byte_lens(setup, options, &[0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu])
}

scenario!(byte_len_of_a_datagram_counts_the_room_for_the_grh: "WC-07", "UD-04"; needs UD);
fn byte_len_of_a_datagram_counts_the_room_for_the_grh(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let mtu = setup.query_port(a.context, setup.port())?.active_mtu;
    let mtu = mtu.bytes().unwrap_or(256);
    for len in [0, 1, mtu - 1, mtu] {
        b.recv(1, mtu)?;
        a.send(2, len)?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        check_eq!(["WC-07", "UD-04"], wc.byte_len, len + GRH_LEN);
    }
    Ok(())
}

scenario!(immediate_data_is_delivered_bit_for_bit_on_uc:
    "WC-10", "WC-11", "SQ-19"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn immediate_data_is_delivered_bit_for_bit_on_uc(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::SendImm, Kind::Write, Kind::WriteImm];
    immediates(setup, PairOptions::of(QpType::Uc), &kinds)
}

scenario!(immediate_data_is_delivered_bit_for_bit_on_ud:
    "WC-10", "WC-11", "SQ-19"; needs UD, SEND_WITH_IMM);
fn immediate_data_is_delivered_bit_for_bit_on_ud(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::SendImm];
    immediates(setup, PairOptions::of(QpType::Ud), &kinds)
}

scenario!(src_qp_names_the_sender_of_a_datagram: "WC-13"; needs UD);
fn src_qp_names_the_sender_of_a_datagram(setup: &Setup<'_>) -> Result {
    let options = PairOptions::of(QpType::Ud);
    let first = setup.pair(options)?;
    let second = setup.second_pair(&first, options)?;
    let to = first.b;
    for from in [first.a, second.a, first.a] {
        to.recv(1, 8)?;
        send_over(setup, &from, &to, ah_attr(setup, &to)?)?;
        let wc = setup.successes(to.recv_cq, 1)?[0];
        check_eq!("WC-13", wc.src_qp, from.qp_num);
        check_eq!("WC-13", wc.qp_num, to.qp_num);
    }
    Ok(())
}

scenario!(grh_flag_is_set_on_datagrams_with_a_grh: "WC-14"; needs UD);
fn grh_flag_is_set_on_datagrams_with_a_grh(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    b.recv(1, 8)?;
    a.send(2, 8)?;
    let wc = setup.successes(b.recv_cq, 1)?[0];
    check!(
        "WC-14",
        wc.wc_flags.contains(WcFlags::GRH),
        "the flag GRH",
        "{:?}",
        wc.wc_flags
    );
    Ok(())
}

scenario!(datagram_says_which_path_it_took: "WC-15"; needs UD);
fn datagram_says_which_path_it_took(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let port = setup.query_port(a.context, setup.port())?;
    for sl in [0, 3, 8, 15] {
        b.recv(1, 8)?;
        let attr = ah_attr(setup, &b)?;
        send_over(setup, &a, &b, AhAttr { sl, ..attr })?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        if port.link_layer == LinkLayer::InfiniBand {
            check_eq!("WC-15", wc.sl, sl, "sl");
        }
        check_eq!("WC-15", wc.slid, port.lid, "slid");
        check_eq!("WC-15", wc.dlid_path_bits, 0, "dlid_path_bits");
    }
    Ok(())
}

scenario!(service_level_of_a_datagram_over_ethernet_is_as_declared: "WC-15"; needs UD);
/// Ethernet has no service levels: each driver tells something else there.
fn service_level_of_a_datagram_over_ethernet_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "WC-15";
    const SL: u8 = 3;
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    if setup.query_port(a.context, setup.port())?.link_layer == LinkLayer::InfiniBand {
        return Ok(());
    }
    for way in setup.ways(a.pd)? {
        b.recv(1, 8)?;
        send_over(setup, &a, &b, AhAttr { sl: SL, ..way })?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        let packet_type = match way.grh.and_then(|grh| grh.dgid.ipv4()) {
            // A GRH has type 0, which says nothing of the driver.
            _ if gid_type(setup, &way)? == GidType::RoceV1 => {
                check_eq!(RULE, wc.sl, 0, "behind a GRH");
                continue;
            }
            Some(_) => 0xa,
            None => 0x9,
        };
        let seen = match wc.sl {
            0 => UdSl::Zero,
            sl if sl == packet_type => UdSl::PacketType,
            sl => {
                let expected = format!("0 or {packet_type:#x}");
                return Err(Failure::assertion(expected, format!("{sl:#x}"))).rule(RULE);
            }
        };
        setup.as_declared(RULE, setup.behavior()?.ud_sl, seen)?;
    }
    Ok(())
}

fn ah_attr(setup: &Setup<'_>, to: &End<'_>) -> Result<AhAttr> {
    Ok(setup.route_to(to.context)?)
}

/// Sends 8 bytes from one end to another over an address handle of its own.
fn send_over(setup: &Setup<'_>, from: &End<'_>, to: &End<'_>, attr: AhAttr) -> Result {
    let ah = setup.create_ah(from.pd, &attr)?;
    let data = [from.sge(0, 8)];
    let wr = SendWr::send(2, &data).to(ah, to.qp_num, setup.qkey());
    setup.post_send(from.qp, &[wr])?;
    setup.successes(from.send_cq, 1)?;
    Ok(setup.destroy_ah(ah)?)
}
