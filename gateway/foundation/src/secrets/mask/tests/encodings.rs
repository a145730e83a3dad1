//! Secrets whose bytes were taken for other characters, and those that were encoded twice.

use super::*;

#[test]
fn a_secret_is_found_as_one_reads_it_who_takes_it_for_other_characters() {
    // What Latin-1 and Windows make of its bytes in UTF-8, and its own bytes in those.
    let told = "K\u{e4}7n\u{e9}-geheim/\u{20ac}W\u{f6}rt+23=x";
    let known = Secrets::of([told.to_owned()]);
    let latin: String = told.bytes().map(char::from).collect();
    let windows = "K\u{c3}\u{a4}7n\u{c3}\u{a9}-geheim/\u{e2}\u{201a}\u{ac}W\u{c3}\u{b6}rt+23=x";
    let percent = |bytes: &[u8]| bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let own = b"K\xe47n\xe9-geheim/\x80W\xf6rt+23=x";
    let mut texts = vec![
        percent(own),
        percent(own).to_lowercase(),
        hex(own),
        STANDARD.encode(own),
        percent(b"K\xe47n\xe9") + "-geheim%2f%80W%F6rt%2B23%3dx",
    ];
    texts.push(STANDARD.encode(percent(own)));
    texts.push(STANDARD.encode([b"me:", &own[..], b"z"].concat()));
    texts.push(own.iter().map(|byte| format!("\\x{byte:02x}")).collect());
    for read in [&*latin, windows] {
        texts.extend([
            read.to_owned(),
            read.to_lowercase(),
            in_ascii(read),
            percent(read.as_bytes()),
            hex(read.as_bytes()),
        ]);
        texts.extend([STANDARD.encode(read), STANDARD.encode(format!("me:{read}")), STANDARD.encode(in_ascii(read))]);
        texts.push(read.chars().filter(|char| !char.is_control()).collect());
    }
    let is_left = |masked: &str| !masked.contains(MASK) || masked.replace(MASK, "").len() >= 40;
    let mut left = Vec::new();
    for quoted in &texts {
        let masked = known.masked(&format!("it said: {quoted}, and ended")).into_owned();
        let json = format!("{{\"message\":\"it said: {}\"}}", in_json(quoted));
        let in_json = known.masked_json(json.as_bytes(), Kept::Top).map(|text| String::from_utf8(text).unwrap());
        if is_left(&masked) || in_json.as_deref().is_none_or(|masked| masked.replace(MASK, "").len() >= 48) {
            left.push((quoted, masked, in_json));
        }
    }
    assert!(left.is_empty(), "{left:#?}");
    for other in ["Kaffee geheim/23=x", "K\u{c3}\u{a4}se 7n", "%E4%E9%F6", "deadbeefe4e9f6"] {
        assert_eq!(known.masked(other), other);
    }
}

#[test]
fn a_secret_with_a_blank_is_found_in_what_was_made_of_its_form() {
    // The one has escapes in a form, the other has none.
    for (secret, form) in
        [("s3cr3t/va lue ?x", "s3cr3t%2Fva+lue+%3Fx"), ("correct horse battery", "correct+horse+battery")]
    {
        let known = Secrets::of([secret.to_owned()]);
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut texts = vec![form.to_owned(), form.to_lowercase(), hex(form)];
        for before in ["", "a", "me:", "gate+way:"] {
            texts.extend(["", "z", "zz"].map(|after| STANDARD.encode(format!("{before}{form}{after}"))));
        }
        let left: Vec<_> = texts
            .iter()
            .map(|text| known.masked(&format!("it said: {text}.")).replace(MASK, "*"))
            .filter(|masked| !masked.contains('*') || masked.len() >= 32)
            .collect();
        assert!(left.is_empty(), "{secret}: {left:#?}");
        for other in ["correct+horse", "s3cr3t", "va+lue"] {
            assert_eq!(known.masked(other), other);
        }
    }
}

#[test]
fn base64_of_hexadecimal_digits_is_found_and_hexadecimal_digits_of_base64() {
    let known = secrets();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let of_more = |before: &str| STANDARD.encode(format!("{before}{}", hex(SECRET)));
    let mut texts = vec![of_more(""), of_more("a"), of_more("ab"), STANDARD.encode(hex(SECRET).to_uppercase())];
    for before in ["", "a", "me"] {
        let coded = STANDARD.encode(format!("{before}{SECRET}"));
        texts.extend([
            hex(&coded),
            hex(&coded).to_uppercase(),
            hex(&coded).as_bytes().chunks(2).map(|two| format!("{} ", String::from_utf8_lossy(two))).collect(),
        ]);
    }
    let left: Vec<_> = texts
        .iter()
        .map(|text| known.masked(&format!("it said: {text}.")).replace(MASK, "*"))
        .filter(|masked| !masked.contains('*') || masked.len() >= 40)
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}
