//! The packets of the captures.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

/// Every IP packet that was captured, in the order of the files' names.
pub(crate) fn ip_packets() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension() == Some(OsStr::new("pcap")));
    paths.sort();
    paths.iter().flat_map(|path| of_file(path)).collect()
}

fn of_file(path: &Path) -> Vec<Vec<u8>> {
    const ETHERNET_LEN: usize = 14;
    const ETHER_TYPES: [&[u8]; 2] = [&[0x08, 0x00], &[0x86, 0xdd]];
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().datalink, DataLink::ETHERNET);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let frame = packet.unwrap().data;
        let (ethernet, packet) = frame.split_at(ETHERNET_LEN);
        if ETHER_TYPES.contains(&&ethernet[12..]) {
            packets.push(packet.to_vec());
        }
    }
    packets
}
