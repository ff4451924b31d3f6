//! Declares a reply once: its struct, what it leaves out, and its description.
//! A server writes it; a client reads it owned and overlooks what it does not know, so that servers may grow.

macro_rules! settle_reply {
    (required $found:ident $wire:literal) => {
        $found.ok_or_else(|| serde::de::Error::missing_field($wire))?
    };
    (optional $found:ident $wire:literal) => {
        $found
    };
    // A list or a flag that was left out says that it is empty or false, and a value that must be there may be null.
    ($kind:ident $found:ident $wire:literal) => {
        $found.unwrap_or_default()
    };
}

/// `kind field "name": Type = SHAPE, "What it is.";` for each field; the kinds are those of `fields`. What is `written` can be
/// written without serde too.
macro_rules! reply {
    (
        $(#[$about:meta])*
        written $name:ident $(<$life:lifetime>)? {
            $($kind:ident $field:ident $wire:literal: $type:ty = $shape:expr, $field_about:expr;)*
        }
    ) => {
        $crate::reply::reply! {
            $(#[$about])*
            $name $(<$life>)? {
                $($kind $field $wire: $type = $shape, $field_about;)*
            }
        }

        impl $(<$life>)? $crate::json::Json for $name $(<$life>)? {
            fn write(&self, out: &mut Vec<u8>) {
                let start = out.len();
                $($crate::json::json_field!($kind out $wire &self.$field);)*
                $crate::json::enclose(out, start, *b"{}");
            }
        }
    };
    (
        $(#[$about:meta])*
        $name:ident $(<$life:lifetime>)? {
            $($kind:ident $field:ident $wire:literal: $type:ty = $shape:expr, $field_about:expr;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $(pub $field: $crate::fields::slot!($kind $type),)*
        }

        impl $(<$life>)? $crate::schema::Described for $name $(<$life>)? {
            const SHAPE: $crate::schema::Shape =
                $crate::schema::Shape::Object(&$crate::schema::Object::of(
                    &[$($crate::fields::described_field!($kind $wire $shape, $field_about)),*],
                ));
        }

        impl $(<$life>)? serde::Serialize for $name $(<$life>)? {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut out = out.serialize_map(None)?;
                $($crate::fields::write_field!($kind out $wire &self.$field);)*
                out.end()
            }
        }

        impl<'de $(, $life)?> serde::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Fields $(<$life>)? (std::marker::PhantomData<$name $(<$life>)?>);
                impl<'de $(, $life)?> serde::de::Visitor<'de> for Fields $(<$life>)? {
                    type Value = $name $(<$life>)?;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut body: A,
                    ) -> Result<Self::Value, A::Error> {
                        $(let mut $field: Option<$crate::reply::read_reply_type!($kind $type)> = None;)*
                        while let Some(name) = body.next_key::<std::borrow::Cow<'_, str>>()? {
                            match &*name {
                                $($wire => $field = Some(body.next_value()?),)*
                                _ => drop(body.next_value::<serde::de::IgnoredAny>()?),
                            }
                        }
                        Ok($name { $($field: $crate::reply::settle_reply!($kind $field $wire)),* })
                    }
                }
                from.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
}

macro_rules! read_reply_type {
    (nullable $type:ty) => { Option<$type> };
    ($kind:ident $type:ty) => { $type };
}

pub(crate) use {read_reply_type, reply, settle_reply};
