//! The JSON schema of scenario files is current, all scenarios keep to it, and
//! of `[reproduces]` it says what is read.

use std::path::{Path, PathBuf};

use prorata_reproduce::{Figure, find, schema};
use serde_json::Value;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// All scenario files, those of the papers' figures included.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for place in ["", "1994", "1995", "1999", "2001", "2005", "conformance"] {
        let entries = std::fs::read_dir(directory().join(place)).expect("scenarios are there");
        let paths = entries.map(|entry| entry.expect("readable").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "toml")));
    }
    assert!(files.len() > 20);
    files
}

#[test]
fn the_schema_beside_the_scenarios_is_current() {
    let path = directory().join("scenario.schema.json");
    let current = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &current).expect("writable");
    }
    let written = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes it");
    assert!(
        written == current,
        "run with UPDATE_GOLDEN=1 and look at the difference"
    );
}

#[test]
fn all_scenarios_keep_to_the_schema() {
    let root = schema();
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("readable");
        let scenario: toml::Value = toml::from_str(&text).expect("TOML");
        let scenario = serde_json::to_value(scenario).expect("TOML without dates is JSON");
        if let Err(error) = keeps_to(&scenario, &root, &root) {
            panic!("{}: {error}", file.display());
        }
    }
}

/// Takes each key of each figure's `[reproduces]` away, and puts an unknown one
/// beside it: what reads it and the schema are of one mind.
#[test]
fn the_schema_allows_what_is_read() {
    let root = schema();
    let (mut read, mut refused) = (0, 0);
    for figure in find(&[]).expect("the built-in figures") {
        let table = figure.scenario.reproduces.clone().expect("it is a figure");
        for changed in changes(&toml::Value::Table(table)) {
            let mut scenario = figure.scenario.clone();
            scenario.reproduces = changed.as_table().cloned();
            let reads = Figure::new(&figure.id, scenario).is_ok();
            let json = serde_json::to_value(&changed).expect("TOML without dates is JSON");
            let allows = keeps_to(&json, &root["properties"]["reproduces"], &root);
            assert_eq!(
                reads,
                allows.is_ok(),
                "{}: {changed}: {allows:?}",
                figure.id
            );
            *(if reads { &mut read } else { &mut refused }) += 1;
        }
    }
    assert!(read > 100 && refused > 100, "{read} {refused}");
}

/// The value with one key less, or one more, anywhere in it.
fn changes(value: &toml::Value) -> Vec<toml::Value> {
    let mut all = Vec::new();
    match value {
        toml::Value::Table(table) => {
            let mut more = table.clone();
            more.insert("no-such-key".into(), toml::Value::Boolean(true));
            all.push(more.into());
            for (key, inner) in table {
                let mut less = table.clone();
                less.remove(key);
                all.push(less.into());
                all.extend(changes(inner).into_iter().map(|changed| {
                    let mut table = table.clone();
                    table.insert(key.clone(), changed);
                    table.into()
                }));
            }
        }
        toml::Value::Array(list) => {
            for (i, inner) in list.iter().enumerate() {
                all.extend(changes(inner).into_iter().map(|changed| {
                    let mut list = list.clone();
                    list[i] = changed;
                    list.into()
                }));
            }
        }
        _ => {}
    }
    all
}

#[test]
fn the_schema_refuses_what_is_not_a_scenario() {
    let root = schema();
    for text in [
        r#"{}"#,
        r#"{"title": "t", "duration": "1s"}"#,
        r#"{"title": "t", "duration": 1, "client": []}"#,
        r#"{"title": "t", "duration": "1s", "client": [{"name": "A", "ticket": 3}]}"#,
        r#"{"title": "t", "duration": "1s", "client": [{"name": "A", "tickets": 0}]}"#,
        r#"{"title": "t", "duration": "1s", "client": [], "program": {"p": {"steps": [{"comput": "1s"}]}}}"#,
        r#"{"title": "t", "duration": "1s", "client": [], "machine": {"policy": "fair"}}"#,
    ] {
        let value = serde_json::from_str(text).expect("JSON");
        assert!(keeps_to(&value, &root, &root).is_err(), "{text}");
    }
}

/// Validates against the keywords that our schema uses, patterns left out.
fn keeps_to(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let Value::Object(rules) = schema else {
        return if *schema == Value::Bool(true) {
            Ok(())
        } else {
            Err(format!("{value}"))
        };
    };
    for (rule, wanted) in rules {
        let kept = match rule.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().expect("text").trim_start_matches('#');
                keeps_to(value, root.pointer(pointer).expect("defined"), root)?;
                true
            }
            "type" => has_type(value, wanted),
            "enum" => wanted.as_array().expect("a list").contains(value),
            "const" => wanted == value,
            "anyOf" | "oneOf" => {
                let kinds = wanted.as_array().expect("a list");
                kinds.iter().any(|kind| keeps_to(value, kind, root).is_ok())
            }
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= wanted.as_f64().expect("a number")),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= wanted.as_f64().expect("a number")),
            "minItems" => value
                .as_array()
                .is_none_or(|list| list.len() as u64 >= wanted.as_u64().expect("a number")),
            "maxItems" => value
                .as_array()
                .is_none_or(|list| list.len() as u64 <= wanted.as_u64().expect("a number")),
            "required" => value.as_object().is_none_or(|table| {
                let names = wanted.as_array().expect("a list");
                names
                    .iter()
                    .all(|name| table.contains_key(name.as_str().expect("text")))
            }),
            "items" => {
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .try_for_each(|item| keeps_to(item, wanted, root))?;
                true
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten();
                let kinds = wanted.as_array().expect("a list");
                items
                    .zip(kinds)
                    .try_for_each(|(item, kind)| keeps_to(item, kind, root))?;
                true
            }
            "properties" => {
                for (name, inner) in wanted.as_object().expect("a table") {
                    if let Some(value) = value.get(name) {
                        keeps_to(value, inner, root).map_err(|error| format!("{name}: {error}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                let fields = value.as_object().into_iter().flatten();
                let mut others =
                    fields.filter(|field| known.is_none_or(|known| !known.contains_key(field.0)));
                others.try_for_each(|field| {
                    keeps_to(field.1, wanted, root).map_err(|error| format!("{}: {error}", field.0))
                })?;
                true
            }
            "$schema" | "$defs" | "title" | "description" | "default" | "format" | "pattern" => {
                true
            }
            other => panic!("this test does not know the keyword {other}"),
        };
        if !kept {
            return Err(format!("{value} breaks {rule}: {wanted}"));
        }
    }
    Ok(())
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no such type: {other}"),
    };
    match wanted {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}
