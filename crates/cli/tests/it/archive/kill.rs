//! kill -9 at every line that an archive prints, then again, until one run comes through.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tollkeeper_testkit::{BUCKET, S3Server};

use super::Kept;
use crate::world::BINARY;

/// Enough for several pages, so that the steps tell how far they are in between.
const ROWS: u32 = 20_000;

#[test]
fn an_archive_of_sqlite_that_is_killed_at_any_step_is_made_good_by_the_next() {
    let kept = Kept::in_sqlite(ROWS);
    let place = kept.place();
    killed_until_done(&kept, &place, &[]);
}

#[test]
fn an_archive_of_postgres_that_is_killed_at_any_step_is_made_good_by_the_next() {
    let kept = Kept::in_postgres(ROWS);
    let place = kept.place();
    killed_until_done(&kept, &place, &[]);
}

#[test]
fn an_archive_to_a_bucket_that_is_killed_at_any_step_is_made_good_by_the_next() {
    let server = S3Server::start().expect("an S3 server");
    let kept = Kept::in_sqlite(ROWS);
    killed_until_done(&kept, &format!("s3://{BUCKET}"), &server.env());
}

fn killed_until_done(kept: &Kept, place: &str, env: &[(String, String)]) {
    let mut kills = 0;
    while !killed_at_line(kept, place, env, kills) {
        kills += 1;
        let left = kept.left();
        let archived = archived(kept, place, env);
        assert!(left == u64::from(ROWS) || archived == u64::from(ROWS), "{left} and {archived}");
    }
    assert!(kills >= 8, "each step was interrupted: {kills}");
    assert_eq!((kept.left(), archived(kept, place, env)), (0, u64::from(ROWS)));
    assert!(killed_at_line(kept, place, env, usize::MAX), "the next has nothing to do");
}

/// True where the run ended by itself before it had printed so many lines.
fn killed_at_line(kept: &Kept, place: &str, env: &[(String, String)], lines: usize) -> bool {
    let mut command = Command::new(BINARY);
    command.args(["archive", "--to", place]).env_clear().envs(kept.env());
    command.envs(env.iter().cloned()).current_dir(kept.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // The database may take a moment to see that the run before this one is dead.
    let mut said = String::from("archives already");
    while said.contains("archives already") {
        let mut child = command.spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        said.clear();
        let mut steps = 0;
        for line in stderr.lines().map_while(Result::ok) {
            if line.ends_with(" rows") {
                if steps == lines {
                    child.kill().expect("it can be killed");
                }
                steps += 1;
            }
            said = said + &line + "\n";
        }
        if child.wait().expect("it ends").success() {
            return true;
        }
        if steps > lines {
            return false;
        }
    }
    panic!("{said}");
}

fn archived(kept: &Kept, place: &str, env: &[(String, String)]) -> u64 {
    let mut command = Command::new(BINARY);
    command.args(["archive", "restore", "2026-05", "--to", "-", "--from", place]);
    command.env_clear().envs(env.iter().cloned()).current_dir(kept.folder.path());
    let ran = command.output().expect("it runs");
    String::from_utf8(ran.stdout).expect("UTF-8").lines().count() as u64
}
