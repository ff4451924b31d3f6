//! Help and completions: what a person meets before the first successful command.

use crate::program::Program;

#[test]
fn without_a_command_help_is_printed_with_the_exit_codes() {
    let ran = Program::new(&[]).run();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for word in [
        "serve",
        "limit",
        "doctor",
        "completions",
        "Exit codes:",
        "3  the server could not be reached",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'));
}

#[test]
fn help_of_limit_teaches_by_example() {
    let ran = Program::new(&["limit", "--help"]).run();
    assert_eq!(ran.code, Some(0));
    for word in [
        "tollkeeper limit login 203.0.113.9 --limit 5 --window 1m",
        "TOLLKEEPER_URL",
        "TOLLKEEPER_ROOT_KEY",
        "1  denied",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
}

#[test]
fn help_of_explain_teaches_by_example_and_keeps_keys_out_of_arguments() {
    let ran = Program::new(&["explain", "--help"]).run();
    assert_eq!(ran.code, Some(0));
    for word in [
        "tollkeeper explain --external-id ann --method GET --path /v1/users",
        "TOLLKEEPER_KEY",
        "--key-stdin",
        "1  denied",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("--key "));
}

#[test]
fn help_of_serve_names_settings_with_and_without_a_flag() {
    let ran = Program::new(&["serve", "--help"]).run();
    for word in [
        "--http-listen",
        "TOLLKEEPER_HTTP_LISTEN",
        "127.0.0.1:7700",
        "TOLLKEEPER_ROOT_KEY",
        "TOLLKEEPER_LOG",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("--root-key"));
}

#[test]
fn a_mistyped_command_exits_2_and_suggests_the_right_one() {
    let ran = Program::new(&["sevre"]).run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("serve"), "{}", ran.stderr);
}

#[test]
fn every_shell_gets_completions_that_know_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Program::new(&["completions", shell]).run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stdout.contains("root-key-stdin") && ran.stdout.contains("http-listen"),
            "{shell}"
        );
    }
}
