//! Everything that people have set up, as rows of any table, out of one database and into another of either kind.
//! It goes by what the database says of its tables, so that a new table is part of it without a word here; only tables of
//! what happened, rather than of what was set up, are named and left out.

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;

use crate::Store;
use crate::bind::binds;
use crate::db::{Begun, Db, Purpose};
use crate::silence::{by_clock, silent_before};
use crate::{Bind, Each, StoreError};

/// What the running server writes: logs, counters, leases, answers kept for a day. A table with one of these beginnings
/// is left out.
const HAPPENED: &[&str] = &[
    "_sqlx_migrations",
    "admin_audit",
    "credit_leases",
    "decision_audit",
    "idempotency",
    "limit_stats",
    "metric_",
    "outbox",
    "parked_cells",
    // Of the database that it stands in, whatever is brought into it.
    "secret_fingerprint",
    "usage_",
    "webhook_attempts",
];

/// A table that is set up by people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigTable {
    pub name: String,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: Kind,
}

/// How a value is written in JSON, and read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// As hexadecimal digits.
    Bytes,
    Flag,
    /// Of this type of the database.
    Number(String),
}

/// Rows on their way into an empty database: all of them, or none.
#[derive(Debug)]
pub struct ConfigImport {
    begun: Begun,
    tables: Vec<ConfigTable>,
    lite: bool,
}

