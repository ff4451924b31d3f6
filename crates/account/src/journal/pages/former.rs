//! What processes before this one had counted, read from their files. A file stays until the ledger has shown all of it
//! for a while; what cannot be read is set aside, counted, and never fatal.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tollkeeper_core::{Component, Millis, Minute, Usage, boot_of_text};

use super::super::segment::free_name;
use super::super::slot::{self, Left, SLOT_BYTES, SLOT_WORDS};
use super::super::{BootId, JournalError, at};
use super::{KEPT_MS, file};

/// The pages of one process that has ended.
#[derive(Debug)]
pub struct Former {
    path: PathBuf,
    pub components: Vec<Component>,
    /// Slots that could not be read.
    pub damaged: u64,
    /// Where they were put, for a person to look at.
    pub set_aside: Option<PathBuf>,
    settled: bool,
    /// When the file was last written to.
    ended_at: Millis,
}

// === impl Former ===

impl Former {
    /// All that are in the directory; those of living processes are not, for the directory is locked.
    pub(super) fn read_all(dir: &Path) -> Result<Vec<Self>, JournalError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir).map_err(at("list", dir))? {
            let path = entry.map_err(at("list", dir))?.path();
            let named = path.file_name().and_then(|name| name.to_str());
            let boot = named.and_then(|name| boot_of_text(name.strip_prefix(file::PREFIX)?));
            paths.extend(boot.map(|_| path));
        }
        paths.sort_unstable();
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Result<Self, JournalError> {
        let ended_at = file::written_at(&path);
        let Some((boot, bytes)) = file::read(&path)? else { return Self::refused(path) };
        let mut former = Self {
            path,
            components: Vec::new(),
            damaged: 0,
            set_aside: None,
            settled: false,
            ended_at,
        };
        let (slots, rest) = bytes.as_chunks::<SLOT_BYTES>();
        let mut aside = Vec::new();
        for bytes in slots.iter().skip(1) {
            match slot::left(&words(bytes)) {
                Left::Nothing => {}
                Left::Counted(name, usage) if usage.is_none() => drop(name),
                Left::Counted(name, usage) => former.components.push(Component {
                    minute: name.minute,
                    boot: boot.0,
                    project_id: name.project_id,
                    key_id: name.key_id,
                    usage,
                }),
                Left::Damaged => {
                    former.damaged += 1;
                    aside.extend_from_slice(bytes);
                }
            }
        }
        if rest.iter().any(|byte| *byte != 0) {
            former.damaged += 1;
            aside.extend_from_slice(rest);
        }
        if !aside.is_empty() {
            former.set_aside = Some(put_aside(&former.path, &aside)?);
            former.blank_damaged(&bytes)?;
        }
        Ok(former)
    }

    /// A file without a header that can be read is moved aside whole, unless nothing was ever written to it.
    fn refused(path: PathBuf) -> Result<Self, JournalError> {
        let ended_at = file::written_at(&path);
        let empty = fs::read(&path).map_err(at("read", &path))?.iter().all(|byte| *byte == 0);
        let mut former = Self {
            path,
            components: Vec::new(),
            damaged: 0,
            set_aside: None,
            settled: false,
            ended_at,
        };
        if !empty {
            let aside = free_name(&former.path)?;
            fs::rename(&former.path, &aside).map_err(at("set aside", &former.path))?;
            former.damaged = 1;
            former.set_aside = Some(aside);
        }
        Ok(former)
    }

    /// What was set aside is not set aside again by the next start.
    fn blank_damaged(&self, bytes: &[u8]) -> Result<(), JournalError> {
        use std::os::unix::fs::FileExt;
        let open = OpenOptions::new().write(true).open(&self.path);
        let file = open.map_err(at("open", &self.path))?;
        let (slots, rest) = bytes.as_chunks::<SLOT_BYTES>();
        for (number, bytes) in slots.iter().enumerate().skip(1) {
            if slot::left(&words(bytes)) == Left::Damaged {
                let offset = (number * SLOT_BYTES) as u64;
                file.write_all_at(&[0; SLOT_BYTES], offset).map_err(at("write", &self.path))?;
            }
        }
        if !rest.is_empty() {
            let whole = (slots.len() * SLOT_BYTES) as u64;
            file.set_len(whole).map_err(at("cut", &self.path))?;
        }
        Ok(())
    }

    /// The ledger shows all of it.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// The ledger has forgotten something.
    pub fn unsettle(&mut self) {
        self.settled = false;
    }

    /// By the minute, what the ledger was seen to show of it.
    pub fn shown(&self) -> BTreeMap<Minute, Usage> {
        let mut sums = BTreeMap::new();
        for one in self.components.iter().filter(|_| self.settled) {
            let sum: &mut Usage = sums.entry(one.minute).or_default();
            *sum = sum.plus(one.usage);
        }
        sums
    }

    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Deletes the file when the ledger shows it and its process ended long enough ago; true when it is gone.
    pub fn forget(&self, now: Millis) -> Result<bool, JournalError> {
        let kept = !self.components.is_empty() && now.since(self.ended_at) < KEPT_MS;
        if !self.settled || kept {
            return Ok(false);
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(at("delete", &self.path)(error))
            }
            _ => Ok(true),
        }
    }

    /// Whose it was, if anything of it could be read.
    pub fn boot(&self) -> Option<BootId> {
        self.components.first().map(|one| BootId(one.boot))
    }
}

fn words(bytes: &[u8; SLOT_BYTES]) -> [u64; SLOT_WORDS] {
    let (eights, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| eights.get(at).map_or(0, |eight| u64::from_le_bytes(*eight)))
}

fn put_aside(path: &Path, bytes: &[u8]) -> Result<PathBuf, JournalError> {
    let aside = free_name(path)?;
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside);
    let written = open.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_data()));
    written.map_err(at("write", &aside))?;
    Ok(aside)
}
