//! Which texts quote a secret, and what is left of them.

mod encodings;

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const SECRET: &str = "s3cr3t/va+lue?\"x\"=";

fn secrets() -> Secrets {
    Secrets::of([SECRET.to_owned()])
}

fn each(write: impl Fn(char) -> String) -> String {
    SECRET.chars().map(write).collect()
}

/// In every way that foreign programs were seen to write it.
fn quoted() -> Vec<String> {
    let once = STANDARD.encode(format!("me:{SECRET}"));
    let hex: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let half = SECRET.len() / 2;
    let (before, after) = SECRET.split_at(half);
    let folded: Vec<&str> = once.as_bytes().chunks(7).map(|part| std::str::from_utf8(part).unwrap()).collect();
    let mut texts = vec![
        SECRET.replace('+', "\\u002B").replace('"', "\\u0022"),
        SECRET.replace('=', "\\u003d").replace('"', "\\\""),
        each(|char| format!("\\u{:04x}", char as u32)),
        each(|char| format!("\\u{{{:x}}}", char as u32)),
        each(|char| format!("\\U{:08x}", char as u32)),
        each(|char| format!("\\x{:02X}", char as u32)),
        each(|char| format!("\\{:03o}", char as u32)),
        each(|char| format!("&#{};", char as u32)),
        each(|char| format!("&#x{:x};", char as u32)),
        SECRET.replace('+', "&plus;").replace('/', "&sol;").replace('"', "&quot;").replace('=', "&equals;"),
        each(|char| format!("%{:02X}", char as u32)).replace('%', "%25"),
        each(|char| format!("%25{:02X}", char as u32)).replace('%', "%25"),
        STANDARD.encode(STANDARD.encode(format!("ab{SECRET}z"))),
        STANDARD.encode(each(|char| format!("%{:02X}", char as u32))),
        STANDARD.encode(format!("ab{}", each(|char| format!("%{:02x}", char as u32)))),
        STANDARD.encode("a=s3cr3t%2Fva%2Blue%3F%22x%22%3D&b"),
        STANDARD.encode(in_json(SECRET)),
        STANDARD.encode(SECRET).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
        folded.join("\r\n"),
        once.replace('=', ""),
        hex.join(":"),
        hex.join(" "),
        hex.join("").to_uppercase(),
        hex.iter().map(|digits| format!("0x{digits}, ")).collect(),
        each(|char| format!("={:02X}", char as u32)),
        format!("{before}=\r\n{}", after.replace('=', "=3D")),
        SECRET.trim_end_matches('=').to_owned(),
    ];
    for between in
        ["<b>", "</span><span class=\"x\">", "\u{1b}[31m", "\u{200b}", "\u{feff}", "\r", "\u{fffd}", "\n", " \t"]
    {
        texts.push(format!("{before}{between}{after}"));
        texts.push(each(|char| format!("{char}{between}")));
    }
    texts
}

#[test]
fn a_secret_is_found_in_every_spelling() {
    let known = secrets();
    for quoted in quoted() {
        let text = format!("it said: {quoted}\n, and ended");
        let masked = known.masked(&text).into_owned();
        assert!(masked.starts_with("it said: ") && masked.ends_with(", and ended"), "{quoted}: {masked}");
        let left = masked.replace(MASK, "");
        // Parts that hold nothing of it may stay: padding, what stands before it in base64.
        assert!(masked.contains(MASK) && left.len() < 60, "{quoted}: {masked}");
    }
}

