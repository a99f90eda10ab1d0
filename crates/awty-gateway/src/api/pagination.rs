//! A page's cursor is a position in an index, so the last page costs no more than the first page.
//!
//! Invariant: no page skips or repeats an item when other rows change.

use super::problem::Problem;
use super::show;
use crate::db::calls::Item;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

pub(super) type QueryResult<T> = Result<Query<T>, QueryRejection>;

pub(super) fn read<T>(query: QueryResult<T>) -> Result<T, Problem> {
    query.map(|Query(asked)| asked).map_err(|error| unread(&error.body_text()))
}

/// Turns axum's error text into an API error that names the faulty query parameter. An example of such a text is
/// `Failed to deserialize query string: limit: invalid digit`.
fn unread(error: &str) -> Problem {
    let reason = error.split_once(": ").map_or(error, |(_, reason)| reason);
    let named = reason.split_once(": ").filter(|(name, _)| !name.contains([' ', '`']));
    let quoted = || Some((reason.split('`').nth(1)?, reason));
    let (name, reason) = named.or_else(quoted).unwrap_or(("", reason));
    Problem::parameter(name, format!("{reason}; /v1/openapi.json has the parameters"))
}

pub(super) struct Page {
    limit: usize,
    after: Vec<String>,
}

impl Page {
    pub fn of(limit: Option<i64>, after: Option<&str>, parts: usize) -> Result<Self, Problem> {
        let limit = limit.unwrap_or(50);
        if !(1..=500).contains(&limit) {
            return Err(Problem::parameter("limit", "is out of range; write 1 to 500"));
        }
        let read = |cursor: &str| -> Option<Vec<String>> {
            let key: Vec<String> = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
            Some(key).filter(|key| key.len() == parts && !key.iter().any(|part| part.contains('\0')))
        };
        let after = after.map_or(Some(Vec::new()), read);
        let after =
            after.ok_or_else(|| Problem::parameter("after", "is not a cursor of this list; leave it out to begin"))?;
        Ok(Page { limit: usize::try_from(limit).unwrap_or(usize::MAX), after })
    }

    pub fn rows(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX).saturating_add(1)
    }

    pub fn after(&self, part: usize) -> Option<&str> {
        self.after.get(part).map(String::as_str)
    }

    pub fn number_after(&self, part: usize) -> Result<Option<i64>, Problem> {
        let refused = |_| Problem::parameter("after", "is not a cursor of this list; leave it out to begin");
        let number = |text: &str| text.parse().map_err(refused);
        self.after(part).map(number).transpose()
    }

    pub fn answer(
        self,
        path: &str,
        query: &[(&str, Option<String>)],
        rows: Vec<Item>,
        headers: &HeaderMap,
    ) -> Response {
        self.answer_with(path, query, rows, Map::new(), headers)
    }

    pub fn answer_texts(
        self,
        path: &str,
        query: &[(&str, Option<String>)],
        rows: Vec<(String, Vec<String>)>,
        end: Option<String>,
        headers: &HeaderMap,
    ) -> Response {
        self.part(path, query, rows, end, Map::new(), headers)
    }

    pub fn answer_with(
        self,
        path: &str,
        query: &[(&str, Option<String>)],
        rows: Vec<Item>,
        all: Map<String, Value>,
        headers: &HeaderMap,
    ) -> Response {
        let rows = rows.into_iter().map(|(item, key)| (item.to_string(), key)).collect();
        self.part(path, query, rows, None, all, headers)
    }

    fn part(
        self,
        path: &str,
        query: &[(&str, Option<String>)],
        mut rows: Vec<(String, Vec<String>)>,
        end: Option<String>,
        all: Map<String, Value>,
        headers: &HeaderMap,
    ) -> Response {
        let fit = rows.iter().take(self.limit).take_while(|(item, _)| item != "null").count();
        let more = rows.len() > fit;
        rows.truncate(fit);
        let next = if more { rows.last().map(|(_, key)| key.clone()) } else { end.map(|end| vec![end]) };
        let next = next.map(|key| URL_SAFE_NO_PAD.encode(json!(key).to_string()));
        let mut items = "[".to_owned();
        for (item, _) in rows {
            items.push_str(if items.len() > 1 { "," } else { "" });
            items.push_str(&item);
        }
        items.push(']');
        let all = show::with(Value::from(all).to_string(), "items", &items);
        let mut response = show::tagged_text("0", all, StatusCode::OK, headers);
        if let Some(cursor) = next {
            let mut said = url::form_urlencoded::Serializer::new(String::new());
            said.extend_pairs(query.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))));
            let said = said.append_pair("limit", &self.limit.to_string()).append_pair("after", &cursor).finish();
            if let Ok(link) = HeaderValue::from_str(&format!("<{path}?{said}>; rel=\"next\"")) {
                response.headers_mut().insert(header::LINK, link);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[&str]) -> Vec<(Value, Vec<String>)> {
        keys.iter().map(|key| (json!(key), vec![(*key).to_owned()])).collect()
    }

    #[test]
    fn a_link_leads_to_the_next_page_and_the_last_has_none() {
        let first = Page::of(Some(2), None, 1).unwrap();
        assert_eq!((first.rows(), first.after(0)), (3, None));
        let answer =
            first.answer("/v1/x", &[("q", Some("a b".into())), ("r", None)], rows(&["1", "2", "3"]), &HeaderMap::new());
        let link = answer.headers()[header::LINK].to_str().unwrap().to_owned();
        let after = link.strip_prefix("</v1/x?q=a+b&limit=2&after=").unwrap().strip_suffix(">; rel=\"next\"").unwrap();
        let second = Page::of(Some(2), Some(after), 1).unwrap();
        assert_eq!(second.after(0), Some("2"));
        assert!(!second.answer("/v1/x", &[], rows(&["3"]), &HeaderMap::new()).headers().contains_key(header::LINK));
    }

    #[test]
    fn a_page_ends_before_an_item_without_room() {
        let page = Page::of(Some(3), None, 1).unwrap();
        let mut rows = rows(&["1", "2", "3"]);
        rows[2].0 = Value::Null;
        let answer = page.answer("/v1/x", &[], rows, &HeaderMap::new());
        let after = format!("&after={}>", URL_SAFE_NO_PAD.encode("[\"2\"]"));
        assert!(answer.headers()[header::LINK].to_str().unwrap().contains(&after), "{answer:?}");
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let of_two = URL_SAFE_NO_PAD.encode("[\"a\",\"b\"]");
        let zero = URL_SAFE_NO_PAD.encode("[\"\\u0000\"]");
        for after in ["*", "", &of_two, &zero] {
            assert!(Page::of(None, Some(after), 1).is_err(), "{after}");
        }
        assert!(Page::of(Some(0), None, 1).is_err() && Page::of(Some(501), None, 1).is_err());
        let word = Page::of(None, Some(&URL_SAFE_NO_PAD.encode("[\"a\"]")), 1).unwrap();
        assert!(word.number_after(0).is_err());
    }

    #[test]
    fn a_refusal_names_the_parameter() {
        for (text, pointer) in [
            ("Failed to deserialize query string: limit: invalid digit found in string", "/limit"),
            ("Failed to deserialize query string: unknown field `x`, expected `limit` or `after`", "/x"),
        ] {
            let problem = format!("{:?}", unread(text));
            assert!(problem.contains(&format!("\"pointer\": String(\"{pointer}\")")), "{problem}");
        }
    }
}
