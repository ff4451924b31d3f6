//! The fast path and the description agree: bodies are grown from the description itself, mostly right, sometimes wrong
//! in one place, and both must say the same. It never asks for a particular message.

use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};
use tollkeeper_wire::schema::{Chars, Field, Whole};
use tollkeeper_wire::{
    DeleteNamespaceRequest, Described, GetOverrideRequest, LimitRequest, ListOverridesRequest,
    MultiLimitRequest, PeekRequest, Request, ResetRequest, SetOverrideRequest, Shape, parse,
};

/// How often a spot goes wrong: about one in this many.
#[derive(Clone, Copy)]
struct Slips(u32);

fn grown(shape: Shape, slips: Slips) -> BoxedStrategy<Value> {
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
        Shape::Text(Chars { min, max }) => prop_oneof![Just(min), Just(max), min..=max.min(24)]
            .prop_flat_map(|chars| proptest::collection::vec(any::<char>(), chars))
            .prop_map(|chars| Value::from(chars.into_iter().collect::<String>()))
            .boxed(),
        Shape::Choice(words) => proptest::sample::select(words).prop_map(Value::from).boxed(),
        Shape::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Shape::List { of, min, .. } => proptest::collection::vec(grown(*of, slips), min..=min + 3)
            .prop_map(Value::from)
            .boxed(),
        Shape::Object(object) => object_of(object.fields, slips),
    }
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
        Shape::Text(Chars { max, .. }) => odd.push(json!("ü".repeat(max + 1))),
        Shape::List { of: &Shape::Object(object), max, .. } => {
            let filler = object
                .fields
                .iter()
                .map(|f| (f.name.to_owned(), json!(1000)))
                .collect::<Map<_, _>>();
            odd.push(json!(vec![filler; max + 1]));
        }
        _ => {}
    }
    Union::new(odd.into_iter().map(Just)).boxed()
}

fn agrees<T>(body: &Value) -> Result<(), TestCaseError>
where
    T: Described + for<'a> AgreesOn<'a>,
{
    let faults = T::SHAPE.faults(body);
    let text = body.to_string();
    match T::parsed(text.as_bytes()) {
        Ok(()) => prop_assert!(faults.is_empty(), "accepted {text}, though {faults:?}"),
        Err(found) => prop_assert!(
            !faults.is_empty() && found == faults,
            "refused {text}: {found:?}, not {faults:?}"
        ),
    }
    Ok(())
}

trait AgreesOn<'a> {
    fn parsed(body: &'a [u8]) -> Result<(), Vec<tollkeeper_wire::FieldError>>;
}

macro_rules! agreement {
    ($($test:ident / $valid:ident: $request:ident;)+) => {
        $(impl<'a> AgreesOn<'a> for $request<'_> {
            fn parsed(body: &'a [u8]) -> Result<(), Vec<tollkeeper_wire::FieldError>> {
                parse::<$request<'a>>(body).map(|request| assert!(request.within_bounds()))
            }
        })+
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(1_000))]
            $(#[test]
            fn $test(body in grown($request::SHAPE, Slips(40))) { agrees::<$request>(&body)?; })+
        }
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(200))]
            $(#[test]
            fn $valid(body in grown($request::SHAPE, Slips(0))) {
                // Without slips only the rule across fields can refuse, so the accepting side is really walked.
                let found = $request::parsed(body.to_string().as_bytes()).err().unwrap_or_default();
                prop_assert!(found.iter().all(|fault| fault.message.contains("sliding_log")), "{:?}", found);
            })+
        }
    };
}

agreement! {
    a_limit_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_limit_body_is_accepted: LimitRequest;
    a_multi_limit_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_multi_limit_body_is_accepted: MultiLimitRequest;
    a_set_override_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_set_override_body_is_accepted: SetOverrideRequest;
    a_get_override_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_get_override_body_is_accepted: GetOverrideRequest;
    a_list_overrides_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_list_overrides_body_is_accepted: ListOverridesRequest;
    a_delete_namespace_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_delete_namespace_body_is_accepted: DeleteNamespaceRequest;
    a_peek_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_peek_body_is_accepted: PeekRequest;
    a_reset_body_is_accepted_exactly_when_its_description_finds_no_fault / every_described_reset_body_is_accepted: ResetRequest;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn no_bytes_make_the_parser_panic_and_a_refusal_always_says_why(
        body in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "[\\[\\]{}\",:0-9a-z\\\\. eE+-]{0,80}".prop_map(String::into_bytes),
        ]
    ) {
        if let Err(faults) = parse::<LimitRequest>(&body) {
            prop_assert!(!faults.is_empty());
        }
        if let Err(faults) = parse::<MultiLimitRequest>(&body) {
            prop_assert!(!faults.is_empty());
        }
    }
}
