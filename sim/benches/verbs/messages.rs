//! One message at a time: of each kind, and of each size.

use verbs_api::profile::Profile;
use verbs_api::{Access, QpCap, QpType};
use verbs_sim::{Mode, SimConfig};

use crate::floor;
use crate::link::{Fabric, Kind, Link};
use crate::operations::LIST;
use crate::owned::Pair;
use crate::stopwatch::Stopwatch;
use crate::table::Line;

pub(crate) fn lines(watch: &mut Stopwatch) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let link = fabric.link(0, 1, 4096);
    let links = link.and_no_op();
    let write = watch.operation("write of 64 B", &links, |link| link.write(64));
    let send = watch.operation("send and receive of 64 B", &links, |link| link.send(64));
    let event = watch.operation("arm, send, event", &links, |link| link.event(64));
    let mut lines = others(watch, &write, &send);
    lines.extend(in_real_time(watch, &write, &send));
    lines.extend(profiles(watch, &write));
    let lock = watch.time("lock and unlock", floor::lock());
    let copy = watch.time("64 B copy, push and pop", floor::copy_and_queue());
    let floor = Line::sum("lock + 64 B copy + push/pop", &lock, &copy);
    let poll = watch.time("empty poll", fabric.empty_poll(&link));
    let load = watch.time("atomic load", floor::load());
    let within = fabric.link(0, 0, 4096);
    let within = watch.time("write of 64 B to the same node", || within.write(64));
    #[rustfmt::skip]
    let plain = [
        write.against(&floor),
        send.against(&floor),
        event.against(&floor),
        within.against(&floor),
        poll.clone().against(&lock),
        poll.against(&load),
    ];
    lines.splice(0..0, plain);
    lines.extend(sizes(watch));
    lines
}

/// Messages of other kinds, compared with the plain ones that resemble them.
fn others(watch: &mut Stopwatch, write: &Line, send: &Line) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let rc = Kind::of(QpType::Rc);
    let cap = QpCap {
        max_send_sge: 2,
        max_inline_data: 64,
        ..rc.cap
    };
    let links = |kind| fabric.link_of(kind, 0, 1, 4096).and_no_op();
    let plain = &links(rc);
    let large = &links(Kind { cap, ..rc });
    let access = rc.access | Access::REMOTE_ATOMIC;
    let atomic = &links(Kind { access, ..rc });
    let shared = &links(Kind { shares: true, ..rc });
    let [uc, ud] = &[QpType::Uc, QpType::Ud].map(|qp_type| links(Kind::of(qp_type)));
    // There are no owning objects with no-ops, so these figures include the caller's instructions.
    let owned = &[Some(Pair::new()), None];
    let own = |run: fn(&Pair)| move |pair: &Option<Pair>| pair.iter().for_each(run);
    let list = LIST as u32;
    #[rustfmt::skip]
    let lines = vec![
        watch.operation("write of 64 B in two pieces", large, |link| link.write_pieces(64)).against(write),
        watch.operation("write of 64 B with immediate data", plain, |link| link.write_with_imm(64)).against(send),
        watch.operation("send and receive of 64 B by an SRQ", shared, |link| link.send_shared(64)).against(send),
        watch.operation("write of 64 B, owned", owned, own(Pair::write)).against(write),
        watch.operation("send and receive of 64 B, owned", owned, own(Pair::send)).against(send),
        watch.operation("write of 64 B, inline", large, |link| link.write_inline(64)).against(write),
        watch.list("write of 64 B, 16 at once", list, plain, |link| link.writes(64)).against(write),
        watch.list("send and receive of 64 B, 16 at once", list, plain, |link| link.sends(64)).against(send),
        watch.operation("write of 64 B, UC", uc, |link| link.write(64)).against(write),
        watch.operation("send and receive of 64 B, UD", ud, |link| link.send_datagram(64)).against(send),
        watch.operation("read of 64 B", plain, |link| link.read(64)).against(write),
        watch.operation("fetch-and-add", atomic, Link::add).against(write),
    ];
    lines
}

fn in_real_time(watch: &mut Stopwatch, write: &Line, send: &Line) -> [Line; 2] {
    let fabric = Fabric::with(SimConfig::new().mode(Mode::RealTime));
    let links = fabric.link(0, 1, 4096).and_no_op();
    [
        watch
            .operation("write of 64 B in real time", &links, |link| link.write(64))
            .against(write),
        watch
            .operation("send and receive of 64 B in real time", &links, |link| {
                link.send(64)
            })
            .against(send),
    ]
}

fn profiles(watch: &mut Stopwatch, write: &Line) -> [Line; 3] {
    [Profile::RXE, Profile::SIW, Profile::MLX5].map(|profile| {
        let name = format!("write of 64 B, profile {}", profile.name);
        let fabric = Fabric::with(SimConfig::new().mode(Mode::Inline).profile(profile));
        let links = fabric.link(0, 1, 4096).and_no_op();
        watch
            .operation(&name, &links, |link| link.write(64))
            .against(write)
    })
}

fn sizes(watch: &mut Stopwatch) -> [Line; 3] {
    let fabric = Fabric::new(2);
    let sizes = [("4 KiB", 4 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20)];
    sizes.map(|(size, bytes)| {
        let link = fabric.link(0, 1, bytes);
        let copy = watch.time(&format!("memcpy of {size}"), floor::memcpy(bytes));
        let write = || link.write(bytes as u32);
        watch
            .time(&format!("write of {size}"), write)
            .against(&copy)
    })
}
