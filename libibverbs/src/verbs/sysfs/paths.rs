//! Names and numbers of the files.

use std::path::Path;

use verbs_settings::{Config, trees};

/// The directory in which Linux keeps devices without hardware. The profile follows.
const VIRTUAL: &str = "sys/devices/virtual/verbsim";

/// The number of the device file of rdma_cm.
const RDMA_CM: (u32, u32) = (10, 57);

/// The number of the device file of a device, as Linux numbers them.
pub(super) fn uverbs(number: u32) -> (u32, u32) {
    (231, 192 + number)
}

/// The directory of what would be the PCI device, from the root of the tree.
pub(super) fn device(config: &Config, number: usize) -> String {
    format!("{VIRTUAL}/{}/{}", config.profile(), address(number))
}

/// An address on a PCI bus.
pub(super) fn address(number: usize) -> String {
    format!(
        "{:04x}:{:02x}:{:02x}.0",
        number >> 13,
        number >> 5 & 0xff,
        number & 0x1f
    )
}

/// The number of a device file, such as that of `/dev/infiniband/uverbs0`.
pub(crate) fn device_number(path: &[u8]) -> Option<(u32, u32)> {
    let name = path.strip_prefix(b"/dev/infiniband/")?;
    if name == b"rdma_cm" {
        return Some(RDMA_CM);
    }
    let digits = std::str::from_utf8(name.strip_prefix(b"uverbs")?).ok()?;
    digits.parse().ok().map(uverbs)
}

/// The directory of a device (`ibdev_path`), and that of its device file (`dev_path`).
pub(crate) fn paths(config: &Config, number: usize) -> [String; 2] {
    /// The structure has 256 bytes for each, with the 0 at the end.
    const LONGEST: usize = 255;
    let below = |root: &Path| {
        let device = root.join(device(config, number));
        let name = &config.names()[number];
        [
            format!("{}/infiniband/{name}", device.display()),
            format!("{}/infiniband_verbs/uverbs{number}", device.display()),
        ]
    };
    let real = below(&trees::own());
    if real.iter().all(|path| path.len() <= LONGEST) {
        real
    } else {
        // A preloaded library maps these to the real ones.
        below(Path::new("/"))
    }
}
