//! The normal form of a file: the tokens without the differences that rustfmt may introduce.
//!
//! Trailing commas, the order of `use` and `mod` items, braces around one `use` path, braces around a single expression behind `=>` or
//! the parameters of a closure, the semicolon behind a final `return`, `break` or `continue`, and the short form of fields. Everything else stays as written.

use super::lexer::{Kind, Token};
use super::runs::{self, Run, closing};

/// The parts of a file that are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Comments and the contents of strings may change.
    pub is_prose: bool,
    /// `pub`, `pub(crate)` and the like may appear and vanish.
    pub any_visibility: bool,
}

/// A file in its normal form.
#[derive(Debug)]
pub struct Normal<'a> {
    /// Its tokens; a run stands as [`Kind::Run`].
    pub tokens: Vec<Token<'a>>,
    /// The items of each run.
    pub runs: Vec<Run<'a>>,
}

/// The normal form of these tokens.
#[must_use]
pub fn normal<'a>(tokens: &[Token<'a>], terms: Terms) -> Normal<'a> {
    let kept = tokens.iter().copied().filter(|token| !(terms.is_prose && token.kind == Kind::Comment));
    let mut kept: Vec<_> = kept.collect();
    if terms.any_visibility {
        kept = without_visibility(&kept);
    }
    let (tokens, runs) = runs::extract(&without_final_semicolons(&kept));
    let mut out = Vec::with_capacity(tokens.len());
    unwrapped(&tokens, &mut out);
    Normal { tokens: long_fields(&without_trailing_commas(&out)), runs }
}

fn without_visibility<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if !token.is_word("pub") {
            out.push(*token);
            continue;
        }
        let is_scope = |word: &Token<'_>| ["crate", "super", "self", "in"].contains(&word.text);
        let ends = |sign: &Token<'_>, word: &Token<'_>| sign.is(")") || word.is_word("in");
        if let [open, word, end, ..] = &tokens[at..]
            && open.is("(")
            && is_scope(word)
            && ends(end, word)
            && let Some(close) = closing(tokens, at)
        {
            at = close + 1;
        }
    }
    out
}

/// Copies tokens without the semicolon of a `return`, `break` or `continue` that ends its block.
fn without_final_semicolons<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut out: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    // For each open bracket, whether the statement in it is a jump.
    let mut open = vec![false];
    for (at, token) in tokens.iter().enumerate() {
        let begins = out.iter().rev().find(|before| before.kind != Kind::Comment);
        if begins.is_some_and(|before| ["{", "}", ";"].iter().any(|sign| before.is(sign))) {
            let is_jump = ["return", "break", "continue"].iter().any(|word| token.is_word(word));
            open.last_mut().into_iter().for_each(|jump| *jump = is_jump);
        }
        if token.kind == Kind::Sign {
            match token.text {
                "(" | "[" | "{" => open.push(false),
                ")" | "]" | "}" => drop(open.pop()),
                ";" if open.last() == Some(&true) && tokens.get(at + 1).is_some_and(|next| next.is("}")) => continue,
                _ => {}
            }
        }
        out.push(*token);
    }
    out
}

/// Copies tokens, without the braces around a single expression behind `=>` or closure parameters. Each block behind `=>` is followed
/// by a comma.
fn unwrapped<'a>(tokens: &[Token<'a>], out: &mut Vec<Token<'a>>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let params = if begins_closure(token, out.last()) { params_end(tokens, at) } else { None };
        let head = match params {
            Some(end) => Some(end),
            None if token.is("=>") => Some(at),
            None => None,
        };
        let Some(head) = head else {
            out.push(*token);
            at += 1;
            continue;
        };
        // Patterns of parameters hold no blocks.
        out.extend_from_slice(&tokens[at..=head]);
        at = head + 1;
        let block = tokens.get(at).filter(|open| open.is("{")).and_then(|_| closing(tokens, at));
        let Some(close) = block else { continue };
        let behind = tokens.get(close + 1);
        if behind.is_some_and(|behind| behind.is(".") || behind.is("?")) {
            continue;
        }
        let body = &tokens[at + 1..close];
        if is_single(body) {
            unwrapped(body, out);
        } else {
            out.push(tokens[at]);
            unwrapped(body, out);
            out.push(tokens[close]);
        }
        at = close + 1;
        if params.is_none() {
            out.push(Token::made(Kind::Sign, ",", tokens[close].line));
            at += usize::from(behind.is_some_and(|behind| behind.is(",")));
        }
    }
}