#[test]
fn a_json_text_is_masked_by_what_it_says_and_the_rest_stays_byte_for_byte() {
    let known = secrets();
    for quoted in quoted() {
        for escape in [in_json as fn(&str) -> String, in_ascii] {
            let inside = escape(&quoted);
            let text = format!("{{ \"code\":-1, \"message\" : \"no: {inside} \\u0041\\n\", \"data\":[\"\\/\", 1.50]}}");
            let masked = String::from_utf8(known.masked_json(text.as_bytes(), Kept::Top).expect(&text)).unwrap();
            let value: Value = serde_json::from_str(&masked).expect(&masked);
            assert!(masked.starts_with("{ \"code\":-1, \"message\" : \"no: "), "{masked}");
            assert!(masked.ends_with("\\u0041\\n\", \"data\":[\"\\/\", 1.50]}"), "{masked}");
            assert!(value["message"].as_str().unwrap().replace(MASK, "").len() < 60, "{masked}");
        }
    }
    for text in [r#"{"message":"no\u006eof\\it","data":{"a":[1,true,null,"\ud83d\ude00"]}}"#, "\"", "{\"a", "{\"\\"] {
        assert_eq!(known.masked_json(text.as_bytes(), Kept::Top), None, "{text}");
    }
}

/// Composed, and with a character that has a sign of its own.
const COMPOSED: &str = "Zürich-\u{c5}ngström-Gefäß";
/// The same, each mark a character of its own.
const TAKEN_APART: &str = "Zu\u{308}rich-A\u{30a}ngstro\u{308}m-Gefa\u{308}ß";

#[test]
fn a_secret_of_any_characters_is_found_in_either_form_and_every_spelling() {
    let percent = |text: &str, hex: fn(u8) -> String| -> String {
        let one = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { hex(byte) };
        text.bytes().map(one).collect()
    };
    let sign = COMPOSED.replace('\u{c5}', "\u{212b}");
    let mixed = COMPOSED.replace('ö', "o\u{308}");
    for kept in [COMPOSED, TAKEN_APART, &sign, &mixed] {
        let known = Secrets::of([kept.to_owned()]);
        for told in [COMPOSED, TAKEN_APART, &sign, &mixed] {
            let (upper, lower) =
                (percent(told, |byte| format!("%{byte:02X}")), percent(told, |byte| format!("%{byte:02x}")));
            if [COMPOSED, TAKEN_APART].contains(&told) {
                let hex: String = told.bytes().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(known.masked(&format!("it said: {hex}")), "it said: [secret]", "{kept} as {told}");
            }
            for quoted in [
                told.to_owned(),
                told.to_uppercase().replace("SS", "ß"),
                told.to_lowercase(),
                in_ascii(told),
                in_ascii(told).replace("\\u00E4", "\\u00e4"),
                in_ascii(told).to_lowercase(),
                in_ascii(told).replace('\\', "\\\\"),
                STANDARD.encode(told),
                STANDARD.encode(format!("me:{told}")),
                STANDARD.encode(&upper),
                STANDARD.encode(format!("x{lower}")),
                STANDARD.encode(in_ascii(told)),
                STANDARD.encode(told).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
                told.bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
                upper.replace('%', "%25"),
                upper,
                lower,
            ] {
                let masked = known.masked(&format!("it said: {quoted}, and ended")).into_owned();
                let left = masked.replace(MASK, "");
                assert!(masked.contains(MASK) && left.len() < 40, "{kept} as {quoted}: {masked}");
                let json = format!("{{\"message\":\"it said: {}\"}}", in_json(&quoted));
                let masked = known.masked_json(json.as_bytes(), Kept::Top).map(|text| String::from_utf8(text).unwrap());
                assert!(masked.is_some_and(|masked| masked.replace(MASK, "").len() < 48), "{kept} as {json}");
            }
        }
    }
}

#[test]
fn names_of_members_are_masked_but_those_of_the_protocol() {
    let known = Secrets::of(["customer-one".to_owned(), "message".to_owned()]);
    let masked =
        |text: &str, kept| known.masked_json(text.as_bytes(), kept).map(|text| String::from_utf8(text).unwrap());
    let error =
        r#"{"code":1,"message":"m","customer-one":{"customer-one":1},"data":{"customer-one":{"a customer-one":2}}}"#;
    let expected = r#"{"code":1,"message":"m","[secret]":{"[secret]":1},"data":{"[secret]":{"a [secret]":2}}}"#;
    assert_eq!(masked(error, Kept::Top).as_deref(), Some(expected));
    let notice = r#"{"progressToken":"customer-one","message":"m","customer-one":1,"_meta":{"customer-one":1}}"#;
    let expected = r#"{"progressToken":"customer-one","message":"m","[secret]":1,"_meta":{"[secret]":1}}"#;
    assert_eq!(masked(notice, Kept::Notification).as_deref(), Some(expected));
}

