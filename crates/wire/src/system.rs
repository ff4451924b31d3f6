//! `system.*`: how a server is doing, and where limits are counted. A tenant sees itself and what concerns everybody.

use std::borrow::Cow;

use crate::choice::choice;
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::ID;
use crate::verdict::COUNT;

const WORD: Shape = Shape::Text(Chars { min: 1, max: 512 });
const MODE: Shape = Shape::Choice(Mode::WORDS);
const LINK: Shape = Shape::Choice(Link::WORDS);
const CLOCK: Shape = Shape::Choice(ClockStand::WORDS);
const NUMBER: Shape = Shape::Integer(COUNT);

/// More than any fleet has, and than are told apart.
const ROWS_MAX: usize = 100_000;

choice! {
    /// Where limits are counted.
    Mode {
        /// By each node for itself.
        Memory = "memory",
        /// As in memory, with Redis asked beside it and every disagreement counted.
        Shadow = "shadow",
        /// In Redis, as each limit's `consistency` says.
        Redis = "redis",
    }
}

choice! {
    /// How a server of Redis is doing, as this node sees it.
    Link {
        Up = "up",
        /// It does not answer: limits go on by their outage policy.
        Away = "away",
        /// It lost its history, and the nodes tell it theirs.
        Learning = "learning",
    }
}

choice! {
    /// This node's clock beside that of a server of Redis.
    ClockStand {
        /// By a second at most they differ.
        Agrees = "agrees",
        Ahead = "ahead",
        Behind = "behind",
    }
}

choice! {
    /// What keeps the durable records.
    DatabaseKind { Sqlite = "sqlite", Postgres = "postgres" }
}

request! {
    /// Body of `system.setMode`.
    SetModeRequest<'a> {
        nullable mode "mode": Mode = MODE, "Where limits are counted; null: like the fleet again, for a tenant only.";
        optional tenant "tenant": Text<'a> = ID, "Id of one tenant; left out: the whole fleet, for the operator only.";
    }
}

request! {
    /// Body of `system.status`.
    StatusRequest {}
}

reply! {
    /// Answer of `system.status`.
    StatusReply<'a> {
        required version "version": Cow<'a, str> = WORD, "Of this server.";
        required node "node": Cow<'a, str> = WORD, "What this server is called.";
        required mode "mode": Mode = MODE, "Where limits are counted, for the fleet.";
        listed tenants "tenants": Vec<TenantMode<'a>> = Shape::List { of: &TenantMode::SHAPE, min: 0, max: ROWS_MAX }, "Tenants with a mode of their own; a tenant sees itself only.";
        listed redis "redis": Vec<RedisServer<'a>> = Shape::List { of: &RedisServer::SHAPE, min: 0, max: ROWS_MAX }, "Every server of Redis.";
        required database "database": DatabaseStatus = DatabaseStatus::SHAPE, "The durable store.";
        required cells "cells": u64 = NUMBER, "Counters in memory, this node's own and shared ones.";
        required keys_cached "keysCached": u64 = NUMBER, "Keys that need no look into the store.";
        required degraded "degraded": bool = Shape::Flag, "Something is out of reach that limits or their durability depend on.";
        required peers "peers": u64 = NUMBER, "Other nodes that were heard of lately.";
        optional lag "lag": u64 = NUMBER, "Changes in the store that this node has still to follow; left out while the store does not answer.";
        required rollback "rollback": bool = Shape::Flag, "Whether this node sets the mode to memory by itself when Redis is the trouble.";
        listed shadow "shadow": Vec<ShadowLine<'a>> = Shape::List { of: &ShadowLine::SHAPE, min: 0, max: ROWS_MAX }, "What Redis would have said since this node started, by limit.";
    }
}

reply! {
    /// A tenant whose mode is its own.
    TenantMode<'a> {
        required tenant "tenant": Cow<'a, str> = ID, "Its id.";
        required mode "mode": Mode = MODE, "Where its limits are counted.";
    }
}

reply! {
    /// One server of Redis.
    RedisServer<'a> {
        optional address "address": Cow<'a, str> = WORD, "Host and port, once known; for the operator only.";
        required connected "connected": bool = Shape::Flag, "Whether there is a connection.";
        required link "link": Link = LINK, "How it is doing.";
        optional clock "clock": ClockStand = CLOCK, "How this node's clock stands to the server's; left out while the server's is not known.";
        optional clock_skew_ms "clockSkewMs": u64 = NUMBER, "By how much they differ, in milliseconds.";
    }
}

reply! {
    /// The durable store.
    DatabaseStatus {
        required kind "kind": DatabaseKind = Shape::Choice(DatabaseKind::WORDS), "What it is.";
        required answers "answers": bool = Shape::Flag, "Whether it answers.";
        required writes "writes": bool = Shape::Flag, "Whether it takes writes; not while its disk is full.";
    }
}

reply! {
    /// How often Redis and this node agreed on a limit.
    ShadowLine<'a> {
        required limit "limit": Cow<'a, str> = WORD, "Tenant and namespace, or tenant and the id of a key or an identity.";
        required compared "compared": u64 = NUMBER, "Decisions that were compared.";
        required stricter "stricter": u64 = NUMBER, "Admitted, and Redis would have refused.";
        required looser "looser": u64 = NUMBER, "Refused, and Redis would have admitted.";
    }
}
