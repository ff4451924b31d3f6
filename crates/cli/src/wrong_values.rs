//! Everything that is wrong with the values of a command line, not only the first thing. clap ends at the first value that
//! it cannot read; this leaves that flag out and asks again. It never decides what a value means.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};

/// The arguments of this process, or the end of it with exit code 2 and every wrong value named on stderr.
pub(crate) fn parsed<T: Parser>() -> T {
    let given: Vec<OsString> = std::env::args_os().collect();
    T::try_parse_from(&given).unwrap_or_else(|first| {
        let mut all = faults::<T>(given, first);
        let last = all.pop();
        for fault in &all {
            // The last one says where there is more information.
            let text = fault.render().to_string();
            let text = text.split("\n\nFor more").next().unwrap_or_default().trim_end();
            crate::output::fault(text);
        }
        last.map_or_else(|| std::process::exit(2), |last| last.exit())
    })
}

/// The first fault, and those that come to light without the flags that were wrong.
fn faults<T: Parser>(mut given: Vec<OsString>, first: Error) -> Vec<Error> {
    let mut all = vec![first];
    while let Some(rest) = all.last().and_then(|fault| without(&given, fault)) {
        given = rest;
        match T::try_parse_from(&given) {
            Err(next) if is_about_a_value(&next) => all.push(next),
            // Right, or wrong only because something is missing now.
            _ => break,
        }
    }
    all
}

fn is_about_a_value(fault: &Error) -> bool {
    matches!(fault.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue)
}

/// The arguments without the flag that this fault is about; `None` where it is about no flag.
fn without(given: &[OsString], fault: &Error) -> Option<Vec<OsString>> {
    if !is_about_a_value(fault) {
        return None;
    }
    let text = |kind| match fault.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // Such as `--limit <LIMIT>`.
    let flag = text(ContextKind::InvalidArg)?.split_whitespace().next()?;
    let value = text(ContextKind::InvalidValue)?;
    if !flag.starts_with("--") {
        return None;
    }
    let joined = format!("{flag}={value}");
    let apart = given.windows(2).position(|two| two[0] == *flag && two[1] == *value);
    let (from, count) = match apart {
        Some(at) => (at, 2),
        None => (given.iter().position(|one| *one == *joined)?, 1),
    };
    let mut rest = given.to_vec();
    rest.drain(from..from + count);
    Some(rest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Two {
        #[arg(long)]
        units: Vec<u64>,
        #[arg(long)]
        port: Option<u16>,
        place: Option<u8>,
    }

    fn wrong(arguments: &[&str]) -> Vec<String> {
        let given: Vec<OsString> = ["two"].iter().chain(arguments).map(OsString::from).collect();
        let first = Two::try_parse_from(&given).unwrap_err();
        let value = |fault: &Error| match fault.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(text)) => text.clone(),
            _ => String::new(),
        };
        faults::<Two>(given, first).iter().map(value).collect()
    }

    #[test]
    fn every_wrong_value_is_found_once_however_it_is_joined() {
        assert_eq!(wrong(&["--units", "x", "--port=y", "--units=z"]), ["x", "y", "z"]);
        assert_eq!(wrong(&["--units", "x", "--units", "1"]), ["x"]);
        assert_eq!(wrong(&["--units", "x", "--units", "x"]), ["x", "x"]);
        assert_eq!(wrong(&["--units", "x", "nowhere"]), ["x", "nowhere"]);
        assert_eq!(wrong(&["--what", "x"]), [""]);
    }
}
