//! Sockets on loopback addresses that are not used elsewhere: each test has its own.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use verbs_udp::{PORT, Received, Socket, Tenant, Train, has_unread};

/// Tests that take the loopback address of IPv6, of which there is one.
static V6: Mutex<()> = Mutex::new(());

fn address(host: u8) -> IpAddr {
    Ipv4Addr::new(127, 76, 0, host).into()
}

/// Waits for what comes next: where it came from, its type of service and hops, and its datagrams.
fn next(socket: &Socket) -> (IpAddr, u8, u8, Vec<Vec<u8>>) {
    let mut buffer = vec![0; Socket::MOST];
    poll(&mut [PollFd::new(&socket.as_fd(), PollFlags::IN)], None).unwrap();
    let came = socket.receive(&mut buffer).unwrap().unwrap();
    let datagrams = came.datagrams().map(<[u8]>::to_vec).collect();
    (came.from, came.traffic_class, came.hop_limit, datagrams)
}

#[test]
fn a_datagram_comes_with_what_its_header_says() {
    let _alone = V6.lock().unwrap();
    for (a, b) in [
        (address(1), address(2)),
        (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
    ] {
        let one = Socket::bind(a).unwrap();
        let other = if a == b {
            None
        } else {
            Some(Socket::bind(b).unwrap())
        };
        let other = other.as_ref().unwrap_or(&one);
        assert!(other.receive(&mut [0; 64]).unwrap().is_none());
        one.send(&Train {
            traffic_class: 0x68,
            hop_limit: 3,
            ..Train::new(b, b"some")
        })
        .unwrap();
        assert_eq!(next(other), (a, 0x68, 3, vec![b"some".to_vec()]));
        one.send(&Train::new(b, b"more")).unwrap();
        assert_eq!(next(other), (a, 0, 64, vec![b"more".to_vec()]));
    }
}

#[test]
fn a_train_comes_in_its_parts() {
    let (one, other) = (
        Socket::bind(address(3)).unwrap(),
        Socket::bind(address(4)).unwrap(),
    );
    if !one.segments() {
        println!("skipped: this kernel does not segment datagrams");
        return;
    }
    let bytes: Vec<u8> = (0..=250).collect();
    one.send(&Train {
        segment: 100,
        ..Train::new(address(4), &bytes)
    })
    .unwrap();
    let mut came = Vec::new();
    while came.len() < 3 {
        came.extend(next(&other).3);
    }
    assert_eq!(
        came,
        bytes.chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>()
    );
}

#[test]
fn every_member_of_a_group_gets_what_is_sent_to_it() {
    let group = Ipv4Addr::new(239, 7, 7, 7).into();
    let sender = Socket::bind(address(5)).unwrap();
    let members = [1, 2].map(|_| Socket::join(group, Ipv4Addr::LOCALHOST.into()).unwrap());
    sender.send(&Train::new(group, b"all")).unwrap();
    for member in &members {
        assert_eq!(next(member).3, [b"all".to_vec()]);
    }
    members[0].join_through(Ipv4Addr::LOCALHOST.into()).unwrap();
    let mixed = Socket::join(group, Ipv6Addr::LOCALHOST.into()).unwrap_err();
    assert_eq!(mixed.kind(), ErrorKind::InvalidInput);
}

/// Also one of an interface or a link alone.
#[test]
fn groups_of_ipv6_have_members_too() {
    let _alone = V6.lock().unwrap();
    let sender = Socket::bind(Ipv6Addr::LOCALHOST.into()).unwrap();
    for scope in [0xff01, 0xff12, 0xff15] {
        let group = Ipv6Addr::new(scope, 0, 0, 0, 0, 0, 7, 7).into();
        let member = Socket::join(group, Ipv6Addr::LOCALHOST.into()).unwrap();
        match sender.send(&Train::new(group, b"all")) {
            Err(error) if error.kind() == ErrorKind::NetworkUnreachable => {
                println!("skipped: no route leads to {group}, as on most loopback interfaces");
            }
            sent => {
                sent.unwrap();
                assert_eq!(next(&member).3, [b"all".to_vec()]);
            }
        }
    }
}

#[test]
fn an_address_that_is_taken_says_by_whom() {
    let holder = UdpSocket::bind((address(6), PORT)).unwrap();
    let error = Socket::bind(address(6)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    let text = verbs_udp::holder(address(6));
    assert!(
        text.contains(&format!("process {}", std::process::id())),
        "{text}"
    );
    drop(holder);
    assert!(Socket::bind(address(6)).is_ok_and(|socket| socket.mtu() >= 4096));
    let foreign = Socket::bind(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
}

/// A datagram of RoCEv2 as far as its QP number.
fn to_qp(qp_num: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[4..8].copy_from_slice(&qp_num.to_be_bytes());
    bytes
}

#[test]
fn each_tenant_of_an_address_gets_what_is_for_its_numbers() {
    let _alone = V6.lock().unwrap();
    let own = |tenant: u32| tenant << Tenant::QP_BITS | 77;
    for shared in [address(7), Ipv6Addr::LOCALHOST.into()] {
        let mut sockets: Vec<_> = (0..3).map(|_| Socket::share(shared).unwrap()).collect();
        let sender = if shared.is_ipv4() { address(8) } else { shared };
        let sender = Socket::share(sender).unwrap();
        for tenant in [2, 0, 1, 2] {
            let bytes = to_qp(own(tenant), 16);
            sender.send(&Train::new(shared, &bytes)).unwrap();
            assert_eq!(next(&sockets[tenant as usize]).3, [bytes]);
        }
        // No place among the sockets has its number now: it may come to any, and is handed on.
        let there = Tenant::take(shared, 126).unwrap();
        drop(sockets.remove(0));
        sockets.push(sender);
        let bytes = to_qp(own(126), 16);
        sockets[2].send(&Train::new(shared, &bytes)).unwrap();
        let mut fds: Vec<_> = sockets
            .iter()
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        poll(&mut fds, None).unwrap();
        let came = fds.iter().position(|fd| !fd.revents().is_empty()).unwrap();
        let mut buffer = vec![0; Socket::MOST];
        let came = sockets[came].receive(&mut buffer).unwrap().unwrap();
        let by = Tenant::take(shared, 0).unwrap();
        assert_eq!(by.keep_own(came, |_| None).count(), 0);
        let mut buffer = vec![0; Socket::MOST];
        let there = there.receive(&mut buffer).unwrap().unwrap();
        let said = |of: &Received<'_>| (of.from, of.port, of.traffic_class, of.hop_limit);
        assert_eq!(said(&there), said(&came));
        assert!(there.datagrams().eq(came.datagrams()));
    }
}

#[test]
fn a_number_of_a_tenant_is_taken_once_and_free_when_it_goes() {
    let first = Tenant::take(address(9), 0).unwrap();
    let error = Tenant::take(address(9), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(Tenant::take(address(9), 1).is_ok() && Tenant::take(address(10), 0).is_ok());
    drop(first);
    let tenant = Tenant::take(address(9), 0).unwrap();
    assert!(tenant.receive(&mut [0; 64]).unwrap().is_none());
    assert_eq!([0, 1, 0xff_ffff].map(Tenant::of), [None; 3]);
    assert_eq!(Tenant::of(2), Some(0));
    assert_eq!(Tenant::of(0xff_fffe), Some(Tenant::MOST));
}

#[test]
fn what_came_at_once_is_apart_by_tenant() {
    let (one, other) = (
        Socket::bind(address(11)).unwrap(),
        Socket::bind(address(12)).unwrap(),
    );
    if !one.segments() {
        println!("skipped: this kernel does not segment datagrams");
        return;
    }
    let own = |tenant: u32| tenant << Tenant::QP_BITS | 77;
    let numbers = [own(1), own(1), own(3), 1, own(3)];
    let mut datagrams = numbers.map(|number| to_qp(number, 20));
    // The last is shorter.
    datagrams[4].truncate(9);
    one.send(&Train {
        segment: 20,
        ..Train::new(address(12), &datagrams.concat())
    })
    .unwrap();
    let mut buffer = vec![0; Socket::MOST];
    poll(&mut [PollFd::new(&other, PollFlags::IN)], None).unwrap();
    let came = other.receive(&mut buffer).unwrap().unwrap();
    let datagrams_of = |part: Received<'_>| part.datagrams().map(<[u8]>::to_vec).collect();
    let [first, third] = [1, 3].map(|number| Tenant::take(address(12), number).unwrap());
    let kept: Vec<Vec<_>> = third.keep_own(came, |_| None).map(datagrams_of).collect();
    assert_eq!(kept, [&datagrams[2..3], &datagrams[3..4], &datagrams[4..]]);
    let mut buffer = vec![0; Socket::MOST];
    let there = first.receive(&mut buffer).unwrap().unwrap();
    assert_eq!(datagrams_of(there), datagrams[..2]);
    assert!(first.receive(&mut buffer).unwrap().is_none());
}

#[test]
fn datagrams_are_unread_from_when_they_were_sent_until_they_are_read() {
    let (one, other) = (
        Socket::bind(address(60)).unwrap(),
        Socket::bind(address(61)).unwrap(),
    );
    assert!(!has_unread(other.address()));
    one.send(&Train::new(other.address(), b"some")).unwrap();
    one.send(&Train::new(other.address(), b"more")).unwrap();
    for _ in 0..2 {
        assert!(has_unread(other.address()));
        next(&other);
    }
    assert!(!has_unread(other.address()));
    // A socket on every address is not the one that a peer has.
    assert!(!has_unread(one.address()));
    one.send(&Train::new(other.address(), b"lost")).unwrap();
    let to = other.address();
    drop(other);
    assert!(!has_unread(to));
}
