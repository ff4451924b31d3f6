//! The binary `tollkeeper`: reads the arguments, runs one command, and turns its outcome into an exit code.
//! It decides nothing itself; each command is a file.

mod archive;
mod audit;
mod backup;
mod changed_key;
mod check;
mod completions;
mod connection;
mod doctor;
mod exit;
mod explain;
mod failure;
mod flags;
mod identities;
mod keys;
mod limit;
mod mode;
mod moment;
mod new_key;
mod output;
mod projects;
mod quotas;
mod request_flags;
mod restore;
mod root_keys;
mod rules;
mod serve;
mod setting_flags;
mod since;
mod status;
mod usage;
mod window;
mod wrong_values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use exit::Exit;
use failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Verifies keys, enforces limits and meters usage in front of any API.
#[derive(Debug, Parser)]
#[command(name = "tollkeeper", version, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    #[command(subcommand)]
    Keys(keys::Keys),
    #[command(subcommand)]
    Projects(projects::Projects),
    #[command(subcommand)]
    Identities(identities::Identities),
    #[command(subcommand)]
    RootKeys(root_keys::RootKeys),
    #[command(subcommand)]
    Rules(rules::Rules),
    #[command(subcommand)]
    Quotas(quotas::Quotas),
    Check(check::Check),
    Explain(explain::Explain),
    Limit(limit::Limit),
    #[command(subcommand)]
    Usage(usage::Usage),
    #[command(subcommand)]
    Audit(audit::Audit),
    Archive(archive::Archive),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Mode(mode::ModeCommand),
    Status(status::Status),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let outcome = match wrong_values::parsed::<Arguments>().command {
        None => teach(),
        Some(Command::Serve(serve)) => serve.run(),
        Some(Command::Keys(keys)) => keys.run(),
        Some(Command::Projects(projects)) => projects.run(),
        Some(Command::Identities(identities)) => identities.run(),
        Some(Command::RootKeys(root_keys)) => root_keys.run(),
        Some(Command::Rules(rules)) => rules.run(),
        Some(Command::Quotas(quotas)) => quotas.run(),
        Some(Command::Check(check)) => check.run(),
        Some(Command::Explain(explain)) => explain.run(),
        Some(Command::Limit(limit)) => limit.run(),
        Some(Command::Usage(usage)) => usage.run(),
        Some(Command::Audit(audit)) => audit.run(),
        Some(Command::Archive(archive)) => archive.run(),
        Some(Command::Backup(backup)) => backup.run(),
        Some(Command::Restore(restore)) => restore.run(),
        Some(Command::Mode(mode)) => mode.run(),
        Some(Command::Status(status)) => status.run(),
        Some(Command::Doctor(doctor)) => doctor.run(),
        Some(Command::Completions(completions)) => completions.run(),
    };
    outcome.unwrap_or_else(|failure: Failure| failure.report()).into()
}

/// Whoever gives no command wants to know what there is.
fn teach() -> Result<Exit, Failure> {
    let printed = Arguments::command().print_help();
    printed.map(|()| Exit::Done).or_else(|error| output::unless_closed(&error))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_all_commands_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
