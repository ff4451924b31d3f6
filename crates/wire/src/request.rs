//! Declares a request once: its struct, its strict reader, its bounds and its description cannot drift apart.
//! The reader takes an object and nothing else, every field at most once, and no field it does not know.

/// The value that a body held for a field, while it is being read.
macro_rules! read_type {
    (nullable $type:ty) => { Option<$type> };
    (patch $type:ty) => { $crate::patch::Patch<$type> };
    ($kind:ident $type:ty) => { $type };
}

/// The field's value, once the whole body is read.
macro_rules! settle {
    (required $found:ident $wire:literal) => {
        $found.ok_or_else(|| serde::de::Error::missing_field($wire))?
    };
    (nullable $found:ident $wire:literal) => {
        $found.ok_or_else(|| serde::de::Error::missing_field($wire))?
    };
    (optional $found:ident $wire:literal) => {
        $found
    };
    // A patch keeps, a flag is down.
    ($kind:ident $found:ident $wire:literal) => {
        $found.unwrap_or_default()
    };
}

macro_rules! field_fits {
    (optional $value:expr, $shape:expr) => {
        $value.as_ref().is_none_or(|value| $crate::part::Part::fits(value, &$shape))
    };
    (nullable $value:expr, $shape:expr) => {
        $crate::part::Part::fits($value, &$crate::schema::Shape::Nullable(&$shape))
    };
    (patch $value:expr, $shape:expr) => {
        $crate::part::Part::fits($value, &$crate::schema::Shape::Nullable(&$shape))
    };
    ($kind:ident $value:expr, $shape:expr) => {
        $crate::part::Part::fits($value, &$shape)
    };
}

/// `new` takes the fields that must be there, and leaves every other one out; where none must be, there is `Default`.
macro_rules! constructor {
    ([$name:ident $($life:lifetime)?] [] [$($absent:ident)*]) => {
        impl $(<$life>)? Default for $name $(<$life>)? {
            fn default() -> Self {
                Self { $($absent: Default::default()),* }
            }
        }
    };
    ([$name:ident $($life:lifetime)?] [$($given:ident: $type:ty,)+] [$($absent:ident)*]) => {
        impl $(<$life>)? $name $(<$life>)? {
            /// With every field that may be left out left out.
            pub fn new($($given: $type),+) -> Self {
                Self { $($given,)+ $($absent: Default::default()),* }
            }
        }
    };
    ($name:tt [$($given:tt)*] $absent:tt required $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::request::constructor!($name [$($given)* $field: $type,] $absent $($rest)*);
    };
    ($name:tt [$($given:tt)*] $absent:tt nullable $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::request::constructor!($name [$($given)* $field: Option<$type>,] $absent $($rest)*);
    };
    ($name:tt $given:tt [$($absent:tt)*] $kind:ident $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::request::constructor!($name $given [$($absent)* $field] $($rest)*);
    };
}

/// `kind field "name": Type = SHAPE, "What it is.";` for each field; the kinds are those of `fields`.
/// A rule stands twice, side by side: as the description tells it, and as the typed body is checked.
macro_rules! request {
    (
        $(#[$about:meta])*
        $name:ident $(<$life:lifetime>)? {
            $($kind:ident $field:ident $wire:literal: $type:ty = $shape:expr, $field_about:expr;)*
        }
        $(rules { $($rule:expr => $holds:expr;)+ })?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $(pub $field: $crate::fields::slot!($kind $type),)*
        }

        $crate::request::constructor!([$name $($life)?] [] [] $($kind $field: $type,)*);

        impl $(<$life>)? $crate::schema::Described for $name $(<$life>)? {
            const SHAPE: $crate::schema::Shape =
                $crate::schema::Shape::Object(&$crate::schema::Object::with_rules(
                    &[$($crate::fields::described_field!($kind $wire $shape, $field_about)),*],
                    &[$($($rule),+)?],
                ));
        }

        impl<'de $(: $life, $life)?> serde::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Fields<'de $(: $life, $life)?>(
                    std::marker::PhantomData<(&'de (), fn() -> $name $(<$life>)?)>,
                );
                impl<'de $(: $life, $life)?> serde::de::Visitor<'de> for Fields<'de $(, $life)?> {
                    type Value = $name $(<$life>)?;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut body: A,
                    ) -> Result<Self::Value, A::Error> {
                        $(let mut $field: Option<$crate::request::read_type!($kind $type)> = None;)*
                        while let Some(name) =
                            body.next_key_seed($crate::part::Reading::<$crate::part::Text<'de>>::PART)?
                        {
                            match &*name {
                                $($wire if $field.is_some() => {
                                    return Err(serde::de::Error::duplicate_field($wire));
                                }
                                $wire => {
                                    $field = Some(body.next_value_seed(
                                        $crate::part::Reading::<$crate::request::read_type!($kind $type)>::PART,
                                    )?);
                                })*
                                unknown => {
                                    return Err(serde::de::Error::unknown_field(unknown, &[$($wire),*]));
                                }
                            }
                        }
                        Ok($name { $($field: $crate::request::settle!($kind $field $wire)),* })
                    }
                }
                from.deserialize_map(Fields(std::marker::PhantomData))
            }
        }

        impl<'de $(: $life, $life)?> $crate::parse::Request<'de> for $name $(<$life>)? {
            fn within_bounds(&self) -> bool {
                $($crate::request::field_fits!($kind &self.$field, $shape) &&)*
                $($({
                    let holds: fn(&Self) -> bool = $holds;
                    holds(self)
                } &&)+)?
                true
            }
        }

        impl<'de $(: $life, $life)?> $crate::part::Part<'de> for $name $(<$life>)? {
            fn read<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(from)
            }

            fn fits(&self, _: &$crate::schema::Shape) -> bool {
                $crate::parse::Request::within_bounds(self)
            }
        }

        impl $(<$life>)? serde::Serialize for $name $(<$life>)? {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                #[allow(unused_mut, reason = "a body may have no fields")]
                let mut out = out.serialize_map(None)?;
                $($crate::fields::write_field!($kind out $wire &self.$field);)*
                out.end()
            }
        }
    };
}

pub(crate) use {constructor, field_fits, read_type, request, settle};
