//! A program whose stdout is a terminal, so that a test sees what a person sees.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs the binary on a terminal of its own; hands back its exit code and all that stood on the screen.
pub(crate) fn on_a_terminal(arguments: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let theirs = OpenOptions::new().read(true).write(true).open(name).expect("the other end");
    let child = Command::new(crate::world::BINARY)
        .args(arguments)
        .env_clear()
        .env("TERM", "xterm")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(theirs)
        .spawn();
    let ended = child.expect("it starts").wait_with_output().expect("it ends");
    let mut screen = Vec::new();
    // The last reader of a terminal whose other end is closed gets an error, not an end of file.
    let _ = File::from(ours).read_to_end(&mut screen);
    (ended.status.code(), String::from_utf8(screen).expect("UTF-8").replace("\r\n", "\n"))
}
