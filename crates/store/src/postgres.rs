//! How a PostgreSQL server is reached: pools per purpose, time-outs on every statement, and the schema brought up to date.
//! Nothing here knows what is in the tables.

use std::str::FromStr;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

use crate::Fault;
use crate::db::PgPools;
use crate::patience::within;

/// Half a second for a lock and two for a statement: whoever needs longer is stuck, and holds others up.
const LIMITS: [(&str, &str); 3] = [
    ("statement_timeout", "2000"),
    ("lock_timeout", "500"),
    ("idle_in_transaction_session_timeout", "10000"),
];

/// A miss that waits longer for a connection is better told that the database is away.
const MISS_PATIENCE: Duration = Duration::from_millis(250);
const ADMIN_PATIENCE: Duration = Duration::from_secs(2);
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);

/// Misses are single-flight and answered in about a millisecond: eight serve thousands a second.
pub(crate) const MISS_CONNECTIONS: u32 = 8;
const ADMIN_CONNECTIONS: u32 = 4;
/// One of them listens for changes.
const BACKGROUND_CONNECTIONS: u32 = 3;

/// A connection that lay idle for so long may be dead without our knowing; for a miss a younger one is taken as it is,
/// because asking it first would double the way. A miss can be asked again, and is.
const MISS_WITHOUT_DOUBT: Duration = Duration::from_secs(5);
/// A change cannot simply be made again, so nobody starts one on a connection that was not asked a moment ago.
const ALWAYS_IN_DOUBT: Duration = Duration::ZERO;

/// As long as the slowest statement may take, which is what a connection may still be busy with.
const RELEASE: Duration = Duration::from_secs(3);

/// Who looks waits no longer than a person would.
const LOOK: Duration = Duration::from_secs(3);

pub(crate) static SCHEMA: Migrator = sqlx::migrate!("migrations/postgres");

/// Where it is, without the password: fit for messages.
pub(crate) fn address(url: &str) -> String {
    match PgConnectOptions::from_str(url) {
        Ok(options) => {
            let database = options.get_database().unwrap_or_else(|| options.get_username());
            format!("{}:{}/{database}", options.get_host(), options.get_port())
        }
        Err(_) => "of the given URL".to_owned(),
    }
}

pub(crate) async fn connect(url: &str, replica: Option<&str>) -> Result<PgPools, Fault> {
    let primary = parse(url)?;
    let replica = replica.map(parse).transpose()?;
    migrate(&primary).await?;
    let limited = primary.options(LIMITS);
    Ok(PgPools {
        miss: miss_pool(limited.clone()),
        admin: pool(ADMIN_CONNECTIONS, ADMIN_PATIENCE, ALWAYS_IN_DOUBT, limited.clone()),
        background: pool(BACKGROUND_CONNECTIONS, BACKGROUND_PATIENCE, ALWAYS_IN_DOUBT, limited),
        replica: replica.map(|options| miss_pool(options.options(LIMITS))),
    })
}

/// Which release answers there, for who only looks: nothing is written, also no schema. Fails as a start would.
pub(crate) async fn look(url: &str) -> Result<String, Fault> {
    const STANDING: &str = "SELECT current_setting('server_version'), pg_is_in_recovery(),
        to_regclass('_sqlx_migrations') IS NOT NULL";
    const SCHEMA_NOW: &str = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
    let options = parse(url)?.options(LIMITS);
    within(LOOK, async {
        let mut connection = PgConnection::connect_with(&options).await?;
        let (version, is_replica, has_schema): (String, bool, bool) =
            sqlx::query_as(STANDING).fetch_one(&mut connection).await?;
        let found: i64 = if has_schema {
            sqlx::query_scalar(SCHEMA_NOW).fetch_one(&mut connection).await?
        } else {
            0
        };
        connection.close().await?;
        Ok((version, is_replica, found))
    })
    .await
    .map_err(Fault::from)
    .and_then(|(version, is_replica, found)| {
        let known = SCHEMA.iter().map(|step| step.version).max().unwrap_or(0);
        match () {
            () if is_replica => Err(Fault::ReadOnly),
            () if found > known => Err(Fault::NewerSchema { found, known }),
            () => Ok(version),
        }
    })
}

fn parse(url: &str) -> Result<PgConnectOptions, Fault> {
    let options = PgConnectOptions::from_str(url).map_err(|_| Fault::BadUrl)?;
    Ok(options.application_name("tollkeeper").disable_statement_logging())
}

/// Building an index may take longer than any statement of ours, so the steps run without our time-outs. Two nodes
/// that start at once take turns by a lock of the database.
async fn migrate(options: &PgConnectOptions) -> Result<(), Fault> {
    let mut connection = PgConnection::connect_with(options).await?;
    SCHEMA.run_direct(None, &mut connection, false).await?;
    Ok(connection.close().await?)
}

fn miss_pool(options: PgConnectOptions) -> PgPool {
    pool(MISS_CONNECTIONS, MISS_PATIENCE, MISS_WITHOUT_DOUBT, options)
}

fn pool(
    connections: u32,
    patience: Duration,
    without_doubt: Duration,
    options: PgConnectOptions,
) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(patience)
        .test_before_acquire(false)
        .before_acquire(move |connection, meta| {
            Box::pin(async move {
                if meta.idle_for < without_doubt {
                    return Ok(true);
                }
                // One that does not answer must leave time to try another.
                Ok(within(patience / 3, connection.ping()).await.is_ok())
            })
        })
        .after_release(|connection, _| {
            // A call that was given up may have left an answer, or a transaction, behind. Who does not say that it is well is
            // not waited for: its place in the pool is free again.
            Box::pin(async move { Ok(within(RELEASE, connection.ping()).await.is_ok()) })
        })
        .connect_lazy_with(options)
}
