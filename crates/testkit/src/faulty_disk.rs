//! A disk that is full, or that cannot keep what it was given, for one server that is started on it. The server's own calls
//! fail as the kernel would have them fail, so that no file system has to be mounted and any user can run it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SHIM: &str = include_str!("faulty_disk.c");

/// Places in the file that the server has mapped.
const FULL: u64 = 0;
const UNSYNCED: u64 = 1;

#[derive(Debug)]
pub struct FaultyDisk {
    folder: TempDir,
    told: File,
}

// === impl FaultyDisk ===

impl FaultyDisk {
    /// One that works, as yet.
    ///
    /// # Panics
    /// Without a C compiler, which Rust needs as well.
    #[allow(clippy::expect_used, reason = "a test cannot go on without it")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Whoever runs the server may look into it.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
        fs::write(folder.path().join("faulty_disk.c"), SHIM).expect("its text");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o", "faulty_disk.so", "faulty_disk.c"]);
        let made = compiler.current_dir(folder.path()).output().expect("a C compiler");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let told = File::create(folder.path().join("told")).expect("a file");
        told.write_all_at(&[0; 2], 0).expect("written");
        Self { folder, told }
    }

    /// From now on no file gets longer; what is there can be written over.
    pub fn fill(&self) {
        self.tell(FULL, 1);
    }

    pub fn free(&self) {
        self.tell(FULL, 0);
    }

    /// From now on nothing that was written can be made to last.
    pub fn stop_keeping(&self) {
        self.tell(UNSYNCED, 1);
    }

    pub fn keep_again(&self) {
        self.tell(UNSYNCED, 0);
    }

    /// What a server is started with whose files are below this folder.
    pub(crate) fn env(&self, below: &Path) -> [(&'static str, PathBuf); 3] {
        let own = self.folder.path();
        [
            ("LD_PRELOAD", own.join("faulty_disk.so")),
            ("FAULTY_DISK_TOLD", own.join("told")),
            ("FAULTY_DISK_BELOW", below.to_owned()),
        ]
    }

    #[allow(clippy::expect_used, reason = "a test cannot go on without it")]
    fn tell(&self, place: u64, value: u8) {
        // In place: the server has mapped it.
        self.told.write_all_at(&[value], place).expect("written");
    }
}

impl Default for FaultyDisk {
    fn default() -> Self {
        Self::new()
    }
}
