//! The server's settings as flags, made from its table so that no setting can be missing from `--help`.
//! Secrets have no flag. It hands texts on and never judges them; the settings' own check does.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use tollkeeper_server::settings::{Raw, SETTINGS, Setting, Settings, environment};

use crate::exit::Exit;
use crate::failure::Failure;

/// What was given on the command line, by setting key.
#[derive(Debug, Default)]
pub(crate) struct SettingFlags(BTreeMap<String, String>);

impl SettingFlags {
    pub(crate) fn load(&self) -> Result<Settings, Failure> {
        Settings::load(&self.0, &environment()).map_err(|problems| {
            Failure::new(Exit::Settings, problems.to_string()).with_next(
                "correct the above; `tollkeeper serve --help` names every setting and its default",
            )
        })
    }

    /// Every problem as its own text, for a report that goes on after them.
    pub(crate) fn examine(&self) -> Result<Settings, Vec<String>> {
        Settings::load(&self.0, &environment())
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    pub(crate) fn raw(&self) -> Option<Raw> {
        Raw::gather(&self.0, &environment()).ok()
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let with_flags = SETTINGS.iter().filter_map(argument).fold(command, Command::arg);
        with_flags.after_help(secrets_help())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS.iter().filter(|setting| !setting.secret) {
            if let Some(text) = matches.get_one::<String>(setting.key) {
                self.0.insert(setting.key.to_owned(), text.clone());
            }
        }
        Ok(())
    }
}

fn argument(setting: &'static Setting) -> Option<Arg> {
    let unbuilt = if setting.built { "" } else { "; accepted, not in this version yet" };
    let help = format!(
        "{}{unbuilt} [env: {}] [default: {}]",
        setting.about,
        setting.env(),
        setting.default
    );
    let flag = setting.flag()?;
    Some(Arg::new(setting.key).long(flag).value_name("VALUE").help(help).long_help(None::<&str>))
}

fn secrets_help() -> String {
    let secrets = SETTINGS.iter().filter(|setting| setting.secret);
    let lines =
        secrets.map(|s| format!("  {}\n          {} [default: {}]\n", s.env(), s.about, s.default));
    format!(
        "Settings without a flag, because arguments can be read by every user of the machine:\n{}\n\
         A flag wins over the environment, that over the settings file, that over the default.",
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        SettingFlags::augment_args(Command::new("serve"))
    }

    #[test]
    fn help_names_every_setting_with_its_variable_and_default() {
        let help = command().term_width(0).render_long_help().to_string();
        for setting in SETTINGS {
            assert!(help.contains(&setting.env()), "{}", setting.key);
            assert!(help.contains(&format!("[default: {}]", setting.default)), "{}", setting.key);
            let flagged = help.contains(&format!("--{} ", setting.key.replace('_', "-")));
            assert_eq!(flagged, !setting.secret, "{}", setting.key);
        }
    }

    #[test]
    fn given_flags_arrive_by_key_and_absent_ones_do_not() {
        let matches =
            command().try_get_matches_from(["serve", "--http-listen", "[::]:1", "--max-cells=16"]);
        let flags = matches
            .and_then(|matches| SettingFlags::from_arg_matches(&matches))
            .map(|flags| flags.0);
        let expected = [("http_listen", "[::]:1"), ("max_cells", "16")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(flags.ok(), Some(BTreeMap::from(expected)));
    }
}
