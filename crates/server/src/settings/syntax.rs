//! What the text of each kind of setting must look like: text in, value out, or nothing.
//! Pure functions. They never know which setting they read, and never say why not; the table does.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Labels end up in metrics and in file names; a host name always fits.
const LABEL_CHARS_MAX: usize = 253;

pub(super) fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok()
}

/// An address, or `off` for a door that stays shut.
pub(super) fn address_or_off(text: &str) -> Option<()> {
    (text == "off" || address(text).is_some()).then_some(())
}

pub(super) fn path(text: &str) -> Option<PathBuf> {
    let usable = !text.trim().is_empty() && !text.contains('\0');
    usable.then(|| PathBuf::from(text))
}

pub(super) fn whole(text: &str, range: &RangeInclusive<u64>) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten()?;
    range.contains(&number).then_some(number)
}

/// NaN lies in no range, so it is refused without being named.
pub(super) fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=1.0).contains(number))
}

pub(super) fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" => Some(true),
        "off" | "false" => Some(false),
        _ => None,
    }
}

pub(super) fn label(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let fits = (1..=LABEL_CHARS_MAX).contains(&text.len());
    (fits && text.chars().all(allowed)).then(|| text.to_owned())
}

/// HTTP strips spaces around a header's value, so a key that ends in one could never be presented.
pub(super) fn root_key(text: &str) -> Option<String> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let fits = (16..=512).contains(&text.len()) && text.trim() == text;
    (printable && fits).then(|| text.to_owned())
}

pub(super) fn secret(text: &str) -> Option<String> {
    (32..=4096).contains(&text.chars().count()).then(|| text.to_owned())
}

/// `sqlite:PATH` or `sqlite://PATH`. A database in memory is refused: it would lose every key at a restart.
pub(super) fn sqlite(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("sqlite:")?;
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let plain = !rest.contains([':', '?', '#']);
    plain.then(|| path(rest)).flatten()
}

pub(super) fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres:") || text.starts_with("postgresql:")
}

/// Whether it is one of these schemes with something after it.
pub(super) fn has_scheme(text: &str, schemes: &[&str]) -> Option<()> {
    let (scheme, rest) = text.split_once("://")?;
    let clean = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    (schemes.contains(&scheme) && clean).then_some(())
}

pub(super) fn http_url(text: &str) -> Option<String> {
    has_scheme(text, &["http", "https"])?;
    let host_follows =
        text.split("://").nth(1).is_some_and(|rest| !rest.starts_with(['/', ':', '?']));
    host_follows.then(|| text.trim_end_matches('/').to_owned())
}

pub(super) fn networks(text: &str) -> Option<()> {
    text.split(',').map(str::trim).try_for_each(network)
}

fn network(text: &str) -> Option<()> {
    let (ip, bits) = text.split_once('/')?;
    let bits_max = match ip.parse().ok()? {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    whole(bits, &(0..=bits_max)).map(|_| ())
}

/// Levels, alone or for a target: the part of the filter language that can be checked without its parser.
pub(super) fn log_filter(text: &str) -> Option<String> {
    let level = |word: &str| matches!(word, "off" | "error" | "warn" | "info" | "debug" | "trace");
    let target = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'))
    };
    let directive = |part: &str| match part.split_once('=') {
        Some((of, word)) => target(of) && level(word),
        None => level(part),
    };
    text.split(',').all(directive).then(|| text.to_owned())
}
