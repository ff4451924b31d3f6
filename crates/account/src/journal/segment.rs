//! One file of the journal: a header that names its writer, then records.
//! A writer cuts a torn record off again; a reader sets aside what it cannot read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tollkeeper_core::Millis;

use super::place::{PLACE, Place};
use super::record::{HEAD, PAYLOAD_MAX, Record, checksum};
use super::{BootId, JournalError, at};

const MAGIC: [u8; 8] = *b"TKJRNL02";
/// Magic (8), boot id (16), number (8), created (8), place (40), CRC32 of these (4).
const HEADER: usize = 44 + PLACE;
/// Before leases were kept no place was: such files are read, and never written.
const MAGIC_1: [u8; 8] = *b"TKJRNL01";
const HEADER_1: usize = HEADER - PLACE;
const ENDING: &str = "tkj";

#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    number: u64,
    bytes: u64,
    /// Where the file is longer than `bytes` because a write failed half way.
    torn: bool,
}

pub(super) struct SegmentReader {
    file: BufReader<File>,
    path: PathBuf,
    /// Everything before this was read and is whole.
    good: u64,
    before_last: u64,
    length: u64,
    boot: Option<BootId>,
    in_place: bool,
}

// === impl Segment ===

impl Segment {
    pub(super) fn create(
        dir: &Path,
        number: u64,
        boot: BootId,
        now: Millis,
    ) -> Result<Self, JournalError> {
        let path = path(dir, number);
        // The number is above all others; a file of that name is what an earlier try could not remove.
        // It names what was counted, so only the owner may read it.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let open = options.open(&path);
        let mut file = open.map_err(at("create", &path))?;
        let place = Place::of(&path, &file);
        let written = file.write_all(&header(number, boot, now, &place));
        if let Err(source) = written {
            // A header that did not fit would be set aside as corrupt at the next start.
            let _ = fs::remove_file(&path);
            return Err(at("write", &path)(source));
        }
        Ok(Self { file, path, number, bytes: HEADER as u64, torn: false })
    }

    /// Appends whole records: all of them or none.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let written = self.mend().and_then(|()| self.file.write_all(bytes));
        match written {
            Ok(()) => {
                self.bytes += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                self.torn = true;
                let _ = self.mend();
                Err(at("write", &self.path)(source))
            }
        }
    }

    /// Takes all records out again.
    pub(super) fn clear(&mut self) -> Result<(), JournalError> {
        self.bytes = HEADER as u64;
        self.torn = true;
        self.mend().map_err(at("cut", &self.path))
    }

    /// Cuts off what a failed write left behind, so that the next record starts where a reader expects it.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.bytes)?;
            self.file.seek(SeekFrom::Start(self.bytes))?;
            self.torn = false;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(at("sync", &self.path))
    }

    pub(super) fn same_file(&self) -> Result<File, JournalError> {
        self.file.try_clone().map_err(at("sync", &self.path))
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == HEADER as u64
    }
}

// === impl SegmentReader ===

impl SegmentReader {
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let file = File::open(path).map_err(at("open", path))?;
        let length = file.metadata().map_err(at("read", path))?.len();
        let mut reader = Self {
            file: BufReader::new(file),
            path: path.into(),
            good: 0,
            before_last: 0,
            length,
            boot: None,
            in_place: false,
        };
        let mut head = [0; HEADER];
        let (first, rest) = head.split_at_mut(HEADER_1);
        let mut whole = reader.fill(first)?;
        let old = first.starts_with(&MAGIC_1);
        whole = whole && (old || reader.fill(rest)?);
        let head = if old { &head[..HEADER_1] } else { &head[..] };
        if whole && header_is_whole(head) {
            reader.good = head.len() as u64;
            reader.boot = head[MAGIC.len()..].first_chunk().copied().map(BootId);
            let written = head[HEADER_1 - 4..].first_chunk().filter(|_| !old).map(Place::decode);
            let here = Place::of(path, reader.file.get_ref());
            reader.in_place = written.is_some_and(|written| written.is(&here));
        } else {
            // Nothing after a broken header can be trusted to be ours.
            reader.length = length.max(1);
        }
        Ok(reader)
    }

    /// Who wrote it; `None` when the header does not say.
    pub(super) fn boot(&self) -> Option<BootId> {
        self.boot
    }

    /// Is it the very file that was written, and is the machine still running that it was written on?
    pub(super) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// The next whole record; `None` at the end, or where the file stops making sense.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, JournalError> {
        if self.good == 0 {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let [l0, l1, l2, l3, c0, c1, c2, c3, kind] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let mut payload = vec![0; if length <= PAYLOAD_MAX { length } else { 0 }];
        let whole = length <= PAYLOAD_MAX && self.fill(&mut payload)?;
        if !whole || checksum(kind, &payload) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return Ok(None);
        }
        self.before_last = self.good;
        self.good += (HEAD + length) as u64;
        Ok(Some(Record { kind, payload }))
    }

    /// The last record was whole but means nothing: what begins with it is set aside too.
    pub(super) fn reject(&mut self) {
        self.good = self.before_last;
    }

    /// Copies what could not be read into a file beside this one, and cuts it off here.
    pub(super) fn set_rest_aside(mut self) -> Result<Option<PathBuf>, JournalError> {
        if self.good >= self.length {
            return Ok(None);
        }
        let aside = free_name(&self.path)?;
        if self.good == 0 {
            fs::rename(&self.path, &aside).map_err(at("rename", &self.path))?;
            return Ok(Some(aside));
        }
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.good)).map_err(at("read", &self.path))?;
        self.file.read_to_end(&mut rest).map_err(at("read", &self.path))?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&aside).and_then(|mut file| file.write_all(&rest));
        written.map_err(at("write", &aside))?;
        let file =
            OpenOptions::new().write(true).open(&self.path).map_err(at("open", &self.path))?;
        file.set_len(self.good).map_err(at("cut", &self.path))?;
        Ok(Some(aside))
    }

    /// False when the file ends before the buffer is full.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, JournalError> {
        match self.file.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(source) => Err(at("read", &self.path)(source)),
        }
    }
}

// === files ===

pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:012}.{ENDING}"))
}

/// Where to set something aside without overwriting what was set aside before.
pub(super) fn free_name(path: &Path) -> Result<PathBuf, JournalError> {
    let mut aside = path.with_extension("corrupt");
    let mut again = 1;
    while fs::exists(&aside).map_err(at("look for", &aside))? {
        again += 1;
        aside = path.with_extension(format!("{again}.corrupt"));
    }
    Ok(aside)
}

/// The numbers of all segments, oldest first.
pub(super) fn numbers_in(dir: &Path) -> Result<Vec<u64>, JournalError> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir).map_err(at("list", dir))? {
        let path = entry.map_err(at("list", dir))?.path();
        let ours = path.extension().is_some_and(|ending| ending == ENDING);
        numbers.extend(
            path.file_stem().filter(|_| ours).and_then(|stem| stem.to_str()?.parse::<u64>().ok()),
        );
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn header(number: u64, boot: BootId, now: Millis, place: &Place) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend(MAGIC);
    bytes.extend(boot.0);
    bytes.extend(number.to_le_bytes());
    bytes.extend(now.0.to_le_bytes());
    place.encode(&mut bytes);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn header_is_whole(bytes: &[u8]) -> bool {
    let (body, crc) = bytes.split_at(bytes.len() - 4);
    let known = [MAGIC, MAGIC_1].iter().any(|magic| bytes.starts_with(magic));
    known && crc32fast::hash(body).to_le_bytes() == *crc
}
