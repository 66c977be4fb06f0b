//! Lists: which page a query asks for, and what is on it.

use crate::fleet::page_token::{PAGE_SIZE, PageToken, PageTokenError};

/// The query of a list. Other parameters are ignored, such as the `alt=json` of Google's clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// The page.
    pub page: PageToken,
    /// For states in v1: only those of this machine.
    pub machine_id: Option<String>,
    /// For states in v1: only those of this unit.
    pub unit_name: Option<String>,
}

impl ListQuery {
    /// Reads the decoded parameters of a query. Of several values of a filter the first one counts, and an empty one is none.
    ///
    /// # Errors
    /// The page token is not one that this API gives, or there are several.
    pub fn read(parameters: &[(String, String)]) -> Result<Self, PageTokenError> {
        let values = |name: &'static str| {
            let named = parameters.iter().filter(move |(key, _)| key == name);
            named.map(|(_, value)| value.as_str())
        };
        let filter = |name| values(name).next().filter(|value| !value.is_empty()).map(ToOwned::to_owned);
        Ok(Self {
            page: PageToken::read(values("nextPageToken"))?,
            machine_id: filter("machineID"),
            unit_name: filter("unitName"),
        })
    }

    /// Whether a state of `unit` on `machine` is asked for. Names that cannot exist match nothing.
    pub fn matches(&self, unit: &str, machine: &str) -> bool {
        self.unit_name.as_deref().is_none_or(|wanted| wanted == unit)
            && self.machine_id.as_deref().is_none_or(|wanted| wanted == machine)
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it. A page after the last one is empty.
    pub items: Vec<T>,
    /// The next page; absent on the last one, a full one included.
    pub next: Option<PageToken>,
}

impl<T> Page<T> {
    /// The page of `entries` that `token` names.
    pub fn new(entries: impl Iterator<Item = T>, token: PageToken) -> Self {
        let mut entries = entries.skip(token.start());
        let items = entries.by_ref().take(usize::from(PAGE_SIZE)).collect();
        let next = entries.next().and_then(|_| token.next());
        Self { items, next }
    }

    /// The same page of something else.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(change).collect(), next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(parameters: &[(&str, &str)]) -> Result<ListQuery, PageTokenError> {
        let owned: Vec<(String, String)> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ListQuery::read(&owned)
    }

    #[test]
    fn pages_have_100_entities() {
        let second = PageToken::FIRST.next().unwrap();
        let third = second.next().unwrap();
        for (total, token, items, next) in [
            (0, PageToken::FIRST, 0..0, None),
            (1, PageToken::FIRST, 0..1, None),
            (99, PageToken::FIRST, 0..99, None),
            // An exact multiple: the page is full, and the last one.
            (100, PageToken::FIRST, 0..100, None),
            (101, PageToken::FIRST, 0..100, Some(second)),
            (101, second, 100..101, None),
            (200, PageToken::FIRST, 0..100, Some(second)),
            (200, second, 100..200, None),
            (201, second, 100..200, Some(third)),
            (200, third, 0..0, None),
            (0, third, 0..0, None),
        ] {
            let expected = Page { items: items.collect::<Vec<u32>>(), next };
            assert_eq!(Page::new(0..total, token), expected, "{total} {token}");
        }
        assert_eq!(Page::new(1..3, PageToken::FIRST).map(|n| n * 2).items, [2, 4]);
    }

    #[test]
    fn queries_name_a_page_and_filters() {
        let first = ListQuery { page: PageToken::FIRST, machine_id: None, unit_name: None };
        let second = PageToken::FIRST.next().unwrap();
        for (parameters, expected) in [
            (vec![], Ok(first.clone())),
            (vec![("alt", "json"), ("x", "")], Ok(first.clone())),
            (vec![("machineID", ""), ("unitName", "")], Ok(first.clone())),
            (
                vec![("alt", "json"), ("nextPageToken", "ZAACAA==")],
                Ok(ListQuery { page: second, ..first.clone() }),
            ),
            (
                vec![("machineID", "a"), ("machineID", "b"), ("unitName", "x.service")],
                Ok(ListQuery {
                    machine_id: Some("a".to_owned()),
                    unit_name: Some("x.service".to_owned()),
                    ..first.clone()
                }),
            ),
            (vec![("nextPageToken", "")], Err(PageTokenError::Empty)),
            (
                vec![("nextPageToken", "ZAACAA=="), ("nextPageToken", "ZAACAA==")],
                Err(PageTokenError::Repeated),
            ),
        ] {
            assert_eq!(query(&parameters), expected, "{parameters:?}");
        }
    }

    #[test]
    fn states_are_filtered() {
        for (parameters, expected) in [
            (vec![], true),
            (vec![("machineID", "m1")], true),
            (vec![("machineID", "m2")], false),
            (vec![("unitName", "a.service")], true),
            (vec![("unitName", "b.service")], false),
            (vec![("unitName", "a.service"), ("machineID", "m2")], false),
            (vec![("unitName", "../a.service")], false),
        ] {
            assert_eq!(query(&parameters).unwrap().matches("a.service", "m1"), expected, "{parameters:?}");
        }
    }
}
