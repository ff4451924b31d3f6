//! Rules from outside, on both stores: applied as a whole or not at all, told apart by name, brought back by version, and
//! in force on every node.

/// Runs each of these on a server with either store.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::rules::Home::on_sqlite());
            })*
        }

        mod postgres {
            $(#[test]
            fn $name() {
                super::$name(&crate::rules::Home::on_postgres());
            })*
        }
    };
}

pub(crate) use on_both;

mod applying;
mod commands;
mod counts;
mod many;
pub(crate) mod nodes;
mod refusals;
mod tests;

use std::ops::Deref;

use serde_json::{Value, json};
use tollkeeper_testkit::{Database, Postgres};

use crate::world::World;

/// A server of its own, and the database that it lies in.
pub(crate) struct Home {
    world: World,
    _database: Option<Database>,
}

impl Home {
    pub(crate) fn on_sqlite() -> Self {
        Self { world: World::new(), _database: None }
    }

    pub(crate) fn on_postgres() -> Self {
        let database = Postgres::shared().expect("a server").database().expect("a database");
        let url: &'static str = Box::leak(database.url.clone().into_boxed_str());
        let secret = ("TOLLKEEPER_SECRET", "one secret for all nodes of a database");
        let world = World::with(&[("TOLLKEEPER_DATABASE_URL", url), secret]);
        Self { world, _database: Some(database) }
    }
}

impl Deref for Home {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// A rule that limits requests of nobody: it needs an address that no test has.
pub(crate) fn rule(name: &str, limit: u64) -> Value {
    json!({
        "name": name, "scope": "ip", "ipRanges": ["192.0.2.0/24"],
        "limits": [{"limit": limit, "window": "1m"}],
    })
}

pub(crate) fn rules(count: usize) -> Vec<Value> {
    (0..count).map(|at| rule(&format!("r{at:05}"), 5)).collect()
}

/// Rules that this node has in force.
pub(crate) fn in_force(world: &World) -> u64 {
    world.metric("tollkeeper_rules")
}
