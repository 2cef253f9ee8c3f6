//! The parser against what is JSON and what is not.

use super::*;
use crate::random::Random;

#[test]
fn every_kind_of_value() {
    let object = parse_object(r#" {"a":-1.5e3, "b":"x\"\n\u00e9\ud83d\ude00","c":true,"d":null,"e":0} "#).unwrap();
    assert_eq!(object["a"], Value::Number(-1500.0));
    assert_eq!(object["b"], Value::Text("x\"\né😀".into()));
    assert_eq!(object["c"], Value::Bool(true));
    assert_eq!(object["d"], Value::Null);
    assert_eq!(object["e"], Value::Number(0.0));
    assert!(parse_object("{}").unwrap().is_empty());
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    for (line, message) in [
        ("", "expected '{' at byte 1"),
        ("{", "expected '\"' at byte 2"),
        (r#"{"a":1,}"#, "expected '\"' at byte 8"),
        (r#"{"a":01}"#, "expected ',' or '}' at byte 7"),
        (r#"{"a":1.}"#, "expected a digit at byte 8"),
        (r#"{"a":1e999}"#, "a number beyond all bounds at byte 11"),
        (r#"{"a":NaN}"#, "expected a value at byte 6"),
        (r#"{"a":[1]}"#, "a nested value, where only flat objects are read, at byte 6"),
        (r#"{"a":1} x"#, "more text after the object at byte 9"),
        (r#"{"a":1,"a":2}"#, "the key \"a\" comes twice, the second time at byte 13"),
        (r#"{"a":"\ud800"}"#, "expected '\\' at byte 13"),
        (r#"{"a":"\udc00"}"#, "half a surrogate pair at byte 13"),
        (r#"{"a":tru}"#, "expected true at byte 6"),
    ] {
        assert_eq!(parse_object(line).unwrap_err(), message, "{line}");
    }
}

fn encode(object: &Object) -> String {
    let fields: Vec<String> = object
        .iter()
        .map(|(key, value)| {
            let text = match value {
                Value::Null => "null".into(),
                Value::Bool(b) => b.to_string(),
                Value::Number(n) => format!("{n:?}"),
                Value::Text(s) => quoted(s),
            };
            format!("{}:{text}", quoted(key))
        })
        .collect();
    format!("{{{}}}", fields.join(" ,\t"))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        out.push_str(&format!("\\u{unit:04x}"));
    }
    out + "\""
}

#[test]
fn what_is_written_is_read_again() {
    let mut random = Random::new(11, 0);
    for _ in 0..2000 {
        let mut object = Object::new();
        for _ in 0..random.next() % 6 {
            let text: String =
                (0..random.next() % 5).filter_map(|_| char::from_u32((random.next() % 0x11_0000) as u32)).collect();
            let value = match random.next() % 4 {
                0 => Value::Null,
                1 => Value::Bool(random.next() % 2 == 0),
                2 => {
                    let number = f64::from_bits(random.next());
                    Value::Number(if number.is_finite() { number } else { 0.25 })
                }
                _ => Value::Text(text.clone()),
            };
            object.insert(text, value);
        }
        assert_eq!(parse_object(&encode(&object)).unwrap(), object);
    }
}

#[test]
fn no_bytes_make_it_panic_and_a_cut_line_is_never_whole() {
    let whole = r#"{"t_s":0.1,"plmn":"00101","outage":false,"x":null,"n":-1.25e-3,"s":"\u00e9\\"}"#;
    parse_object(whole).unwrap();
    for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
        assert!(parse_object(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
    let mut random = Random::new(12, 0);
    for _ in 0..50_000 {
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..1 + random.next() % 4 {
            let place = (random.next() % bytes.len() as u64) as usize;
            match random.next() % 3 {
                0 => bytes[place] = random.next() as u8,
                1 => bytes.insert(place, b"{}[]\",:\\0e-"[(random.next() % 11) as usize]),
                _ => drop(bytes.remove(place)),
            }
        }
        if let Ok(object) = parse_object(&String::from_utf8_lossy(&bytes)) {
            assert_eq!(parse_object(&encode(&object)).unwrap(), object);
        }
    }
}
