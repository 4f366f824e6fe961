//! `--pcap FILE`: a file of packets.

use std::fs::File;
use std::io;
use std::path::Path;

use verbs_api::LinkLayer;
use verbs_api::profile::Profile;
use verbs_sim::Pcap;
use verbsim::backend::only_roce;

use crate::output::Stop;

/// Begins it.
pub(crate) fn begin(path: &Path) -> Result<Pcap, Stop> {
    let begun = File::create(path).and_then(Pcap::new);
    begun.map_err(|error| refused(path, &error))
}

/// Begins it for devices of this profile, on Ethernet, if it is asked for.
pub(crate) fn of_profile(path: Option<&Path>, profile: Profile) -> Result<Option<Pcap>, Stop> {
    let Some(path) = path else { return Ok(None) };
    only_roce(&[profile], &[LinkLayer::Ethernet]).map_err(Stop::usage)?;
    begin(path).map(Some)
}

/// Ends it, if there is one.
pub(crate) fn end(path: Option<&Path>, pcap: Option<Pcap>) -> Result<(), Stop> {
    match (path, pcap) {
        (Some(path), Some(pcap)) => pcap.finish().map_err(|error| refused(path, &error)),
        _ => Ok(()),
    }
}

fn refused(path: &Path, error: &io::Error) -> Stop {
    Stop::usage(format!("{}: {error}", path.display()))
}
