//! Rows as columns and back: the schema of the files, with the names that the table has.
//! A later version may add columns; a file without them reads as if they were empty.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tollkeeper_store::PastDecision;

/// In the order of the table. `at` stays what it is there: unix milliseconds.
pub(crate) static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let maybe_text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int64, false);
    let maybe_number = |name: &str| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![
        number("at"),
        text("tenant_id"),
        text("request_id"),
        text("decision"),
        text("code"),
        number("status"),
        maybe_text("key_id"),
        maybe_text("external_id"),
        maybe_text("ip"),
        maybe_text("method"),
        maybe_text("endpoint"),
        maybe_text("path"),
        maybe_text("rule"),
        maybe_text("limit_name"),
        maybe_number("count"),
        maybe_number("retry_after_ms"),
        text("node"),
        maybe_text("region"),
        number("latency_us"),
        Field::new("degraded", DataType::Boolean, false),
    ]))
});

pub(crate) fn to_columns(rows: &[PastDecision]) -> Result<RecordBatch, ArrowError> {
    let text = |of: fn(&PastDecision) -> &String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let maybe_text = |of: fn(&PastDecision) -> &Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let number = |of: fn(&PastDecision) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let maybe_number = |of: fn(&PastDecision) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let degraded: Vec<bool> = rows.iter().map(|row| row.degraded).collect();
    RecordBatch::try_new(
        Arc::clone(&SCHEMA),
        vec![
            number(|row| row.at),
            text(|row| &row.tenant_id),
            text(|row| &row.request_id),
            text(|row| &row.decision),
            text(|row| &row.code),
            number(|row| row.status),
            maybe_text(|row| &row.key_id),
            maybe_text(|row| &row.external_id),
            maybe_text(|row| &row.ip),
            maybe_text(|row| &row.method),
            maybe_text(|row| &row.endpoint),
            maybe_text(|row| &row.path),
            maybe_text(|row| &row.rule),
            maybe_text(|row| &row.limit_name),
            maybe_number(|row| row.count),
            maybe_number(|row| row.retry_after_ms),
            text(|row| &row.node),
            maybe_text(|row| &row.region),
            number(|row| row.latency_us),
            Arc::new(BooleanArray::from(degraded)),
        ],
    )
}

/// `None` where the file is not one of ours.
pub(crate) fn to_rows(batch: &RecordBatch) -> Option<Vec<PastDecision>> {
    let text = |name| Texts::of(batch, name);
    let number = |name| Numbers::of(batch, name);
    let (at, tenant_id, request_id) = (number("at")?, text("tenant_id")?, text("request_id")?);
    let (decision, code, status) = (text("decision")?, text("code")?, number("status")?);
    let (key_id, external_id, ip) = (text("key_id")?, text("external_id")?, text("ip")?);
    let (method, endpoint, path) = (text("method")?, text("endpoint")?, text("path")?);
    let (rule, limit_name, count) = (text("rule")?, text("limit_name")?, number("count")?);
    let (retry_after_ms, node) = (number("retry_after_ms")?, text("node")?);
    let (region, latency_us) = (text("region")?, number("latency_us")?);
    let degraded = batch.column_by_name("degraded")?.as_boolean_opt()?;
    let row = |n: usize| {
        Some(PastDecision {
            tenant_id: tenant_id.get(n)?,
            at: at.get(n)?,
            request_id: request_id.get(n)?,
            decision: decision.get(n)?,
            code: code.get(n)?,
            status: status.get(n)?,
            key_id: key_id.get(n),
            external_id: external_id.get(n),
            ip: ip.get(n),
            method: method.get(n),
            endpoint: endpoint.get(n),
            path: path.get(n),
            rule: rule.get(n),
            limit_name: limit_name.get(n),
            count: count.get(n),
            retry_after_ms: retry_after_ms.get(n),
            node: node.get(n)?,
            region: region.get(n),
            latency_us: latency_us.get(n)?,
            degraded: degraded.is_valid(n).then(|| degraded.value(n))?,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// A column of texts; one that the file does not have is empty.
struct Texts<'a>(Option<&'a StringArray>);

struct Numbers<'a>(Option<&'a Int64Array>);

// === impl Texts ===

impl<'a> Texts<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Option<Self> {
        match batch.column_by_name(name) {
            Some(column) => column.as_string_opt().map(|texts| Self(Some(texts))),
            None => Some(Self(None)),
        }
    }

    fn get(&self, n: usize) -> Option<String> {
        self.0.filter(|texts| texts.is_valid(n)).map(|texts| texts.value(n).to_owned())
    }
}

// === impl Numbers ===

impl<'a> Numbers<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Option<Self> {
        match batch.column_by_name(name) {
            Some(column) => {
                column.as_primitive_opt::<Int64Type>().map(|numbers| Self(Some(numbers)))
            }
            None => Some(Self(None)),
        }
    }

    fn get(&self, n: usize) -> Option<i64> {
        self.0.filter(|numbers| numbers.is_valid(n)).map(|numbers| numbers.value(n))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::testing::row;

    #[test]
    fn rows_come_back_from_columns_as_they_went() {
        let mut rows = vec![row("a", 1, "x"), row("a", 2, "y")];
        rows[1].key_id = None;
        rows[1].external_id = Some(String::new());
        rows[1].count = None;
        rows[1].degraded = true;
        assert_eq!(to_rows(&to_columns(&rows).unwrap()), Some(rows));
    }

    #[test]
    fn a_file_of_something_else_gives_no_rows() {
        let other = RecordBatch::try_from_iter([(
            "at",
            Arc::new(StringArray::from(vec!["yesterday"])) as ArrayRef,
        )]);
        assert_eq!(to_rows(&other.unwrap()), None);
    }
}