/// Whether a block holds one expression and no statement.
fn is_single(body: &[Token<'_>]) -> bool {
    let mut depth = 0;
    let has_statement = body.iter().any(|token| {
        let change = match (token.kind, token.text) {
            (Kind::Sign, "(" | "[" | "{") => 1,
            (Kind::Sign, ")" | "]" | "}") => -1,
            _ => 0,
        };
        depth += change;
        depth == 0 && (token.is(";") || matches!(token.kind, Kind::Run(_)))
    });
    !has_statement && body.iter().any(|token| token.kind != Kind::Comment)
}

/// Whether a `|` opens the parameters of a closure, by the token before it.
fn begins_closure(token: &Token<'_>, before: Option<&Token<'_>>) -> bool {
    let Some(before) = before.filter(|_| token.is("|") || token.is("||")) else { return false };
    match before.kind {
        Kind::Sign => matches!(before.text, "(" | "," | "=" | "{" | "[" | "=>" | ";" | ":" | "&" | "!"),
        Kind::Word => matches!(before.text, "move" | "return" | "else" | "async" | "break" | "in"),
        _ => false,
    }
}

/// The place of the `|` that closes the parameters of the closure that begins here.
fn params_end(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    if tokens[open].is("||") {
        return Some(open);
    }
    let mut at = open + 1;
    loop {
        let token = tokens.get(at)?;
        match token.text {
            "|" if token.kind == Kind::Sign => return Some(at),
            "(" | "[" | "{" if token.kind == Kind::Sign => at = closing(tokens, at)? + 1,
            ")" | "]" | "}" | ";" | "=>" if token.kind == Kind::Sign => return None,
            _ => at += 1,
        }
    }
}

/// Copies tokens without trailing commas; the tuple of one element keeps its comma.
fn without_trailing_commas<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    // For each open bracket, whether it may be a tuple, and its commas.
    let mut open: Vec<(bool, usize)> = Vec::new();
    let mut out: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Sign {
            match token.text {
                "(" => open.push((!ends_callee(out.last()), 0)),
                "[" | "{" => open.push((false, 0)),
                ")" | "]" | "}" => drop(open.pop()),
                "," => {
                    let (is_tuple, commas) = open.last().copied().unwrap_or_default();
                    let next = tokens[at + 1..].iter().find(|next| next.kind != Kind::Comment);
                    let is_last = next.is_some_and(|next| [")", "]", "}", ">"].iter().any(|closing| next.is(closing)));
                    if is_last && !(is_tuple && commas == 0) {
                        continue;
                    }
                    if let Some((_, commas)) = open.last_mut() {
                        *commas += 1;
                    }
                }
                _ => {}
            }
        }
        out.push(*token);
    }
    out
}

/// Whether a parenthesis behind this token holds arguments: it is a name, or closes something, or is a macro's mark.
fn ends_callee(before: Option<&Token<'_>>) -> bool {
    const EXPRESSIONS: [&str; 10] = ["return", "in", "match", "if", "while", "else", "break", "move", "mut", "ref"];
    before.is_some_and(|before| match before.kind {
        Kind::Word => !EXPRESSIONS.contains(&before.text),
        Kind::Sign => [")", "]", ">", "!", "?"].contains(&before.text),
        _ => false,
    })
}