/// As most encoders write it.
fn in_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As encoders write it that keep to ASCII letters and digits.
fn in_ascii(text: &str) -> String {
    let mut units = [0; 2];
    let unit = |unit: &u16| format!("\\u{unit:04X}");
    let one = |char: char| match char.is_ascii_alphanumeric() || char == ' ' {
        true => char.to_string(),
        false => char.encode_utf16(&mut units).iter().map(unit).collect(),
    };
    text.chars().map(one).collect()
}

#[test]
fn an_escape_is_never_cut() {
    // What the text says is a line break and then other letters.
    let known = Secrets::of(["nabcdefg".to_owned(), "12345678".to_owned()]);
    assert_eq!(known.masked_json(br#"{"message":"\nabcdefg"}"#, Kept::Top), None);
    let masked = known.masked_json(br#"{"code":12345678,"data":[12345678,-12345678.5,{"12345678":1}]}"#, Kept::Top);
    let masked = String::from_utf8(masked.unwrap()).unwrap();
    assert_eq!(masked, r#"{"code":12345678,"data":["[secret]","[secret]",{"[secret]":1}]}"#);
}

#[test]
fn what_the_protocol_reads_and_clients_give_back_stays() {
    let known = Secrets::of(["progress".to_owned(), "customer-one".to_owned()]);
    let masked =
        |text: &str, kept| known.masked_json(text.as_bytes(), kept).map(|text| String::from_utf8(text).unwrap());
    let notice =
        r#"{"progressToken":"customer-one","progress":1,"message":"of customer-one","_meta":{"customer-one":1}}"#;
    let expected = r#"{"progressToken":"customer-one","progress":1,"message":"of [secret]","_meta":{"[secret]":1}}"#;
    assert_eq!(masked(notice, Kept::Notification).as_deref(), Some(expected));
    let tool = r#"{"name":"customer-one","description":"of customer-one","inputSchema":{"properties":{"customer-one":
        {"enum":["customer-one"],"default":"customer-one"},"name":{"title":"customer-one"}}}}"#;
    let expected = r#"{"name":"customer-one","description":"of [secret]","inputSchema":{"properties":{"customer-one":
        {"enum":["customer-one"],"default":"[secret]"},"name":{"title":"[secret]"}}}}"#;
    assert_eq!(masked(tool, Kept::Definition).as_deref(), Some(expected));
    assert_eq!(masked("\"say customer-one\"", Kept::Definition).as_deref(), Some("\"say [secret]\""));
}

#[test]
fn what_is_left_of_a_secret_is_masked_where_the_rest_is_cut_off() {
    let known = Secrets::of(["abcdefghijkl".to_owned(), "Zx9-QwErTy+UiOp/AsDfGh==KL".to_owned()]);
    for (text, masked) in [
        ("it is abcdefghijk", "it is [secret]"),
        ("it is abcdefgh", "it is [secret]"),
        ("it is abcdefgh, no more", "it is [secret], no more"),
        ("it is abcdefg", "it is abcdefg"),
        ("abcdefghXY goes on", "abcdefghXY goes on"),
        ("it is bcdefghijkl", "it is [secret]"),
        ("it is cdefghijk.", "it is [secret]."),
        ("bcdefghijklmn goes on", "bcdefghijklmn goes on"),
        ("xyzbcdefghijkl goes on", "xyzbcdefghijkl goes on"),
        ("last: Zx9-QwErTy+UiOp/AsDfGh=fatal: it ended", "last: [secret]"),
        ("last: x9-QwErTy+UiOp/AsDfGh==KL", "last: [secret]"),
        ("last: fatalQwErTy+UiOp/AsDfGh==KLfatal", "last: [secret]"),
        ("%61bcdefghi", "[secret]"),
        ("YWJjZGVmZ2hpag", "[secret]"),
        ("6162636465666768696", "[secret]"),
    ] {
        let shown = known.masked(text);
        assert_eq!(shown.contains(MASK), masked.contains(MASK), "{text}: {shown}");
        assert!(!shown.to_ascii_lowercase().contains("defgh") || !masked.contains(MASK), "{text}: {shown}");
        assert!(!shown.contains("UiOp/"), "{text}: {shown}");
    }
}

