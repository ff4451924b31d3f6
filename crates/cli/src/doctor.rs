//! `tollkeeper doctor`: looks at everything `serve` will need, before it needs it, and says what to do.
//! It changes nothing: the one file it writes, to see whether it can, is gone again before it answers.

mod data_dir;
mod finding;
mod lock;
mod machine;
mod port;
mod servers;

use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::setting_flags::SettingFlags;
use finding::{Finding, Grade};

/// Check settings, port, data folder, database, Redis and machine before serving; exits 2 when a check fails
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    findings: &'a [Finding],
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let findings = self.examine();
        let ok = findings.iter().all(|finding| finding.grade != Grade::Fail);
        if self.json {
            output::json(&Report { ok, findings: &findings })?;
        } else {
            findings.iter().try_for_each(|finding| output::line(finding.shown()))?;
        }
        Ok(if ok { Exit::Done } else { Exit::Settings })
    }

    fn examine(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        match self.settings.examine() {
            Ok(settings) => {
                findings.push(Finding::ok("settings", "all known and valid"));
                findings.extend(self.config_file());
                findings.push(port::check(settings.http_listen));
                findings.extend(data_dir::check(&settings.data_dir));
                findings.extend(data_dir::check_database(&settings));
                findings.extend(lock::check(&settings.data_dir));
                findings.extend(lock::check_database(&settings));
                findings.extend(servers::check(&settings));
                findings.push(machine::open_files(settings.max_connections));
                findings.push(machine::clock(Some(&settings.data_dir)));
            }
            Err(problems) => {
                let next = "correct it; the checks of port and data folder follow once all settings are valid";
                findings
                    .extend(problems.into_iter().map(|text| Finding::fail("settings", text, next)));
                findings.push(machine::clock(None));
            }
        }
        findings
    }

    /// A file that is named but absent or broken is already among the settings' problems.
    fn config_file(&self) -> Option<Finding> {
        let raw = self.settings.raw()?;
        let path = raw.text("config")?;
        let present = std::path::Path::new(path).exists();
        let said = if present { "is read" } else { "does not exist, so defaults apply" };
        Some(Finding::ok("config", format!("{path} {said}")))
    }
}
