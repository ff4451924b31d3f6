//! What a connection over the cap is told before it is closed. Nobody has read what it asks.

use super::date::Date;
use crate::clock::Clock;
use crate::http::Sheet;
use crate::ids::RequestIds;
use crate::status::Refusal;

#[derive(Debug)]
pub struct TurnedAway {
    ids: RequestIds,
    clock: Clock,
}

// === impl TurnedAway ===

impl TurnedAway {
    pub fn new(clock: Clock) -> Result<Self, getrandom::Error> {
        Ok(Self { ids: RequestIds::new()?, clock })
    }

    pub(super) fn reply(&self) -> Vec<u8> {
        let mut reply = Sheet::new().failure(self.ids.next(), Refusal::ConnectionsFull);
        reply.end();
        let mut out = Vec::new();
        reply.write(Date::default().at(self.clock.now().0 / 1000), &mut out);
        out
    }
}
