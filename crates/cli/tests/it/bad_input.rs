//! What hostile and mistaken callers send: refused in the envelope with every mistake named, and nothing counted.

mod authorization;
mod bodies;
mod cursors;
mod heads;
mod nul;
mod sizes;
mod smuggling;
mod spans;
