//! What the macros for requests and replies share: each kind of field, from its type to its place in the description.
//! `required` must be there; `optional` may be left out; `flagged` is false when left out; `nullable` must be there but
//! may be null; `patch` keeps, clears or sets; `listed` is left out when empty.

macro_rules! slot {
    (required $type:ty) => { $type };
    (optional $type:ty) => { Option<$type> };
    (nullable $type:ty) => { Option<$type> };
    (patch $type:ty) => { $crate::patch::Patch<$type> };
    (flagged $type:ty) => { $type };
    (listed $type:ty) => { $type };
}

macro_rules! described_field {
    (required $wire:literal $shape:expr, $about:expr) => {
        $crate::schema::Field::required($wire, $shape, $about)
    };
    (nullable $wire:literal $shape:expr, $about:expr) => {
        $crate::schema::Field::required($wire, $crate::schema::Shape::Nullable(&$shape), $about)
    };
    (patch $wire:literal $shape:expr, $about:expr) => {
        $crate::schema::Field::optional($wire, $crate::schema::Shape::Nullable(&$shape), $about)
    };
    ($kind:ident $wire:literal $shape:expr, $about:expr) => {
        $crate::schema::Field::optional($wire, $shape, $about)
    };
}

/// Writes one field into a map, unless it is of a kind that is left out when it says nothing.
macro_rules! write_field {
    (optional $out:ident $wire:literal $value:expr) => {
        if let Some(value) = $value {
            $out.serialize_entry($wire, value)?;
        }
    };
    (patch $out:ident $wire:literal $value:expr) => {
        match $value {
            $crate::patch::Patch::Keep => {}
            $crate::patch::Patch::Clear => $out.serialize_entry($wire, &())?,
            $crate::patch::Patch::Set(value) => $out.serialize_entry($wire, value)?,
        }
    };
    (flagged $out:ident $wire:literal $value:expr) => {
        if *$value {
            $out.serialize_entry($wire, &true)?;
        }
    };
    (listed $out:ident $wire:literal $value:expr) => {
        if !$value.is_empty() {
            $out.serialize_entry($wire, $value)?;
        }
    };
    ($kind:ident $out:ident $wire:literal $value:expr) => {
        $out.serialize_entry($wire, $value)?
    };
}

pub(crate) use {described_field, slot, write_field};
