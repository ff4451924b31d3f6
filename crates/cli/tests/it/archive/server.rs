//! A server with an archive does it by itself.

use super::Kept;
use crate::time::eventually;
use crate::world::start;

#[test]
fn a_server_with_an_archive_moves_old_months_by_itself() {
    for kept in [Kept::in_sqlite(100), Kept::in_postgres(100)] {
        let place = kept.place();
        let mut env = kept.env();
        env.push(("TOLLKEEPER_ARCHIVE_URL", place.clone()));
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut server = start(kept.folder.path(), &env).expect("the server starts");
        eventually("May is archived", || {
            server.stderr().contains("archived 100 audit rows of 2026-05")
        });
        assert!(server.terminate().expect("it ends").success());
        assert_eq!(kept.left(), 0);
    }
}
