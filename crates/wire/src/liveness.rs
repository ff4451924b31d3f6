//! `GET /v2/liveness`: the contract's own sign of life, for clients that ask it before anything else.
//! It says that the process answers, never that its stores do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::schema::{Chars, Described, Field, Object, Shape};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivenessReply<'a> {
    pub message: Cow<'a, str>,
}

impl LivenessReply<'static> {
    pub const OK: Self = Self { message: Cow::Borrowed("we're cooking") };
}

impl Described for LivenessReply<'_> {
    const SHAPE: Shape = Shape::Object(&Object::of(&[Field::required(
        "message",
        Shape::Text(Chars { min: 1, max: 64 }),
        "Says `we're cooking`.",
    )]));
}
