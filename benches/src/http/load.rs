//! The load on one server: a warm-up, then a few seconds of wrk, with the server's processor time beside it.

use std::process::Command;
use std::time::Duration;

use super::requests::Requests;
use super::server::{Core, Server};
use crate::failure::Failure;
use crate::proc;

pub(crate) const CONNECTIONS: u32 = 64;
const WARM_UP_S: u32 = 1;
const MEASURED_S: u32 = 4;

#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) core: Core,
}

/// What one run of wrk found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    requests: f64,
    seconds: f64,
    cpu_seconds: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

// === impl Load ===

impl Load<'_> {
    pub(crate) fn on(&self, server: &Server) -> Result<Figures, Failure> {
        self.run(server, WARM_UP_S)?;
        let before = proc::cpu_time(server.pid())?;
        let said = self.run(server, MEASURED_S)?;
        let cpu = proc::cpu_time(server.pid())?.saturating_sub(before);
        Figures::read(&said, cpu)
    }

    fn run(&self, server: &Server, seconds: u32) -> Result<String, Failure> {
        let mut wrk = self.core.command("wrk");
        wrk.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "--latency"])
            .arg("-s")
            .arg(&self.requests.script)
            .arg(format!("http://{}", server.address()));
        let said = output(&mut wrk)?;
        Ok(said)
    }
}

// === impl Figures ===

impl Figures {
    fn read(said: &str, cpu: Duration) -> Result<Self, Failure> {
        let line = said.lines().find_map(|line| line.strip_prefix("figures "));
        let numbers = line.map(|line| line.split(' ').map(str::parse::<f64>).collect());
        let Some(Ok(numbers)) = numbers else {
            return Err(Failure::unreadable("wrk's figures", said));
        };
        let numbers: Vec<f64> = numbers;
        let [requests, micros, p50_us, p99_us, errors] = numbers[..] else {
            return Err(Failure::unreadable("wrk's figures", said));
        };
        if errors > 0.0 {
            return Err(Failure::Invalid(format!("{errors} requests of the load failed")));
        }
        Ok(Self { requests, seconds: micros / 1e6, cpu_seconds: cpu.as_secs_f64(), p50_us, p99_us })
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.requests / self.seconds
    }

    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.requests
    }

    pub(crate) fn cpu_percent(&self) -> f64 {
        self.cpu_seconds * 100.0 / self.seconds
    }
}

fn output(command: &mut Command) -> Result<String, Failure> {
    let said = command.output().map_err(Failure::io("wrk (is it installed?)"))?;
    if said.status.success() {
        return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    Err(Failure::Child { what: "wrk".into(), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_script_becomes_figures_and_errors_spoil_them() {
        let read = |said: &str| Figures::read(said, Duration::from_secs(2));
        let figures = read("Running\nfigures 400000 4000000 500 900 0\n");
        assert!(figures.is_ok_and(|figures| {
            (figures.per_second() - 1e5).abs() < 1e-6 && (figures.cpu_us() - 5.0).abs() < 1e-9
        }));
        assert!(read("figures 400000 4000000 500 900 3\n").is_err());
        assert!(read("nothing").is_err());
    }
}
