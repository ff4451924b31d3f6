//! Where and when a file of the journal was written: in which directory, as which file, since which start of the machine.
//! What was only handed to the kernel may be gone after a restart of the machine, and a copy of a directory may be older
//! than the original: neither says surely what a process had spent when it ended.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Kernel (16), device (8), directory (8), file (8).
pub(super) const PLACE: usize = 40;

/// Random, made by Linux whenever it starts.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    kernel: u128,
    device: u64,
    directory: u64,
    file: u64,
}

// === impl Place ===

impl Place {
    /// A machine that does not tell gives a place that no file was ever written in.
    pub(super) fn of(path: &Path, file: &File) -> Self {
        let kernel = fs::read_to_string(BOOT_ID).ok();
        let kernel =
            kernel.and_then(|id| u128::from_str_radix(&id.trim().replace('-', ""), 16).ok());
        let directory = path.parent().and_then(|dir| fs::metadata(dir).ok());
        let (Some(kernel), Some(directory), Ok(file)) = (kernel, directory, file.metadata()) else {
            return Self::default();
        };
        Self { kernel, device: directory.dev(), directory: directory.ino(), file: file.ino() }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.kernel != 0 && self == other
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.kernel.to_le_bytes());
        for number in [self.device, self.directory, self.file] {
            out.extend(number.to_le_bytes());
        }
    }

    pub(super) fn decode(bytes: &[u8; PLACE]) -> Self {
        let number = |at: usize| {
            bytes[at..].first_chunk().map_or(0, |eight: &[u8; 8]| u64::from_le_bytes(*eight))
        };
        let kernel = u128::from(number(0)) | (u128::from(number(8)) << 64);
        Self { kernel, device: number(16), directory: number(24), file: number(32) }
    }
}
