//! Whether the data folder is there or can be made, takes writing, and has room.
//! It never makes the folder: that is the server's to do, with the server's permissions. A database in a folder of its own needs
//! that one too, and nobody makes it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use tollkeeper_server::settings::{Database, Settings};

use super::finding::Finding;

/// Room for a journal, its checkpoint beside it, and a day of growth of the store.
const FREE_BYTES_MIN: u64 = 256 << 20;

pub(super) fn check(data_dir: &Path) -> Vec<Finding> {
    let Some(existing) = nearest_existing(data_dir).filter(|nearest| nearest.is_dir()) else {
        let found = format!("{} is not a folder and cannot become one", data_dir.display());
        return vec![Finding::fail("data_dir", found, "choose a folder with --data-dir")];
    };
    let present = if existing == data_dir { "exists" } else { "will be made" };
    vec![
        Finding::ok("data_dir", format!("{} {present}", data_dir.display())),
        writing("writing", &existing),
        room(&existing),
    ]
}

/// The folder of a database that is not in the data folder.
pub(super) fn check_database(settings: &Settings) -> Option<Finding> {
    let Database::Sqlite { path } = &settings.database else { return None };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let whole = |path: &Path| std::path::absolute(path).ok();
    if whole(folder) == whole(&settings.data_dir) {
        return None;
    }
    if !folder.is_dir() {
        let next = "create it, or name another file in TOLLKEEPER_DATABASE_URL";
        let found = format!("the folder {} does not exist", folder.display());
        return Some(Finding::fail("database", found, next));
    }
    Some(writing("database", folder))
}

/// The path itself or whatever is above it, folder or not.
fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let found = whole.ancestors().find(|above| above.exists())?;
    // The folder itself is named as it was given, so that messages match the settings.
    Some(if found == whole { path.to_owned() } else { found.to_owned() })
}

/// Only writing shows that writing works: permissions, read-only mounts and quotas all have their say.
fn writing(check: &'static str, folder: &Path) -> Finding {
    let probe = folder.join(format!(".tollkeeper-doctor-{}", std::process::id()));
    let written =
        OpenOptions::new().write(true).create_new(true).open(&probe).and_then(|mut file| {
            file.write_all(&[0; 4096])?;
            file.sync_all()
        });
    let _ = fs::remove_file(&probe);
    match written {
        Ok(()) => Finding::ok(check, format!("{} takes files", folder.display())),
        Err(error) => Finding::fail(
            check,
            format!("{} takes no files: {error}", folder.display()),
            "give this user the right to write there, or choose another folder",
        ),
    }
}

fn room(folder: &Path) -> Finding {
    match rustix::fs::statvfs(folder) {
        Ok(disk) => room_of(disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => {
            Finding::warn("room", format!("free space is unknown: {error}"), "look with `df`")
        }
    }
}

fn room_of(free_bytes: u64) -> Finding {
    let found = format!("{} MiB free", free_bytes >> 20);
    if free_bytes >= FREE_BYTES_MIN {
        return Finding::ok("room", found);
    }
    let next = format!(
        "free at least {} MiB, or choose another disk with --data-dir",
        FREE_BYTES_MIN >> 20
    );
    Finding::fail("room", found, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    fn grades(findings: &[Finding]) -> Vec<Grade> {
        findings.iter().map(|finding| finding.grade).collect()
    }

    #[test]
    fn a_folder_that_can_be_made_is_fine_and_stays_unmade() -> std::io::Result<()> {
        let parent = tempfile::tempdir()?;
        let wanted = parent.path().join("a/b/c");
        let findings = check(&wanted);
        assert_eq!(grades(&findings)[..2], [Grade::Ok, Grade::Ok], "{findings:?}");
        assert_eq!(fs::read_dir(parent.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_named() -> std::io::Result<()> {
        let parent = tempfile::tempdir()?;
        let file = parent.path().join("data");
        fs::write(&file, "x")?;
        assert_eq!(grades(&check(&file)), [Grade::Fail]);
        // A folder cannot be made beneath a file either; the nearest folder above is what gets probed.
        assert!(check(&file.join("deeper")).iter().any(|finding| finding.grade == Grade::Fail));
        Ok(())
    }

    #[test]
    fn a_folder_that_takes_no_files_is_named() {
        // Nobody can create files in there, not even root.
        assert_eq!(writing("writing", Path::new("/proc/self")).grade, Grade::Fail);
    }

    #[test]
    fn too_little_room_is_named() {
        assert_eq!(room_of(FREE_BYTES_MIN).grade, Grade::Ok);
        assert_eq!(room_of(FREE_BYTES_MIN - 1).grade, Grade::Fail);
    }
}
