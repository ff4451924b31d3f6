//! Turns a description into JSON Schema 2020-12, as `OpenAPI` 3.1 wants it.
//! It adds nothing of its own: what stands here is what `faults` enforces.

use serde_json::{Map, Value, json};

use crate::schema::{Chars, Object, Shape, Whole};

/// As `Chars` refuses it. Written with `\x`, which the regular expressions of every language know.
const WITHOUT_NUL: &str = r"^[^\x00]*$";

impl Shape {
    #[allow(clippy::cast_precision_loss, reason = "bounds in a document")]
    pub fn json_schema(&self) -> Value {
        match self {
            Self::Integer(Whole { min, max }) => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            Self::Text(Chars { min, max }) => {
                json!({"type": "string", "minLength": min, "maxLength": max, "pattern": WITHOUT_NUL})
            }
            Self::Raw(Chars { min, max }) => {
                json!({"type": "string", "minLength": min, "maxLength": max})
            }
            Self::Thousandths(Whole { min, max }) => {
                let whole = |number: &u64| Value::from(*number as f64 / 1000.0);
                json!({"type": "number", "minimum": whole(min), "maximum": whole(max)})
            }
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Flag => json!({"type": "boolean"}),
            Self::List { of, min, max } => {
                json!({"type": "array", "items": of.json_schema(), "minItems": min, "maxItems": max})
            }
            Self::Object(object) => object_schema(object),
            Self::Spelled(Chars { min, max }, spelling) => {
                let mut schema = json!({"type": "string", "minLength": min, "maxLength": max});
                if let Some(pattern) = spelling.pattern {
                    schema["pattern"] = json!(pattern);
                }
                schema["examples"] = json!(spelling.examples);
                schema
            }
            Self::Free(room) => json!({"type": "object", "maxProperties": room.properties_max}),
            Self::Any => json!({}),
            Self::Nullable(shape) => nullable(shape.json_schema()),
            Self::Either([one, other]) => {
                json!({"anyOf": [one.json_schema(), other.json_schema()]})
            }
        }
    }
}

/// Where null joins an enumeration, the enumeration has to name it as well as the type.
fn nullable(mut schema: Value) -> Value {
    let shape = schema["type"].take();
    schema["type"] = json!([shape, "null"]);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

fn object_schema(object: &Object) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in object.fields {
        let mut schema = field.shape.json_schema();
        schema["description"] = json!(field.about);
        properties.insert(field.name.to_owned(), schema);
        if field.is_required() {
            required.push(field.name);
        }
    }
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    // An empty `required` list is legal in 2020-12 but trips older generators.
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !object.rules.is_empty() {
        let rules: Vec<_> = object.rules.iter().map(|rule| rule.about).collect();
        schema["description"] = json!(rules.join(" "));
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use crate::schema::Described;
    use crate::{
        CreateKeyRequest, Empty, FieldDiff, LimitRequest, MultiLimitRequest, UpdateKeyRequest,
    };

    #[test]
    fn the_document_names_bounds_required_fields_and_refuses_others() {
        let schema = LimitRequest::SHAPE.json_schema();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["namespace", "identifier", "limit", "duration"]));
        assert_eq!(schema["properties"]["duration"]["minimum"], 1000);
        assert_eq!(schema["properties"]["duration"]["maximum"], 2_592_000_000_u64);
        assert_eq!(schema["properties"]["namespace"]["maxLength"], 512);
        assert_eq!(schema["properties"]["namespace"]["pattern"], r"^[^\x00]*$");
        assert!(schema["properties"]["identifier"].get("pattern").is_none(), "any character");
        assert_eq!(schema["properties"]["onOutage"]["enum"], json!(["share", "allow", "deny"]));
        assert!(schema["description"].as_str().is_some_and(|about| about.contains("10000")));
    }

    #[test]
    fn a_list_carries_the_schema_of_its_entries() {
        let schema = MultiLimitRequest::SHAPE.json_schema();
        assert_eq!((&schema["minItems"], &schema["maxItems"]), (&json!(1), &json!(100)));
        assert_eq!(schema["items"], LimitRequest::SHAPE.json_schema());
    }

    #[test]
    fn what_a_field_of_a_rule_was_may_be_any_value() {
        let schema = FieldDiff::SHAPE.json_schema();
        for side in ["before", "after"] {
            let said = &schema["properties"][side];
            assert_eq!(said.as_object().map(Map::len), Some(1), "{said}");
            assert!(said["description"].is_string());
        }
    }

    #[test]
    fn an_object_without_required_fields_has_no_required_list() {
        assert!(Empty::SHAPE.json_schema().get("required").is_none());
    }

    #[test]
    fn null_spelling_and_room_are_said_in_the_documents_own_words() {
        let update = UpdateKeyRequest::SHAPE.json_schema();
        let field = |name: &str| &update["properties"][name];
        assert_eq!(field("expires")["type"], json!(["integer", "null"]));
        assert_eq!(field("enabled")["type"], "boolean");
        assert_eq!(field("meta")["maxProperties"], 100);
        assert!(field("meta").get("additionalProperties").is_none());
        let create = CreateKeyRequest::SHAPE.json_schema();
        assert_eq!(create["properties"]["prefix"]["pattern"], "^[a-zA-Z0-9_]+$");
    }
}
