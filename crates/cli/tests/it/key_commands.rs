//! `tollkeeper keys`, `projects`, `identities` and `root-keys` against the real server: what they do there, what they
//! print, and the codes they end with.

mod groups;
mod import;
mod keys;
mod usage;
mod verify;

use serde_json::Value;

use crate::program::{Program, Ran};
use crate::world::World;

/// A command that will talk to this server with its root key.
fn program(world: &World, arguments: &[&str]) -> Program {
    Program::new(arguments)
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
}

/// What a command that succeeds prints.
fn done(world: &World, arguments: &[&str]) -> String {
    let ran = program(world, arguments).run();
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// The JSON that a command prints, one value per line.
fn json(world: &World, arguments: &[&str]) -> Vec<Value> {
    let printed = done(world, &[arguments, &["--json"]].concat());
    printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A project named `shop`, and a key of it: id and text.
fn key(world: &World, more: &[&str]) -> (String, String) {
    if program(world, &["projects", "get", "shop"]).run().code != Some(0) {
        done(
            world,
            &[
                "projects",
                "create",
                "The shop",
                "--slug",
                "shop",
                "--default-limit",
                "plenty=1000/1h",
            ],
        );
    }
    let made = json(world, &[&["keys", "create", "shop"], more].concat()).remove(0);
    let text = |field: &str| made[field].as_str().expect("a text").to_owned();
    (text("keyId"), text("key"))
}

fn verify(world: &World, key: &str, more: &[&str]) -> Ran {
    program(world, &[&["keys", "verify"], more].concat()).stdin(&format!("{key}\n")).run()
}
