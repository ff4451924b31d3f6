//! The archive against real databases, a real disk and a real S3-compatible server. Nothing is mocked; what both
//! databases must do alike is written once and run on both.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

/// Runs each of these on a fresh world with either database.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::world::World::on_sqlite().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::world::World::on_postgres().await).await;
            })*
        }
    };
}

mod crash;
mod damage;
mod late;
mod readers;
mod restored;
mod run;
mod s3;
mod world;