/// Why a row was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("this version has no table {0}: use the version that wrote the file, or a newer one")]
    UnknownTable(String),
    #[error(
        "this version has no column {0} of {1}: use the version that wrote the file, or a newer one"
    )]
    UnknownColumn(String, String),
    #[error("the database has {rows} rows in {table}: only an empty one can take a configuration")]
    NotEmpty { table: String, rows: i64 },
    #[error(
        "the {column} of {row} in {table} holds the character U+0000, which PostgreSQL cannot store: nothing was \
         changed. Give it another {column} where it is now, and write the file anew"
    )]
    NulText { table: String, column: String, row: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where rows go: the table, and the row as JSON.
pub type ConfigSink<'a> = &'a mut (dyn FnMut(&str, &str) -> Result<(), std::io::Error> + Send);

// === impl Store ===

impl Store {
    /// Hands every row to `sink`, owners before what they own, all as of one moment. What the sink says ends it.
    pub async fn export_config(
        &self,
        sink: ConfigSink<'_>,
    ) -> Result<Result<(), std::io::Error>, StoreError> {
        let mut begun = self.snapshot().await?;
        let tables = config_tables(&mut begun).await?;
        let lite = matches!(begun, Each::Lite(_));
        for table in &tables {
            let select = AssertSqlSafe(table.select(lite));
            let copied = match &mut begun {
                Each::Lite(lite) => {
                    let mut rows = sqlx::query_scalar::<_, String>(select).fetch(&mut **lite);
                    drain(&mut rows, &table.name, sink).await?
                }
                Each::Pg(pg) => {
                    let mut rows = sqlx::query_scalar::<_, String>(select).fetch(&mut **pg);
                    drain(&mut rows, &table.name, sink).await?
                }
            };
            if copied.is_err() {
                return Ok(copied);
            }
        }
        Ok(Ok(()))
    }

    /// Begins to take rows in. The database must be empty: nobody has started a server with it yet.
    pub async fn import_config(&self) -> Result<ConfigImport, ConfigError> {
        let mut begun = self.db.begin(Purpose::Admin).await?;
        let lite = matches!(begun, Each::Lite(_));
        if !lite {
            begun.conn().run(WITHOUT_HASTE, &[]).await?;
        }
        let tables = config_tables(&mut begun).await?;
        for table in &tables {
            let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM {}", quoted(&table.name)));
            let (rows,): (i64,) = begun.conn().one(count, &[]).await?;
            if rows > 0 {
                return Err(ConfigError::NotEmpty { table: table.name.clone(), rows });
            }
        }
        Ok(ConfigImport { begun, tables, lite })
    }

    /// A transaction that sees one moment and holds nobody up.
    async fn snapshot(&self) -> Result<Begun, StoreError> {
        match &self.db {
            Db::Lite { read, .. } => Ok(Each::Lite(read.begin().await?)),
            Db::Pg(_) => {
                let mut begun = self.db.begin(Purpose::Background).await?;
                begun.conn().run(ONE_MOMENT, &[]).await?;
                begun.conn().run(WITHOUT_HASTE, &[]).await?;
                Ok(begun)
            }
        }
    }
}

const ONE_MOMENT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Reading every key takes longer than any other statement.
const WITHOUT_HASTE: &str = "SET LOCAL statement_timeout = '15min'";

async fn drain<S>(
    rows: &mut S,
    table: &str,
    sink: ConfigSink<'_>,
) -> Result<Result<(), std::io::Error>, StoreError>
where
    S: futures_util::TryStream<Ok = String, Error = sqlx::Error> + Unpin,
{
    while let Some(row) = rows.try_next().await? {
        if let Err(error) = sink(table, &row) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// In an order in which every row finds its owner.
async fn config_tables(begun: &mut Begun) -> Result<Vec<ConfigTable>, StoreError> {
    const LITE_TABLES: &str = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
    const PG_TABLES: &str = "SELECT CAST(relname AS TEXT) FROM pg_class
        WHERE relkind IN ('r', 'p') AND NOT relispartition
            AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY relname";
    const LITE_OWNERS: &str =
        "SELECT m.name, f.\"table\" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
        WHERE m.type = 'table'";
    const PG_OWNERS: &str = "SELECT CAST(c.relname AS TEXT), CAST(o.relname AS TEXT) FROM pg_constraint f
        JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class o ON o.oid = f.confrelid WHERE f.contype = 'f'";
    let (tables, owners) = match begun {
        Each::Lite(_) => (LITE_TABLES, LITE_OWNERS),
        Each::Pg(_) => (PG_TABLES, PG_OWNERS),
    };
    let names: Vec<(String,)> = begun.conn().all(tables, &[]).await?;
    let owners: Vec<(String, String)> = begun.conn().all(owners, &[]).await?;
    let happened = |name: &str| HAPPENED.iter().any(|start| name.starts_with(start));
    let names = names.into_iter().map(|(name,)| name).filter(|name| !happened(name)).collect();
    let mut found = Vec::new();
    for name in owners_first(names, &owners) {
        let columns = columns_of(begun, &name).await?;
        found.push(ConfigTable { name, columns });
    }
    Ok(found)
}

/// Takes, again and again, the first table whose owners were all taken. Tables that own each other come last, as named.
fn owners_first(mut names: Vec<String>, owners: &[(String, String)]) -> Vec<String> {
    let known: BTreeSet<String> = names.iter().cloned().collect();
    let mut taken: Vec<String> = Vec::new();
    while !names.is_empty() {
        let ready = |name: &String| {
            owners
                .iter()
                .filter(|(of, owner)| of == name && owner != name && known.contains(owner))
                .all(|(_, owner)| taken.contains(owner))
        };
        let next = names.iter().position(ready).unwrap_or(0);
        taken.push(names.remove(next));
    }
    taken
}

async fn columns_of(begun: &mut Begun, table: &str) -> Result<Vec<Column>, StoreError> {
    const LITE: &str = "SELECT name, type FROM pragma_table_info($1) ORDER BY cid";
    const PG: &str = "SELECT CAST(attname AS TEXT), format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum";
    let columns = if matches!(begun, Each::Lite(_)) { LITE } else { PG };
    let columns: Vec<(String, String)> = begun.conn().all(columns, binds![table]).await?;
    Ok(columns.into_iter().map(|(name, kind)| Column { name, kind: Kind::of(&kind) }).collect())
}

// === impl ConfigImport ===

impl ConfigImport {
    pub async fn put(&mut self, table: &str, row: &Map<String, Value>) -> Result<(), ConfigError> {
        let known = self.tables.iter().find(|known| known.name == table);
        let known = known.ok_or_else(|| ConfigError::UnknownTable(table.to_owned()))?;
        let unknown = row.keys().find(|name| !known.columns.iter().any(|c| c.name == **name));
        if let Some(name) = unknown {
            return Err(ConfigError::UnknownColumn(name.clone(), table.to_owned()));
        }
        // Asked first, because what PostgreSQL says of it names neither table nor row.
        let nul = |value: &Value| value.as_str().is_some_and(|text| text.contains('\0'));
        if let Some((column, _)) = row.iter().find(|(_, value)| !self.lite && nul(value)) {
            let (table, column) = (table.to_owned(), column.clone());
            return Err(ConfigError::NulText { table, column, row: name_of(row) });
        }
        // A column that the file does not know has its default.
        let given: Vec<_> =
            known.columns.iter().filter(|column| row.contains_key(&column.name)).collect();
        let names: Vec<_> = given.iter().map(|column| quoted(&column.name)).collect();
        let places: Vec<_> =
            given.iter().zip(1..).map(|(column, n)| column.kind.read(n, self.lite)).collect();
        let insert = AssertSqlSafe(format!(
            "INSERT INTO {} ({}) VALUES ({})",
            quoted(table),
            names.join(", "),
            places.join(", ")
        ));
        let texts: Vec<_> = given.iter().map(|column| text_of(&row[&column.name])).collect();
        let binds: Vec<_> = texts.iter().map(Bind::from).collect();
        self.begun.conn().run(insert, &binds).await?;
        Ok(())
    }

    pub async fn commit(self) -> Result<(), ConfigError> {
        Ok(self.begun.commit().await?)
    }
}

/// What a person finds a row by: its id, else whatever it is called, else all of it.
fn name_of(row: &Map<String, Value>) -> String {
    let called = ["id", "slug", "name", "identifier"].iter().find_map(|name| row.get(*name));
    called.map_or_else(|| Value::Object(row.clone()).to_string(), Value::to_string)
}

/// Every value goes in as a text, and the statement makes of it what its column holds.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Names come from the database's own lists.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

// === impl ConfigTable ===

impl ConfigTable {
    /// Each row as one JSON object.
    fn select(&self, lite: bool) -> String {
        let object = if lite { "json_object" } else { "json_build_object" };
        let fields: Vec<_> = self
            .columns
            .iter()
            .map(|column| format!("'{}', {}", column.name, self.written(column, lite)))
            .collect();
        format!("SELECT CAST({object}({}) AS TEXT) FROM {}", fields.join(", "), quoted(&self.name))
    }

    fn written(&self, column: &Column, lite: bool) -> String {
        // What processes hold of a key's credits goes back to the key, since no process goes along.
        if (self.name.as_str(), column.name.as_str()) == ("keys", "credits_remaining") {
            const SUM: [&str; 2] = by_clock!(
                concat!(
                    "credits_remaining + (SELECT CAST(COALESCE(SUM(granted - spent), 0) AS BIGINT)
                    FROM credit_leases WHERE key_id = keys.id AND NOT ",
                    silent_before!()
                ),
                ")"
            );
            return SUM[usize::from(!lite)].to_owned();
        }
        column.kind.write(&quoted(&column.name), lite)
    }
}

// === impl Kind ===

impl Kind {
    fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "text" | "character varying" | "varchar" => Self::Text,
            "blob" | "bytea" => Self::Bytes,
            "boolean" => Self::Flag,
            other => Self::Number(other.to_owned()),
        }
    }

    /// The value of a column as JSON shows it.
    fn write(&self, column: &str, lite: bool) -> String {
        match self {
            Self::Bytes if lite => {
                format!("CASE WHEN {column} IS NULL THEN NULL ELSE lower(hex({column})) END")
            }
            Self::Bytes => format!("encode({column}, 'hex')"),
            Self::Flag if lite => {
                format!(
                    "json(CASE {column} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)"
                )
            }
            Self::Text | Self::Flag | Self::Number(_) => column.to_owned(),
        }
    }

    /// What a statement makes of the text in this place.
    fn read(&self, place: usize, lite: bool) -> String {
        match self {
            Self::Text => format!("${place}"),
            Self::Bytes if lite => format!("unhex(${place})"),
            Self::Bytes => format!("decode(${place}, 'hex')"),
            Self::Flag if lite => {
                format!("CASE ${place} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END")
            }
            Self::Flag => format!("CAST(${place} AS BOOLEAN)"),
            Self::Number(kind) => format!("CAST(${place} AS {kind})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_come_before_what_they_own() {
        let names = ["keys", "projects", "tenants", "zoo"].map(str::to_owned).to_vec();
        let owners = [("keys", "projects"), ("keys", "tenants"), ("projects", "tenants")]
            .map(|(of, owner)| (of.to_owned(), owner.to_owned()));
        assert_eq!(owners_first(names, &owners), ["tenants", "projects", "keys", "zoo"]);
        let round =
            [("keys", "zoo"), ("zoo", "keys")].map(|(of, owner)| (of.to_owned(), owner.to_owned()));
        let names = ["keys", "zoo"].map(str::to_owned).to_vec();
        assert_eq!(owners_first(names, &round), ["keys", "zoo"]);
    }
}
