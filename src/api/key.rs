use crate::call::args::{Args, calls};
use crate::error::{Error, Result};
use crate::pg::scalar;
use crate::pg::text::Text;

calls! {
    fn key -> Text = key_of;
}

fn key_of(args: &Args) -> Result<Text> {
    let columns = args.variadic().ok_or(Error::Null { argument: "key" })?;
    if columns.is_empty() {
        return Err(Error::Empty { argument: "key" });
    }
    let texts: Result<Vec<Text>> = columns
        .into_iter()
        .map(|(value, kind)| {
            let value = value.ok_or(Error::Null { argument: "key" })?;
            scalar::check(kind).map_err(|kind| Error::KeyType { argument: "key", kind })?;
            Ok(scalar::text(value, kind))
        })
        .collect();
    let mut texts = texts?;
    Ok(if texts.len() == 1 { texts.remove(0) } else { scalar::json_array(&texts) })
}
