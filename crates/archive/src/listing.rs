//! What an archive has, as the footers of its objects tell it.

use crate::object::ObjectReader;
use crate::seal::Seal;
use crate::{ArchiveError, Label, Place};

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub month: Label,
    pub seal: Seal,
    pub bytes: u64,
    pub object: String,
}

/// Oldest month first. It reads no rows; `restore` does, and finds what is damaged.
pub async fn list(place: &Place) -> Result<Vec<Listed>, ArchiveError> {
    let mut listed = Vec::new();
    for (month, bytes) in place.months().await? {
        let object = ObjectReader::open(place, &place.month(month)).await?;
        let (seal, shown) = (object.said(), object.shown().to_owned());
        listed.push(Listed { month: Label(month), seal, bytes, object: shown });
    }
    Ok(listed)
}
