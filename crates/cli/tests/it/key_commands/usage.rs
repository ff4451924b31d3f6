//! Help, and every way in which these commands end without having done their work.

use crate::program::Program;

const ROOT_KEY: &str = "root-key-of-sixteen-or-more";

const COMMANDS: &[(&str, &[&str])] = &[
    ("keys", &["create", "list", "get", "update", "reroll", "revoke", "verify", "import"]),
    ("projects", &["create", "list", "get", "update", "delete"]),
    ("identities", &["create", "list", "get", "update", "delete"]),
    ("root-keys", &["create", "list", "update", "reroll", "delete"]),
];

#[test]
fn every_command_teaches_by_example_and_names_its_exit_codes() {
    for (group, commands) in COMMANDS {
        let help = Program::new(&[group, "--help"]).run().stdout;
        assert!(help.contains("Examples:"), "{group}: {help}");
        for command in *commands {
            assert!(help.contains(&format!("\n  {command} ")), "{group}: {command}: {help}");
            let help = Program::new(&[group, command, "--help"]).run().stdout;
            for word in [
                &*format!("tollkeeper {group} "),
                "Examples:",
                "TOLLKEEPER_URL",
                "4  the server refused",
            ] {
                assert!(help.contains(word), "{group} {command}: {word}: {help}");
            }
        }
    }
}

#[test]
fn wrong_arguments_exit_2_and_say_what_is_expected() {
    let cases: &[(&[&str], &str)] = &[
        (&["keys", "create"], "PROJECT"),
        (&["keys", "create", "shop", "--limit", "requests=100"], "requests=100/1m"),
        (&["keys", "create", "shop", "--refill", "daily:5"], "--credits"),
        (&["keys", "create", "shop", "--credits", "5", "--refill", "weekly:5"], "monthly:1000:1"),
        (&["keys", "create", "shop", "--meta", "[1]"], "expected a JSON object"),
        (&["keys", "create", "shop", "--expires", "tomorrow"], "such as 12h or 30d"),
        (&["keys", "update", "key_1"], "--name"),
        (&["keys", "update", "key_1", "--name", "a", "--clear", "name"], "--clear name"),
        (&["keys", "update", "key_1", "--enable", "--disable"], "--disable"),
        (&["keys", "reroll", "key_1"], "--grace"),
        (&["keys", "revoke"], "KEY_ID"),
        (&["root-keys", "create", "--name", "any"], "--permission"),
        (&["projects", "update", "shop", "--protect", "maybe"], "expected on or off"),
        (&["keys", "list", "shop"], "TOLLKEEPER_ROOT_KEY is not set"),
    ];
    for (arguments, expected) in cases {
        let ran = Program::new(arguments).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn no_server_exits_3() {
    for arguments in [
        &["keys", "list", "api_1"][..],
        &["projects", "list"],
        &["identities", "list"],
        &["root-keys", "list"],
    ] {
        let ran = Program::new(arguments)
            .env("TOLLKEEPER_URL", "http://127.0.0.1:1")
            .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
            .run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("tollkeeper serve") && !ran.stderr.contains(ROOT_KEY),
            "{}",
            ran.stderr
        );
    }
}
