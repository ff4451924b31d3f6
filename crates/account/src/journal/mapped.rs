//! A part of a file as memory that all threads count in: what is written there the kernel has at once, whatever becomes of
//! the process. One of few files with unsafe code; everything on top of it sees a slice of atomics.

#![allow(
    unsafe_code,
    reason = "mapping a file is unsafe whoever does it; the arguments stand beside each use"
)]

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

#[derive(Debug)]
pub(super) struct Mapped {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is reached only as atomics through `&self`, from any thread, and unmapped only when nobody has it.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

// === impl Mapped ===

impl Mapped {
    /// Maps `words` eight-byte words of the file. They must be allocated on the disk already: touching a page that the
    /// disk has no room for would end the process.
    pub(super) fn new(file: &File, offset: u64, words: usize) -> io::Result<Self> {
        let bytes = words * size_of::<AtomicU64>();
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice takes no memory from anybody. Other processes that
        // could write the file, or cut it short, are kept out by the journal's lock; its own process only appends.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, shared, file, offset)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is the start of a mapping of so many words, aligned to a page; every bit pattern is a valid
        // AtomicU64, and nothing but atomics ever refers to it. It stays mapped for as long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and with `self` goes the last way to reach it.
        let unmapped =
            unsafe { munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
        // Only an address that was never mapped fails, and then there is nothing to give back.
        let _ = unmapped;
    }
}
