//! Scripts, and how each text is bound to one life of one server process.

/// A script by its place in [`crate::Options::scripts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScriptId(pub usize);

/// One value of ARGV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    Bytes(&'a [u8]),
    Int(i64),
    Uint(u64),
}

/// The text that this process is given: its run id comes first, as a local that the script can read. The digest is
/// therefore another one in every process life, and a process that was not vetted answers NOSCRIPT instead of granting.
pub(crate) fn bound(text: &str, run_id: &str) -> String {
    let line = format!("local RUN = '{run_id}'\n");
    match text.split_once('\n') {
        // A shebang counts only as the very first line.
        Some((shebang, rest)) if shebang.starts_with("#!") => format!("{shebang}\n{line}{rest}"),
        _ => line + text,
    }
}

// === impl Arg ===

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Self::Uint(number)
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl redis::ToRedisArgs for Arg<'_> {
    fn write_redis_args<W: ?Sized + redis::RedisWrite>(&self, out: &mut W) {
        match self {
            Self::Bytes(bytes) => out.write_arg(bytes),
            Self::Int(number) => number.write_redis_args(out),
            Self::Uint(number) => number.write_redis_args(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_id_comes_first_but_after_a_shebang() {
        assert_eq!(bound("return RUN", "ab"), "local RUN = 'ab'\nreturn RUN");
        assert_eq!(bound("#!lua\nreturn RUN", "ab"), "#!lua\nlocal RUN = 'ab'\nreturn RUN");
    }
}
