//! Backups and what comes back from them: a node's file, a configuration that moves between stores, and a drill.

mod backup;
mod config;
mod drill;
mod redis;
mod under_load;

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Program, Ran};
use crate::world::Client;

/// A command on the data directory of a server, with its settings.
fn run(arguments: &[&str], data_dir: &Path, env: &[(&str, &str)]) -> Ran {
    let program = Program::new(arguments).folder(data_dir.parent().expect("a parent"));
    let program = program.env("TOLLKEEPER_DATA_DIR", data_dir.to_str().expect("UTF-8"));
    env.iter().fold(program, |program, (name, value)| program.env(name, value)).run()
}

fn made(client: &mut Client, more: &[(&str, Value)]) -> String {
    let api = client.data("apis.createApi", &json!({"name": "payments"}));
    let mut body = json!({"apiId": api["apiId"]});
    for (name, value) in more {
        body[name] = value.clone();
    }
    client.data("keys.createKey", &body)["key"].as_str().expect("a key").to_owned()
}

fn code(client: &mut Client, key: &str) -> String {
    let verified = client.data("keys.verifyKey", &json!({"key": key}));
    verified["code"].as_str().expect("a code").to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