/// Writes each field `x` in braces as `x: x`, so that a renamed half makes no other form.
fn long_fields<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut open: Vec<&str> = Vec::new();
    let mut out: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let begins = out.last().is_some_and(|before| before.is("{") || before.is(","));
        if begins && open.last() == Some(&"{") {
            let modes = tokens[at..].iter().take_while(|token| token.is_word("ref") || token.is_word("mut")).count();
            if let [name, end, ..] = &tokens[at + modes..]
                && name.kind == Kind::Word
                && (end.is(",") || end.is("}"))
            {
                let short = Token { is_short: true, ..*name };
                out.extend([short, Token::made(Kind::Sign, ":", name.line)]);
                out.extend_from_slice(&tokens[at..at + modes]);
                out.push(short);
                at += modes + 1;
                continue;
            }
        }
        if token.kind == Kind::Sign {
            match token.text {
                "(" | "[" | "{" => open.push(token.text),
                ")" | "]" | "}" => drop(open.pop()),
                _ => {}
            }
        }
        out.push(*token);
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::lexer::lex;

    fn form(text: &str, terms: Terms) -> String {
        let tokens = lex(text).unwrap();
        normal(&tokens, terms).tokens.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    fn same(one: &str, other: &str) -> bool {
        form(one, Terms::default()) == form(other, Terms::default())
    }

    #[test]
    fn trailing_commas_are_irrelevant_except_in_tuples_of_one() {
        assert!(same("f(a, b,); [1, 2,]; S<A, B,>", "f(a, b); [1, 2]; S<A, B>"));
        assert!(same("f(a, // why\n)", "f(a // why\n)"));
        assert!(same("let x = (a, b,);", "let x = (a, b);"));
        assert!(!same("let x = (a,);", "let x = (a);"));
        assert!(!same("f((a,))", "f((a))"));
        assert!(!same("f(a, b)", "f(a b)"));
    }

    #[test]
    fn braces_of_single_expressions_in_arms_are_irrelevant() {
        assert!(same("match a { A => { f(x) } B => y, }", "match a { A => f(x), B => { y } }"));
        assert!(same("match a { A => { f(); } B => y }", "match a { A => { f(); }, B => y, }"));
        assert!(!same("match a { A => { f(); } B => y }", "match a { A => { f() } B => y }"));
        assert!(!same("match a { A => { x }.f(), }", "match a { A => x.f(), }"));
    }

    #[test]
    fn braces_of_single_expressions_in_closures_are_irrelevant() {
        assert!(same("f(|a| { b(a) })", "f(|a| b(a))"));
        assert!(same("let f = move || { g(|(x, y)| { x }) };", "let f = move || g(|(x, y)| x);"));
        assert!(!same("f(|a| { b(a); })", "f(|a| { b(a) })"));
        assert!(!same("f(|a| -> u8 { b })", "f(|a| -> u8 b)"));
        assert!(!same("x = a | b | { c };", "x = a | b | c;"));
    }

    #[test]
    fn semicolons_behind_final_jumps_are_irrelevant() {
        assert!(same("let Some(a) = b else { return };", "let Some(a) = b else { return; };"));
        assert!(same("{ x(); break 'a f(b); }", "{ x(); break 'a f(b) }"));
        assert!(!same("{ f(b); }", "{ f(b) }"));
        assert!(!same("{ return a; f() }", "{ return a f() }"));
    }

    #[test]
    fn short_and_long_fields_have_one_form() {
        assert!(same("S { a, b: c }", "S { a: a, b: c }"));
        assert!(same("let S { mut a, ref b } = s;", "let S { a: mut a, b: ref b } = s;"));
        assert!(!same("S { a }", "S { a: b }"));
    }

    #[test]
    fn visibility_matters_unless_it_is_left_out() {
        let (one, other) = ("pub(in crate::a) fn f(); pub struct S(pub (u8, u8));", "fn f(); struct S((u8, u8));");
        assert!(!same(one, other));
        let terms = Terms { any_visibility: true, ..Terms::default() };
        assert_eq!(form(one, terms), form(other, terms));
    }

    #[test]
    fn comments_vanish_from_prose_alone() {
        let (one, other) = ("/// a\nfn f() { /* b */ }", "fn f() {}");
        assert!(!same(one, other));
        let terms = Terms { is_prose: true, ..Terms::default() };
        assert_eq!(form(one, terms), form(other, terms));
    }
}
