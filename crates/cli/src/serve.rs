//! `tollkeeper serve`: checks the settings, starts the log, and hands over to the server until it has drained.
//! It never opens a port or a file itself.

use clap::Args;
use tracing_subscriber::EnvFilter;

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output;
use crate::setting_flags::SettingFlags;

/// Run the server until it is told to stop (SIGTERM, Ctrl-C or a closed terminal)
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let settings = self.settings.load()?;
        start_log(&settings.log)?;
        match tollkeeper_server::serve(settings) {
            Ok(()) => Ok(Exit::Done),
            Err(error) => Err(Failure::new(Exit::Settings, chain(&error)).with_next(
                "`tollkeeper doctor` with the same settings checks ports, folders and the machine",
            )),
        }
    }
}

/// To stderr, because stdout is for what a person or a script asked for.
fn start_log(filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(Exit::Settings, format!("TOLLKEEPER_LOG is not a log filter: {error}"))
            .with_next("use a level such as info, or a list such as warn,tollkeeper_server=debug")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // There is nowhere else to say it: who tried would panic where the terminal is gone.
        .log_internal_errors(false)
        .with_ansi(output::stderr_shows_colour())
        .init();
    Ok(())
}
