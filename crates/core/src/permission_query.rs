//! Permission queries: `documents.read AND (admin OR editor)`. AND binds tighter than OR, words in any case;
//! `*` in a permission is a character like any other. Parsed once per request, evaluated without allocating.

/// Longer queries are refused before they are parsed.
pub const QUERY_CHARS_MAX: usize = 1000;
/// Parentheses deeper than this are nobody's query.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionQuery<'a> {
    Has(&'a str),
    All(Vec<PermissionQuery<'a>>),
    Any(Vec<PermissionQuery<'a>>),
}

/// What is wrong with a query, and at which character (from 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryFault {
    pub at: usize,
    pub expected: &'static str,
    pub found: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Permission(&'a str),
    And,
    Or,
    Open,
    Close,
}

struct Parser<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    end: usize,
}

// === impl PermissionQuery ===

impl<'a> PermissionQuery<'a> {
    pub fn parse(text: &'a str) -> Result<Self, QueryFault> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens, next: 0, end: text.chars().count() };
        let query = parser.any(0)?;
        match parser.peek() {
            None => Ok(query),
            Some(_) => Err(parser.fault("AND, OR or the end of the query")),
        }
    }

    pub fn holds(&self, has: &impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Has(permission) => has(permission),
            Self::All(parts) => parts.iter().all(|part| part.holds(has)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(has)),
        }
    }
}

// === impl Parser ===

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<PermissionQuery<'a>, QueryFault> {
        let first = self.all(depth)?;
        self.joined(first, Token::Or, depth, Self::all, PermissionQuery::Any)
    }

    fn all(&mut self, depth: usize) -> Result<PermissionQuery<'a>, QueryFault> {
        let first = self.one(depth)?;
        self.joined(first, Token::And, depth, Self::one, PermissionQuery::All)
    }

    fn joined(
        &mut self,
        first: PermissionQuery<'a>,
        by: Token<'a>,
        depth: usize,
        part: fn(&mut Self, usize) -> Result<PermissionQuery<'a>, QueryFault>,
        join: fn(Vec<PermissionQuery<'a>>) -> PermissionQuery<'a>,
    ) -> Result<PermissionQuery<'a>, QueryFault> {
        let mut parts = vec![first];
        while self.take(by) {
            parts.push(part(self, depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<PermissionQuery<'a>, QueryFault> {
        match self.peek() {
            Some(Token::Permission(permission)) => {
                self.next += 1;
                Ok(PermissionQuery::Has(permission))
            }
            Some(Token::Open) if depth < DEPTH_MAX => {
                self.next += 1;
                let inner = self.any(depth + 1)?;
                if self.take(Token::Close) {
                    Ok(inner)
                } else {
                    Err(self.fault("a closing parenthesis"))
                }
            }
            Some(Token::Open) => Err(self.fault("at most 32 nested parentheses")),
            _ => Err(self.fault("a permission or an opening parenthesis")),
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| *token)
    }

    fn take(&mut self, token: Token<'a>) -> bool {
        let taken = self.peek() == Some(token);
        self.next += usize::from(taken);
        taken
    }

    fn fault(&self, expected: &'static str) -> QueryFault {
        let (at, found) = match self.tokens.get(self.next) {
            Some((at, token)) => (*at, token.shown()),
            None => (self.end, "the end of the query".to_owned()),
        };
        QueryFault { at, expected, found }
    }
}

// === impl Token ===

impl Token<'_> {
    fn shown(self) -> String {
        match self {
            Self::Permission(text) => format!("`{text}`"),
            Self::And => "AND".to_owned(),
            Self::Or => "OR".to_owned(),
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, QueryFault> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().enumerate().peekable();
    while let Some((at, (byte, c))) = rest.next() {
        let token = match c {
            '(' => Token::Open,
            ')' => Token::Close,
            c if c.is_ascii_whitespace() => continue,
            c if is_permission_char(c) => {
                let mut end = byte + c.len_utf8();
                while let Some((_, (byte, c))) = rest.next_if(|(_, (_, c))| is_permission_char(*c))
                {
                    end = byte + c.len_utf8();
                }
                word(&text[byte..end])
            }
            c => {
                let expected = "letters, digits, `.`, `_`, `-`, `:`, `*`, `/`, or parentheses";
                return Err(QueryFault { at, expected, found: format!("`{}`", c.escape_debug()) });
            }
        };
        tokens.push((at, token));
    }
    Ok(tokens)
}

fn word(text: &str) -> Token<'_> {
    if text.eq_ignore_ascii_case("and") {
        Token::And
    } else if text.eq_ignore_ascii_case("or") {
        Token::Or
    } else {
        Token::Permission(text)
    }
}

fn is_permission_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '*' | '/')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds(query: &str, granted: &[&str]) -> bool {
        PermissionQuery::parse(query)
            .unwrap()
            .holds(&|permission: &str| granted.contains(&permission))
    }

    #[test]
    fn and_binds_tighter_than_or_and_parentheses_win() {
        assert!(holds("a OR b AND c", &["a"]));
        assert!(!holds("(a OR b) AND c", &["a"]));
        assert!(holds("(a or b) and c", &["b", "c"]));
        assert!(!holds("a AND b OR c AND d", &["a", "d"]));
        assert!(holds("a AND b OR c AND d", &["c", "d"]));
    }

    #[test]
    fn a_star_is_a_character_like_any_other() {
        assert!(!holds("documents.*", &["documents.read"]));
        assert!(holds("documents.*", &["documents.*"]));
    }

    #[test]
    fn a_fault_names_its_position_and_what_was_expected() {
        for (query, at) in [
            ("", 0),
            ("()", 1),
            ("a b", 2),
            ("a AND", 5),
            ("AND a", 0),
            ("(a", 2),
            ("a)", 1),
            ("a & b", 2),
            ("é", 0),
            ("a OR é", 5),
            ("OR", 0),
        ] {
            let fault = PermissionQuery::parse(query).unwrap_err();
            assert_eq!(fault.at, at, "{query}: {fault:?}");
        }
        assert!(PermissionQuery::parse(&"(".repeat(999)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z()&. é]{0,60}") {
            let _ = PermissionQuery::parse(&text);
        }

        #[test]
        fn a_query_means_what_its_written_form_says(bits in 0_u8..16, shape in 0..6_usize) {
            let (a, b, c, d) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0, bits & 8 > 0);
            let cases = [
                ("a AND b AND c AND d", a && b && c && d),
                ("a OR b OR c OR d", a || b || c || d),
                ("a AND (b OR c) AND d", a && (b || c) && d),
                ("a AND b OR c AND d", (a && b) || (c && d)),
                ("((a)) OR (b AND (c OR d))", a || (b && (c || d))),
                ("a OR b AND c OR d", a || (b && c) || d),
            ];
            let (query, expected) = cases[shape];
            let has = |name: &str| match name { "a" => a, "b" => b, "c" => c, _ => d };
            prop_assert_eq!(PermissionQuery::parse(query).unwrap().holds(&has), expected);
        }
    }
}
