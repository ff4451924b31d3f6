//! Which secret this database was written under. Every key's hash and every kept ciphertext hangs on it, so a node with another one
//! could neither read what the others wrote nor write what they can read.

use crate::bind::binds;
use crate::db::Purpose;
use crate::{Store, StoreError};

// === impl Store ===

impl Store {
    /// Refuses a secret that is not the one of this database; the first one is remembered. What comes in is derived from the
    /// secret and says nothing about it.
    pub async fn hold_to_secret(&self, fingerprint: [u8; 16]) -> Result<(), StoreError> {
        const FIRST: &str = "INSERT INTO secret_fingerprint (only_one, fingerprint)
            VALUES (TRUE, $1) ON CONFLICT (only_one) DO NOTHING";
        const KNOWN: &str = "SELECT fingerprint FROM secret_fingerprint";
        let to = self.db.write(Purpose::Admin);
        to.run(FIRST, binds![fingerprint.as_slice()]).await?;
        let (known,): (Vec<u8>,) = to.one(KNOWN, &[]).await?;
        if known == fingerprint { Ok(()) } else { Err(StoreError::OtherSecret) }
    }
}
