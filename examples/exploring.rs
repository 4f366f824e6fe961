//! How a program looks for what goes wrong only if the right packets are lost: under many seeds and
//! faults, with the fewest faults that bring it about.
//!
//! ```sh
//! cargo test --example exploring
//! ```
//!
//! The program under test is [`Mailbox::deliver`]: it sends messages one by one, and one whose send
//! has failed once more over a new connection. A send that has failed may have arrived all the
//! same, if only the acknowledgement was lost: that message comes twice. A few tests with a lost
//! packet each do not show it. The tests below it do, and that numbers of messages cure it.

use std::sync::Arc;

use verbs_api::owned::{Context, Cq, Mr, Pd, Qp, RecvWr, SendWr};
use verbs_api::{Access, QpType, RcParams, Result, Verbs, WcStatus};
use verbs_sim::{Sim, SimConfig};

/// One that sends messages, and one that gets them.
struct Mailbox {
    sender: Side,
    receiver: Side,
    /// The messages that arrived, in order.
    arrived: Vec<u64>,
    /// Whether a message that has arrived before is thrown away.
    skips_known: bool,
}

/// Bytes of a message: its number.
const MESSAGE: usize = 8;

impl Mailbox {
    fn new(verbs: &Arc<dyn Verbs>, skips_known: bool) -> Result<Self> {
        Ok(Self {
            sender: Side::new(verbs, "sim0")?,
            receiver: Side::new(verbs, "sim1")?,
            arrived: Vec::new(),
            skips_known,
        })
    }

    /// Sends the numbers from 0 to below `messages`.
    fn deliver(&mut self, messages: u64) -> Result<()> {
        let (mut qp, mut peer) = self.connect()?;
        let mut number = 0;
        while number < messages {
            let list = [self.receiver.mr.sge(..)];
            peer.post_recv(RecvWr::new(number, &list))?;
            self.sender.mr.write(0, &number.to_le_bytes())?;
            let list = [self.sender.mr.sge(..)];
            qp.post_send(SendWr::send(number, &list))?;
            let status = self.sender.completion()?;
            self.receive()?;
            if status == WcStatus::Success {
                number += 1;
            } else {
                (qp, peer) = self.connect()?;
            }
        }
        Ok(())
    }

    /// A new connection. One retry, so that a failure does not take long.
    fn connect(&self) -> Result<(Qp, Qp)> {
        let (qp, peer) = (self.sender.qp()?, self.receiver.qp()?);
        let params = RcParams {
            retry_cnt: 1,
            ..RcParams::default()
        };
        qp.connect_rc(&peer, &params)?;
        Ok((qp, peer))
    }

    fn receive(&mut self) -> Result<()> {
        for wc in self.receiver.cq.poll()? {
            if wc.status != WcStatus::Success {
                continue;
            }
            let mut number = [0; MESSAGE];
            self.receiver.mr.read(0, &mut number)?;
            let number = u64::from_le_bytes(number);
            if !(self.skips_known && self.arrived.contains(&number)) {
                self.arrived.push(number);
            }
        }
        Ok(())
    }
}

/// A device with what messages need.
struct Side {
    pd: Pd,
    cq: Cq,
    mr: Mr,
}

impl Side {
    fn new(verbs: &Arc<dyn Verbs>, device: &str) -> Result<Self> {
        let pd = Context::open(verbs.clone(), device)?.alloc_pd()?;
        Ok(Self {
            cq: pd.context().cq(16).create()?,
            mr: pd.alloc_mr(MESSAGE, Access::LOCAL_WRITE)?,
            pd,
        })
    }

    fn qp(&self) -> Result<Qp> {
        self.pd.qp(QpType::Rc, &self.cq, &self.cq).create()
    }

    /// The next completion, however long it takes.
    fn completion(&self) -> Result<WcStatus> {
        loop {
            if let Some(wc) = self.cq.poll()?.next() {
                return Ok(wc.status);
            }
        }
    }
}

fn main() {
    let verbs: Arc<dyn Verbs> = Arc::new(Sim::new(SimConfig::new()).strict());
    let mut mailbox = Mailbox::new(&verbs, true).unwrap();
    mailbox.deliver(10).unwrap();
    println!("{:?}", mailbox.arrived);
    println!("its tests: cargo test --example exploring");
}

#[cfg(test)]
mod tests {
    use verbs_api::lab::{PacketOpcode, TraceEvent};
    use verbs_explore::{Exploration, World};

    use super::*;

    const MESSAGES: u64 = 10;

    /// Each message arrives once.
    fn delivers(world: &World, skips_known: bool) -> Result<(), String> {
        let in_words = |error: verbs_api::Error| error.to_string();
        let mut mailbox = Mailbox::new(&world.verbs(), skips_known).map_err(in_words)?;
        mailbox.deliver(MESSAGES).map_err(in_words)?;
        let once: Vec<u64> = (0..MESSAGES).collect();
        if mailbox.arrived == once {
            Ok(())
        } else {
            Err(format!("arrived: {:?}", mailbox.arrived))
        }
    }

    fn exploration() -> Exploration {
        Exploration::new("mailbox").seeds(0..2000)
    }

    #[test]
    fn without_faults_each_message_arrives_once() {
        let exploration = exploration().faults(Default::default()).seeds(0..1);
        exploration.run(|world| delivers(world, false)).unwrap();
    }

    #[test]
    fn message_whose_acknowledgements_are_lost_comes_twice() {
        let found = exploration()
            .run(|world| delivers(world, false))
            .unwrap_err();
        // Both the acknowledgement of the message and that of its repetition.
        assert_eq!(found.faults.parts().len(), 2, "{found}");
        let affected = found.trace.iter().filter_map(|record| match &record.event {
            TraceEvent::Lost { packet, .. } | TraceEvent::Affected { packet, .. } => {
                Some(packet.opcode)
            }
            _ => None,
        });
        let affected: Vec<_> = affected.collect();
        assert_eq!(affected, [PacketOpcode::RcAcknowledge; 2], "{found}");

        let replay = found.replay.to_string().parse().unwrap();
        let again = exploration().replay(&replay, |world| delivers(world, false));
        let again = again.unwrap().expect("it fails again");
        assert_eq!((again.failure, again.trace), (found.failure, found.trace));
    }

    #[test]
    fn with_numbers_each_message_arrives_once_whatever_is_lost() {
        exploration().run(|world| delivers(world, true)).unwrap();
    }
}
