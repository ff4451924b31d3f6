//! JSON bodies grown from a description: mostly right, sometimes wrong in one place. Everything a description can say
//! has a way to grow here, so a new request type needs nothing of its own.

use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};
use tollkeeper_wire::Shape;
use tollkeeper_wire::schema::{Chars, Field, NUL, Room, Spelling, Whole};

/// How often a spot goes wrong: about one in this many.
#[derive(Clone, Copy)]
pub struct Slips(pub u32);

pub fn grown(shape: Shape, slips: Slips) -> BoxedStrategy<Value> {
    let fitting = fitting(shape, slips);
    match slips.0 {
        0 => fitting,
        odds => prop_oneof![odds => fitting, 1 => misfit(shape)].boxed(),
    }
}

fn fitting(shape: Shape, slips: Slips) -> BoxedStrategy<Value> {
    match shape {
        Shape::Integer(Whole { min, max }) => {
            // 10,000 is where the rule across fields begins to bite.
            let known = [min, min + 1, 9_999, 10_000, 10_001, max - 1, max];
            let inside =
                known.into_iter().filter(move |n| (min..=max).contains(n)).collect::<Vec<_>>();
            prop_oneof![proptest::sample::select(inside), min..=max].prop_map(Value::from).boxed()
        }
        Shape::Thousandths(Whole { min, max }) => (min..=max.min(1_000_000_000))
            .prop_map(|number| json!(f64::from(u32::try_from(number).unwrap_or(1)) / 1000.0))
            .boxed(),
        Shape::Either([one, other]) => {
            prop_oneof![grown(*one, slips), grown(*other, slips)].boxed()
        }
        Shape::Raw(Chars { min, max }) => prop_oneof![Just(min), Just(max), min..=max.min(24)]
            .prop_flat_map(|chars| {
                proptest::collection::vec(prop_oneof![9 => any::<char>(), 1 => Just(NUL)], chars)
            })
            .prop_map(|chars| Value::from(chars.into_iter().collect::<String>()))
            .boxed(),
        Shape::Text(Chars { min, max }) => prop_oneof![Just(min), Just(max), min..=max.min(24)]
            .prop_flat_map(|chars| {
                let other_than_nul = any::<char>().prop_filter("NUL fits nowhere", |c| *c != NUL);
                proptest::collection::vec(other_than_nul, chars)
            })
            .prop_map(|chars| Value::from(chars.into_iter().collect::<String>()))
            .boxed(),
        Shape::Spelled(bounds, spelling) => spelled(bounds, spelling),
        Shape::Free(room) => free_object(room),
        Shape::Any => any::<u32>().prop_map(Value::from).boxed(),
        Shape::Nullable(of) => prop_oneof![2 => grown(*of, slips), 1 => Just(Value::Null)].boxed(),
        Shape::Choice(words) => proptest::sample::select(words).prop_map(Value::from).boxed(),
        Shape::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Shape::List { of, min, max } => {
            let entries = proptest::collection::vec(grown(*of, slips), min..=min + 3);
            // A repeated entry is what rules about names of a list look for.
            (entries, prop::bool::weighted(0.1))
                .prop_map(move |(all, repeat)| {
                    let first = all.first().filter(|_| repeat && all.len() < max).cloned();
                    all.into_iter().chain(first).collect::<Value>()
                })
                .boxed()
        }
        Shape::Object(object) => object_of(object.fields, slips),
    }
}

/// The examples, and any run of the characters that may stand alone.
fn spelled(Chars { min, max }: Chars, spelling: &'static Spelling) -> BoxedStrategy<Value> {
    let examples = spelling.examples.iter().filter(|text| (min..=max).contains(&text.len()));
    let mut texts: Vec<BoxedStrategy<Value>> =
        examples.map(|text| Just(json!(text)).boxed()).collect();
    let alone: Vec<char> =
        (' '..='~').filter(|c| (spelling.holds)(&c.to_string()) && min < 40).collect();
    if !alone.is_empty() {
        let run = prop_oneof![Just(min), Just(max), min..=max.min(24)]
            .prop_flat_map(move |chars| {
                proptest::collection::vec(proptest::sample::select(alone.clone()), chars)
            })
            .prop_map(|chars| chars.into_iter().collect::<String>())
            .prop_filter("a run of characters is not always a whole", |text| {
                (spelling.holds)(text)
            });
        texts.push(run.prop_map(Value::from).boxed());
    }
    Union::new(texts).boxed()
}

