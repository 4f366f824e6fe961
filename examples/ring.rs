//! A ring buffer in the consumer's memory that the producer fills by RDMA Write: no copy, and the
//! consumer sends a message only for the room it returns, not for each record.
//!
//! Each record is written with immediate data, its length, which notifies the consumer. The
//! consumer reports in the same way how far it has read. Neither side polls memory.
//!
//! ```sh
//! cargo run --release --example ring
//! cargo run --release --example ring -- rxe0
//! ```

mod common;

use std::thread;

use common::{Result, Side, contexts, succeeded};
use verbs_api::owned::{RecvWr, SendWr};
use verbs_api::{RcParams, Remote, WcOpcode};

const RECORDS: u64 = 2000;
/// Bytes of the ring.
const RING: usize = 4096;
const LONGEST: usize = 200;
/// Immediate data takes a receive each, so no more records than this may be under way.
const DEPTH: u64 = 32;
/// The consumer returns room after this many records.
const BATCH: u64 = DEPTH / 4;

fn main() -> Result {
    let [producer, consumer] = contexts()?;
    let producer = Side::new(&producer, 2 * DEPTH as u32, RING)?;
    let consumer = Side::new(&consumer, 2 * DEPTH as u32, RING)?;
    producer.qp.connect_rc(&consumer.qp, &RcParams::default())?;
    for side in [&producer, &consumer] {
        (0..2 * DEPTH).try_for_each(|_| receive(side))?;
    }
    let ring = consumer.mr.remote(0);
    let bytes = thread::scope(|scope| {
        let consumer = scope.spawn(|| consume(&consumer));
        produce(&producer, ring)?;
        consumer.join().expect("it does not panic")
    })?;
    println!("{RECORDS} records of {bytes} bytes went through a ring of {RING}");
    Ok(())
}

/// A receive for immediate data alone.
fn receive(side: &Side) -> Result {
    Ok(side.qp.post_recv(RecvWr::new(0, &[]))?)
}

/// Record `n`: of a length and content of its own.
fn record(n: u64) -> Vec<u8> {
    let length = 1 + (n * 37) as usize % LONGEST;
    (0..length).map(|i| (n as usize + i) as u8).collect()
}

/// The parts of a ring that `length` bytes from `position` on are in: one, or two at its end.
fn parts(position: usize, length: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let start = position % RING;
    let first = start..(start + length).min(RING);
    let rest = 0..length - first.len();
    [first, rest].into_iter().filter(|part| !part.is_empty())
}

/// Fills the peer's ring. Its own memory has the same layout, to write from.
fn produce(side: &Side, ring: Remote) -> Result {
    let Side { qp, cq, mr, .. } = side;
    // Bytes written and bytes the consumer has read, records posted, and records it has read.
    let (mut written, mut read) = (0, 0);
    let (mut posted, mut consumed) = (0, 0);
    while consumed < RECORDS {
        let bytes = record(posted);
        if posted < RECORDS && written + bytes.len() - read <= RING && posted - consumed < DEPTH {
            let mut rest = &bytes[..];
            for part in parts(written, bytes.len()) {
                let (now, later) = rest.split_at(part.len());
                mr.write(part.start, now)?;
                let to = Remote {
                    addr: ring.addr + part.start as u64,
                    ..ring
                };
                let list = [mr.sge(part)];
                // The last part announces the record; earlier parts have arrived by then.
                let wr = if later.is_empty() {
                    let length = (bytes.len() as u32).to_be_bytes();
                    SendWr::rdma_write_with_imm(posted, &list, to, length)
                } else {
                    SendWr::rdma_write(posted, &list, to).unsignaled()
                };
                qp.post_send(wr)?;
                rest = later;
            }
            written += bytes.len();
            posted += 1;
            continue;
        }
        for wc in cq.wait_forever()? {
            succeeded(&wc)?;
            if wc.opcode == WcOpcode::RecvRdmaWithImm {
                let room = u32::from_be_bytes(wc.imm_data);
                (read, consumed) = (read + room as usize, (consumed + BATCH).min(RECORDS));
                receive(side)?;
            }
        }
    }
    Ok(())
}

/// Reads the records out of its ring, checks them, and gives room back.
fn consume(side: &Side) -> Result<usize> {
    let Side { qp, cq, mr, .. } = side;
    let (mut position, mut room) = (0, 0);
    let mut n = 0;
    while n < RECORDS {
        for wc in cq.wait_forever()? {
            succeeded(&wc)?;
            if wc.opcode != WcOpcode::RecvRdmaWithImm {
                continue;
            }
            let length = u32::from_be_bytes(wc.imm_data) as usize;
            let mut bytes = Vec::with_capacity(length);
            for part in parts(position, length) {
                bytes.extend(mr.read_vec(part.start, part.len())?);
            }
            assert_eq!(bytes, record(n));
            receive(side)?;
            (position, room, n) = (position + length, room + length, n + 1);
            if n % BATCH == 0 || n == RECORDS {
                let given_back = (room as u32).to_be_bytes();
                let tell = SendWr::rdma_write_with_imm(n, &[], Remote::default(), given_back);
                qp.post_send(tell)?;
                room = 0;
            }
        }
    }
    // The last message has to arrive before the queue pair goes.
    Ok(position)
}
