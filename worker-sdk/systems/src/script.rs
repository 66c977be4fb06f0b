//! How a script begins: the line that names its interpreter, and what editors put there by mistake.

use std::fmt;

/// How much of a file the kernel looks at to find its interpreter, in bytes.
pub const HEAD_BYTES: usize = 256;

/// What runs a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interpreter {
    /// The kernel: it is a binary.
    Kernel,
    /// The program at this path.
    Path(String),
    /// The program of this name in the search path, by way of `env` at this path.
    InSearchPath {
        /// The path of `env`.
        env: String,
        name: String,
    },
}

/// Why the beginning of a file names no interpreter. Displayed as the rest of a sentence about the file, with advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbegun {
    /// There is nothing in it.
    Empty,
    /// It is not in an encoding that the kernel reads.
    Utf16,
    /// A byte order mark comes before the line with the interpreter.
    ByteOrderMark,
    /// The name of the interpreter would end with a carriage return.
    CarriageReturn,
    /// There is no such line.
    NoInterpreter,
}

impl fmt::Display for Misbegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::Utf16 => "it is in UTF-16; save it in UTF-8",
            Self::ByteOrderMark => {
                "it begins with a byte order mark, which hides its interpreter; save it in UTF-8 without one"
            }
            Self::CarriageReturn => {
                "it has the line ends of Windows (CRLF); convert it, such as with sed -i 's/\\r$//' or dos2unix"
            }
            Self::NoInterpreter => "its first line names no interpreter; begin it with one such as #!/bin/sh",
        })
    }
}

/// The interpreter that the first [`HEAD_BYTES`] of a file name.
///
/// # Errors
/// They name none.
pub fn interpreter(head: &[u8]) -> Result<Interpreter, Misbegun> {
    match head {
        [] => return Err(Misbegun::Empty),
        [0x7f, b'E', b'L', b'F', ..] => return Ok(Interpreter::Kernel),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(Misbegun::Utf16),
        [0xef, 0xbb, 0xbf, ..] => return Err(Misbegun::ByteOrderMark),
        _ => {}
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_prefix(b"#!").ok_or(Misbegun::NoInterpreter)?;
    if line.contains(&b'\r') {
        return Err(Misbegun::CarriageReturn);
    }
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches([' ', '\t']);
    let (path, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    if path.is_empty() {
        return Err(Misbegun::NoInterpreter);
    }
    // The kernel passes everything after the path as one argument. `env` takes an option or an assignment for itself.
    let name = argument.trim_start_matches([' ', '\t']);
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains(['=', '/', ' ', '\t']);
    Ok(if path.ends_with("/env") && is_name {
        Interpreter::InSearchPath { env: path.to_owned(), name: name.to_owned() }
    } else {
        Interpreter::Path(path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_found() {
        let path = |path: &str| Ok(Interpreter::Path(path.to_owned()));
        let by_env = |name: &str| {
            Ok(Interpreter::InSearchPath { env: "/usr/bin/env".to_owned(), name: name.to_owned() })
        };
        for (head, expected) in [
            (&b"\x7fELF\x02\x01"[..], Ok(Interpreter::Kernel)),
            (b"#!/bin/sh\necho a\r\n", path("/bin/sh")),
            (b"#! /usr/bin/python3 -u", path("/usr/bin/python3")),
            (b"#!\t/bin/sh -e \n", path("/bin/sh")),
            (b"#!/usr/bin/env python3\n", by_env("python3")),
            (b"#!/usr/bin/env -S python3 -u\n", path("/usr/bin/env")),
            (b"#!/usr/bin/env A=b sh\n", path("/usr/bin/env")),
            (b"#!/usr/bin/env\n", path("/usr/bin/env")),
            (b"", Err(Misbegun::Empty)),
            (b"#!\n", Err(Misbegun::NoInterpreter)),
            (b"\n#!/bin/sh\n", Err(Misbegun::NoInterpreter)),
            (b"echo plain\n", Err(Misbegun::NoInterpreter)),
            (b"#!/bin/sh\r\necho\r\n", Err(Misbegun::CarriageReturn)),
            (b"#!/bin/sh -e\r\n", Err(Misbegun::CarriageReturn)),
            // Of an old Macintosh.
            (b"#!/bin/sh\recho\rexit 0", Err(Misbegun::CarriageReturn)),
            (b"\xef\xbb\xbf#!/bin/sh\n", Err(Misbegun::ByteOrderMark)),
            (b"\xff\xfe#\0!\0", Err(Misbegun::Utf16)),
            (b"\xfe\xff\0#\0!", Err(Misbegun::Utf16)),
        ] {
            assert_eq!(interpreter(head), expected, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
