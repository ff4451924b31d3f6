//! Words of a closed set, declared once: the enum, its spelling on the wire, and the list the schema shows.
//! Only a plain string is read. The derived reader would also take `{"word": null}`, which the schema refuses.

macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$variant_about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_about])* $variant),+ }

        impl $name {
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.as_str())
            }
        }

        impl $crate::json::Json for $name {
            /// No word of ours needs to be escaped.
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(match self {
                    $(Self::$variant => concat!("\"", $word, "\"").as_bytes()),+
                });
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Word;
                impl serde::de::Visitor<'_> for Word {
                    type Value = $name;
                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(out, "one of {}", $name::WORDS.join(", "))
                    }
                    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<$name, E> {
                        $name::from_word(word).ok_or_else(|| E::unknown_variant(word, $name::WORDS))
                    }
                }
                from.deserialize_str(Word)
            }
        }

        impl<'de> $crate::part::Part<'de> for $name {
            fn read<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(from)
            }

            fn fits(&self, _: &$crate::schema::Shape) -> bool {
                true
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use choice;