#[test]
fn secrets_that_are_alike_are_masked_whole_however_many_there_are() {
    let alike = |number: usize| format!("Alike{number:03}x/+=~w'Alike{number:03}y");
    let known = Secrets::of((0..200).flat_map(|number| [alike(number), format!("Bearer {}", alike(number))]));
    let quoted: Vec<String> = (0..200).map(|number| alike(number)[..21].to_owned()).collect();
    let masked = known.masked(&format!("quoted: {}.", quoted.join(" , "))).into_owned();
    // Where there is too much to compare, more is masked and never less.
    assert!(masked.starts_with("quoted: [secret] , [secret]") && !masked.contains("Alike"), "{masked}");
    assert!(!masked.contains(|char: char| char.is_ascii_digit()), "{masked}");
}

#[test]
fn what_is_no_secret_stays() {
    let known = secrets();
    for text in
        ["nothing of it: s3cr3t", "a &amp; b %2F c\\n <b>d</b> =3D 0x41", "\\u00", "&#", "%", "\\", "=", "<", "\u{1b}["]
    {
        assert_eq!(known.masked(text), text);
    }
}

#[test]
fn a_text_of_any_length_is_masked_and_its_cost_grows_with_it() {
    let known = Secrets::of([SECRET.to_owned(), "a".repeat(300), "<<<<<<<<<<<<".to_owned()]);
    // One that stands on the border of what is looked at as one.
    for at in [45, 41, 40, 37, 36, 33, 4, 1, 0].map(|before| 256 * 1024 - before) {
        let text = "x".repeat(at) + &in_ascii(SECRET) + &"y".repeat(100);
        let masked = known.masked(&text);
        assert!(masked.len() == at + MASK.len() + 100 && masked.contains(MASK), "{at}");
        let json = known.masked_json(format!("\"{text}\"").as_bytes(), Kept::Top).unwrap();
        assert_eq!(json.len(), at + MASK.len() + 102, "{at}");
    }
    for piece in ["a", "\\", "<", "\u{1b}[", "&#x", "%25", "=\n", "abc ", "\\u005c", "\u{1b}]", "aab", "<b"] {
        let cost = |times: usize| {
            let text = piece.repeat(times / piece.len());
            crate::steps::of(|| drop(known.masked(&text)))
        };
        let (Some(one), Some(two)) = (cost(40_000), cost(80_000)) else { return };
        assert!(two < one * 5 / 2 && two < 80_000 * 150, "{piece:?}: {one}, {two}");
    }
}

fn with_key() -> Secrets {
    Secrets::of([
        "s3cr3t/va+lue?\"x\"".to_owned(),
        "-----BEGIN KEY-----\nMIIBOgIBAAJB\nAKj34Gkx\n-----END KEY-----".to_owned(),
    ])
}

#[test]
fn every_form_of_a_secret_is_masked_wherever_it_stands() {
    const SECRET: &str = "s3cr3t/va+lue?\"x\"";
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let known = with_key();
    let percent = "s3cr3t%2Fva%2Blue%3F%22x%22";
    let mut texts = vec![
        format!("Authorization: Bearer {SECRET}."),
        serde_json::to_string(&format!("a {SECRET} b")).unwrap(),
        format!("?key={percent}&x"),
        format!("?key={}&x", percent.to_lowercase()),
        "s3cr3t/va%2Blue%3F%22x%22".to_owned(),
        "s3cr3t/va+lue?%22x%22".to_owned(),
        SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
        SECRET.to_uppercase(),
    ];
    for before in ["", "a", "ab", "user:", "abcde"] {
        for after in ["", "z", "zz"] {
            let text = format!("{before}{SECRET}{after}");
            texts.extend([STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)]);
        }
    }
    for text in texts {
        let masked = known.masked(&text).into_owned();
        assert!(masked.contains(MASK), "{text}");
        assert!(!masked.contains("s3cr3t") && !masked.contains("lue"), "{masked}");
    }
}

