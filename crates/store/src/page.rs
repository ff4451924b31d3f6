//! A part of a list, and where the next part starts.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The id of the first row of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

// === impl Page ===

impl<T> Page<T> {
    /// Of one row more than asked for: it says whether there is a next page, and where it starts.
    pub(crate) fn cut(mut rows: Vec<T>, limit: u32, id: impl Fn(&T) -> String) -> Self {
        let full = usize::try_from(limit).is_ok_and(|limit| rows.len() > limit);
        let next_cursor = if full { rows.pop().map(|next| id(&next)) } else { None };
        Self { rows, next_cursor }
    }

    pub(crate) fn try_map<U, E>(self, to: impl Fn(T) -> Result<U, E>) -> Result<Page<U>, E> {
        let rows = self.rows.into_iter().map(to).collect::<Result<_, _>>()?;
        Ok(Page { rows, next_cursor: self.next_cursor })
    }

    pub(crate) fn with<U>(&self, rows: Vec<U>) -> Page<U> {
        Page { rows, next_cursor: self.next_cursor.clone() }
    }
}

/// The pattern of a search for this text anywhere, whatever its case; its own signs are only signs.
pub(crate) fn anywhere(search: Option<&str>) -> Option<String> {
    let search = search.filter(|text| !text.is_empty())?.to_lowercase();
    let mut pattern = String::with_capacity(search.len() + 2);
    pattern.push('%');
    for sign in search.chars() {
        if matches!(sign, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(sign);
    }
    pattern.push('%');
    Some(pattern)
}
