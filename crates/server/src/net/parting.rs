//! The last words on a connection whose next request is none, or none that may be answered: told so, counted, and closed on.

use http::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::date::Date;
use super::front::Fault;
use super::watched::{Activity, Watched};
use crate::app::App;
use crate::http::{RUN_OUT_MAX, RUN_OUT_PATIENCE, refuse};

const ROOM: usize = 4 << 10;

pub(super) async fn part(socket: &mut Watched, app: &App, activity: &Activity, fault: Fault) {
    drop(activity.begin(Version::HTTP_11));
    let mut out = Vec::new();
    refuse(app, fault.into()).write(Date::default().at(app.clock.now().0 / 1000), &mut out);
    let _ = Box::pin(timeout(RUN_OUT_PATIENCE, tell(socket, &out))).await;
}

/// Closed on while it sends, a client would see a broken connection and not the refusal.
async fn tell(socket: &mut Watched, refusal: &[u8]) -> std::io::Result<()> {
    socket.write_all(refusal).await?;
    socket.shutdown().await?;
    let (mut room, mut left) = ([0; ROOM], RUN_OUT_MAX);
    while left > 0 {
        match socket.read(&mut room).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}