#[test]
fn lines_of_a_key_are_masked_one_by_one_and_its_marks_stay() {
    let known = with_key();
    let masked = known.masked("1 -----BEGIN KEY-----\r\n2 AKj34Gkx\r\n3 MIIBOgIBAAJB\r\n");
    assert_eq!(masked, "1 -----BEGIN KEY-----\r\n2 [secret]\r\n3 [secret]\r\n");
    assert_eq!(known.masked("-----BEGIN KEY-----\r\n  MIIBOgIBAAJB\r\n  AKj34Gkx\r\n").matches(MASK).count(), 1);
    assert_eq!(known.masked("nothing of it: s3cr3t"), "nothing of it: s3cr3t");
}

#[test]
fn secrets_that_overlap_are_masked_whole_and_short_values_are_none() {
    let known = Secrets::of(["abcdefgh12", "gh12ijklmn", "short"].map(str::to_owned));
    assert_eq!(known.masked("<abcdefgh12ijklmn> short"), "<[secret]> short");
    assert!(Secrets::of(["short".to_owned()]).is_empty());
    assert_eq!(format!("{known:?}"), "Secrets(2)");
    assert!(known == known.clone() && known != with_key());
}

#[test]
fn of_a_text_that_is_cut_no_part_of_a_secret_is_shown() {
    let known = Secrets::of(["first-secret", "second-secret"].map(str::to_owned)).0.unwrap();
    let text = "a first-secret b second-secret c";
    for (length, shown) in [(1, "a"), (4, "a [secret]"), (14, "a [secret]"), (16, "a [secret] b")] {
        // Masked, the text is shorter; what stands behind the length, and may be cut itself, is not shown for that.
        for window in [text, &text[..20], &text[..27]] {
            assert_eq!(known.written(window, length).unwrap(), shown, "{length} of {window}");
        }
    }
    assert_eq!(known.written(text, 18).unwrap(), "a [secret] b [secret]");
}

#[test]
fn what_is_cut_is_masked_before() {
    let learned = Learned::new();
    learned.note("canary-of-cuts-77");
    for bytes in [8, 9, 15, 25, 26] {
        assert_eq!(
            masked_and_cut("it says canary-of-cuts-77 here", bytes).trim_end(),
            match bytes {
                8 => "it says",
                _ => "it says [secret]",
            }
        );
    }
}

#[test]
fn a_long_secret_is_masked_in_pieces() {
    let long: String = (0..3000).map(|number| format!("{number}é-")).collect();
    let masked = Secrets::of([long.clone()]).masked(&format!("a {long} b")).into_owned();
    assert_eq!(masked.replace(MASK, ""), "a  b");
}

#[test]
fn a_word_that_a_server_gave_out_is_masked_where_it_stands_as_a_credential_alone() {
    let learned = Learned::new();
    learned.note_given("repositories");
    for (text, masked_text) in [
        ("Lists repositories, and all that is in repositories", None),
        ("a bearer of repositories; token_of_repositories", None),
        ("Bearer repos", None),
        ("authorization: Bearer repositories", Some("authorization: [secret]")),
        ("invalid token `repositories`", Some("invalid [secret]`")),
        ("?access_token=repositories&x", Some("?access_[secret]&x")),
        (r#"{"refresh_token":"repositories"}"#, Some(r#"{"refresh_[secret]"}"#)),
    ] {
        assert_eq!(masked(text), masked_text.unwrap_or(text));
    }
    let json = br#"{"error":"token=repositories of repositories"}"#;
    assert_eq!(masked_json(json, Kept::Names).unwrap(), &br#"{"error":"[secret] of repositories"}"#[..]);
    drop(learned);
    assert_eq!(masked("Bearer repositories"), "Bearer repositories");
}
