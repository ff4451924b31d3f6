//! Starting the server, and the commands against a running one: what a person meets first, good days and bad.

mod commands;
mod disk;
mod one_database;
mod one_file;
mod refusals;
mod root_key;
pub(crate) mod terminal;
