//! Credits: what a key may spend in total, and how that is filled up again. `remaining: null` means without end.

use serde_json::{Map, Value};

use crate::choice::choice;
use crate::part::Text;
use crate::patch::Patch;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Breach, Described, INTEGER_MAX, Rule, Shape, Whole};
use crate::spelling::ID;

pub const CREDITS: Whole = Whole { min: 0, max: INTEGER_MAX };
pub const REFILL_AMOUNT: Whole = Whole { min: 1, max: INTEGER_MAX };
pub const REFILL_DAY: Whole = Whole { min: 1, max: 31 };

const REMAINING_ABOUT: &str = "Credits left; null is without end.";
const REFILL_ABOUT: &str = "How they are filled up again.";
const INTERVAL_ABOUT: &str = "How often.";
const AMOUNT_ABOUT: &str = "What they are set to then.";
const DAY_ABOUT: &str = "Day of the month; in a shorter month its last day. Only with `monthly`.";

choice! {
    /// How often credits are filled up.
    RefillInterval { Daily = "daily", Monthly = "monthly" }
}

choice! {
    /// What `keys.updateCredits` does with its value.
    CreditOperation { Set = "set", Increment = "increment", Decrement = "decrement" }
}

const INTERVAL: Shape = Shape::Choice(RefillInterval::WORDS);

request! {
    /// How credits are filled up again.
    Refill {
        required interval "interval": RefillInterval = INTERVAL, INTERVAL_ABOUT;
        required amount "amount": u64 = Shape::Integer(REFILL_AMOUNT), AMOUNT_ABOUT;
        optional refill_day "refillDay": u64 = Shape::Integer(REFILL_DAY), DAY_ABOUT;
    }
    rules {
        DAY_FITS_INTERVAL => |it| (it.interval == RefillInterval::Monthly) == it.refill_day.is_some();
    }
}

request! {
    /// Credits of a new key.
    Credits {
        nullable remaining "remaining": u64 = Shape::Integer(CREDITS), REMAINING_ABOUT;
        optional refill "refill": Refill = Refill::SHAPE, REFILL_ABOUT;
    }
    rules {
        REFILL_NEEDS_BALANCE => |it| it.remaining.is_some() || it.refill.is_none();
    }
}

request! {
    /// What `keys.updateKey` does to a key's credits; what is left out stays.
    CreditsPatch {
        patch remaining "remaining": u64 = Shape::Integer(CREDITS), REMAINING_ABOUT;
        patch refill "refill": Refill = Refill::SHAPE, REFILL_ABOUT;
    }
    rules {
        REFILL_NEEDS_BALANCE => |it| it.remaining != Patch::Clear || it.refill.value().is_none();
    }
}

reply! {
    /// How a key's credits are filled up again.
    RefillReply {
        required interval "interval": RefillInterval = INTERVAL, INTERVAL_ABOUT;
        required amount "amount": u64 = Shape::Integer(REFILL_AMOUNT), AMOUNT_ABOUT;
        optional refill_day "refillDay": u64 = Shape::Integer(REFILL_DAY), DAY_ABOUT;
    }
}

reply! {
    /// A key's credits; also the answer of `keys.updateCredits`.
    CreditsReply {
        nullable remaining "remaining": u64 = Shape::Integer(CREDITS), REMAINING_ABOUT;
        optional refill "refill": RefillReply = RefillReply::SHAPE, REFILL_ABOUT;
    }
}

request! {
    /// Body of `keys.updateCredits`.
    UpdateCreditsRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        required operation "operation": CreditOperation = Shape::Choice(CreditOperation::WORDS),
            "What to do with `value`.";
        patch value "value": u64 = Shape::Integer(CREDITS),
            "Credits to set, add or take; null, only with `set`, is without end.";
    }
    rules {
        OPERATION_HAS_VALUE => |it| match it.operation {
            CreditOperation::Set => !it.value.is_keep(),
            CreditOperation::Increment | CreditOperation::Decrement => it.value.value().is_some(),
        };
    }
}

const DAY_FITS_INTERVAL: Rule = Rule {
    about: "`refillDay` is required with `monthly` and refused with `daily`.",
    breach: |given| {
        let interval = RefillInterval::from_word(given.get("interval")?.as_str()?)?;
        let (message, fix) = match (interval, given.get("refillDay")) {
            (RefillInterval::Monthly, None) => {
                ("Is required with the interval `monthly`.", "Send a day from 1 to 31.")
            }
            (RefillInterval::Daily, Some(day)) if is_day(day) => {
                ("Has no meaning with the interval `daily`.", "Remove it.")
            }
            _ => return None,
        };
        Some(Breach { field: "refillDay", message: message.into(), fix: fix.into() })
    },
};

const REFILL_NEEDS_BALANCE: Rule = Rule {
    about: "`refill` needs a `remaining` that is not null.",
    breach: |given| {
        let endless = given.get("remaining")?.is_null() && given.get("refill")?.is_object();
        endless.then(|| Breach {
            field: "refill",
            message: "Credits without end cannot be filled up.".into(),
            fix: "Remove it, or send a number as `remaining`.".into(),
        })
    },
};

const OPERATION_HAS_VALUE: Rule =
    Rule { about: "`value` is required, and null only with `set`.", breach: value_breach };

fn value_breach(given: &Map<String, Value>) -> Option<Breach> {
    let operation = CreditOperation::from_word(given.get("operation")?.as_str()?)?;
    let missing = match operation {
        CreditOperation::Set => given.get("value").is_none(),
        CreditOperation::Increment | CreditOperation::Decrement => {
            given.get("value").is_none_or(Value::is_null)
        }
    };
    missing.then(|| Breach {
        field: "value",
        message: format!("Is required with the operation `{operation}`."),
        fix: match operation {
            CreditOperation::Set => "Send the credits, or null for credits without end.".into(),
            CreditOperation::Increment | CreditOperation::Decrement => "Send the credits.".into(),
        },
    })
}

/// A day that is no day is reported for what it is, not for standing where it may not.
fn is_day(day: &Value) -> bool {
    day.as_u64().is_some_and(|day| REFILL_DAY.holds(day))
}
