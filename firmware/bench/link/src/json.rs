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
#[path = "json_tests.rs"]
mod tests;
