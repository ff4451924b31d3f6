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

/// All objects, oldest month first.
#[derive(Debug, Default)]
pub struct Listing {
    pub listed: Vec<Listed>,
    /// What is wrong with each object that does not tell what it has; the others do not depend on it.
    pub unreadable: Vec<ArchiveError>,
}

/// It reads no rows; `restore` does, and finds what is damaged inside.
pub async fn list(place: &Place) -> Result<Listing, ArchiveError> {
    let mut listing = Listing::default();
    for (month, bytes) in place.months().await? {
        match ObjectReader::open(place, &place.month(month)).await {
            Ok(object) => {
                let (seal, shown) = (object.said(), object.shown().to_owned());
                listing.listed.push(Listed { month: Label(month), seal, bytes, object: shown });
            }
            Err(error) => listing.unreadable.push(error),
        }
    }
    Ok(listing)
}