fn free_object(Room { properties_max, depth_max, .. }: Room) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    });
    let small = proptest::collection::btree_map(".{0,6}", value, 0..5)
        .prop_map(|map| map.into_iter().collect::<Value>());
    prop_oneof![
        8 => small,
        1 => Just(json!({"deep": nested(depth_max - 1)})),
        1 => Just(numbered(properties_max)),
    ]
    .boxed()
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

fn numbered(properties: usize) -> Value {
    (0..properties).map(|n| (n.to_string(), json!(n))).collect()
}

fn object_of(fields: &'static [Field], slips: Slips) -> BoxedStrategy<Value> {
    let mut entries: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    for field in fields {
        let present = grown(field.shape, slips).prop_map(|v| Some((field.name.to_owned(), v)));
        let absent = match (field.is_required(), slips.0) {
            (true, 0) => 0,
            (true, _) => 1,
            (false, odds) => odds.max(2) / 2,
        };
        entries.push(prop_oneof![slips.0.max(1) => present, absent => Just(None)].boxed());
    }
    if slips.0 > 0 {
        let unknown = ("[a-zA-Z_]{0,12}", any::<u8>()).prop_map(|(k, v)| Some((k, json!(v))));
        entries.push(prop_oneof![slips.0 => Just(None), 1 => unknown].boxed());
    }
    entries.prop_map(|all| Value::Object(all.into_iter().flatten().collect::<Map<_, _>>())).boxed()
}

/// Values that serde is tempted to take and the description refuses, or that lie just outside.
fn misfit(shape: Shape) -> BoxedStrategy<Value> {
    let mut odd = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.0),
        json!(2.5),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("1000"),
        json!([]),
        json!({}),
        json!([1, 2]),
        json!({"exact": null}),
        json!({"sliding_log": null}),
        json!(["a", "b", 1, 1000]),
        json!([["a", "b", 1, 1000]]),
    ];
    match shape {
        Shape::Integer(Whole { min, max }) => {
            odd.extend([json!(min.wrapping_sub(1)), json!(max + 1)]);
        }
        Shape::Text(Chars { max, .. }) | Shape::Raw(Chars { max, .. }) => odd.extend([
            json!("ü".repeat(max + 1)),
            json!("a\0b"),
            json!("\0".repeat(max + 1)),
            json!("a\nb"),
            json!(r"a\u0000b"),
        ]),
        Shape::List { of: &Shape::Object(object), max, .. } => {
            let filler = object
                .fields
                .iter()
                .map(|f| (f.name.to_owned(), json!(1000)))
                .collect::<Map<_, _>>();
            odd.push(json!(vec![filler; max + 1]));
        }
        Shape::List { max, .. } => odd.push(json!(vec!["x"; max + 1])),
        Shape::Spelled(Chars { max, .. }, _) => odd.extend([
            json!("a".repeat(max + 1)),
            json!("a b"),
            json!("aaa\0"),
            json!("ä"),
            json!("a/b"),
            json!("::/129"),
            json!("*."),
            json!("A"),
        ]),
        Shape::Free(Room { properties_max, bytes_max, depth_max }) => odd.extend([
            numbered(properties_max + 1),
            json!({"deep": nested(depth_max)}),
            json!({"deep": nested(100)}),
            json!({"long": "x".repeat(bytes_max - r#"{"long":""}"#.len())}),
            json!({"long": "x".repeat(bytes_max - r#"{"long":""}"#.len() + 1)}),
        ]),
        Shape::Nullable(of) => return misfit(*of),
        _ => {}
    }
    Union::new(odd.into_iter().map(Just)).boxed()
}

/// What the rules across fields have to say about a body, anywhere in it.
pub fn breaches(shape: Shape, body: &Value) -> Vec<String> {
    match (shape, body) {
        (Shape::Nullable(of), body) => breaches(*of, body),
        (Shape::List { of, .. }, Value::Array(entries)) => {
            entries.iter().flat_map(|entry| breaches(*of, entry)).collect()
        }
        (Shape::Object(object), Value::Object(given)) => {
            let own = object.rules.iter().filter_map(|rule| (rule.breach)(given));
            let fields = object.fields.iter().filter_map(|f| Some((f.shape, given.get(f.name)?)));
            let inner = fields.flat_map(|(shape, value)| breaches(shape, value));
            own.map(|breach| breach.message).chain(inner).collect()
        }
        _ => Vec::new(),
    }
}
