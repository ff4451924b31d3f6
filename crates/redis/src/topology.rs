//! The answer to CLUSTER SLOTS: which primary has which slots. Pure reading; a strange part makes the whole unusable.

use redis::Value;

use crate::address::Address;

/// Slots `first` to `last`, both included, and who serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) primary: Address,
}

/// `asked` is the server that answered, for it may leave out its own name.
pub(crate) fn spans(reply: &Value, asked: &Address) -> Option<Vec<Span>> {
    let Value::Array(rows) = reply else { return None };
    rows.iter().map(|row| span(row, asked)).collect()
}

/// Whether the answer to CLUSTER INFO says that the server believes in its map.
pub(crate) fn is_ok(reply: &Value) -> bool {
    let has_line = |text: &str| text.lines().any(|line| line == "cluster_state:ok");
    match reply {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).is_ok_and(has_line),
        Value::VerbatimString { text, .. } => has_line(text),
        _ => false,
    }
}

fn span(row: &Value, asked: &Address) -> Option<Span> {
    let Value::Array(parts) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            std::str::from_utf8(host).ok()?
        }
        Value::BulkString(_) | Value::Nil => &asked.host,
        _ => return None,
    };
    Some(Span {
        first: (*first).try_into().ok()?,
        last: (*last).try_into().ok()?,
        primary: Address::new(host, (*port).try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn row(first: i64, last: i64, primary: Value) -> Value {
        let replica = node(Value::BulkString(b"replica".to_vec()), 1);
        Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
    }

    #[test]
    fn primaries_are_read_and_a_nameless_one_is_the_one_that_was_asked() {
        let asked = Address::new("asked", 1);
        let named = row(0, 99, node(Value::BulkString(b"10.0.0.1".to_vec()), 6379));
        let reply = Value::Array(vec![named, row(100, 16383, node(Value::Nil, 6380))]);
        let read = spans(&reply, &asked).map(|spans| {
            spans.into_iter().map(|s| (s.first, s.last, s.primary.to_string())).collect::<Vec<_>>()
        });
        let expected = [(0, 99, "10.0.0.1:6379".to_owned()), (100, 16383, "asked:6380".to_owned())];
        assert_eq!(read.as_deref(), Some(&expected[..]));
    }

    #[test]
    fn only_a_server_that_says_so_is_ok() {
        let info = |text: &str| Value::BulkString(text.into());
        assert!(is_ok(&info("cluster_state:ok\r\ncluster_size:3\r\n")));
        assert!(!is_ok(&info("cluster_state:fail\r\n")) && !is_ok(&Value::Nil));
    }

    #[test]
    fn a_strange_answer_is_no_topology() {
        let asked = Address::new("asked", 1);
        let wrong = node(Value::BulkString(b"h".to_vec()), 70_000);
        for reply in [
            Value::Nil,
            Value::Array(vec![Value::Okay]),
            Value::Array(vec![row(0, 1, wrong)]),
            Value::Array(vec![Value::Array(vec![Value::Int(0)])]),
        ] {
            assert_eq!(spans(&reply, &asked), None, "{reply:?}");
        }
    }
}
