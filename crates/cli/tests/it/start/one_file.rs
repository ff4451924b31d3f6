//! One SQLite file is one server's, whatever data directories others bring: two would each admit all of every limit.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tollkeeper_testkit::{StartFailure, Tollkeeper};

use crate::program::{Program, Ran};
use crate::world::{Client, ask, start};

const SECRET: &str = "one secret of more than thirty-two characters";

/// One file for several servers, each with a data directory of its own.
struct OneFile {
    folder: TempDir,
}

// === impl OneFile ===

impl OneFile {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["one", "other"] {
            fs::create_dir(folder.path().join(name)).expect("a data directory");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self, data_dir: &str, file: &Path) -> Result<Tollkeeper, StartFailure> {
        let url = url(file);
        let env = [("TOLLKEEPER_DATABASE_URL", &*url), ("TOLLKEEPER_SECRET", SECRET)];
        start(&self.path(data_dir), &env)
    }

    fn run(&self, arguments: &[&str], data_dir: &str, file: &Path) -> Ran {
        Program::new(arguments)
            .env("TOLLKEEPER_DATA_DIR", self.path(data_dir).to_str().expect("UTF-8"))
            .env("TOLLKEEPER_DATABASE_URL", &url(file))
            .env("TOLLKEEPER_SECRET", SECRET)
            .env("TOLLKEEPER_HTTP_LISTEN", "127.0.0.1:0")
            .folder(self.folder.path())
            .run()
    }
}

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

fn assert_refused(started: Result<Tollkeeper, StartFailure>, file: &Path) {
    let refused = started.expect_err("the file is taken");
    assert_eq!(refused.status.and_then(|status| status.code()), Some(2), "{refused}");
    let file = file.display().to_string();
    for words in [&*file, "in use by another server", "TOLLKEEPER_DATABASE_URL"] {
        assert!(refused.stderr.contains(words), "{words}: {refused}");
    }
}

#[test]
fn a_second_server_on_one_file_is_refused_by_every_path_to_it_until_the_first_is_gone() {
    let home = OneFile::new();
    let file = home.path("s.db");
    let mut first = home.server("one", &file).expect("it starts");
    assert_refused(home.server("other", &file), &file);
    let (link, folder) = (home.path("link.db"), home.path("folder"));
    symlink(&file, &link).expect("linked");
    symlink(home.folder.path(), &folder).expect("linked");
    assert_refused(home.server("other", &link), &link);
    assert_refused(home.server("other", &folder.join("s.db")), &folder.join("s.db"));
    let limited = Client::new(first.url(), first.root_key()).limit(&ask("api", "ann", 1));
    assert_eq!(limited["success"], true);
    first.kill9().expect("it can be killed");
    let second = home.server("other", &link).expect("nobody holds it");
    assert_refused(home.server("one", &file), &file);
    drop(second);
}

#[test]
fn a_file_in_the_data_directory_of_another_server_is_taken_too() {
    let home = OneFile::new();
    let file = home.path("one").join("tollkeeper.db");
    let _first = start(&home.path("one"), &[("TOLLKEEPER_SECRET", SECRET)]).expect("it starts");
    assert_refused(home.server("other", &file), &file);
}

#[test]
fn commands_beside_a_server_find_its_file_open_and_a_restore_over_it_is_refused() {
    let home = OneFile::new();
    let (file, backup) = (home.path("s.db"), home.path("made.backup"));
    let _server = home.server("one", &file).expect("it starts");
    let backup = backup.to_str().expect("UTF-8");
    let archive = home.path("archive");
    for command in [
        &["backup", backup][..],
        &["backup", "--config-only", home.path("made.config").to_str().expect("UTF-8")],
        &["archive", "--to", archive.to_str().expect("UTF-8")],
        &["doctor"],
    ] {
        let ran = home.run(command, "one", &file);
        assert_eq!(ran.code, Some(0), "{command:?}: {} {}", ran.stdout, ran.stderr);
    }
    let restored = home.run(&["restore", backup], "other", &file);
    assert_eq!(restored.code, Some(2), "{} {}", restored.stdout, restored.stderr);
    assert!(restored.stderr.contains("in use by another server"), "{}", restored.stderr);
}

#[test]
fn the_doctor_names_who_works_with_the_file_before_a_start_does() {
    let home = OneFile::new();
    let file = home.path("s.db");
    let server = home.server("one", &file).expect("it starts");
    let ran = home.run(&["doctor"], "other", &file);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let named = format!("process {}", server.pid());
    let line = ran.stdout.lines().find(|line| line.starts_with("fail"));
    let line = line.unwrap_or_else(|| panic!("{}", ran.stdout));
    for words in [file.to_str().expect("UTF-8"), &*named, "TOLLKEEPER_DATABASE_URL"] {
        assert!(line.contains(words), "{words}: {line}");
    }
}
