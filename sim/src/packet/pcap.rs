//! A capture file of all packets, for Wireshark and similar tools.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::{fmt, mem};

use parking_lot::Mutex;

use crate::time::Time;

/// A capture file of packets in the pcap format, with nanoseconds. Each packet begins with its IP
/// header (`LINKTYPE_RAW`). Wireshark and tshark dissect RoCEv2 in it. Copies of the value write to
/// the same file. Its state, less than 10 KB, stays until the process ends.
///
/// A device sends each packet once. The effects of faults on its way are not in the file. Times are
/// those of the simulation, which begin at 0.
///
/// ```
/// use verbs_api::Verbs;
/// use verbs_sim::{Pcap, Sim, SimConfig};
///
/// let pcap = Pcap::new(std::io::sink())?;
/// let sim = Sim::new(SimConfig::new().pcap(pcap));
/// // The program runs.
/// pcap.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Pcap(&'static Mutex<State>);

enum State {
    Open(BufWriter<Box<dyn Write + Send>>),
    Failed(io::Error),
    Finished,
}

/// The longest IP packet.
const LONGEST: u32 = 65_535;
/// Packets begin with the IP header.
const LINKTYPE_RAW: u32 = 101;
/// Times have nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;

impl Pcap {
    /// Begins a file with its header.
    ///
    /// # Errors
    /// If its header cannot be written.
    pub fn new(mut to: impl Write + Send + 'static) -> io::Result<Self> {
        to.write_all(&header())?;
        Ok(Self::resume(to))
    }

    /// Writes the header if the file does not exist or is empty, for [`resume`](Self::resume).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prepare(path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.metadata()?.len() {
            0 => file.write_all(&header()),
            _ => Ok(()),
        }
    }

    /// Continues a file that was [prepared](Self::prepare), or that another process began. Several
    /// processes may append to one file: each write consists of whole packets.
    pub fn resume(to: impl Write + Send + 'static) -> Self {
        let to: Box<dyn Write + Send> = Box::new(to);
        let state = State::Open(BufWriter::new(to));
        Self(Box::leak(Box::new(Mutex::new(state))))
    }

    /// Ends and closes the file. Later packets are not written.
    ///
    /// # Errors
    /// The first error of a write. Nothing was written after it.
    pub fn finish(self) -> io::Result<()> {
        match mem::replace(&mut *self.0.lock(), State::Finished) {
            State::Open(mut to) => to.flush(),
            State::Failed(error) => Err(error),
            State::Finished => Ok(()),
        }
    }

    pub(crate) fn record(self, at: Time, packet: &[u8]) {
        let mut state = self.0.lock();
        if let State::Open(to) = &mut *state
            && let Err(error) = write(to, at, packet)
        {
            // Nothing after a partial record is readable.
            *state = State::Failed(error);
        }
    }
}

fn header() -> Vec<u8> {
    // Version 2.4, no time zone offset, no accuracy.
    words([MAGIC, 2 | 4 << 16, 0, 0, LONGEST, LINKTYPE_RAW])
}

/// Writes a record in one piece, so that packets of several processes do not mix.
fn write(to: &mut impl Write, at: Time, packet: &[u8]) -> io::Result<()> {
    let at = at.since_start();
    let length = packet.len() as u32;
    let mut record = words([at.as_secs() as u32, at.subsec_nanos(), length, length]);
    record.extend_from_slice(packet);
    to.write_all(&record)
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl fmt::Debug for Pcap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pcap")
    }
}
