//! Runs of `use` and `mod` items, whose order and braces rustfmt chooses.

use super::lexer::{Kind, Token};

/// Consecutive `use` and `mod` items with the comments between them. Each `use` path is an item of its own; the order is irrelevant.
pub type Run<'a> = Vec<Vec<Token<'a>>>;

/// Replaces each run by one token of the kind [`Kind::Run`], whose number is an index of the second part.
#[must_use]
pub fn extract<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<Run<'a>>) {
    let (mut out, mut runs): (Vec<Token<'a>>, Vec<Run<'a>>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let mut run = Run::new();
        let line = tokens[at].line;
        while let Some((items, end)) = item(tokens, at) {
            run.extend(items);
            at = end;
        }
        if run.is_empty() {
            out.push(tokens[at]);
            at += 1;
        } else {
            // Single comments first: they are compared as a set, too.
            out.push(Token::made(Kind::Run(runs.len()), "", line));
            runs.push(run);
        }
    }
    (out, runs)
}

/// The `use` or `mod` item that begins here, with the comments before it and on its last line, and its end.
fn item<'a>(tokens: &[Token<'a>], from: usize) -> Option<(Run<'a>, usize)> {
    let token = |at: usize| tokens.get(at).copied();
    let mut items = Run::new();
    let mut at = from;
    let mut head = Vec::new();
    loop {
        let next = token(at)?;
        if next.kind == Kind::Comment {
            items.push(vec![next]);
            at += 1;
        } else if next.is("#") && token(at + 1)?.is("[") {
            let end = closing(tokens, at + 1)?;
            head.extend_from_slice(&tokens[at..=end]);
            at = end + 1;
        } else {
            break;
        }
    }
    if token(at)?.is_word("pub") {
        let end = if token(at + 1)?.is("(") { closing(tokens, at + 1)? } else { at };
        head.extend_from_slice(&tokens[at..=end]);
        at = end + 1;
    }
    let keyword = token(at)?;
    let is_use = keyword.is_word("use") && !token(at + 1)?.is("<");
    let is_mod = keyword.is_word("mod") && token(at + 2)?.is(";");
    if !is_use && !is_mod {
        return None;
    }
    let end = at + tokens[at..].iter().position(|token| token.is(";"))?;
    head.push(keyword);
    let body = &tokens[at + 1..end];
    items.extend(body.iter().filter(|token| token.kind == Kind::Comment).map(|comment| vec![*comment]));
    let body: Vec<_> = body.iter().copied().filter(|token| token.kind != Kind::Comment).collect();
    let mut paths = Vec::new();
    if !is_use || leaves(&body, &[], &mut paths).is_none() {
        paths = vec![body];
    }
    items.extend(paths.into_iter().map(|path| [&head[..], &path].concat()));
    let behind = token(end + 1).filter(|behind| behind.kind == Kind::Comment && behind.line == tokens[end].line);
    items.extend(behind.map(|comment| vec![comment]));
    Some((items, end + 1 + usize::from(behind.is_some())))
}

/// The paths of a `use` tree, each complete; `None` if it is not a plain tree.
fn leaves<'a>(tree: &[Token<'a>], above: &[Token<'a>], paths: &mut Vec<Vec<Token<'a>>>) -> Option<()> {
    let Some(open) = tree.iter().position(|token| token.is("{")) else {
        let is_path = tree.iter().all(|token| token.kind == Kind::Word || token.is("::") || token.is("*"));
        paths.push([above, tree].concat());
        return is_path.then_some(());
    };
    if closing(tree, open)? + 1 != tree.len() {
        return None;
    }
    let above = [above, &tree[..open]].concat();
    let (mut depth, mut from) = (0, open + 1);
    for at in open + 1..tree.len() {
        let token = tree[at];
        let is_last = at + 1 == tree.len();
        if (token.is(",") && depth == 0) || is_last {
            if at > from {
                leaves(&tree[from..at], &above, paths)?;
            }
            from = at + 1;
        }
        depth += i32::from(token.is("{")) - i32::from(token.is("}"));
    }
    Some(())
}

/// The place of the bracket that closes the one at a place.
#[must_use]
pub fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open).filter(|(_, token)| token.kind == Kind::Sign) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::lexer::lex;

    fn items(text: &str) -> Vec<String> {
        let tokens = lex(text).unwrap();
        let (_, runs) = extract(&tokens);
        let text = |item: &Vec<Token<'_>>| item.iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        let mut all: Vec<String> = runs.iter().flatten().map(text).collect();
        all.sort();
        all
    }

    #[test]
    fn use_trees_become_complete_paths() {
        let text = "pub(crate) use a::{b, c::{self, d as e}, f::*,};\nuse g;";
        let head = "pub ( crate ) use a ::";
        let expected =
            [format!("{head} b"), format!("{head} c :: d as e"), format!("{head} c :: self"), format!("{head} f :: *")];
        assert_eq!(items(text), [&expected[..], &["use g".to_owned()]].concat());
    }

    #[test]
    fn braces_and_order_of_use_lines_are_irrelevant() {
        assert_eq!(items("use a::{b};"), items("use a::b;"));
        assert_eq!(items("mod x;\n// why\nmod y;\nuse a::b;"), items("use a::b;\nmod y;\nmod x; // why"));
        assert_ne!(items("use a::b;"), items("use a::c;"));
        assert_ne!(items("pub use a::b;"), items("use a::b;"));
    }

    #[test]
    fn modules_with_bodies_and_captures_are_no_runs() {
        assert_eq!(items("mod x { fn f() -> impl Sized + use<'a> {} }"), Vec::<String>::new());
        let tokens = lex("fn f() { use a::b; b() }").unwrap();
        let (out, runs) = extract(&tokens);
        assert_eq!((out.len(), runs.len()), (tokens.len() - 4, 1));
    }
}
