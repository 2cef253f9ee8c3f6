//! One flat JSON object in one line: strings, numbers, true, false, null. Nested values are refused.
//!
//! Strict as RFC 8259 says, and stricter in one thing: a key that comes twice is an error.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
}

impl Value {
    /// What the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
        }
    }
}

pub type Object = BTreeMap<String, Value>;

/// Parse one line. The error says what is wrong and at which byte (from 1).
pub fn parse_object(line: &str) -> Result<Object, String> {
    let mut reader = Reader { bytes: line.as_bytes(), at: 0 };
    let object = reader.object()?;
    reader.space();
    match reader.peek() {
        None => Ok(object),
        Some(_) => Err(reader.wrong("more text after the object")),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> String {
        format!("{what} at byte {}", self.at + 1)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.wrong(&format!("expected '{}'", byte as char)))
    }

    fn object(&mut self) -> Result<Object, String> {
        let mut object = Object::new();
        self.space();
        self.expect(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(object);
        }
        loop {
            self.space();
            let key = self.text()?;
            self.space();
            self.expect(b':')?;
            self.space();
            let value = self.value()?;
            if object.insert(key.clone(), value).is_some() {
                return Err(self.wrong(&format!("the key {key:?} comes twice, the second time")));
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(object);
                }
                _ => return Err(self.wrong("expected ',' or '}'")),
            }
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'"') => Ok(Value::Text(self.text()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{' | b'[') => Err(self.wrong("a nested value, where only flat objects are read,")),
            _ => Err(self.wrong("expected a value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.wrong(&format!("expected {word}")))
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong("expected a digit"));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1; // no further digit may follow a leading zero: the caller then finds it where a ',' should be
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.wrong("not a number"))?;
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Number(number)),
            _ => Err(self.wrong("a number beyond all bounds")),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        self.expect(b'"')?;
        let mut text = Vec::new();
        loop {
            match self.take() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let mut utf8 = [0; 4];
                    text.extend_from_slice(self.escape()?.encode_utf8(&mut utf8).as_bytes());
                }
                Some(byte) if byte >= 0x20 => text.push(byte),
                Some(_) => return Err(self.wrong("a control character in a string")),
                None => return Err(self.wrong("a string that does not end")),
            }
        }
        String::from_utf8(text).map_err(|_| self.wrong("not UTF-8"))
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.take() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hex4()?;
                let code = if (0xD800..0xDC00).contains(&high) {
                    self.expect(b'\\')?;
                    self.expect(b'u')?;
                    let low = self.hex4()?;
                    if !(0xDC00..0xE000).contains(&low) {
                        return Err(self.wrong("half a surrogate pair"));
                    }
                    0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                } else {
                    high
                };
                char::from_u32(code).ok_or_else(|| self.wrong("half a surrogate pair"))?
            }
            _ => return Err(self.wrong("an unknown escape")),
        })
    }

    fn hex4(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.take().and_then(|byte| (byte as char).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.wrong("expected four hexadecimal digits"))?;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
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
}
