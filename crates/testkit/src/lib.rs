//! What tests of every crate share: a server process, a clock that is told the time, raw connections and slow clients.
//! It imports no crate of ours, so that any of them can use it, and it is never part of the product.

mod caddy;
mod connection;
mod fake_clock;
mod fault_proxy;
mod faulty_disk;
pub mod fleet;
mod output;
mod port;
mod postgres;
mod process;
mod python;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod s3;
mod slow_sockets;

pub use caddy::{Caddy, CaddyFailure};
pub use connection::{Connection, Response};
pub use fake_clock::FakeClock;
pub use fault_proxy::{Fault, FaultProxy};
pub use faulty_disk::FaultyDisk;
pub use postgres::{Database, Postgres, PostgresFailure};
pub use process::{ROOT_KEY, StartFailure, Tollkeeper};
pub use python::python;
pub use redis::{RedisFailure, RedisServer};
pub use redis_cluster::RedisCluster;
pub use redis_sentinel::{PRIMARY_NAME, RedisSentinel};
pub use s3::{BUCKET, S3Server};
pub use slow_sockets::SlowSockets;
