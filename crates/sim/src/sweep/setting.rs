//! Settings of a scenario: where they stand, and which values they take.

use toml::{Table, Value};

use super::SweepError;

/// One setting of the scenario and the values that it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Where it stands: keys with points between them, and for lists names or
    /// numbers, such as `machine.quantum` or `client.A.tickets`.
    pub setting: String,
    /// As TOML.
    pub values: Vec<Value>,
}

impl Axis {
    /// From `SETTING=VALUE,VALUE...`; a value that is not TOML is taken as
    /// text, so that times need no quotes.
    ///
    /// # Errors
    ///
    /// If there is no `=` or no value.
    pub fn parse(text: &str) -> Result<Axis, SweepError> {
        let error = || SweepError::Values(text.to_owned());
        let (setting, values) = text.split_once('=').ok_or_else(error)?;
        if setting.is_empty() || values.is_empty() {
            return Err(error());
        }
        let list = |values: &str| -> Option<Vec<Value>> {
            let table: Table = toml::from_str(&format!("values = [{values}]")).ok()?;
            table.get("values")?.as_array().cloned()
        };
        let bare = || {
            values
                .split(',')
                .map(|value| Value::String(value.trim().to_owned()))
        };
        Ok(Axis {
            setting: setting.trim().to_owned(),
            values: list(values).unwrap_or_else(|| bare().collect()),
        })
    }
}

/// The place of a setting: keys, and numbers for lists, so that all names of a place give
/// the same. A place that the scenario lacks is as named.
pub(super) fn place(table: &Table, setting: &str) -> Vec<String> {
    let segments = setting.split('.').filter(|segment| !segment.is_empty());
    let mut place = Vec::new();
    let mut inner: Option<&Value> = None;
    let mut keys = Some(table);
    for segment in segments {
        place.push(segment.to_owned());
        let value = match inner {
            Some(Value::Array(list)) => {
                let index = find(list, segment);
                if let Some(index) = index {
                    place.pop();
                    place.push(index.to_string());
                }
                index.and_then(|index| list.get(index))
            }
            _ => keys.and_then(|keys| keys.get(segment)),
        };
        keys = value.and_then(Value::as_table);
        inner = value;
    }
    place
}

/// The entry of a list with this number or name.
fn find(list: &[Value], name: &str) -> Option<usize> {
    let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(name);
    match name.parse::<usize>() {
        Ok(index) => (index < list.len()).then_some(index),
        Err(_) => list.iter().position(named),
    }
}

/// Puts a value into a scenario.
pub(super) fn set(table: &mut Table, setting: &str, value: Value) -> Result<(), SweepError> {
    let error = |segment: &str, why| SweepError::Setting {
        setting: setting.to_owned(),
        segment: segment.to_owned(),
        why,
    };
    let (path, last) = setting.rsplit_once('.').unwrap_or(("", setting));
    let mut place = table;
    let mut segments = path.split('.').filter(|segment| !segment.is_empty());
    while let Some(segment) = segments.next() {
        let inner = place
            .entry(segment)
            .or_insert_with(|| Value::Table(Table::new()));
        place = match inner {
            Value::Table(inner) => inner,
            Value::Array(list) => {
                let name = segments
                    .next()
                    .ok_or_else(|| error(segment, "a list: name one of its entries"))?;
                let found = find(list, name).and_then(|index| list[index].as_table_mut());
                found.ok_or_else(|| error(name, "not in that list"))?
            }
            _ => return Err(error(segment, "neither a table nor a list")),
        };
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let axis = Axis::parse(text).expect(text);
        axis.values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_are_toml_or_bare_text() {
        assert_eq!(values("a=1,2"), ["1", "2"]);
        assert_eq!(values("a=10ms, 20ms"), ["\"10ms\"", "\"20ms\""]);
        assert_eq!(values("a=stride,lottery"), ["\"stride\"", "\"lottery\""]);
        assert_eq!(values("a={ random = { between = [1, 2] } }").len(), 1);
        for text in ["", "a", "a=", "=1"] {
            assert!(Axis::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_setting_is_put_where_it_says() {
        let text = "title = \"t\"\n[[client]]\nname = \"A\"\n[[client]]\nname = \"B\"\n";
        let mut table: Table = toml::from_str(text).expect("TOML");
        set(&mut table, "client.B.tickets", Value::Integer(3)).expect("there");
        set(&mut table, "client.0.tickets", Value::Integer(4)).expect("there");
        set(&mut table, "machine.cpus", Value::Integer(2)).expect("made");
        set(&mut table, "duration", Value::String("1s".into())).expect("made");
        assert_eq!(table["client"][1]["tickets"], Value::Integer(3));
        assert_eq!(table["client"][0]["tickets"], Value::Integer(4));
        assert_eq!(table["machine"]["cpus"], Value::Integer(2));
        for wrong in [
            "client.C.tickets",
            "client.tickets",
            "title.x",
            "client.7.tickets",
        ] {
            assert!(
                set(&mut table, wrong, Value::Integer(1)).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_place_has_one_name() {
        let text = "[machine]\ncpus = 2\n[[client]]\nname = \"A\"\n[[client]]\nname = \"B\"\n";
        let table: Table = toml::from_str(text).expect("TOML");
        let place = |setting| place(&table, setting);
        assert_eq!(place("client.B.tickets"), place("client.1.tickets"));
        assert_eq!(place("client.B.tickets"), place("client.01..tickets"));
        assert_ne!(place("client.A.tickets"), place("client.B.tickets"));
        assert_eq!(place("machine.policy"), ["machine", "policy"]);
        assert_eq!(place("measure.every"), ["measure", "every"]);
    }
}
